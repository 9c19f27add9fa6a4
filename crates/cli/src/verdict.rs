//! How a command ends whose answers were handed out: some questions may have failed, some records may have been rejected.

use anyhow::Result;
use tenaz_core::FailedQuery;

use crate::outcome::QuestionsFailed;
use crate::rejected::Rejected;
use crate::screen::Screen;

/// What is left to say about a job whose answers were handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The questions that could not be answered.
    pub(crate) failed: Vec<FailedQuery>,
    /// The records that the answers are without.
    pub(crate) rejected: Rejected,
}

impl Verdict {
    /// The last words of a command, and its failure if there is one. `accept`: the user has said that bad records are fine.
    pub(crate) fn conclude(self, accept: bool, screen: &Screen) -> Result<()> {
        let rejected = self.rejected.conclude(accept, screen);
        match (QuestionsFailed::check(self.failed), rejected) {
            (Ok(()), rejected) => rejected,
            (Err(failed), Ok(())) => Err(failed.into()),
            (Err(failed), Err(rejected)) => {
                screen.insist(&rejected.to_string());
                Err(failed.into())
            }
        }
    }
}
