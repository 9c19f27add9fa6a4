//! A real engine in a simulated worker: the same code that computes with rows in a real one, its messages as bytes.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tenaz_core::{
    ChunkDigest, Classified, ClosedTable, FaultClass, Header, Log, LogPart, Partition, QueryEnded, QueryId, RowEngine,
    Source, StageId, TableId, Topology,
};

use super::{Finding, StepError};
use crate::mutation::Mutation;
use crate::rows::Message;

/// A message with rows that is sent.
type SentBytes = Arc<[u8]>;
/// The rows of one reading of a log, whatever they are.
type AnyRows = Arc<dyn Any + Send + Sync>;

/// A chunk of a real job.
#[derive(Debug, Clone)]
pub struct RealChunk {
    /// How many records it has.
    pub records: u64,
    /// The digest of its bytes.
    pub digest: ChunkDigest,
    /// The message by which a worker gets it.
    pub message: Vec<u8>,
}

/// A message that stands in the results log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBytes {
    /// Rows that were certain before their task was done; the task's own message brings them again.
    pub is_early: bool,
    /// The message.
    pub bytes: SentBytes,
}

/// A job whose rows a real engine computes with. All seeds share it.
pub trait RealJob: Send + Sync {
    /// The shape of the job.
    fn topology(&self) -> Topology;
    /// For each table its chunks.
    fn tables(&self) -> &[Vec<RealChunk>];
    /// The engine of a worker that has just heard of the job.
    fn engine(&self) -> Box<dyn RealEngine>;
    /// What a message with rows says about itself.
    fn header(&self, message: &[u8]) -> Result<Header, String>;
    /// Compares the end of the job with what is right. `results` is what stands in the results log, if all of it is there.
    fn judge(&self, end: &dyn Any, results: Option<&[LogBytes]>) -> Result<(), String>;
}

impl fmt::Debug for dyn RealJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a real job")
    }
}

/// Why a real engine could not do something.
#[derive(Debug)]
pub struct RealError {
    /// Whose fault that is.
    pub class: FaultClass,
    /// Why, in words.
    pub text: String,
}

impl RealError {
    fn of<E: Classified + fmt::Display>(error: E) -> Self {
        Self { class: error.class(), text: error.to_string() }
    }
}

