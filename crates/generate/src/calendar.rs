//! Days and dates of the proleptic Gregorian calendar, counted from 1970-01-01.

use crate::field::{number, two_digits};

/// A calendar date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    pub(crate) year: u64,
    pub(crate) month: u64,
    pub(crate) day: u64,
}

impl Date {
    /// The date `days` after 1970-01-01 (Hinnant's `civil_from_days`, for years after 0).
    pub(crate) fn from_days(days: i64) -> Self {
        let shifted = (days + 719_468).unsigned_abs();
        let era = shifted / 146_097;
        let day_of_era = shifted % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        Self { year, month, day }
    }

    /// Appends `YYYY-MM-DD`.
    #[inline]
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        number(out, self.year);
        out.push(b'-');
        two_digits(out, self.month);
        out.push(b'-');
        two_digits(out, self.day);
    }
}

/// Days of a month.
pub(crate) fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let text = |days| {
            let mut out = Vec::new();
            Date::from_days(days).write(&mut out);
            String::from_utf8(out).expect("ASCII")
        };
        assert_eq!(text(0), "1970-01-01");
        assert_eq!(text(-1), "1969-12-31");
        assert_eq!(text(11_016), "2000-02-29");
        assert_eq!(text(20_270), "2025-07-01");
    }

    #[test]
    fn leap_years_have_a_29th_of_february() {
        assert_eq!([2023, 2024, 1900, 2000].map(|year| days_in_month(year, 2)), [28, 29, 28, 29]);
    }
}
