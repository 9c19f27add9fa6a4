//! A worker's job in which nothing has arrived for long: why, and what to do about it.
//!
//! ```text
//!  nothing for 10 s ──▶ signs ──┬─ work under way, here or elsewhere; uploads                ──▶ wait
//!                               ├─ chunks wait in a queue from which this worker takes       ──▶ (seen twice) Reconnect
//!                               └─ all that can be taken is uploaded, and none of it waits    ──▶ SearchLost, patience doubled
//! ```
//!
//! Chunks of a later wave wait in their queue for broadcasts. If nobody works and no earlier chunk waits, the rows of these
//! broadcasts are what was lost: waiting for those chunks would be waiting for ever. Nor is the upload of a later wave waited for:
//! its queue may be full, and then it cannot go on before the broadcasts are there.
//!
//! The caller tells the watch the time and what it sees ([`StallSigns`]); the watch has no clock of its own.

use crate::limits::STALL_MS;
use crate::{JobFacts, Wave};

/// What the surroundings of a silent job look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StallSigns {
    /// This worker has chunks or tasks of the job under way.
    Working,
    /// Other members have.
    OthersWorking,
    /// The broker does not tell how many chunks wait.
    Unknown(String),
    /// Nobody works. For each wave: whether this worker takes its chunks, and how many wait in its queue.
    Idle {
        /// The waves, in order: (takes chunks of it, chunks that wait).
        waves: Vec<(bool, u32)>,
        /// Whether all tables whose chunks this worker takes are uploaded and closed.
        uploaded: bool,
    },
}

impl StallSigns {
    /// The signs of a job that is being worked on, here or elsewhere. None: nobody says that it is. A chunk that was delivered to
    /// another member is in no queue, and is not lost.
    pub fn of_work(here: usize, elsewhere: u64) -> Option<Self> {
        match (here, elsewhere) {
            (0, 0) => None,
            (0, _) => Some(Self::OthersWorking),
            _ => Some(Self::Working),
        }
    }

    /// The signs of a job on which nobody works. `waves` tells of each of the job's waves whether this worker takes its chunks,
    /// and how many wait. A worker that takes none cannot tell which wave is to blame, and waits for all tables.
    pub fn idle(of_job: &[Wave], waves: Vec<(bool, u32)>, facts: &JobFacts) -> Self {
        let takes_any = waves.iter().any(|(takes, _)| *takes);
        let taken = of_job.iter().zip(&waves).filter(|(_, (takes, _))| *takes || !takes_any);
        let uploaded = facts.is_uploaded(taken.flat_map(|(wave, _)| wave.tables.iter().copied()));
        Self::Idle { waves, uploaded }
    }
}

/// What to do about a silent job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StallVerdict {
    /// Nothing: somebody else is expected to act.
    Wait,
    /// Chunks wait in the queue of this wave and do not arrive: the broker has forgotten the subscription. Another
    /// connection gets another one.
    Reconnect {
        /// The wave.
        wave: usize,
        /// How many chunks wait.
        chunks: u32,
    },
    /// The broker has lost something that it had confirmed: look for it ([`crate::Event::Stalled`]).
    SearchLost,
}

/// Watches one job of one worker for silence.
///
/// Call [`heard`](Self::heard) whenever something arrives for the job, and [`judge`](Self::judge) every now and then while
/// [`is_due`](Self::is_due).
#[derive(Debug, Clone)]
pub struct StallWatch {
    heard_ms: u64,
    patience_ms: u64,
    /// Chunks were seen waiting once since something arrived. They may have come a moment before.
    saw_waiting: bool,
}

impl StallWatch {
    /// A job that begins now.
    pub fn new(now_ms: u64) -> Self {
        Self { heard_ms: now_ms, patience_ms: STALL_MS, saw_waiting: false }
    }