/// A [`RowEngine`] whose messages are bytes, without its types: see there.
#[allow(missing_docs, reason = "the methods are those of RowEngine")]
pub trait RealEngine {
    fn open(&self, log: Log) -> AnyRows;
    fn run_chunk(&self, leaf: Vec<u8>) -> Result<Vec<(Log, SentBytes)>, RealError>;
    fn take(
        &self,
        log: Log,
        rows: &AnyRows,
        source: Source,
        parts: Vec<LogPart<Vec<u8>>>,
    ) -> Result<Vec<SentBytes>, RealError>;
    fn complete_broadcast(&self, rows: &AnyRows, edge: StageId) -> Result<(), RealError>;
    fn run_task(
        &self,
        task: (StageId, Partition),
        sources: u64,
        rows: AnyRows,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<(Log, SentBytes)>>, RealError>;
    fn make_answer(
        &self,
        rows: &AnyRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, RealError>;
    fn conclude(&self, rows: &AnyRows, closed: &BTreeMap<TableId, ClosedTable>) -> Result<Box<dyn Any>, RealError>;
}

impl<R> RealEngine for R
where
    R: RowEngine<Body = Vec<u8>, Sent = SentBytes, Leaf = Vec<u8>, Early = Vec<SentBytes>>,
    R::LogRows: Send + Sync + 'static,
    R::End: 'static,
    R::Error: fmt::Display,
{
    fn open(&self, log: Log) -> AnyRows {
        Arc::new(RowEngine::open(self, log))
    }

    fn run_chunk(&self, leaf: Vec<u8>) -> Result<Vec<(Log, SentBytes)>, RealError> {
        RowEngine::run_chunk(self, leaf).map_err(RealError::of)
    }

    fn take(
        &self,
        log: Log,
        rows: &AnyRows,
        source: Source,
        parts: Vec<LogPart<Vec<u8>>>,
    ) -> Result<Vec<SentBytes>, RealError> {
        RowEngine::take(self, log, own::<R>(rows), source, parts).map(Option::unwrap_or_default).map_err(RealError::of)
    }

    fn complete_broadcast(&self, rows: &AnyRows, edge: StageId) -> Result<(), RealError> {
        RowEngine::complete_broadcast(self, own::<R>(rows), edge).map_err(RealError::of)
    }

    fn run_task(
        &self,
        task: (StageId, Partition),
        sources: u64,
        rows: AnyRows,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<(Log, SentBytes)>>, RealError> {
        let rows = rows.downcast::<R::LogRows>().expect("rows come back to the engine that opened them");
        RowEngine::run_task(self, task, sources, rows, is_wanted).map_err(RealError::of)
    }

    fn make_answer(
        &self,
        rows: &AnyRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, RealError> {
        RowEngine::make_answer(self, own::<R>(rows), query, closed).map_err(RealError::of)
    }

    fn conclude(&self, rows: &AnyRows, closed: &BTreeMap<TableId, ClosedTable>) -> Result<Box<dyn Any>, RealError> {
        let end = RowEngine::conclude(self, own::<R>(rows), closed).map_err(RealError::of)?;
        Ok(Box::new(end))
    }
}

fn own<R: RowEngine>(rows: &AnyRows) -> &R::LogRows
where
    R::LogRows: 'static,
{
    (**rows).downcast_ref().expect("rows come back to the engine that opened them")
}

/// A real engine, and what the simulator makes of its messages.
pub(crate) struct RealSide {
    job: Arc<dyn RealJob>,
    engine: Box<dyn RealEngine>,
    mutation: Mutation,
    findings: RefCell<Vec<Finding>>,
}

impl RealSide {
    pub(super) fn new(job: Arc<dyn RealJob>, mutation: Mutation) -> Self {
        Self { engine: job.engine(), job, mutation, findings: RefCell::default() }
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        self.findings.take()
    }

    pub(super) fn open(&self, log: Log) -> AnyRows {
        self.engine.open(log)
    }

    pub(super) fn run_chunk(&self, source: Source) -> Result<Vec<(Log, Message)>, StepError> {
        let Source::Chunk { table, number } = source else { return Ok(Vec::new()) };
        let leaf = self.job.tables()[usize::from(table.0)][number as usize].message.clone();
        self.messages(self.engine.run_chunk(leaf))
    }

    pub(super) fn take(
        &self,
        log: Log,
        rows: &AnyRows,
        source: Source,
        mut parts: Vec<LogPart<Message>>,
    ) -> Result<Option<Vec<Message>>, StepError> {
        if self.mutation == Mutation::TakeLastPart {
            parts.drain(..parts.len() - 1);
        }
        let bytes = |LogPart { offset, body }: LogPart<Message>| {
            body.real.map(|real| LogPart { offset, body: real.bytes.to_vec() })
        };
        let early = self.engine.take(log, rows, source, parts.into_iter().filter_map(bytes).collect());
        let early = early.map_err(StepError::Real)?;
        let early = early.into_iter().map(|bytes| self.message(bytes, true)).collect::<Result<Vec<_>, _>>()?;
        Ok((!early.is_empty()).then_some(early))
    }

    pub(super) fn complete_broadcast(&self, rows: &AnyRows, edge: StageId) -> Result<(), StepError> {
        self.engine.complete_broadcast(rows, edge).map_err(StepError::Real)
    }

    pub(super) fn run_task(
        &self,
        task: (StageId, Partition),
        sources: u64,
        rows: AnyRows,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<(Log, Message)>>, StepError> {
        match self.engine.run_task(task, sources, rows, is_wanted) {
            Ok(None) => Ok(None),
            Ok(Some(messages)) => self.messages(Ok(messages)).map(Some),
            Err(error) => Err(StepError::Real(error)),
        }
    }

    pub(super) fn make_answer(
        &self,
        rows: &AnyRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, StepError> {
        self.engine.make_answer(rows, query, closed).map_err(StepError::Real)
    }

    pub(super) fn conclude(&self, rows: &AnyRows, closed: &BTreeMap<TableId, ClosedTable>) -> Result<(), StepError> {
        let end = self.engine.conclude(rows, closed).map_err(StepError::Real)?;
        self.findings.borrow_mut().push(Finding::RealEnd(end));
        Ok(())
    }

    fn messages(&self, made: Result<Vec<(Log, SentBytes)>, RealError>) -> Result<Vec<(Log, Message)>, StepError> {
        let made = made.map_err(StepError::Real)?.into_iter();
        made.map(|(log, bytes)| Ok((log, self.message(bytes, false)?))).collect()
    }

    fn message(&self, bytes: SentBytes, is_early: bool) -> Result<Message, StepError> {
        let unreadable = |text| StepError::Real(RealError { class: FaultClass::Bug, text });
        let header = self.job.header(&bytes).map_err(unreadable)?;
        Ok(Message::of_real(header, LogBytes { is_early, bytes }))
    }
}
