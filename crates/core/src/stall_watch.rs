//! A worker's job in which nothing has arrived for long: why, and what to do about it.
//!
//! ```text
//!  nothing for 10 s ──▶ signs ──┬─ work under way, here or elsewhere; uploads                ──▶ wait
//!                               ├─ chunks wait in a queue from which this worker takes       ──▶ (for 2 s) Reconnect
//!                               └─ all that can be taken is uploaded, and none of it waits    ──▶ (for 2 s) SearchLost
//! ```
//!
//! One look proves nothing: a job may lie still for long because one task of another worker takes long, and when that ends, its
//! rows, the acknowledgement and the heartbeat that says so are on their way at the same time, each over a way of its own. So the
//! job must look idle in every look for [`IDLE_MS`], which is several heartbeats. What was done about it doubles the patience.
//!
//! Chunks of a later wave wait in their queue for broadcasts. If nobody works and no earlier chunk waits, the rows of these
//! broadcasts are what was lost: waiting for those chunks would be waiting for ever. Nor is the upload of a later wave waited for:
//! its queue may be full, and then it cannot go on before the broadcasts are there.
//!
//! The caller tells the watch the time and what it sees ([`StallSigns`]); the watch has no clock of its own.

use crate::limits::{IDLE_MS, STALL_MS};
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
    /// Since when every look has shown the same reason to act, and nothing has arrived.
    suspicion: Option<(Suspicion, u64)>,
}

/// What an idle job seems to suffer from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suspicion {
    /// Chunks wait, and are not delivered.
    Undelivered,
    /// Nothing waits, and rows are missing.
    Loss,
}

impl StallWatch {
    /// A job that begins now.
    pub fn new(now_ms: u64) -> Self {
        Self { heard_ms: now_ms, patience_ms: STALL_MS, suspicion: None }
    }

    /// Something has arrived.
    pub fn heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
        self.suspicion = None;
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
    /// help is not repeated too often. While a suspicion lasts and is not old enough, the watch stays due.
    pub fn judge(&mut self, signs: &StallSigns, now_ms: u64) -> StallVerdict {
        let Some((suspicion, verdict)) = suspected(signs) else {
            self.heard(now_ms);
            return StallVerdict::Wait;
        };
        let since_ms = match self.suspicion {
            Some((before, since_ms)) if before == suspicion => since_ms,
            _ => now_ms,
        };
        self.suspicion = Some((suspicion, since_ms));
        if now_ms.saturating_sub(since_ms) < IDLE_MS {
            return StallVerdict::Wait;
        }
        self.patience_ms = self.patience_ms.saturating_mul(2);
        self.heard(now_ms);
        verdict
    }
}

/// What is wrong if it stays as it is, and what is to be done then.
fn suspected(signs: &StallSigns) -> Option<(Suspicion, StallVerdict)> {
    let StallSigns::Idle { waves, uploaded } = signs else { return None };
    let waiting = waves.iter().enumerate().find(|(_, (_, chunks))| *chunks > 0);
    match waiting {
        Some((wave, &(true, chunks))) => Some((Suspicion::Undelivered, StallVerdict::Reconnect { wave, chunks })),
        _ if *uploaded => Some((Suspicion::Loss, StallVerdict::SearchLost)),
        _ => None,
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

    /// What a watch that has heard nothing says when the signs stay as they are for long enough.
    fn lasting(signs: &StallSigns) -> StallVerdict {
        let mut watch = StallWatch::new(0);
        assert_eq!(watch.judge(signs, STALL_MS), StallVerdict::Wait);
        watch.judge(signs, STALL_MS + IDLE_MS)
    }

    #[test]
    fn waiting_chunks_must_wait_for_a_while_before_the_connection_is_given_up() {
        let mut watch = StallWatch::new(0);
        let signs = idle(&[(true, 3)], true);
        assert_eq!(watch.judge(&signs, STALL_MS), StallVerdict::Wait);
        assert!(watch.is_due(STALL_MS), "the next look comes soon");
        watch.heard(STALL_MS + 1);
        assert_eq!(watch.judge(&signs, 2 * STALL_MS + 1), StallVerdict::Wait, "one of them has come");
        assert_eq!(watch.judge(&signs, 2 * STALL_MS + IDLE_MS), StallVerdict::Wait);
        assert_eq!(watch.judge(&signs, 2 * STALL_MS + IDLE_MS + 1), StallVerdict::Reconnect { wave: 0, chunks: 3 });
    }

    /// Found by the simulator: a task that has taken long is done. Its rows and the heartbeat that says so are on their way, and
    /// whichever comes first, it looks for a moment as if nobody worked and rows were missing.
    #[test]
    fn a_job_that_looks_idle_for_a_moment_has_lost_nothing() {
        let (lost, undelivered) = (idle(&[(true, 0)], true), idle(&[(true, 1)], true));
        for between in [StallSigns::OthersWorking, undelivered] {
            let mut watch = StallWatch::new(0);
            assert_eq!(watch.judge(&lost, STALL_MS), StallVerdict::Wait);
            assert_eq!(watch.judge(&between, STALL_MS + IDLE_MS / 2), StallVerdict::Wait, "{between:?}");
            assert_eq!(watch.judge(&lost, STALL_MS + IDLE_MS), StallVerdict::Wait, "{between:?}");
        }
        let mut watch = StallWatch::new(0);
        assert_eq!(watch.judge(&lost, STALL_MS), StallVerdict::Wait);
        watch.heard(STALL_MS + 1);
        assert!(!watch.is_due(STALL_MS + IDLE_MS), "the rows have come");
    }

    #[test]
    fn chunks_that_wait_for_a_lost_broadcast_do_not_hide_the_loss() {
        assert_eq!(lasting(&idle(&[(true, 0), (false, 7)], true)), StallVerdict::SearchLost);
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
        assert_eq!(lasting(&signs), StallVerdict::SearchLost);
        // Where the second wave has begun, or nothing is taken yet, its table is waited for.
        for takes in [true, false] {
            let signs = StallSigns::idle(&waves, vec![(takes, 0), (takes, 0)], &facts);
            assert_eq!(lasting(&signs), StallVerdict::Wait);
        }
    }

    #[test]
    fn a_loss_is_searched_for_less_and_less_often() {
        let (mut watch, signs) = (StallWatch::new(0), idle(&[(true, 0)], true));
        assert_eq!(watch.judge(&signs, STALL_MS), StallVerdict::Wait);
        let searched_ms = STALL_MS + IDLE_MS;
        assert_eq!(watch.judge(&signs, searched_ms), StallVerdict::SearchLost);
        assert!(!watch.is_due(searched_ms + STALL_MS));
        assert!(watch.is_due(searched_ms + 2 * STALL_MS));
    }
}
