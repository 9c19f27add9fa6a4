//! What happens to a driver, and what its shell does for it.

use std::collections::BTreeSet;

use super::{Finished, RowEngine, Step, Ticket};
use crate::{
    Attempt, ChunkDigest, Clearance, Fact, Failure, Header, Log, Partition, Promise, Source, TableId, Tag, Work,
};

/// What happened.
pub enum Input<R: RowEngine> {
    /// There is a new connection. Whatever was not confirmed is in doubt.
    Connected,
    /// The connection is gone, and with it all readings, subscriptions and deliveries.
    Disconnected,
    /// This worker owns exactly these partitions now.
    Owns {
        /// The partitions.
        partitions: BTreeSet<Partition>,
        /// Whether it gathers the results, too.
        results: bool,
    },
    /// The control log says which chunks a table has. The facts that are handed in with this say it, too.
    TableClosed {
        /// The table.
        table: TableId,
        /// Its chunks.
        promise: Promise,
    },
    /// The control log says that a member is about to run something.
    Attempted {
        /// What.
        source: Source,
        /// The attempt.
        by: Attempt,
    },
    /// The control log says that what was attempted has been finished.
    Exonerated {
        /// What.
        source: Source,
    },
    /// A chunk was delivered.
    Delivered {
        /// Its wave.
        wave: usize,
        /// The subscription that it came by ([`Effect::TakeChunks`]).
        consumer: u64,
        /// This delivery; the shell numbers them.
        tag: Tag,
        /// The chunk.
        source: Source,
        /// The digest of its bytes.
        digest: ChunkDigest,
        /// Whether it had been delivered before.
        redelivered: bool,
        /// What its leaf work needs.
        leaf: R::Leaf,
    },
    /// A message was read from a log.
    Arrived {
        /// The log.
        log: Log,
        /// The reading that it came by ([`Effect::Read`]).
        reading: u64,
        /// Its place in the log.
        offset: u64,
        /// What it says about itself.
        header: Header,
        /// What it carries.
        body: R::Body,
        /// Dropped when the message is dealt with.
        permit: R::Permit,
    },
    /// A step was run.
    Finished(Finished<R>),
    /// The broker has confirmed a message.
    Confirmed {
        /// The task that it belongs to.
        work: Work,
        /// Which of its messages.
        message: u32,
    },
    /// Nothing has arrived for long, although no chunk waits ([`crate::StallVerdict::SearchLost`]).
    Stalled,
    /// The worker leaves: what is begun is finished, nothing new is taken.
    Drain,
    /// What may be begun from now on, beside the other jobs of this process ([`Isolation`](crate::Isolation)).
    Cleared(Clearance),
}

/// What the shell has to do.
pub enum Effect<R: RowEngine> {
    /// Run this step on some thread and hand in what comes of it.
    Run(Step<R>),
    /// Read this log from this offset on. An earlier reading of it is void.
    Read {
        /// The log.
        log: Log,
        /// The first offset wanted.
        from: u64,
        /// Goes with every message of this reading.
        reading: u64,
    },
    /// Stop reading this log.
    StopReading {
        /// The log.
        log: Log,
    },
    /// Take chunks of this wave from its queue.
    TakeChunks {
        /// The wave.
        wave: usize,
        /// Goes with every chunk of this subscription.
        consumer: u64,
    },
    /// Take no more chunks of this wave.
    StopTaking {
        /// The wave.
        wave: usize,
    },
    /// Send a message, and say when it is confirmed.
    Publish {
        /// The task that made it.
        work: Work,
        /// Which of its messages it is.
        message: u32,
        /// Where it goes.
        log: Log,
        /// What it carries.
        body: R::Sent,
    },
    /// Everything derived from the chunk is safe: acknowledge it.
    Ack {
        /// The delivery.
        tag: Tag,
    },
    /// Give the chunk back to its queue, for others.
    GiveBack {
        /// The delivery.
        tag: Tag,
    },
    /// Nothing more will be said about this delivery.
    Forget {
        /// The delivery.
        tag: Tag,
    },
    /// Write this into the control log.
    Tell(Fact),
    /// Show rows that are certain. If they get lost, the finished task brings them.
    Show(R::Early),
    /// A message was dropped: its rows were taken before.
    Dropped,
    /// Say that the job is done; perhaps once more.
    AnnounceEnd(R::End),
    /// This process cannot do the job's work: it has given everything back. Others must not count on it for a while.
    StandBack(R::Error),
    /// The job cannot succeed.
    Fail(JobFailure<R::Error>),
}

/// Why a job cannot succeed.
#[derive(Debug)]
pub enum JobFailure<E> {
    /// The protocol says so.
    Protocol(Failure),
    /// A step has failed.
    Step {
        /// The step.
        ticket: Ticket,
        /// What it worked on, where that has an id.
        source: Option<Source>,
        /// Why.
        error: E,
    },
}
