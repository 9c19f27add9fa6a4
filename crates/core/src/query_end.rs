//! The end of one query: its answer is complete, though other queries of its job may go on.
//!
//! ```text
//!  all rows of the query, all accounts of its tables ──▶ closing checks of these ──▶ Fact::QueryEnded, in the control log
//! ```
//!
//! Complete is complete: no row is added or taken back. Two owners of the results may both come to the end of a query; they
//! find the same rows and the same fingerprint, and if they do not the job fails.

use serde::{Deserialize, Serialize};

use crate::{BoundedText, FaultClass};

/// What came of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum QueryOutcome {
    /// It has an answer.
    Answered {
        /// Rows of the answer.
        rows: u64,
        /// SHA-256 of the answer's CSV form.
        fingerprint: String,
    },
    /// It could not be answered.
    Failed {
        /// The party that has to change something.
        class: FaultClass,
        /// For people: what happened, and what to do.
        text: BoundedText,
    },
}

/// The end of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryEnded {
    /// What came of it.
    #[serde(flatten)]
    pub outcome: QueryOutcome,
    /// When, in milliseconds since 1970, by the clock of the process that came to it. For people.
    pub at_ms: u64,
}

impl QueryEnded {
    /// Whether both tell of the same answer. They may have been found at different times, and a failure may be told in other
    /// words.
    pub fn agrees_with(&self, other: &Self) -> bool {
        match (&self.outcome, &other.outcome) {
            (QueryOutcome::Failed { .. }, QueryOutcome::Failed { .. }) => true,
            (one, other) => one == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_agree_if_their_answers_do() {
        let answered =
            |rows, at_ms| QueryEnded { outcome: QueryOutcome::Answered { rows, fingerprint: "f".to_owned() }, at_ms };
        let failed = |text: &str| QueryEnded {
            outcome: QueryOutcome::Failed { class: FaultClass::Query, text: text.into() },
            at_ms: 0,
        };
        assert!(answered(1, 2).agrees_with(&answered(1, 3)));
        assert!(!answered(1, 2).agrees_with(&answered(2, 2)));
        assert!(failed("a").agrees_with(&failed("b")));
        assert!(!failed("a").agrees_with(&answered(1, 0)));
    }
}
