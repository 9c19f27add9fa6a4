//! Requests that a gateway has begun.

use tenaz_core::{
    BoundedText, ChunkDigest, ChunkIntake, CreationStep, End, Fact, FaultClass, FullQueue, IntakeStep, Promise,
    RegistryEvent, Source, TableId,
};

use super::queues::{queue_name, silence_of, touch};
use super::{Answer, Ask, Desk, RequestId};
use crate::broker::{ChunkCopy, ControlEntry, Envelope, Job, PublishId};
use crate::mutation::Mutation;
use crate::process::{Process, Surroundings, registry_bytes};
use crate::scenario::{Scenario, Version};

/// For so long a full work queue is waited for.
const QUEUE_WAIT_MS: u64 = 1_000;
/// A request that has got no further for so long is given up.
const REQUEST_MS: u64 = 30_000;
/// So long a gateway waits until it has read its own receipt.
const READ_BACK_MS: u64 = 500;

/// A request that was begun.
pub(super) struct Task {
    job: Job,
    stage: Stage,
    /// What was published and is not confirmed, and when.
    published: Option<(PublishId, u64)>,
    /// The round of its queue's silence in which that was.
    sent_in_round: u32,
    /// When it last got on.
    since_ms: u64,
    /// Not before this time.
    not_before_ms: u64,
}

/// How far a request is.
enum Stage {
    /// The registry is to know the job.
    Creating,
    /// Its queues and logs are made, and its control log is to say what it asks.
    Making,
    /// Its queues and logs are to be known as made.
    Preparing,
    /// Its control log is to say again what it asks.
    WritingSpec,
    /// This gateway is to have read that.
    Knowing,
    Chunk(ChunkTask),
    /// A whole file: the chunk that is on its way, and whether the file has a place.
    File {
        table: TableId,
        chunk: Option<ChunkTask>,
        next: u64,
        parked: bool,
    },
    Closing(TableId),
    Cancelling,
}

struct ChunkTask {
    table: TableId,
    number: u64,
    version: Version,
    intake: ChunkIntake,
    step: IntakeStep,
    /// The receipt is confirmed, and is to be read.
    settles: bool,
    /// It is in its work queue.
    is_stored: bool,
}

impl Task {
    fn new(job: Job, stage: Stage, now_ms: u64) -> Self {
        Self { job, stage, published: None, sent_in_round: 0, since_ms: now_ms, not_before_ms: 0 }
    }

    /// Whether it can go on without an answer of the broker.
    pub(super) fn is_ready(&self, base: &Process, now_ms: u64) -> bool {
        let facts = || base.jobs.get(&self.job).map(|booked| &booked.control.facts);
        let is_read = |chunk: &ChunkTask| {
            let is_there = facts().is_some_and(|facts| facts.uploaded(chunk.table).contains(chunk.number));
            is_there || now_ms >= self.since_ms + READ_BACK_MS
        };
        let waits = match &self.stage {
            Stage::Chunk(chunk) | Stage::File { chunk: Some(chunk), .. } if chunk.settles => !is_read(chunk),
            _ => false,
        };
        self.published.is_none() && now_ms >= self.not_before_ms && !waits
    }

    /// The connection is gone.
    pub(super) fn doubt(&mut self) {
        self.published = None;
    }

    /// The queue whose confirm it waits for, the round of its silence in which it began to wait, and since when.
    pub(super) fn waits_for_queue(&self, at: &Surroundings<'_>) -> Option<((Job, usize), u32, u64)> {
        let (_, since_ms) = self.published?;
        Some((self.offers_to(at)?, self.sent_in_round, since_ms))
    }

    /// The queue that it puts a chunk into.
    fn offers_to(&self, at: &Surroundings<'_>) -> Option<(Job, usize)> {
        let (Stage::Chunk(chunk) | Stage::File { chunk: Some(chunk), .. }) = &self.stage else { return None };
        let wave = || (self.job, at.job(self.job).scenario.wave_of(chunk.table));
        (chunk.step == IntakeStep::Offer).then(wave)
    }
}

