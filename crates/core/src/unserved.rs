//! When to give up a job that no living worker can serve.

use crate::limits::{UNSERVED_LISTEN_MS, UNSERVED_MS};

/// What to do about a job that nobody serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnservedAction {
    /// Ask the broker for something, and tell with [`UnservedJob::answered`] when it has answered. A process that is cut off
    /// together with its node of the broker hears nobody, though all are there.
    AskBroker,
    /// End the job.
    GiveUp,
}

/// Watches a job whose build none of the living workers runs, or whose plan they all make differently.
///
/// ```text
///  no able worker for UNSERVED_MS ──▶ AskBroker ──answered, and still none for UNSERVED_LISTEN_MS──▶ GiveUp
///           ▲                                                   │
///           └──────────────── an able worker is heard ──────────┘
/// ```
///
/// Call [`UnservedJob::look`] every now and then with the number of workers that can serve the job. Workers of the right
/// build may just be restarting, so there must be none for a while without a break.
#[derive(Debug, Clone, Default)]
pub struct UnservedJob {
    since_ms: Option<u64>,
    asked: bool,
    answered_ms: Option<u64>,
}

impl UnservedJob {
    /// Takes in how many workers can serve the job at `now_ms`, of a clock that does not go back.
    pub fn look(&mut self, able_workers: usize, now_ms: u64) -> Option<UnservedAction> {
        if able_workers > 0 {
            *self = Self::default();
            return None;
        }
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(since_ms) < UNSERVED_MS {
            return None;
        }
        match self.answered_ms {
            Some(at) => (now_ms.saturating_sub(at) >= UNSERVED_LISTEN_MS).then_some(UnservedAction::GiveUp),
            None => (!std::mem::replace(&mut self.asked, true)).then_some(UnservedAction::AskBroker),
        }
    }

    /// The broker has answered what [`UnservedAction::AskBroker`] asked for. If an able worker was heard meanwhile, that question
    /// is of no interest any more.
    pub fn answered(&mut self, now_ms: u64) {
        if self.asked {
            self.answered_ms.get_or_insert(now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: u64 = 1_000 + UNSERVED_MS;

    /// A job whose broker is being asked.
    fn asking() -> UnservedJob {
        let mut job = UnservedJob::default();
        assert_eq!(job.look(0, 1_000), None);
        assert_eq!(job.look(0, DUE - 1), None);
        assert_eq!(job.look(0, DUE), Some(UnservedAction::AskBroker));
        job
    }

    #[test]
    fn a_job_is_given_up_after_a_while_without_a_worker_that_can_serve_it_and_not_before() {
        let mut job = asking();
        job.answered(DUE + 10);
        assert_eq!(job.look(0, DUE + 9 + UNSERVED_LISTEN_MS), None, "heartbeats may be on their way");
        assert_eq!(job.look(0, DUE + 10 + UNSERVED_LISTEN_MS), Some(UnservedAction::GiveUp));
    }

    #[test]
    fn a_worker_that_comes_begins_the_time_anew() {
        let mut job = UnservedJob::default();
        assert_eq!(job.look(0, 1_000), None);
        assert_eq!(job.look(1, DUE), None);
        assert_eq!(job.look(0, DUE + 1), None);
        assert_eq!(job.look(0, DUE + UNSERVED_MS), None);
        assert_eq!(job.look(0, DUE + 1 + UNSERVED_MS), Some(UnservedAction::AskBroker));
    }

    #[test]
    fn nothing_is_given_up_while_the_broker_does_not_answer() {
        let mut job = asking();
        for minutes in 1..9 {
            assert_eq!(job.look(0, DUE + 60_000 * minutes), None, "it is asked once");
        }
        assert_eq!(job.look(1, DUE + 600_000), None, "a worker is heard");
        job.answered(DUE + 600_001);
        assert_eq!(job.look(0, DUE + 610_000), None);
        assert_eq!(job.look(0, DUE + 610_000 + UNSERVED_MS), Some(UnservedAction::AskBroker), "the old answer is none");
    }
}
