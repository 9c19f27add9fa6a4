//! What must hold at every step, and what a conclusion must say.

use std::collections::BTreeSet;

use tenaz_core::limits::STALL_MS;
use tenaz_core::{End, Fact, Failure, JobId, JobWorker, Ledger, Promise, QueryId, RegistryEvent, Source, TableId};

use crate::broker::{Broker, ControlEntry, Envelope, Job};
use crate::faults::Fault;
use crate::scenario::{RightAnswer, Scenario};
use crate::store::LogState;

/// The findings of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks {
    /// The first rule that was broken.
    pub(crate) violation: Option<String>,
    /// The queries of each job that were called final.
    pub(crate) final_queries: Vec<BTreeSet<QueryId>>,
    /// How often each job was concluded.
    pub(crate) conclusions: Vec<u64>,
    /// How often a worker died of each job's poisoned task.
    pub(crate) poisoned: Vec<u64>,
    /// The faults that really hit something.
    pub(crate) fired: Vec<Fault>,
    /// What kills every worker that runs it, of each job.
    pub(crate) poison: Vec<Option<Source>>,
    /// How often a worker stood back.
    pub(crate) stood_back: u64,
    /// How often a worker gave a connection up over which nothing was delivered.
    pub(crate) given_up: u64,
    /// How often a job was written into the registry again.
    pub(crate) mentions: u64,
    /// For each job: how it has ended, as the registry says.
    pub(crate) ended: Vec<Option<End>>,
    /// For each job: since when there has been a worker that serves it.
    pub(crate) served_since: Vec<Option<u64>>,
    /// For each job: since when its client has been away.
    pub(crate) client_away_since: Vec<Option<u64>>,
    /// For each job: since when a chunk of it has been delivered to a worker that is awake.
    pub(crate) delivered_since: Vec<Option<u64>>,
    /// So many steps without a sign of life are needed before a job may expire.
    pub(crate) idle_steps: u64,
    /// When jobs were written again.
    mentioned_at: Vec<Vec<u64>>,
}

/// So many mentions of a job within one silence are too many.
const MAX_MENTIONS: usize = 24;

impl Checks {
    /// Nothing is found yet.
    pub(crate) fn new(poison: Vec<Option<Source>>, idle_steps: u64) -> Self {
        let jobs = poison.len();
        Self {
            final_queries: vec![BTreeSet::new(); jobs],
            conclusions: vec![0; jobs],
            poisoned: vec![0; jobs],
            poison,
            ended: vec![None; jobs],
            served_since: vec![None; jobs],
            client_away_since: vec![None; jobs],
            delivered_since: vec![None; jobs],
            idle_steps,
            mentioned_at: vec![Vec::new(); jobs],
            ..Self::default()
        }
    }

    /// A job is written into the registry again: not by everybody, and not all the time.
    pub(crate) fn mentioned(&mut self, job: Job, now: u64, silence: u64) {
        self.mentions += 1;
        let times = &mut self.mentioned_at[job];
        times.push(now);
        times.retain(|then| now - then <= silence);
        if times.len() > MAX_MENTIONS {
            let count = times.len();
            self.broken(format!("job {job} was written into the registry {count} times within {silence} steps"));
        }
    }

    /// A job expires: its client is away, and nobody works on it.
    pub(crate) fn expired(&mut self, job: Job, is_uploaded: bool, now: u64) {
        if is_uploaded {
            self.broken(format!("job {job} expired although it has all that it needs from its client"));
        }
        let is_long = |since: u64, steps: u64| now.saturating_sub(since) > steps;
        if !self.client_away_since[job].is_some_and(|since| is_long(since, self.idle_steps / 2)) {
            self.broken(format!("job {job} expired although its client is there"));
        }
        if self.delivered_since[job].is_some_and(|since| is_long(since, self.idle_steps / 2)) {
            self.broken(format!("job {job} expired although a chunk of it is under way"));
        }
    }

    /// What a job has on the broker is deleted.
    pub(crate) fn deleted(&mut self, job: Job, everything: bool, is_trim: bool) {
        if self.ended[job].is_none() {
            self.broken(format!("job {job} was cleaned up although it has not ended"));
        }
        if everything && is_trim {
            self.broken(format!("the results of job {job} were deleted when it had just ended"));
        }
    }

    /// A worker says that nobody can serve a job.
    pub(crate) fn unserved(&mut self, job: Job, now: u64, silence: u64) {
        if self.served_since[job].is_some_and(|since| now.saturating_sub(since) > 2 * silence) {
            self.broken(format!("job {job} was given up although a worker serves it"));
        }
    }

    /// A client was told that its job is cancelled.
    pub(crate) fn cancel_answered(&mut self, job: Job, broker: &Broker, id: &JobId) {
        let says_so = |event: &RegistryEvent| matches!(event, RegistryEvent::Ended { id: of, .. } if of == id);
        let is_cut_off = self.fired.contains(&Fault::PowerCut) || broker.registry().first() > 0;
        if !broker.registry().events().any(says_so) && !is_cut_off && self.ended[job].is_none() {
            self.broken(format!("a client was told that job {job} is cancelled, but it is not"));
        }
    }

    /// Takes note of a broken rule.
    pub(crate) fn broken(&mut self, rule: String) {
        self.violation.get_or_insert(rule);
    }