impl ChunkTask {
    fn begin(
        (table, number, version): (TableId, u64, Version),
        until_ms: Option<u64>,
        job: Job,
        at: &Surroundings<'_>,
    ) -> Option<Self> {
        let digest = at.job(job).scenario.digest(Source::Chunk { table, number }, version);
        let facts = &at.base.jobs.get(&job)?.control.facts;
        let (intake, step) = ChunkIntake::begin(table, number, digest, until_ms, facts);
        Some(Self { table, number, version, intake, step, settles: false, is_stored: false })
    }

    fn envelope(&self, job: Job, scenario: &Scenario, mutation: Mutation) -> Option<Envelope> {
        let (table, number, version) = (self.table, self.number, self.version);
        let source = Source::Chunk { table, number };
        match self.step {
            IntakeStep::Offer => {
                let wave = if mutation == Mutation::WrongWave { 0 } else { scenario.wave_of(table) };
                Some(Envelope::Chunk { job, wave, chunk: ChunkCopy { source, version } })
            }
            IntakeStep::WriteReceipt => {
                let number = number + u64::from(mutation == Mutation::ReceiptOfNext);
                let digest = match mutation {
                    Mutation::ReceiptOfOtherBytes => ChunkDigest(number),
                    _ => scenario.digest(source, version),
                };
                let chunks = Promise::runs([(number, number + 1)]);
                Some(Envelope::Control(
                    job,
                    ControlEntry::Fact(Fact::Uploaded { table, chunks, digests: vec![digest] }),
                ))
            }
            _ => None,
        }
    }
}

/// What comes of a chunk whose next step is none of the gateway's.
fn chunk_answer(step: &IntakeStep) -> Option<Answer> {
    match step {
        IntakeStep::Accepted | IntakeStep::Duplicate => Some(Answer::Done),
        IntakeStep::SendBack => Some(Answer::Later),
        IntakeStep::Conflict(_) => Some(Answer::Conflict),
        IntakeStep::Offer | IntakeStep::WriteReceipt => None,
    }
}

impl Desk {
    /// Begins one of the requests.
    pub(crate) fn serve(&mut self, pick: usize, at: &mut Surroundings<'_>) {
        let Some((id, ask)) = self.requests.remove(pick % self.requests.len().max(1)) else { return };
        let (job, now_ms) = (id.0, at.now_ms);
        let card = &at.setup.jobs[job].card;
        at.trace.note(format_args!("  {ask:?} of job {job}"));
        if at.base.end_of(&card.id).is_some() {
            return self.answer(id, Answer::Ended);
        }
        if at.base.registry.get(&card.id).is_none() && ask != Ask::Create {
            return self.answer(id, Answer::NotFound);
        }
        if ask != Ask::Create && ask != Ask::Cancel && !at.base.is_ready(job, &card.id) {
            return self.answer(id, Answer::BeingCreated);
        }
        let is_read = at.base.jobs.get(&job).is_some_and(|booked| booked.control.is_caught_up());
        if !is_read && ask != Ask::Create && ask != Ask::Cancel {
            // Not before its control log is read.
            return self.requests.push_back((id, ask));
        }
        let stage = match ask {
            Ask::Create => match CreationStep::next(at.base.creation_signs(job, &card.id)) {
                CreationStep::Announce => Stage::Creating,
                CreationStep::MakeAll => Stage::Making,
                CreationStep::WriteSpec => Stage::WritingSpec,
                CreationStep::Nothing | CreationStep::Refuse => Stage::Knowing,
            },
            Ask::Missing => {
                touch(job, at);
                let answer = self.missing(job, at);
                return self.answer(id, answer);
            }
            Ask::Cancel => Stage::Cancelling,
            Ask::Close(table) => Stage::Closing(table),
            Ask::Chunk(table, number, version) => {
                touch(job, at);
                let begun = ChunkTask::begin((table, number, version), Some(now_ms + QUEUE_WAIT_MS), job, at);
                match begun {
                    Some(chunk) => Stage::Chunk(chunk),
                    None => return self.answer(id, Answer::Later),
                }
            }
            Ask::File(table) => {
                if !self.places.enter() {
                    return self.answer(id, Answer::Later);
                }
                Stage::File { table, chunk: None, next: 0, parked: false }
            }
        };
        self.tasks.insert(id, Task::new(job, stage, now_ms));
    }

