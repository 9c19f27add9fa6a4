//! What happens to a worker, and what it does about it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Clearance, Error, Header, Log, MemberId, Partition, Promise, QueryId, Source, StageId, TableId};

/// One delivery of one chunk. The driver numbers them; a number is never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// Something to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// The leaf work of a delivered chunk.
    Chunk(Tag),
    /// An inner task.
    Inner(StageId, Partition, Attempt),
}

/// A member's word that it is about to run something dangerous. Unique, so that repeating it does not count twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// Who tries.
    pub member: MemberId,
    /// Which of its attempts this is.
    pub number: u64,
    /// Whether nothing else runs in its process meanwhile. Only then its death would say something of what is tried.
    pub alone: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// There is a new connection to the broker. Whatever was not confirmed is in doubt.
    Connected,
    /// The connection is gone, and with it all deliveries.
    Disconnected,
    /// This worker owns exactly these partitions now.
    OwnershipChanged {
        /// The partitions.
        partitions: BTreeSet<Partition>,
        /// Whether it gathers the results, too.
        results: bool,
    },
    /// The client has promised which chunks a table has.
    TableClosed {
        /// The table.
        table: TableId,
        /// Its chunks.
        promise: Promise,
    },
    /// Somebody, perhaps this worker, has announced an attempt (read from the control log).
    Attempted {
        /// What is tried.
        source: Source,
        /// By whom.
        by: Attempt,
    },
    /// Somebody, perhaps this worker, has finished what was attempted before (read from the control log).
    Exonerated {
        /// What was finished.
        source: Source,
    },
    /// A chunk was delivered from a work queue.
    ChunkDelivered {
        /// This delivery.
        tag: Tag,
        /// The chunk.
        source: Source,
        /// Whether it had been delivered before, perhaps to somebody who died of it.
        redelivered: bool,
    },
    /// A message was read from a log.
    MessageArrived {
        /// The log.
        log: Log,
        /// Its place there.
        offset: u64,
        /// What it says about itself.
        header: Header,
    },
    /// A task has run; its output is ready to be sent as this many messages, which the driver keeps until it is told to
    /// forget them.
    TaskFinished {
        /// The task.
        work: Work,
        /// How many messages its output has.
        messages: u32,
    },
    /// The broker has confirmed a message.
    Confirmed {
        /// The task it belongs to.
        work: Work,
        /// Which of its messages.
        message: u32,
    },
    /// A chunk was given back to its queue: this worker could not do its work.
    ChunkReturned {
        /// The delivery.
        tag: Tag,
    },
    /// The answer that [`Action::MakeAnswer`] asked for is made.
    AnswerMade {
        /// The query.
        query: QueryId,
        /// Which ownership of the results it belongs to.
        conclusion: u64,
    },
    /// The job is concluded, as [`Action::Conclude`] asked for.
    Concluded {
        /// Which ownership of the results it belongs to.
        conclusion: u64,
    },
    /// Nothing has arrived for long, although no chunk waits.
    Stalled,
    /// What may be begun from now on, beside the other jobs of this process ([`Isolation`](crate::Isolation)).
    Cleared(Clearance),
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read this log from this offset on.
    Read {
        /// The log.
        log: Log,
        /// The first offset wanted.
        from: u64,
    },
    /// Stop reading this log and drop all that was taken from it.
    Release {
        /// The log.
        log: Log,
    },
    /// The message just read completes an output: let it, and the parts held, touch the state.
    Take,
    /// The message just read is a part of an output: keep it aside.
    Hold,
    /// The message just read is none of our business.
    Drop,
    /// A broadcast has all its rows.
    Complete {
        /// The edge.
        edge: StageId,
    },
    /// Take chunks of this wave from its queue.
    TakeChunks {
        /// The wave.
        wave: usize,
    },
    /// Say in the control log that this is about to be tried.
    Announce {
        /// What.
        source: Source,
        /// The attempt.
        by: Attempt,
    },
    /// Say in the control log that this was finished: earlier attempts did not fail because of it.
    Exonerate {
        /// What.
        source: Source,
    },
    /// Run a task.
    Run {
        /// The task.
        work: Work,
        /// For an inner task: how many outputs have arrived over the edges that it reads. The rows that the driver has
        /// taken in must come from as many: rows are conserved from a partition's log to its tasks.
        sources: u64,
    },
    /// Send a message of a finished task.
    Publish {
        /// The task.
        work: Work,
        /// Which of its messages.
        message: u32,
    },
    /// All that was derived from the chunk is safe: release it.
    Ack {
        /// The delivery.
        tag: Tag,
    },
    /// Nobody needs the output of this task any more. If it is still running, its output is to be dropped.
    Forget {
        /// The task.
        work: Work,
    },
    /// All rows of a query are in, and all chunks of its tables are accounted for: make its answer, and tell with [`Event::AnswerMade`] when that is done.
    MakeAnswer {
        /// The query.
        query: QueryId,
        /// Tells this from one that was begun before the results were given away and came back.
        conclusion: u64,
    },
    /// All answers are made and every chunk is accounted for: check the ledger, and tell with [`Event::Concluded`] when
    /// that is done.
    Conclude {
        /// As above.
        conclusion: u64,
    },
    /// Say that the job is done, with the answers that were made last; perhaps once more.
    AnnounceEnd,
    /// The broker has lost these chunks: say so, that they are sent again.
    ReportLost {
        /// The table.
        table: TableId,
        /// The chunks.
        chunks: Promise,
    },
    /// The job cannot succeed.
    Fail {
        /// Why.
        failure: Failure,
    },
}

/// Why a job cannot succeed, as far as the protocol can see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A task was begun again and again and never came to an end.
    #[error("{task} was begun {attempts} times and never finished: it seems to kill its worker")]
    Quarantined {
        /// The task.
        task: Source,
        /// How often it was tried.
        attempts: usize,
    },
    /// Two parties disagree about the job.
    #[error("{0}")]
    Contradiction(Error),
}
