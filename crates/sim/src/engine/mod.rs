//! What a simulated worker computes with: rows of the simulator's own, or those of a real engine that a test hands in.

mod real;
mod toy;

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use tenaz_core::{
    Classified, ClosedTable, DoneSummary, End, Error, FaultClass, Imbalance, Log, LogPart, Partition, QueryEnded,
    QueryId, RowEngine, Source, StageId, TableId,
};

use crate::broker::ChunkCopy;
use crate::mutation::Mutation;
use crate::rows::Message;
use crate::scenario::Scenario;
use crate::store::LogState;

use real::RealSide;
pub use real::{LogBytes, RealChunk, RealEngine, RealError, RealJob};
pub(crate) use toy::{ToyEngine, ToyRows};

/// Why a step could not be done.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The worker's disk is full.
    DiskFull,
    /// Rows are not conserved, or two parties disagree.
    Contradiction(Error),
    /// The records of a table do not add up.
    Imbalance(Imbalance),
    /// The job is concluded, but nobody has said how many records this table has.
    NotClosed(TableId),
    /// A real engine could not do it.
    Real(RealError),
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull => f.write_str("the disk is full"),
            Self::Contradiction(error) => error.fmt(f),
            Self::Imbalance(imbalance) => imbalance.fmt(f),
            Self::NotClosed(table) => write!(f, "nobody has said how many records table {} has", table.0),
            Self::Real(error) => f.write_str(&error.text),
        }
    }
}

impl Classified for StepError {
    fn class(&self) -> FaultClass {
        match self {
            Self::DiskFull => FaultClass::Process,
            Self::Contradiction(_) => FaultClass::Data,
            Self::Imbalance(_) | Self::NotClosed(_) => FaultClass::Bug,
            Self::Real(error) => error.class,
        }
    }
}

/// What an engine has seen and the checks must know.
#[derive(Debug)]
pub(crate) enum Finding {
    /// A rule was broken.
    Broken(String),
    /// A query was answered with the rows of these results.
    Answered(QueryId, LogState),
    /// The job was concluded with these results.
    Concluded(LogState),
    /// A real engine has concluded the job with this end.
    RealEnd(Box<dyn std::any::Any>),
}

/// Computes with the rows of one worker's part in a job.
pub(crate) enum SimEngine {
    /// With rows of two numbers.
    Toy(ToyEngine),
    /// With real ones.
    Real(RealSide),
}

/// The rows that one reading of a log has given.
pub(crate) enum LogRows {
    /// Rows of two numbers.
    Toy(ToyRows),
    /// Those of a real engine.
    Real(Arc<dyn std::any::Any + Send + Sync>),
}

impl SimEngine {
    /// The engine of a worker that has just heard of the job.
    pub(crate) fn new(scenario: Rc<Scenario>, turn: u64, mutation: Mutation) -> Self {
        match scenario.real() {
            Some(job) => Self::Real(RealSide::new(Arc::clone(job), mutation)),
            None => Self::Toy(ToyEngine::new(scenario, turn, mutation)),
        }
    }

    /// What it has seen since it was asked last.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        match self {
            Self::Toy(engine) => engine.findings(),
            Self::Real(engine) => engine.findings(),
        }
    }

    /// The simulator's own engine, for mistakes that reach into its rows.
    pub(crate) fn toy(&self) -> Option<&ToyEngine> {
        match self {
            Self::Toy(engine) => Some(engine),
            Self::Real(_) => None,
        }
    }
}

impl RowEngine for SimEngine {
    type LogRows = LogRows;
    type Body = Message;
    type Sent = Message;
    type Permit = Rc<()>;
    type Leaf = ChunkCopy;
    /// Messages for the results log.
    type Early = Vec<Message>;
    type End = End;
    type Error = StepError;

    fn open(&self, log: Log) -> LogRows {
        match self {
            Self::Toy(engine) => LogRows::Toy(engine.open(log)),
            Self::Real(engine) => LogRows::Real(engine.open(log)),
        }
    }

    fn run_chunk(&self, leaf: ChunkCopy) -> Result<Vec<(Log, Message)>, StepError> {
        match self {
            Self::Toy(engine) => Ok(engine.run_chunk(leaf)),
            Self::Real(engine) => engine.run_chunk(leaf.source),
        }
    }

    fn take(
        &self,
        log: Log,
        rows: &LogRows,
        source: Source,
        parts: Vec<LogPart<Message>>,
    ) -> Result<Option<Vec<Message>>, StepError> {
        match (self, rows) {
            (Self::Toy(engine), LogRows::Toy(rows)) => {
                engine.take(log, rows, source, parts.into_iter().map(|part| part.body).collect());
                Ok(None)
            }
            (Self::Real(engine), LogRows::Real(rows)) => engine.take(log, rows, source, parts),
            _ => Ok(None),
        }
    }

    fn complete_broadcast(&self, rows: &LogRows, edge: StageId) -> Result<(), StepError> {
        match (self, rows) {
            (Self::Toy(engine), LogRows::Toy(rows)) => engine.complete_broadcast(rows, edge),
            (Self::Real(engine), LogRows::Real(rows)) => engine.complete_broadcast(rows, edge)?,
            _ => {}
        }
        Ok(())
    }

    fn run_task(
        &self,
        task: (StageId, Partition),
        sources: u64,
        rows: Arc<LogRows>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<(Log, Message)>>, StepError> {
        match (self, &*rows) {
            (Self::Toy(engine), LogRows::Toy(held)) => engine.run_over(task, Some(sources), held).map(Some),
            (Self::Real(engine), LogRows::Real(held)) => {
                let held = Arc::clone(held);
                drop(rows);
                engine.run_task(task, sources, held, is_wanted)
            }
            _ => Ok(None),
        }
    }

    fn make_answer(
        &self,
        rows: &LogRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, StepError> {
        match (self, rows) {
            (Self::Toy(engine), LogRows::Toy(rows)) => engine.make_answer(rows, query, closed),
            (Self::Real(engine), LogRows::Real(rows)) => engine.make_answer(rows, query, closed),
            _ => unreachable!("an engine opens the rows that it is given"),
        }
    }

    fn conclude(&self, rows: &LogRows, closed: &BTreeMap<TableId, ClosedTable>) -> Result<End, StepError> {
        match (self, rows) {
            (Self::Toy(engine), LogRows::Toy(rows)) => engine.conclude(rows, closed)?,
            (Self::Real(engine), LogRows::Real(rows)) => engine.conclude(rows, closed)?,
            _ => {}
        }
        Ok(End::Done(DoneSummary::default()))
    }
}