    fn missing(&self, job: Job, at: &Surroundings<'_>) -> Answer {
        let scenario = &at.job(job).scenario;
        let Some(booked) = at.base.jobs.get(&job) else { return Answer::Later };
        let facts = &booked.control.facts;
        let tables = (0..scenario.topology.tables() as u16).map(TableId);
        let of = |table| (facts.closed(table).is_some(), facts.missing(table, Some(scenario.chunks(table))));
        Answer::Missing(tables.map(of).collect())
    }

    /// One of the tasks goes on.
    pub(crate) fn go_on(&mut self, pick: usize, at: &mut Surroundings<'_>) {
        let is_ready = |task: &Task| task.is_ready(at.base, at.now_ms);
        let ready: Vec<RequestId> = self.tasks.iter().filter(|(_, task)| is_ready(task)).map(|(id, _)| *id).collect();
        let Some(&id) = ready.get(pick % ready.len().max(1)) else { return };
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let (job, mutation) = (task.job, at.mutation);
        let (card, scenario) = (&at.setup.jobs[job].card, &at.setup.jobs[job].scenario);
        if at.base.end_of(&card.id).is_some() {
            self.end_task(id);
            return self.answer(id, Answer::Ended);
        }
        let registry = |event: RegistryEvent| {
            let bytes = registry_bytes(&event, mutation);
            Some(Envelope::Registry(event, bytes))
        };
        let envelope = match &mut task.stage {
            Stage::Creating => registry(RegistryEvent::Created { card: card.clone() }),
            Stage::Making => {
                at.broker.declare(job);
                Some(Envelope::Control(job, ControlEntry::Spec))
            }
            Stage::WritingSpec => Some(Envelope::Control(job, ControlEntry::Spec)),
            Stage::Preparing => registry(RegistryEvent::Prepared { id: card.id.clone() }),
            Stage::Knowing => None,
            Stage::Closing(table) => {
                let table = *table;
                let is_short = |mistake| u64::from(mutation == mistake);
                let chunks = scenario.chunks(table).saturating_sub(is_short(Mutation::OneChunkShort));
                let records = scenario.records(table).saturating_sub(is_short(Mutation::OneRecordShort));
                let chunks = Promise::count(chunks);
                let closed = Fact::TableClosed { table, chunks, records: Some(records), bytes: 0 };
                Some(Envelope::Control(job, ControlEntry::Fact(closed)))
            }
            Stage::Cancelling if mutation == Mutation::CancelIgnored => None,
            Stage::Cancelling => registry(RegistryEvent::Ended { id: card.id.clone(), end: End::Cancelled }),
            Stage::Chunk(chunk) => {
                chunk.settle(job, at);
                chunk.envelope(job, scenario, mutation)
            }
            Stage::File { .. } => return self.go_on_with_file(id, at),
        };
        let answer = match &task.stage {
            Stage::Chunk(chunk) => chunk_answer(&chunk.step),
            Stage::Knowing if at.base.is_ready(job, &card.id) => Some(Answer::Done),
            Stage::Knowing => {
                task.not_before_ms = at.now_ms + 100;
                None
            }
            Stage::Cancelling if envelope.is_none() => {
                at.checks.cancel_answered(job, at.broker, &card.id);
                Some(Answer::Done)
            }
            _ => None,
        };
        if let Some(answer) = answer {
            if matches!(&task.stage, Stage::Chunk(chunk) if chunk.is_stored) && answer == Answer::Conflict {
                // Another gateway took other bytes at the same moment: both are in the work queue.
                let reason = BoundedText::from("a chunk came in two versions".to_owned());
                let end = End::Failed { code: "contradiction".to_owned(), reason, class: FaultClass::Data };
                at.write_registry(RegistryEvent::Ended { id: card.id.clone(), end });
            }
            self.end_task(id);
            return self.answer(id, answer);
        }
        self.publish(id, envelope, at);
    }

