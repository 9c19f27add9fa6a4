//! The 24 months of the data set, 2023-07 to 2025-06.

use crate::calendar::{Date, days_in_month};

/// Number of months.
pub(super) const MONTHS: usize = 24;
/// Days of all months together.
pub(super) const ALL_DAYS: u64 = 731;

const FIRST_YEAR: u64 = 2023;
const FIRST_MONTH: u64 = 7;

/// One of the 24 months.
#[derive(Debug, Clone, Copy)]
pub(super) struct Month {
    /// From 0.
    pub(super) index: usize,
    pub(super) year: u64,
    pub(super) month: u64,
    pub(super) days: u64,
}

impl Month {
    pub(super) fn new(index: usize) -> Self {
        assert!(index < MONTHS, "there are {MONTHS} months");
        let months = FIRST_MONTH - 1 + index as u64;
        let (year, month) = (FIRST_YEAR + months / 12, months % 12 + 1);
        Self { index, year, month, days: days_in_month(year, month) }
    }

    /// `YYYYMM`, as in the file names.
    pub(super) fn compact(self) -> String {
        format!("{}{:02}", self.year, self.month)
    }

    /// `YYYY-MM-DD` of the day `day`, which counts from 0.
    pub(super) fn date_text(self, day: u64) -> Vec<u8> {
        let mut text = Vec::with_capacity(10);
        Date { year: self.year, month: self.month, day: day + 1 }.write(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_run_from_july_2023_to_june_2025() {
        assert_eq!(Month::new(0).compact(), "202307");
        assert_eq!(Month::new(MONTHS - 1).compact(), "202506");
        assert_eq!((0..MONTHS).map(|index| Month::new(index).days).sum::<u64>(), ALL_DAYS);
        assert_eq!(Month::new(7).date_text(28), b"2024-02-29");
    }
}
