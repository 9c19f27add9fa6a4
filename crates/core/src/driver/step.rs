//! Pieces of work for threads, as values.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::{LogPart, RowEngine};
use crate::{ClosedTable, Log, QueryEnded, QueryId, Source, StageId, TableId, Tag, Work};

/// Names a step: what it is for, and which ownership it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticket {
    /// The leaf work of a chunk.
    Chunk(Tag),
    /// Rows that are taken in.
    Take {
        /// From which log.
        log: Log,
        /// Tells this reading of the log from another.
        opened: u64,
        /// Whose rows.
        source: Source,
    },
    /// A broadcast that is completed.
    Complete {
        /// Tells this reading of the broadcasts from another.
        opened: u64,
        /// The edge.
        edge: StageId,
    },
    /// An inner task.
    Task(Work),
    /// An answer.
    Answer {
        /// Of this query.
        query: QueryId,
        /// In this ownership of the results.
        conclusion: u64,
    },
    /// The end of the job.
    Conclude {
        /// In this ownership of the results.
        conclusion: u64,
    },
}

impl Ticket {
    /// Whether it runs a chunk or a task, of which a process may die.
    pub(super) fn is_risky(self) -> bool {
        matches!(self, Self::Chunk(_) | Self::Task(_))
    }
}

/// A piece of work. The shell runs it on any thread, once, and hands what comes of it to the driver
/// ([`Input::Finished`](super::Input::Finished)).
///
/// A step refers to the very reading of a log that it was made for. If the log has been released meanwhile, the rows are
/// gone, and the step comes to nothing: it can never touch the rows of another reading.
pub struct Step<R: RowEngine> {
    /// What it is.
    pub ticket: Ticket,
    pub(super) job: StepJob<R>,
}

pub(super) enum StepJob<R: RowEngine> {
    Chunk(R::Leaf),
    Take { rows: Weak<R::LogRows>, parts: Vec<LogPart<R::Body>>, permit: R::Permit },
    Complete(Weak<R::LogRows>),
    Task { rows: Weak<R::LogRows>, sources: u64 },
    Answer { rows: Weak<R::LogRows>, closed: BTreeMap<TableId, ClosedTable> },
    Conclude { rows: Weak<R::LogRows>, closed: BTreeMap<TableId, ClosedTable> },
}

/// What a step has made.
pub enum Product<R: RowEngine> {
    /// Nothing that anybody waits for.
    Nothing,
    /// Messages, each for a log.
    Messages(Vec<(Log, R::Sent)>),
    /// Rows of an answer that are certain by now.
    Early(R::Early),
    /// The end of a query.
    Answer(QueryEnded),
    /// The end of the job.
    End(R::End),
    /// The log was released before the step's turn came.
    Released,
}

/// What comes of a step.
pub type StepOutcome<R> = Result<Product<R>, <R as RowEngine>::Error>;

/// A step that was run.
pub struct Finished<R: RowEngine> {
    /// What it was.
    pub ticket: Ticket,
    /// What came of it.
    pub outcome: StepOutcome<R>,
}

impl<R: RowEngine> Step<R> {
    /// Runs the step.
    pub fn run(self, engine: &R) -> Finished<R> {
        let Self { ticket, job } = self;
        Finished { ticket, outcome: job.run(ticket, engine) }
    }
}

impl<R: RowEngine> StepJob<R> {
    fn run(self, ticket: Ticket, engine: &R) -> StepOutcome<R> {
        match (ticket, self) {
            (_, Self::Chunk(leaf)) => engine.run_chunk(leaf).map(Product::Messages),
            (Ticket::Take { log, source, .. }, Self::Take { rows, parts, permit }) => {
                let Some(rows) = rows.upgrade() else { return Ok(Product::Released) };
                let taken = engine.take(log, &rows, source, parts);
                drop(permit);
                Ok(taken?.map_or(Product::Nothing, Product::Early))
            }
            (Ticket::Complete { edge, .. }, Self::Complete(rows)) => {
                with(&rows, |rows| engine.complete_broadcast(rows, edge).map(|()| Product::Nothing))
            }
            (Ticket::Task(Work::Inner(stage, partition, _)), Self::Task { rows, sources }) => {
                let Some(held) = rows.upgrade() else { return Ok(Product::Released) };
                let is_wanted = || rows.strong_count() > 0;
                let made = engine.run_task((stage, partition), sources, held, &is_wanted)?;
                Ok(made.map_or(Product::Released, Product::Messages))
            }
            (Ticket::Answer { query, .. }, Self::Answer { rows, closed }) => {
                with(&rows, |rows| engine.make_answer(rows, query, &closed).map(Product::Answer))
            }
            (_, Self::Conclude { rows, closed }) => {
                with(&rows, |rows| engine.conclude(rows, &closed).map(Product::End))
            }
            _ => Ok(Product::Released),
        }
    }
}

fn with<R: RowEngine>(rows: &Weak<R::LogRows>, work: impl FnOnce(&R::LogRows) -> StepOutcome<R>) -> StepOutcome<R> {
    let held: Option<Arc<R::LogRows>> = rows.upgrade();
    held.map_or(Ok(Product::Released), |rows| work(&rows))
}
