//! What happens to the messages of logs, on the pool, in the order of each log: rows are taken in, inner tasks run, the
//! answers are made.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenaz_cluster::{QueryEnd, ResultEnd, TableEnd};
use tenaz_core::{ClosedTable, Log, Partition, Source, StageId, TableId};
use tenaz_engine::{Edge, EdgeInput, JobPlan, Workload, run_inner};

use super::chunk::{Outgoing, outgoing};
use super::shared::SharedJob;
use crate::cluster::results::kind;
use crate::cluster::rows::{ChunkAccount, Extras, Message, decode, encode};
use crate::job::lock;
use crate::spool::{Budget, Spool};
use crate::{Answer, Error};

/// What the owner of the results gathers.
pub(super) struct Results {
    spools: Vec<Spool>,
    tables: BTreeMap<TableId, TableEnd>,
}

impl Results {
    pub(super) fn new(plan: &JobPlan, workload: &Workload, budget: &Arc<Budget>) -> Self {
        let table = |id: TableId| TableEnd {
            name: workload.tables[usize::from(id.0)].name.clone(),
            records: 0,
            accepted: 0,
            rejected: 0,
            reasons: BTreeMap::new(),
            bytes: 0,
        };
        Self {
            spools: plan.queries.iter().map(|_| Spool::new(Arc::clone(budget))).collect(),
            tables: plan.scans.iter().map(|scan| (scan.table, table(scan.table))).collect(),
        }
    }

    fn account(&mut self, table: TableId, account: ChunkAccount) {
        let Some(end) = self.tables.get_mut(&table) else { return };
        end.records += account.records;
        end.accepted += account.accepted;
        end.rejected += account.rejected;
        for (reason, count) in account.reasons {
            *end.reasons.entry(reason).or_insert(0) += count;
        }
    }
}

/// Takes a complete output in: one message, or all parts of it in order. Returns messages to be sent because of it.
pub(super) fn take(job: &SharedJob, log: Log, parts: Vec<Vec<u8>>) -> Result<Vec<Outgoing>, Error> {
    let mut early = Vec::new();
    for part in parts {
        let message = decode(&log.to_string(), &part)?;
        match log {
            Log::Partition(partition) => early.extend(take_rows(job, partition, message)?),
            Log::Broadcast => take_broadcast(job, message)?,
            Log::Results => take_results(job, message)?,
            Log::Control => {}
        }
    }
    Ok(early)
}

fn take_rows(job: &SharedJob, partition: Partition, message: Message) -> Result<Vec<Outgoing>, Error> {
    let rows = job.partition(partition);
    let early = lock(&rows).take(&job.plan, &job.env, message.id.source, message.rows)?;
    let mut messages = Vec::new();
    for (stage, batch) in early {
        let source = Source::Task { stage, partition };
        let parts = encode(source, &[(stage, batch)], Extras::default())?;
        messages.extend(parts.into_iter().map(|body| Outgoing {
            log: Log::Results,
            kind: kind::EARLY,
            body: body.into(),
        }));
    }
    Ok(messages)
}

fn take_broadcast(job: &SharedJob, message: Message) -> Result<(), Error> {
    let mut arriving = lock(&job.arriving_broadcasts);
    for (edge, batch) in message.rows {
        let spool = arriving.entry(edge).or_insert_with(|| Spool::new(Arc::clone(&job.budget)));
        spool.push(message.id.source, batch)?;
    }
    Ok(())
}

fn take_results(job: &SharedJob, message: Message) -> Result<(), Error> {
    let mut results = lock(&job.results);
    let source = message.id.source;
    for (stage, batch) in message.rows {
        let Edge::Results(query) = job.plan.stage(stage).edge else { continue };
        results.spools[usize::from(query.0)].push(source, batch)?;
    }
    match (source, message.account) {
        (Source::Chunk { table, .. }, Some(account)) => {
            job.board.progress(&job.id, |progress| {
                progress.chunks += 1;
                progress.bytes += account.bytes;
                progress.records += account.records;
                progress.rejected += account.rejected;
            });
            results.account(table, account);
        }
        _ => job.board.progress(&job.id, |progress| progress.answers += 1),
    }
    Ok(())
}

/// A broadcast has all its rows.
pub(super) fn complete_broadcast(job: &SharedJob, edge: StageId) {
    let spool = lock(&job.arriving_broadcasts).remove(&edge);
    let spool = spool.unwrap_or_else(|| Spool::new(Arc::clone(&job.budget)));
    lock(&job.broadcasts).insert(edge, Arc::new(spool.into_input()));
}

/// Forgets all that was taken from a log.
pub(super) fn release(job: &SharedJob, log: Log) {
    match log {
        Log::Partition(partition) => {
            lock(&job.partitions).remove(&partition);
        }
        Log::Results => *lock(&job.results) = Results::new(&job.plan, &job.workload, &job.budget),
        Log::Broadcast | Log::Control => {}
    }
}

/// The input of an inner task, which must be taken from its partition in the order of the log.
pub(super) type Inputs = BTreeMap<StageId, Arc<dyn EdgeInput>>;

pub(super) fn inputs(job: &SharedJob, stage: StageId, partition: Partition) -> Inputs {
    let task = job.plan.stage(stage);
    let rows = job.partition(partition);
    let mut inputs = lock(&rows).inputs(&task.reads, |edge| job.keeps(edge));
    let broadcasts = lock(&job.broadcasts);
    let wanted = task.broadcasts.iter().filter_map(|edge| broadcasts.get_key_value(edge));
    inputs.extend(wanted.map(|(edge, rows)| (*edge, Arc::clone(rows))));
    inputs
}

/// Runs an inner task.
pub(super) fn run_task(
    job: &SharedJob,
    stage: StageId,
    partition: Partition,
    inputs: Inputs,
) -> Result<Vec<Outgoing>, Error> {
    let env = job.task_memory()?;
    let output = run_inner(&job.plan, stage, partition, job.topology.partitions(), inputs, &env)?;
    let messages = outgoing(job, Source::Task { stage, partition }, output, Extras::default())?;
    job.metrics.tasks.inc();
    Ok(messages)
}

/// All results are in: puts the answers in order, takes their fingerprints, and checks the account.
pub(super) fn conclude(job: &SharedJob, closed: &BTreeMap<TableId, ClosedTable>) -> Result<ResultEnd, Error> {
    let mut results = lock(&job.results);
    let gathered = std::mem::replace(&mut *results, Results::new(&job.plan, &job.workload, &job.budget));
    drop(results);
    let mut tables = Vec::new();
    for (id, mut table) in gathered.tables {
        let promised = closed.get(&id);
        table.bytes = promised.map_or(0, |closed| closed.bytes);
        let records = promised.and_then(|closed| closed.records).unwrap_or(table.records);
        if records != table.accepted + table.rejected {
            let found = table.accepted + table.rejected;
            return Err(Error::Miscounted { what: format!("table {}", table.name), promised: records, found });
        }
        tables.push(table);
    }
    let env = job.task_memory()?;
    let mut queries = Vec::new();
    for (query, spool) in job.plan.queries.iter().zip(gathered.spools) {
        let answer = Answer::new(query, spool, &env, &job.budget)?;
        queries.push(QueryEnd {
            name: answer.name.clone(),
            rows: answer.rows,
            fingerprint: answer.fingerprint.clone(),
            ordered: answer.ordered,
        });
    }
    Ok(ResultEnd { queries, tables })
}
