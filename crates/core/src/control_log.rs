//! The control log of a job as one process has read it, also while it is being read again.
//!
//! ```text
//!  begin_reading(mark) ── facts, one by one ──▶ marked(mark): what was read counts from now on
//! ```
//!
//! A process reads the log from its start with every connection: after a power cut the offsets of the lost end are used again,
//! for other facts. Until the reader finds the mark that it wrote itself, the facts known before count: a log that is read half
//! would pass for one that says little.

use crate::{Attempt, Error, Fact, JobFacts, Promise, Source, TableId};

/// Something that workers must know, in the order of the control log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A table is complete.
    TableClosed(TableId, Promise),
    /// Something is about to be run.
    Attempted(Source, Attempt),
    /// Something that was tried before has been finished.
    Exonerated(Source),
}

/// What one process knows of a job's control log.
///
/// The caller writes a mark into the log whenever it begins to read it ([`ControlLog::begin_reading`]), and passes on everything
/// that it reads, in order.
#[derive(Debug, Clone, Default)]
pub struct ControlLog {
    /// What was uploaded and which tables are complete.
    pub facts: JobFacts,
    notes: Vec<Note>,
    /// How often the log was read to its mark: then `facts` and `notes` began anew.
    reading: u64,
    catching_up: Option<CatchingUp>,
    contradiction: Option<Error>,
}

/// A reading that has not come to its mark.
#[derive(Debug, Clone)]
struct CatchingUp {
    mark: u64,
    /// What it has said so far. None for the first reading: there was nothing before that it could take the place of.
    said: Option<(JobFacts, Vec<Note>)>,
}

/// How far somebody has followed the notes of a control log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotePlace {
    reading: u64,
    notes: usize,
}

impl ControlLog {
    /// The log is read from its start. The reader has written this mark, which nobody else writes.
    pub fn begin_reading(&mut self, mark: u64) {
        let is_first = self.reading == 0;
        if is_first {
            self.reading = 1;
        }
        self.catching_up = Some(CatchingUp { mark, said: (!is_first).then(Default::default) });
    }

    /// Whether the log was read to where it ended when the reading began. Before that, what is not among the facts may still
    /// be in the log.
    pub fn is_caught_up(&self) -> bool {
        self.catching_up.is_none() && self.reading > 0
    }

    /// A mark was read.
    pub fn marked(&mut self, mark: u64) {
        let read = self.catching_up.take_if(|reading| reading.mark == mark);
        if let Some((facts, notes)) = read.and_then(|reading| reading.said) {
            (self.facts, self.notes) = (facts, notes);
            self.reading += 1;
        }
    }

    /// The fact at this offset was read.
    pub fn take(&mut self, offset: u64, fact: Fact) {
        let aside = self.catching_up.as_mut().and_then(|reading| reading.said.as_mut());
        let (facts, notes) = match aside {
            Some((facts, notes)) => (facts, notes),
            None => (&mut self.facts, &mut self.notes),
        };
        match facts.apply(offset, &fact) {
            Err(error) => drop(self.contradiction.get_or_insert(error)),
            Ok(false) => {}
            Ok(true) => match fact {
                Fact::TableClosed { table, chunks, .. } => notes.push(Note::TableClosed(table, chunks)),
                Fact::Attempted { source, by } => notes.push(Note::Attempted(source, by)),
                Fact::Exonerated { source } => notes.push(Note::Exonerated(source)),
                _ => {}
            },
        }
    }

    /// The first contradiction between two facts, if there is one: the job cannot succeed.
    pub fn contradiction(&self) -> Option<&Error> {
        self.contradiction.as_ref()
    }

    /// What was noted since this place, which is moved on. After a new reading all notes come again: repeating what is known is
    /// harmless.
    pub fn news(&self, place: &mut NotePlace) -> Vec<Note> {
        let seen = if place.reading == self.reading { place.notes } else { 0 };
        let news = self.notes.get(seen..).map(<[Note]>::to_vec).unwrap_or_default();
        *place = NotePlace { reading: self.reading, notes: seen + news.len() };
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChunkDigest;

    fn uploaded(number: u64) -> Fact {
        let chunks = Promise::runs([(number, number + 1)]);
        Fact::Uploaded { table: TableId(0), chunks, digests: vec![ChunkDigest(number)] }
    }

    fn closed() -> Fact {
        Fact::TableClosed { table: TableId(0), chunks: Promise::count(2), records: None, bytes: 0 }
    }

    #[test]
    fn a_log_that_is_read_again_counts_when_its_mark_is_found() {
        let mut log = ControlLog::default();
        log.begin_reading(1);
        log.take(0, uploaded(0));
        assert!(log.facts.uploaded(TableId(0)).contains(0), "nothing was known before the first reading");
        assert!(!log.is_caught_up());
        log.marked(1);
        assert!(log.is_caught_up());
        // The log has lost the receipt, and says something else at its place.
        log.begin_reading(2);
        log.take(0, closed());
        log.marked(1);
        assert!(!log.is_caught_up() && log.facts.uploaded(TableId(0)).contains(0));
        log.marked(2);
        assert!(log.is_caught_up() && !log.facts.uploaded(TableId(0)).contains(0));
    }

    #[test]
    fn notes_are_told_once_and_again_after_a_new_reading() {
        let (mut log, mut place) = (ControlLog::default(), NotePlace::default());
        log.begin_reading(1);
        log.take(0, closed());
        assert_eq!(log.news(&mut place).len(), 1);
        assert_eq!(log.news(&mut place), []);
        log.begin_reading(2);
        log.take(0, closed());
        assert_eq!(log.news(&mut place), [], "it is not read to its end");
        log.marked(2);
        assert_eq!(log.news(&mut place).len(), 1);
    }
}
