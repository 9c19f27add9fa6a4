//! Differences that are known, each with its reason. What is not in this list fails the test.
//!
//! An entry matches as narrowly as it can: by the kind of difference, by the words of the SQL, by the text of an error. Every run
//! prints how often each was met.

use super::case::Case;
use super::judge::{Kind, Opinions};
use super::tree::Query;

/// Who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// tenaz means something else, or refuses, on purpose.
    OurChoice,
    /// DataFusion is wrong, and tenaz refuses or has it from there.
    DataFusion,
    /// DuckDB is wrong, or means something else.
    DuckDb,
}

/// A difference and all that a known one may look at.
pub struct Finding<'f> {
    pub kind: Kind,
    pub case: &'f Case,
    pub query: &'f Query,
    /// As tenaz was asked.
    pub sql: &'f str,
    pub opinions: &'f Opinions,
}

impl Finding<'_> {
    /// The text of tenaz's error.
    pub fn error(&self) -> &str {
        self.opinions.ours.iter().find_map(|(_, ours)| ours.as_ref().err()).map_or("", String::as_str)
    }

    /// Whether tenaz and DataFusion stand alone with different answers.
    fn is_without_second_opinion(&self) -> bool {
        self.kind == Kind::Disputed && !matches!(self.opinions.duck, Some(Ok(_)))
    }

    /// Whether a table of the query has one in a column of the query.
    fn has_negative_zero(&self) -> bool {
        self.case.tables.iter().filter(|table| self.sql.contains(&format!("{} AS", table.name))).any(|table| {
            let columns = table.columns.iter().enumerate();
            let mut asked = columns.filter(|(_, (name, _))| self.sql.contains(&format!(".{name}")));
            asked.any(|(column, _)| table.rows.iter().any(|row| row[column].as_deref() == Some("-0")))
        })
    }

    pub fn duck_error(&self) -> &str {
        match &self.opinions.duck {
            Some(Err(error)) => error,
            _ => "",
        }
    }
}

/// A known difference.
pub struct Known {
    pub name: &'static str,
    pub whose: Whose,
    pub reason: &'static str,
    pub matches: fn(&Finding<'_>) -> bool,
}

pub const KNOWN: &[Known] = &[
    Known {
        name: "digests with weights",
        whose: Whose::OurChoice,
        reason: "its digest depends on the grouping of rows; refused, and the message names percentile_cont",
        matches: |f| {
            f.kind == Kind::Refused && f.error().contains("approx_percentile_cont_with_weight() is not offered")
        },
    },
    Known {
        name: "quotients of decimals, without a second opinion",
        whose: Whose::DataFusion,
        reason: "its quotients have few digits and are cut off, and DuckDB has no word for another function of the query",
        matches: |f| f.is_without_second_opinion() && (f.sql.contains(", 0.0))") || f.sql.contains(" / 1e3)")),
    },
    Known {
        name: "SIMILAR TO, without a second opinion",
        whose: Whose::DataFusion,
        reason: "it takes the pattern for a regular expression, and DuckDB has no word for another function of the query",
        matches: |f| f.is_without_second_opinion() && f.sql.contains("SIMILAR TO"),
    },
    Known {
        name: "NOT IN of a subquery that is tied by more than equalities",
        whose: Whose::DataFusion,
        reason: "its join for it does not mind nulls, and values cannot be had that way; refused with what to write instead",
        matches: |f| {
            f.kind == Kind::Refused && f.error().contains("tied to it by equalities only") && f.sql.contains("NOT")
        },
    },
    Known {
        name: "negative zero",
        whose: Whose::DataFusion,
        reason: "floats are compared by IEEE's total order, in which -0 comes before 0; in SQL they are equal",
        matches: |f| f.kind == Kind::AgainstDuck && f.has_negative_zero(),
    },
];

/// The known difference that this one is.
pub fn known(finding: &Finding<'_>) -> Option<&'static Known> {
    KNOWN.iter().find(|known| (known.matches)(finding))
}
