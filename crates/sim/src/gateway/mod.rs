//! A simulated gateway process: takes requests of clients, and keeps nothing that another could not find out.
//!
//! When a chunk may be called received is decided by `ChunkIntake`, what is done about a silent queue by `QueueWatch`,
//! which file may be received by `FilePlaces`; here is what surrounds them.

mod queues;
mod tasks;

use std::collections::{BTreeMap, VecDeque};

use tenaz_core::{FilePlaces, LifeSign, QueueWatch, TableId};

use crate::broker::{Broker, Job, PublishId};
use crate::process::{Process, SignParts, Surroundings};
use crate::scenario::Version;

use tasks::Task;

/// A request, by its client and a number.
pub(crate) type RequestId = (Job, u64);

/// What a client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The job is to be there.
    Create,
    /// Takes a chunk.
    Chunk(TableId, u64, Version),
    /// Takes a whole file: all chunks of a table.
    File(TableId),
    /// The table is complete.
    Close(TableId),
    /// What is missing, and has the job ended?
    Missing,
    /// The job is not wanted any more.
    Cancel,
}

/// What a gateway answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is done.
    Done,
    /// Come back later.
    Later,
    /// Other bytes are known under this number.
    Conflict,
    /// The job is still being created.
    BeingCreated,
    /// This gateway does not know the job.
    NotFound,
    /// The job has ended.
    Ended,
    /// Of each table: whether it is closed, and the chunks that are missing.
    Missing(Vec<(bool, Vec<(u64, u64)>)>),
    /// No answer: the gateway or the connection to it is gone.
    Lost,
}

/// A gateway process.
pub(crate) struct Gateway {
    /// What every process has.
    pub(crate) base: Process,
    /// Where requests are dealt with.
    pub(crate) desk: Desk,
}

/// The requests of a gateway.
pub(crate) struct Desk {
    watch: QueueWatch,
    places: FilePlaces,
    /// Requests that are not begun.
    requests: VecDeque<(RequestId, Ask)>,
    tasks: BTreeMap<RequestId, Task>,
    sent: BTreeMap<PublishId, RequestId>,
    /// Answers on their way.
    pub(crate) answers: Vec<(RequestId, Answer)>,
}

impl Gateway {
    /// A new process.
    pub(crate) fn new(base: Process, places: usize) -> Self {
        let desk = Desk {
            watch: QueueWatch::default(),
            places: FilePlaces::new(places),
            requests: VecDeque::new(),
            tasks: BTreeMap::new(),
            sent: BTreeMap::new(),
            answers: Vec::new(),
        };
        Self { base, desk }
    }

    /// What it tells others of itself.
    pub(crate) fn life_sign(&self) -> LifeSign {
        Surroundings::life_sign(&self.base, false, SignParts::default())
    }

    /// Whether it can begin a request.
    pub(crate) fn can_serve(&self, broker: &Broker) -> bool {
        !self.desk.requests.is_empty() && self.base.is_served(broker) && self.base.registry.is_caught_up()
    }

    /// Whether its session is of no use.
    pub(crate) fn has_lost_session(&self, broker: &Broker) -> bool {
        !self.base.is_served(broker) || self.base.gives_session_up
    }

    /// All requests that it has, for their clients to miss.
    pub(crate) fn into_requests(self) -> impl Iterator<Item = RequestId> {
        self.desk.requests.into_iter().map(|(id, _)| id).chain(self.desk.tasks.into_keys())
    }
}

impl Desk {
    /// A request has come.
    pub(crate) fn ask(&mut self, id: RequestId, ask: Ask) {
        self.requests.push_back((id, ask));
    }

    /// Whether it waits for nothing but its turn.
    pub(crate) fn can_go_on(&self, base: &Process, now_ms: u64) -> bool {
        self.tasks.values().any(|task| task.is_ready(base, now_ms))
    }

    /// A new connection.
    pub(crate) fn connect(&mut self, at: &mut Surroundings<'_>) {
        at.connect();
    }

    /// The connection is gone: whatever was not confirmed is in doubt, and sent again.
    pub(crate) fn disconnected(&mut self, at: &mut Surroundings<'_>) {
        at.disconnected();
        self.sent.clear();
        self.tasks.values_mut().for_each(Task::doubt);
    }

    /// The client of a job has gone away, or has cut its connections.
    pub(crate) fn forget_client(&mut self, job: Job) {
        self.requests.retain(|(id, _)| id.0 != job);
        self.answers.retain(|(id, _)| id.0 != job);
        let gone: Vec<RequestId> = self.tasks.keys().copied().filter(|id| id.0 == job).collect();
        gone.into_iter().for_each(|id| self.end_task(id));
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, at: &mut Surroundings<'_>) {
        at.look_around();
        at.tend_jobs(&BTreeMap::new());
        self.watch_queues(at);
        self.give_up_late_tasks(at);
    }

    fn answer(&mut self, id: RequestId, answer: Answer) {
        self.answers.push((id, answer));
    }
}