    fn publish(&mut self, id: RequestId, envelope: Option<Envelope>, at: &mut Surroundings<'_>) {
        let (Some(connection), Some(envelope)) = (at.base.connection, envelope) else { return };
        if let (Mutation::SentIsConfirmed, Envelope::Chunk { .. }) = (at.mutation, &envelope) {
            at.broker.publish(connection, envelope, at.now);
            return self.task_confirmed(id, true, at);
        }
        let sent = at.broker.publish(connection, envelope, at.now);
        self.sent.insert(sent, id);
        if let Some(task) = self.tasks.get_mut(&id) {
            task.published = Some((sent, at.now_ms));
            let round = |(job, wave)| self.watch.round(&queue_name(job, wave), &silence_of(job, wave, at));
            task.sent_in_round = task.offers_to(at).map_or(0, round);
        }
    }

    /// The broker has answered.
    pub(crate) fn confirmed(&mut self, sent: PublishId, is_accepted: bool, at: &mut Surroundings<'_>) {
        if at.settled(sent, is_accepted) {
            return;
        }
        let Some(id) = self.sent.remove(&sent) else { return };
        if let Some(task) = self.tasks.get_mut(&id) {
            task.published = None;
            self.task_confirmed(id, is_accepted, at);
        }
    }

    fn task_confirmed(&mut self, id: RequestId, is_accepted: bool, at: &mut Surroundings<'_>) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let (job, now_ms) = (task.job, at.now_ms);
        if is_accepted {
            task.since_ms = now_ms;
        }
        let wave = |chunk: &ChunkTask| at.setup.jobs[job].scenario.wave_of(chunk.table);
        let (mut full_wave, round) = (None, task.sent_in_round);
        let mut confirmed_wave = None;
        let answer = match (&mut task.stage, is_accepted) {
            (Stage::Creating, true) => {
                task.stage = Stage::Making;
                None
            }
            (Stage::Making, true) => {
                task.stage = Stage::Preparing;
                None
            }
            (Stage::Preparing | Stage::WritingSpec, true) => {
                task.stage = Stage::Knowing;
                None
            }
            (Stage::Closing(_), true) => Some(Answer::Done),
            (Stage::Cancelling, true) => {
                let id = &at.setup.jobs[job].card.id;
                at.checks.cancel_answered(job, at.broker, id);
                Some(Answer::Done)
            }
            (Stage::Chunk(chunk) | Stage::File { chunk: Some(chunk), .. }, is_accepted) => {
                match (&chunk.step, is_accepted) {
                    // As if the gateway had died before it wrote the receipt.
                    (IntakeStep::Offer, true)
                        if at.mutation == Mutation::NoLineage && chunk.version == Version::Second =>
                    {
                        chunk.step = IntakeStep::Accepted;
                    }
                    (IntakeStep::Offer, true) => {
                        confirmed_wave = Some(wave(chunk));
                        chunk.is_stored = true;
                        chunk.step = chunk.intake.stored();
                    }
                    (IntakeStep::Offer, false) if at.mutation == Mutation::RefusedChunk => {
                        chunk.step = IntakeStep::Accepted;
                    }
                    (IntakeStep::Offer, false) => {
                        full_wave = Some(wave(chunk));
                        chunk.step = chunk.intake.full(now_ms);
                        task.not_before_ms = now_ms + 50;
                    }
                    (IntakeStep::WriteReceipt, true) => chunk.settles = true,
                    (IntakeStep::WriteReceipt, false) if at.mutation == Mutation::RefusedReceipt => {
                        chunk.settles = true
                    }
                    _ => {}
                }
                None
            }
            _ => None,
        };
        if let Some(answer) = answer {
            self.end_task(id);
            self.answer(id, answer);
        }
        if let Some(wave) = confirmed_wave {
            self.queue_confirmed(job, wave, at);
        }
        if let Some(wave) = full_wave {
            self.queue_refused((job, wave), round, at);
            self.file_is_full(id, at);
        }
    }