    /// Outputs before acknowledgement: every log the chunk must write to has all its parts.
    pub(crate) fn ack(&mut self, job: Job, source: Source, machine: &JobWorker, broker: &Broker) {
        for log in machine.topology().destinations(source) {
            if !broker.was_accepted(job, log, source) {
                self.broken(format!("{source} was acknowledged before its output was in log {log}"));
            }
        }
    }

    /// Receipts before uploads: what the control log calls uploaded is, or was, in its queue.
    pub(crate) fn accepted(&mut self, envelope: &Envelope, broker: &Broker) {
        let Envelope::Control(job, ControlEntry::Fact(Fact::Uploaded { table, chunks, .. })) = envelope else { return };
        for number in chunks.numbers() {
            let source = Source::Chunk { table: *table, number };
            if broker.copies(*job, source) == 0 {
                self.broken(format!("a receipt was written for {source}, which is not in its queue"));
            }
        }
    }

    /// A worker searches for what was lost: not before it has had the time to read what it owns.
    pub(crate) fn searched(&mut self, job: Job, owned_for_ms: u64) {
        if owned_for_ms < STALL_MS {
            self.broken(format!("a worker searched job {job} for losses {owned_for_ms} ms after a takeover"));
        }
    }

    /// Nothing is called lost where nothing can be lost, and nobody can seem to be.
    pub(crate) fn called_lost(&mut self, job: Job, table: TableId, chunks: &Promise) {
        if !self.fired.iter().any(|fault| fault.may_look_like_a_loss()) {
            self.broken(format!(
                "chunks {:?} of table {} of job {job} were called lost, but none is",
                chunks.ranges(),
                table.0
            ));
        }
    }

    /// A query is called final: its answer is the oracle's, whatever is still missing of the job.
    pub(crate) fn answered(&mut self, job: Job, query: QueryId, scenario: &Scenario, results: &LogState) {
        self.final_queries[job].insert(query);
        let found = scenario.answer_of(results, query);
        // With a chunk in two versions either answer is right, and nothing in between.
        let other = scenario.changed.as_ref().and_then(|changed| changed.answer.get(&query));
        let right = scenario.answer.get(&query);
        if Some(&found) != right && Some(&found) != other {
            self.broken(format!("the final answer to query {} is {found:?}, but {right:?} is right", query.0));
        }
    }

    /// The answer is the oracle's, and every chunk is accounted for once.
    pub(crate) fn conclude(&mut self, job: Job, scenario: &Scenario, results: &LogState) {
        self.conclusions[job] += 1;
        if let Some(poison) = self.poison[job] {
            return self.broken(format!("a job concluded although {poison} can never be done"));
        }
        let queries = scenario.answer.keys();
        let found: RightAnswer = queries.map(|&query| (query, scenario.answer_of(results, query))).collect();
        // With a chunk in two versions either answer is right, and nothing in between.
        let is_other = scenario.changed.as_ref().is_some_and(|changed| found == changed.answer);
        if found != scenario.answer && !is_other {
            return self.broken(format!("the answer is {found:?}, but {:?} is right", scenario.answer));
        }
        self.account(scenario, results);
        if !scenario.answer.keys().all(|query| self.final_queries[job].contains(query)) {
            self.broken(format!("job {job} was concluded before all its queries were final"));
        }
    }

    /// The same of a real engine's end: `judge` compares it with what is right, and is told whether the results log is whole.
    pub(crate) fn conclude_real(&mut self, job: Job, judge: impl FnOnce(bool) -> Result<(), String>) {
        self.conclusions[job] += 1;
        if let Some(poison) = self.poison[job] {
            return self.broken(format!("a job concluded although {poison} can never be done"));
        }
        let is_whole = !self.fired.contains(&Fault::PowerCut);
        if let Err(wrong) = judge(is_whole) {
            self.broken(format!("the answers of job {job} are wrong: {wrong}"));
        }
    }

    fn account(&mut self, scenario: &Scenario, results: &LogState) {
        let mut ledger = Ledger::new(scenario.topology.tables());
        let mut seen = BTreeSet::new();
        for (source, records) in results.accounts() {
            let Source::Chunk { table, .. } = source else { continue };
            if !seen.insert(source) {
                self.broken(format!("{source} was accounted for twice"));
            }
            ledger.decoded(usize::from(table.0), records, 0);
        }
        for table in 0..scenario.topology.tables() {
            ledger.read(table, scenario.records(TableId(table as u16)));
        }
        if let Err(imbalance) = ledger.check() {
            self.broken(format!("records are not conserved: {imbalance}"));
        }
        let chunks: u64 = (0..scenario.topology.tables()).map(|table| scenario.chunks(TableId(table as u16))).sum();
        if seen.len() as u64 != chunks {
            self.broken(format!("{} of {chunks} chunks were accounted for", seen.len()));
        }
    }

    /// A job may fail only for its poison, and must name it, or because a chunk came in two versions.
    pub(crate) fn fail(&mut self, job: Job, failure: &Failure, scenario: &Scenario) {
        match (failure, self.poison[job]) {
            (Failure::Contradiction(_), _) if scenario.changed.is_some() => {}
            (Failure::Quarantined { task, .. }, Some(poison)) if *task == poison => {}
            _ => self.broken(format!("a job failed that should not: {failure}")),
        }
    }
}
