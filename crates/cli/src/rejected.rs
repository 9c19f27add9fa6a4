//! How a command ends whose data had bad records: never without a word, and with a failure if they were many.

use anyhow::Result;
use indicatif::HumanCount;
use tenaz_runtime::{Outcome, TableReport};

use crate::outcome::NotWell;
use crate::screen::Screen;

/// One record in so many may be bad before a command fails.
const TOLERATED: u64 = 100;

/// Reasons that are named for each table.
const SHOWN_REASONS: usize = 3;

/// The tables with bad records, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejected {
    tables: Vec<String>,
    is_much: bool,
    in_directory: bool,
}

impl Rejected {
    /// The bad records of a job. `in_directory`: they have been written to `rejects.csv`.
    pub(crate) fn of(outcome: &Outcome, in_directory: bool) -> Self {
        Self::of_tables(&outcome.tables, in_directory)
    }

    fn of_tables(tables: &[TableReport], in_directory: bool) -> Self {
        let bad: Vec<&TableReport> = tables.iter().filter(|table| table.counts.rejected > 0).collect();
        let is_much = bad.iter().any(|table| {
            let counts = table.counts;
            counts.rejected.saturating_mul(TOLERATED) > counts.records || counts.accepted == 0
        });
        Self { tables: bad.into_iter().map(in_words).collect(), is_much, in_directory }
    }

    /// The last word of a command: a line that is also said when it should be quiet, or its failure. `accept`: the user has
    /// said that bad records are fine.
    pub(crate) fn conclude(self, accept: bool, screen: &Screen) -> Result<()> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let mut text = format!("the answers are without {}", self.tables.join("; "));
        if !self.in_directory {
            text.push_str("; --out DIR writes them to rejects.csv");
        }
        if self.is_much && !accept {
            text.push_str("; --accept-rejects makes that no failure");
            return Err(NotWell(text).into());
        }
        screen.insist(&text);
        Ok(())
    }
}

fn in_words(table: &TableReport) -> String {
    let counts = table.counts;
    let mut reasons: Vec<(&String, &u64)> = table.reasons.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let named = reasons.iter().take(SHOWN_REASONS);
    let why: Vec<String> =
        named.map(|(code, count)| format!("{} {}", HumanCount(**count), code.replace('_', " "))).collect();
    let more = if reasons.len() > SHOWN_REASONS { ", …" } else { "" };
    let (rejected, records) = (HumanCount(counts.rejected), HumanCount(counts.records));
    let share = match (counts.records, counts.accepted) {
        (1, 0) => "the only record".to_owned(),
        (_, 0) => format!("all {rejected} records"),
        _ => format!("{rejected} of {records} records"),
    };
    let was = if counts.rejected == 1 { "was" } else { "were" };
    format!("{share} of {}, which {was} rejected ({}{more})", table.name, why.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tenaz_core::TableLedger;

    use super::*;

    fn rejected(records: u64, rejected: u64) -> Rejected {
        let counts = TableLedger { records, accepted: records - rejected, rejected };
        let reasons = BTreeMap::from([("field_count".to_owned(), rejected)]);
        Rejected::of_tables(
            &[TableReport { name: "t".to_owned(), counts, bytes: 1, is_partial: false, reasons }],
            false,
        )
    }

    #[test]
    fn more_than_one_in_a_hundred_is_a_failure_unless_it_is_accepted() {
        let screen = Screen::new(true);
        for (records, bad, fails) in
            [(1000, 0, false), (1000, 10, false), (1000, 11, true), (1, 1, true), (0, 0, false)]
        {
            assert_eq!(rejected(records, bad).conclude(false, &screen).is_err(), fails, "{bad} of {records}");
            assert!(rejected(records, bad).conclude(true, &screen).is_ok());
        }
        let text = rejected(1200, 13).conclude(false, &screen).expect_err("a failure").to_string();
        assert!(text.contains("13 of 1,200 records of t, which were rejected (13 field count)"), "{text}");
    }
}