    /// The work queue of a file's chunk is full.
    fn file_is_full(&mut self, id: RequestId, at: &Surroundings<'_>) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let Stage::File { table, parked, .. } = &mut task.stage else { return };
        if *parked || at.mutation == Mutation::PlacesHeld {
            return;
        }
        match self.places.full(waits_for_tables(task.job, *table, at)) {
            FullQueue::Keep => {}
            FullQueue::Park => *parked = true,
            FullQueue::SendBack => {
                self.tasks.remove(&id);
                self.answer(id, Answer::Later);
            }
        }
    }

    fn go_on_with_file(&mut self, id: RequestId, at: &mut Surroundings<'_>) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let job = task.job;
        let Stage::File { table, chunk, next, parked } = &mut task.stage else { return };
        if *parked {
            task.not_before_ms = at.now_ms + 100;
            if waits_for_tables(job, *table, at) || !self.places.unpark() {
                return;
            }
            *parked = false;
        }
        let (table, scenario) = (*table, &at.setup.jobs[job].scenario);
        if let Some(sent) = chunk {
            sent.settle(job, at);
            if chunk_answer(&sent.step).is_some() {
                *chunk = None;
                *next += 1;
            }
        }
        if chunk.is_none() && *next < scenario.chunks(table) {
            *chunk = ChunkTask::begin((table, *next, Version::First), None, job, at);
            return;
        }
        match chunk {
            Some(chunk) => {
                let envelope = chunk.envelope(job, scenario, at.mutation);
                self.publish(id, envelope, at);
            }
            None => {
                self.end_task(id);
                self.answer(id, Answer::Done);
            }
        }
    }

    /// A task is over: a file gives its place up.
    pub(super) fn end_task(&mut self, id: RequestId) {
        match self.tasks.remove(&id).map(|task| task.stage) {
            Some(Stage::File { parked: true, .. }) => self.places.leave_parked(),
            Some(Stage::File { parked: false, .. }) => self.places.leave(),
            _ => {}
        }
    }

    /// Requests that take too long get no answer.
    pub(super) fn give_up_late_tasks(&mut self, at: &Surroundings<'_>) {
        let is_late = |task: &Task| {
            let is_patient = matches!(task.stage, Stage::File { .. });
            !is_patient && at.now_ms.saturating_sub(task.since_ms) > REQUEST_MS
        };
        let late: Vec<RequestId> = self.tasks.iter().filter(|(_, task)| is_late(task)).map(|(id, _)| *id).collect();
        for id in late {
            self.end_task(id);
            self.answer(id, Answer::Lost);
        }
    }
}

impl ChunkTask {
    /// The receipt is written, and was read, or not in time.
    fn settle(&mut self, job: Job, at: &Surroundings<'_>) {
        if self.settles
            && let Some(booked) = at.base.jobs.get(&job)
        {
            self.settles = false;
            self.step = self.intake.receipt_written(&booked.control.facts);
        }
    }
}

/// Whether tables that this one waits for are missing.
fn waits_for_tables(job: Job, table: TableId, at: &Surroundings<'_>) -> bool {
    let others = at.job(job).scenario.topology.waits_for(table);
    let Some(booked) = at.base.jobs.get(&job) else { return false };
    !booked.control.facts.is_uploaded(others)
}