    /// Something has arrived.
    pub fn heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
        self.saw_waiting = false;
    }

    /// Whether nothing has arrived for so long that the signs are worth a look.
    pub fn is_due(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.heard_ms) >= self.patience_ms
    }

    /// For how long nothing may arrive.
    pub fn patience_ms(&self) -> u64 {
        self.patience_ms
    }

    /// What the signs mean. A verdict other than [`StallVerdict::Wait`] doubles the patience, so that a cure that does not
    /// help is not repeated too often.
    pub fn judge(&mut self, signs: &StallSigns, now_ms: u64) -> StallVerdict {
        let verdict = match signs {
            StallSigns::Working | StallSigns::OthersWorking | StallSigns::Unknown(_) => StallVerdict::Wait,
            StallSigns::Idle { waves, uploaded } => {
                let waiting = waves.iter().enumerate().find(|(_, (_, chunks))| *chunks > 0);
                match waiting {
                    Some((wave, &(true, chunks))) => {
                        if !std::mem::replace(&mut self.saw_waiting, true) {
                            return StallVerdict::Wait;
                        }
                        StallVerdict::Reconnect { wave, chunks }
                    }
                    _ if *uploaded => StallVerdict::SearchLost,
                    _ => StallVerdict::Wait,
                }
            }
        };
        if verdict != StallVerdict::Wait {
            self.patience_ms = self.patience_ms.saturating_mul(2);
        }
        self.heard(now_ms);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{ChunkDigest, Fact, Promise, TableId};

    fn idle(waves: &[(bool, u32)], uploaded: bool) -> StallSigns {
        StallSigns::Idle { waves: waves.to_vec(), uploaded }
    }

    #[test]
    fn nothing_is_suspected_while_somebody_works_or_uploads() {
        let mut watch = StallWatch::new(0);
        assert!(!watch.is_due(STALL_MS - 1));
        assert!(watch.is_due(STALL_MS));
        let harmless = [
            StallSigns::Working,
            StallSigns::OthersWorking,
            StallSigns::Unknown("the broker is away".to_owned()),
            idle(&[(true, 0)], false),
            idle(&[(true, 0), (false, 7)], false),
        ];
        for signs in harmless {
            assert_eq!(watch.judge(&signs, 50_000), StallVerdict::Wait, "{signs:?}");
            assert!(!watch.is_due(50_000 + STALL_MS - 1), "{signs:?}: the time begins anew");
        }
    }

    #[test]
    fn waiting_chunks_must_be_seen_twice_before_the_connection_is_given_up() {
        let mut watch = StallWatch::new(0);
        let signs = idle(&[(true, 3)], true);
        assert_eq!(watch.judge(&signs, STALL_MS), StallVerdict::Wait);
        assert!(watch.is_due(STALL_MS), "the next look comes soon");
        watch.heard(STALL_MS + 1);
        assert_eq!(watch.judge(&signs, 2 * STALL_MS + 1), StallVerdict::Wait, "one of them has come");
        assert_eq!(watch.judge(&signs, 2 * STALL_MS + 2), StallVerdict::Reconnect { wave: 0, chunks: 3 });
    }

    #[test]
    fn chunks_that_wait_for_a_lost_broadcast_do_not_hide_the_loss() {
        let mut watch = StallWatch::new(0);
        assert_eq!(watch.judge(&idle(&[(true, 0), (false, 7)], true), STALL_MS), StallVerdict::SearchLost);
    }

    /// Found by the simulator: the queue of the second wave is full, so that its table cannot be uploaded any further, and the rows
    /// of the first, which it waits for, are lost.
    #[test]
    fn a_full_queue_of_a_wave_that_waits_for_lost_rows_does_not_hide_the_loss() {
        let waves = [0, 1].map(|table| Wave { tables: BTreeSet::from([TableId(table)]), needs: BTreeSet::new() });
        let mut facts = JobFacts::default();
        let chunks = || Promise::count(1);
        let uploaded = |table| Fact::Uploaded { table, chunks: chunks(), digests: vec![ChunkDigest(0)] };
        let closed = |table| Fact::TableClosed { table, chunks: chunks(), records: None, bytes: 0 };
        facts.apply(0, &uploaded(TableId(0))).expect("a fact");
        assert_eq!(
            StallSigns::idle(&waves, vec![(true, 0), (false, 3)], &facts),
            idle(&[(true, 0), (false, 3)], false)
        );
        facts.apply(1, &closed(TableId(0))).expect("a fact");
        let signs = StallSigns::idle(&waves, vec![(true, 0), (false, 3)], &facts);
        assert_eq!(StallWatch::new(0).judge(&signs, STALL_MS), StallVerdict::SearchLost);
        // Where the second wave has begun, or nothing is taken yet, its table is waited for.
        for takes in [true, false] {
            let signs = StallSigns::idle(&waves, vec![(takes, 0), (takes, 0)], &facts);
            assert_eq!(StallWatch::new(0).judge(&signs, STALL_MS), StallVerdict::Wait);
        }
    }

    #[test]
    fn a_loss_is_searched_for_less_and_less_often() {
        let mut watch = StallWatch::new(0);
        assert_eq!(watch.judge(&idle(&[(true, 0)], true), STALL_MS), StallVerdict::SearchLost);
        assert!(!watch.is_due(2 * STALL_MS));
        assert!(watch.is_due(3 * STALL_MS));
    }
}
