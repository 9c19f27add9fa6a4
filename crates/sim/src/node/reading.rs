//! What a worker reads for a job: logs and chunks.

use std::rc::Rc;

use tenaz_core::{Failure, Input, Log, Note, Tag};

use super::{Part, Presence};
use crate::broker::{Broker, ChunkCopy, ConnectionId, Job};
use crate::mutation::Mutation;
use crate::process::Surroundings;
use crate::rows::Message;

/// So many messages of one log may wait to be dealt with.
const WINDOW: usize = 3;

/// A log that is being read.
pub(super) struct Reader {
    pub(super) reading: u64,
    pub(super) offset: u64,
    /// Every message that is not dealt with has a share of it.
    pub(super) window: Rc<()>,
}

/// A channel of a connection, which may be lost alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Reads a log.
    Reader(Job, Log),
    /// Takes chunks of a wave.
    Consumer(Job, usize),
    /// Sends everything.
    Publisher,
}

/// A chunk that was delivered and not settled.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) connection: ConnectionId,
    pub(super) wave: usize,
    pub(super) place: u64,
    pub(super) chunk: ChunkCopy,
    pub(super) acked: bool,
}

/// Something that was read and that the driver has not seen.
pub(super) enum Incoming {
    Message { log: Log, reading: u64, offset: u64, message: Message, permit: Rc<()> },
    Chunk { wave: usize, consumer: u64, tag: Tag, chunk: ChunkCopy, redelivered: bool },
}

impl Part {
    /// The logs that have something to read.
    pub(super) fn readable<'a>(&'a self, broker: &'a Broker) -> impl Iterator<Item = Log> + 'a {
        let can_read = |log: Log, reader: &Reader| {
            broker.message(self.job, log, reader.offset).is_some() && Rc::strong_count(&reader.window) <= WINDOW
        };
        self.readers.iter().filter(move |(log, reader)| can_read(**log, reader)).map(|(log, _)| *log)
    }

    /// The waves of which it takes chunks.
    pub(super) fn takes(&self) -> impl Iterator<Item = usize> + '_ {
        self.consumers.keys().copied()
    }

    /// The channels that may be lost.
    pub(super) fn channels(&self, job: Job) -> impl Iterator<Item = Channel> + '_ {
        let readers = self.readers.keys().map(move |&log| Channel::Reader(job, log));
        readers.chain(self.consumers.keys().map(move |&wave| Channel::Consumer(job, wave)))
    }

    /// Whether something was read that the driver has not seen.
    pub(crate) fn has_incoming(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// A chunk has come.
    pub(crate) fn delivered(
        &mut self,
        wave: usize,
        (place, chunk, redelivered): (u64, ChunkCopy, bool),
        at: &mut Surroundings<'_>,
    ) {
        let (Some(connection), Some(&consumer)) = (at.base.connection, self.consumers.get(&wave)) else {
            return at.checks.broken(format!("a chunk of wave {wave} came though nobody asked for it"));
        };
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        self.deliveries.insert(tag, Delivery { connection, wave, place, chunk, acked: false });
        self.incoming.push_back(Incoming::Chunk { wave, consumer, tag, chunk, redelivered });
    }

    /// The next message of a log has come.
    pub(crate) fn read(&mut self, log: Log, at: &mut Surroundings<'_>) {
        let Some(reader) = self.readers.get_mut(&log) else { return };
        let Some(message) = at.broker.message(self.job, log, reader.offset).cloned() else { return };
        let (reading, offset, permit) = (reader.reading, reader.offset, Rc::clone(&reader.window));
        reader.offset += 1;
        at.base.was_read(at.now_ms);
        if message.is_early() {
            return self.heard(at);
        }
        self.incoming.push_back(Incoming::Message { log, reading, offset, message, permit });
    }

    /// The driver gets the next of what was read.
    pub(crate) fn hand_in(&mut self, at: &mut Surroundings<'_>) {
        let Some(incoming) = self.incoming.pop_front() else { return };
        self.heard(at);
        match incoming {
            Incoming::Message { log, reading, offset, message, permit } => {
                at.trace.note(format_args!("  {log}@{offset} {}", message.header.source));
                let header = message.header;
                self.handle(Input::Arrived { log, reading, offset, header, body: message, permit }, at);
            }
            Incoming::Chunk { wave, consumer, tag, chunk, redelivered } => {
                at.trace.note(format_args!("  {tag:?} {}", chunk.source));
                let (source, digest) = (chunk.source, self.scenario.digest(chunk.source, chunk.version));
                self.handle(Input::Delivered { wave, consumer, tag, source, digest, redelivered, leaf: chunk }, at);
            }
        }
    }

    /// Hands what the control log has said since the last look to the driver.
    pub(super) fn read_notes(&mut self, at: &mut Surroundings<'_>) {
        let Some(booked) = at.base.jobs.get(&self.job) else { return };
        let (news, contradiction) = (booked.control.news(&mut self.noted), booked.control.contradiction().cloned());
        for note in news {
            match note {
                Note::TableClosed(table, promise) => self.handle(Input::TableClosed { table, promise }, at),
                Note::Attempted(source, by) => self.handle(Input::Attempted { source, by }, at),
                Note::Exonerated(_) if at.mutation == Mutation::NoExoneration => {}
                Note::Exonerated(source) => self.handle(Input::Exonerated { source }, at),
            }
        }
        if let (Some(error), false) = (contradiction, self.has_failed) {
            self.has_failed = true;
            self.fail(&Failure::Contradiction(error), at);
        }
    }

    /// Whether it is there and takes part in the job.
    pub(crate) fn is_working(&self) -> bool {
        self.presence == Presence::Working
    }
}
