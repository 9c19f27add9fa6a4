//! Where the rows of a task go: to partitions, to everybody who scans, or into answers.

use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use tenaz_core::{Partition, QueryId, Received, Source, StageId, TableId};
use tenaz_engine::{Edge, TaskOutput};

use super::state::{Broadcast, Job, Results, lock, working_memory};
use crate::row_set::RowSet;
use crate::spool::Spool;
use crate::{Answer, Error};

impl Job<'_> {
    /// Hands the output of a task to everybody who waits for it.
    pub(super) fn deliver(&self, source: Source, stages: &[StageId], output: TaskOutput) -> Result<(), Error> {
        let routed = |wanted: fn(&Edge) -> bool| stages.iter().any(|&stage| wanted(&self.plan.stage(stage).edge));
        for (index, rows) in output.partitions.into_iter().enumerate() {
            let partition = Partition(index as u16);
            if !stages.iter().any(|&stage| self.topology.arrives_in(stage, partition)) {
                continue;
            }
            let arrival = lock(&self.partitions[index]).receive(self.plan, &self.env, source, rows)?;
            self.scheduler.add(partition, &arrival.ready, &self.needs);
            self.tell_early(&arrival.early)?;
        }
        if routed(|edge| matches!(edge, Edge::Broadcast)) {
            self.deliver_broadcast(source, output.broadcast)?;
        }
        if routed(|edge| matches!(edge, Edge::Results(_))) {
            self.deliver_results(source, output.results)?;
        }
        Ok(())
    }

    pub(super) fn deliver_broadcast(&self, source: Source, rows: Vec<(StageId, RecordBatch)>) -> Result<(), Error> {
        let mut broadcast = lock(&self.broadcast);
        if broadcast.inbox.receive(source) == Received::Duplicate {
            return Ok(());
        }
        for (edge, batch) in rows {
            let spool = broadcast.spools.entry(edge).or_insert_with(|| Spool::new(Arc::clone(&self.budget)));
            spool.push(source, batch)?;
        }
        self.complete_broadcasts(&mut broadcast);
        Ok(())
    }

    pub(super) fn complete_broadcasts(&self, broadcast: &mut Broadcast) {
        let ready = broadcast.inbox.take_ready();
        for edge in &ready {
            let spool = broadcast.spools.remove(edge).unwrap_or_else(|| Spool::new(Arc::clone(&self.budget)));
            broadcast.complete.insert(*edge, Arc::new(spool.into_input()));
        }
        if !ready.is_empty() {
            self.scheduler.broadcast_complete(&ready, &self.needs);
        }
    }

    pub(super) fn deliver_results(&self, source: Source, rows: Vec<(StageId, RecordBatch)>) -> Result<(), Error> {
        let mut results = lock(&self.results);
        if results.inbox.receive(source) == Received::Duplicate {
            return Ok(());
        }
        for (stage, batch) in rows {
            let Edge::Results(query) = self.plan.stage(stage).edge else { continue };
            if !self.plan.queries[usize::from(query.0)].ordered {
                results.tell(self.observer, query, stage, &batch)?;
            }
            results.spools[usize::from(query.0)].push(source, batch)?;
        }
        self.complete_answers(&mut results);
        Ok(())
    }

    /// Answers whose rows are all here are put together while the job goes on with others.
    fn complete_answers(&self, results: &mut Results) {
        let mut complete = Vec::new();
        for stage in results.inbox.take_ready() {
            let Edge::Results(query) = self.plan.stage(stage).edge else { continue };
            let open = &mut results.open[usize::from(query.0)];
            *open -= 1;
            if *open == 0 {
                complete.push(query);
            }
        }
        self.scheduler.answer(&complete);
    }

    /// Puts an answer together from its complete rows.
    pub(super) fn make_answer(&self, query: QueryId) -> Result<(), Error> {
        let index = usize::from(query.0);
        let none = Spool::new(Arc::clone(&self.budget));
        let rows = std::mem::replace(&mut lock(&self.results).spools[index], none);
        let env = working_memory(self.options.memory_bytes, &self.options.temp_dir, self.options.threads)?;
        let answer = Answer::new(&self.plan.queries[index], rows, &env, &self.budget)?;
        lock(&self.results).answers[index] = Some(answer);
        Ok(())
    }

    /// Rows that are certain before their task is complete go to the observer at once. The answer itself is made of the
    /// complete task's rows.
    pub(super) fn tell_early(&self, rows: &[(StageId, RecordBatch)]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut results = lock(&self.results);
        for (stage, batch) in rows {
            let Edge::Results(query) = self.plan.stage(*stage).edge else { continue };
            if !results.told.contains_key(stage) {
                results.told.insert(*stage, RowSet::new(&batch.schema())?);
            }
            results.tell(self.observer, query, *stage, batch)?;
        }
        Ok(())
    }

    pub(super) fn close_table(&self, table: TableId, chunks: u64) -> Result<(), Error> {
        for (index, state) in self.partitions.iter().enumerate() {
            let ready = lock(state).close_table(table, chunks)?;
            self.scheduler.add(Partition(index as u16), &ready, &self.needs);
        }
        {
            let mut broadcast = lock(&self.broadcast);
            broadcast.inbox.close_table(table, chunks)?;
            self.complete_broadcasts(&mut broadcast);
        }
        let mut results = lock(&self.results);
        results.inbox.close_table(table, chunks)?;
        self.complete_answers(&mut results);
        Ok(())
    }
}
