//! Differences that are known, each with its reason. What is not in this list fails the test.
//!
//! An entry matches as narrowly as it can: by the kind of difference, the shape of the query and the text of an error, or by asking again
//! without what is to blame. Every run prints how often each was met.

use super::case::Case;
use super::judge::{Kind, Opinions};
use super::tree::Query;
use super::walk::has_not_in_tied_by_more_than_equalities;

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
    pub opinions: &'f Opinions,
}

impl Finding<'_> {
    /// The text of tenaz's error.
    pub fn error(&self) -> &str {
        self.opinions.ours.iter().find_map(|(_, ours)| ours.as_ref().err()).map_or("", String::as_str)
    }

    /// The tables with 0 in the place of -0; `None` if no table has one.
    fn without_negative_zeros(&self) -> Option<Case> {
        let mut case = self.case.clone();
        let mut any = false;
        for field in case.tables.iter_mut().flat_map(|table| table.rows.iter_mut().flatten().flatten()) {
            if field == "-0" {
                any = true;
                "0".clone_into(field);
            }
        }
        any.then_some(case)
    }
}

/// A known difference.
pub struct Known {
    pub name: &'static str,
    pub whose: Whose,
    pub reason: &'static str,
    pub matches: fn(&Finding<'_>, &mut Again<'_>) -> bool,
}

/// Asks everybody the same of other tables.
pub type Again<'a> = dyn FnMut(&Case) -> Opinions + 'a;

pub const KNOWN: &[Known] = &[
    Known {
        name: "digests with weights",
        whose: Whose::OurChoice,
        reason: "its digest depends on the grouping of rows; refused, and the message names percentile_cont",
        matches: |f, _| {
            f.kind == Kind::Refused && f.error().contains("approx_percentile_cont_with_weight() is not offered")
        },
    },
    Known {
        name: "NOT IN of a subquery that is tied by more than equalities",
        whose: Whose::DataFusion,
        reason: "its join for it does not mind nulls, and values cannot be had that way; refused with what to write instead",
        matches: |f, _| {
            f.kind == Kind::Refused
                && f.error().contains("tied to it by equalities only")
                && has_not_in_tied_by_more_than_equalities(f.query)
        },
    },
    Known {
        name: "negative zero",
        whose: Whose::DataFusion,
        reason: "floats are compared by IEEE's total order, in which -0 comes before 0; in SQL they are equal",
        // It is the reason if there is no difference without it.
        matches: |f, again| {
            let is_of_values = matches!(f.kind, Kind::AgainstDuck | Kind::Disputed | Kind::Alone);
            let without = if is_of_values { f.without_negative_zeros() } else { None };
            without.is_some_and(|case| again(&case).difference(f.query).is_none())
        },
    },
];

/// The known difference that this one is.
pub fn known(finding: &Finding<'_>, again: &mut Again<'_>) -> Option<&'static Known> {
    KNOWN.iter().find(|known| (known.matches)(finding, again))
}
