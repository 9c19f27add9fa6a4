//! The creation of a job: what is left to do of it, and when a client has it done again.
//!
//! ```text
//!  Announce ──▶ MakeAll: queues and logs, the spec into the control log, Prepared into the registry ──▶ Nothing
//!                  ▲                                                                                     │
//!                  └──── a power cut has taken Prepared, and all who had read it have died ◀─────────────┤
//!  WriteSpec ◀────────── a power cut has taken the spec out of the control log ◀─────────────────────────┘
//! ```
//!
//! A lone broker whose power is cut may lose what a gateway was told is stored. If it loses the last steps of a creation, nobody but
//! the client knows what the job asks. So a client that is told for long that its job is still being created has it created again,
//! under the same key. Every step may be done twice.
//!
//! If only the spec is lost, a gateway that has read it serves the client as before, while workers that come later wait for it in
//! vain. So whoever knows it and does not find it any more writes it again ([`SpecWatch`]).
//!
//! Reading the control logs of jobs that are not prepared would find some of these out without the client. It is not done: a
//! broker may have left a log that can be neither used nor deleted, and each question about it costs a connection.

use crate::limits::CREATE_AGAIN_MS;

/// What a gateway knows of a job that a client wants created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreationSigns {
    /// Whether the job was asked for in the same words.
    pub same_request: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether all its queues and logs exist.
    pub prepared: bool,
    /// Whether its control log was read to its end ([`ControlLog::is_caught_up`](crate::ControlLog::is_caught_up)).
    pub caught_up: bool,
    /// Whether its spec was read there.
    pub has_spec: bool,
}

/// What a gateway does next to create a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreationStep {
    /// Writes the job into the registry and waits until it is read there: whatever exists on the broker belongs to a job that some
    /// process knows and will clean up.
    Announce,
    /// Makes all queues and logs, writes the spec into the control log, and then into the registry that the job is prepared.
    MakeAll,
    /// Writes the spec into the control log, which has lost it.
    WriteSpec,
    /// The job is there, or has ended.
    Nothing,
    /// The job is another one.
    Refuse,
}

impl CreationStep {
    /// The next step for a job of which this is known. None: the registry does not have it.
    pub fn next(known: Option<CreationSigns>) -> Self {
        let Some(known) = known else { return Self::Announce };
        match known {
            _ if !known.same_request => Self::Refuse,
            _ if known.ended => Self::Nothing,
            _ if !known.prepared => Self::MakeAll,
            _ if known.caught_up && !known.has_spec => Self::WriteSpec,
            _ => Self::Nothing,
        }
    }
}

/// A client's watch over the creation of its job.
///
/// The client calls [`unready`](Self::unready) whenever a gateway says that the job is still being created, and
/// [`ready`](Self::ready) whenever one serves it.
#[derive(Debug, Clone, Copy, Default)]
pub struct CreationWatch {
    since_ms: Option<u64>,
}

impl CreationWatch {
    /// A gateway has said that the job is still being created. True if the client is to have it created again.
    pub fn unready(&mut self, now_ms: u64) -> bool {
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        let is_long = now_ms.saturating_sub(since_ms) >= CREATE_AGAIN_MS;
        if is_long {
            self.since_ms = Some(now_ms);
        }
        is_long
    }

    /// A gateway has served the job.
    pub fn ready(&mut self) {
        self.since_ms = None;
    }
}

/// Whether the control log of a job still says what the job asks.
///
/// The reader calls [`begin_reading`](Self::begin_reading) with each reading from the start, [`read`](Self::read) with each spec that
/// it finds, and [`is_lost`](Self::is_lost) when it has come to its mark.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpecWatch {
    known: bool,
    found: bool,
}

impl SpecWatch {
    /// The log is read from its start.
    pub fn begin_reading(&mut self) {
        self.found = false;
    }

    /// The spec was read.
    pub fn read(&mut self) {
        (self.known, self.found) = (true, true);
    }

    /// Whether it was read in any reading.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Whether the log, which was read to its mark, has lost it: then it is to be written again.
    pub fn is_lost(&self) -> bool {
        self.known && !self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_lost_if_a_later_reading_does_not_find_it() {
        let mut spec = SpecWatch::default();
        spec.begin_reading();
        assert!(!spec.is_lost(), "nobody knows what to write");
        spec.read();
        assert!(spec.is_known() && !spec.is_lost());
        spec.begin_reading();
        assert!(spec.is_known() && spec.is_lost());
        spec.read();
        assert!(!spec.is_lost());
    }

    const MADE: CreationSigns =
        CreationSigns { same_request: true, ended: false, prepared: true, caught_up: true, has_spec: true };

    #[test]
    fn a_creation_is_finished_wherever_it_was_broken_off() {
        assert_eq!(CreationStep::next(None), CreationStep::Announce);
        let announced = CreationSigns { prepared: false, caught_up: false, has_spec: false, ..MADE };
        assert_eq!(CreationStep::next(Some(announced)), CreationStep::MakeAll);
        assert_eq!(CreationStep::next(Some(MADE)), CreationStep::Nothing);
        assert_eq!(CreationStep::next(Some(CreationSigns { same_request: false, ..MADE })), CreationStep::Refuse);
        let ended = CreationSigns { ended: true, ..announced };
        assert_eq!(CreationStep::next(Some(ended)), CreationStep::Nothing);
    }

    #[test]
    fn a_spec_is_written_again_only_if_the_whole_log_does_not_have_it() {
        let unread = CreationSigns { caught_up: false, has_spec: false, ..MADE };
        assert_eq!(CreationStep::next(Some(unread)), CreationStep::Nothing);
        assert_eq!(CreationStep::next(Some(CreationSigns { caught_up: true, ..unread })), CreationStep::WriteSpec);
    }

    #[test]
    fn a_job_that_stays_unready_is_created_again_and_again_but_not_all_the_time() {
        let mut watch = CreationWatch::default();
        assert!(!watch.unready(100) && !watch.unready(99 + CREATE_AGAIN_MS));
        assert!(watch.unready(100 + CREATE_AGAIN_MS));
        assert!(!watch.unready(101 + CREATE_AGAIN_MS) && watch.unready(100 + 2 * CREATE_AGAIN_MS));
        watch.ready();
        assert!(!watch.unready(100 + 4 * CREATE_AGAIN_MS));
    }
}
