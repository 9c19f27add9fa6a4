//! The driver of a job with rows that are nothing but ids.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use tenaz_core::{
    ChunkDigest, Classified, ClosedTable, Effect, Fact, FaultClass, Finished, Header, Input, JobDriver, JobFacts,
    Lineage, Log, LogPart, MemberId, Partition, Promise, QueryEnded, QueryId, QueryOutcome, Route, RowEngine, Source,
    StageId, StageShape, Step, TableId, Tag, TaskSet, Topology,
};

const TABLE: TableId = TableId(0);

/// Computes nothing. The end tells what the tables were closed with.
struct NoRows;

#[derive(Debug)]
struct DiskFull;

impl Classified for DiskFull {
    fn class(&self) -> FaultClass {
        FaultClass::Process
    }
}

impl RowEngine for NoRows {
    type LogRows = ();
    type Body = ();
    type Sent = ();
    type Permit = ();
    type Leaf = ();
    type Early = Infallible;
    type End = BTreeMap<TableId, ClosedTable>;
    type Error = DiskFull;

    fn open(&self, _log: Log) {}

    fn run_chunk(&self, _leaf: ()) -> Result<Vec<(Log, ())>, DiskFull> {
        Ok(vec![(Log::Results, ())])
    }

    fn take(
        &self,
        _log: Log,
        _rows: &(),
        _source: Source,
        _parts: Vec<LogPart<()>>,
    ) -> Result<Option<Infallible>, DiskFull> {
        Ok(None)
    }

    fn complete_broadcast(&self, _rows: &(), _edge: StageId) -> Result<(), DiskFull> {
        Ok(())
    }

    fn run_task(
        &self,
        _task: (StageId, Partition),
        _sources: u64,
        _rows: Arc<()>,
        _is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<(Log, ())>>, DiskFull> {
        Ok(Some(Vec::new()))
    }

    fn make_answer(
        &self,
        _rows: &(),
        _query: QueryId,
        _closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, DiskFull> {
        Ok(answered(7))
    }

    fn conclude(&self, _rows: &(), closed: &BTreeMap<TableId, ClosedTable>) -> Result<Self::End, DiskFull> {
        Ok(closed.clone())
    }
}

/// The end of a query with so many rows.
fn answered(rows: u64) -> QueryEnded {
    QueryEnded { outcome: QueryOutcome::Answered { rows, fingerprint: rows.to_string() }, at_ms: 0 }
}

/// One worker that owns everything of a job which has one table and one stage.
struct Shell {
    driver: JobDriver<NoRows>,
    facts: JobFacts,
    steps: Vec<Step<NoRows>>,
}

impl Shell {
    fn new() -> Self {
        let stage = StageShape {
            tasks: TaskSet::PerChunk(TABLE),
            reads: vec![],
            broadcasts: vec![],
            route: Route::Results(QueryId(0)),
        };
        let topology = Topology::new(1, 1, vec![stage]).expect("a valid topology");
        let driver = JobDriver::new(MemberId(1), topology, 0);
        let mut shell = Self { driver, facts: JobFacts::default(), steps: Vec::new() };
        shell.handle(Input::Connected);
        shell.handle(Input::Owns { partitions: BTreeSet::from([Partition(0)]), results: true });
        shell
    }

    /// The effects but for steps, which are kept.
    fn handle(&mut self, input: Input<NoRows>) -> Vec<Effect<NoRows>> {
        let mut others = Vec::new();
        for effect in self.driver.handle(&NoRows, &self.facts, input) {
            match effect {
                Effect::Run(step) => self.steps.push(step),
                other => others.push(other),
            }
        }
        others
    }

    fn run_next(&mut self) -> Vec<Effect<NoRows>> {
        let finished = self.steps.remove(0).run(&NoRows);
        self.handle(Input::Finished(finished))
    }

    fn close(&mut self, chunks: u64) {
        let promise = Promise::count(chunks);
        let fact = Fact::TableClosed { table: TABLE, chunks: promise.clone(), records: Some(7), bytes: 0 };
        self.facts.apply(0, &fact).expect("the first closing");
        self.handle(Input::TableClosed { table: TABLE, promise });
    }

    fn deliver(&mut self, number: u64, redelivered: bool) -> Vec<Effect<NoRows>> {
        let source = Source::Chunk { table: TABLE, number };
        let consumer = self.driver.consumer(0).expect("chunks are taken");
        let (tag, digest) = (Tag(number), ChunkDigest(0));
        self.handle(Input::Delivered { wave: 0, consumer, tag, source, digest, redelivered, leaf: () })
    }

    fn arrive(&mut self, number: u64) {
        let source = Source::Chunk { table: TABLE, number };
        let header = Header { source, content: 0, part: 0, parts: 1, lineage: Lineage::default() };
        let reading = self.driver.reading(Log::Results).expect("the results are read");
        self.handle(Input::Arrived { log: Log::Results, reading, offset: number, header, body: (), permit: () });
    }
}

#[test]
fn a_job_is_concluded_with_all_tables_even_while_the_control_log_is_read_again() {
    let mut shell = Shell::new();
    shell.close(1);
    shell.arrive(0);
    shell.run_next();
    // The connection is lost and renewed, and the shell begins to read the control log anew.
    shell.handle(Input::Disconnected);
    shell.facts = JobFacts::default();
    shell.handle(Input::Connected);
    shell.run_next();
    let effects = shell.run_next();
    let ends: Vec<_> =
        effects.iter().filter_map(|e| if let Effect::AnnounceEnd(end) = e { Some(end) } else { None }).collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].get(&TABLE).and_then(|closed| closed.records), Some(7));
}

#[test]
fn a_worker_that_stands_back_announces_nothing_any_more() {
    let mut shell = Shell::new();
    let is_announcement = |effect: &Effect<NoRows>| matches!(effect, Effect::Tell(Fact::Attempted { .. }));
    shell.deliver(0, false);
    let announced: Vec<_> = (1..4).flat_map(|number| shell.deliver(number, true)).filter(is_announcement).collect();
    assert_eq!(announced.len(), 1, "one at a time");
    let ticket = shell.steps.remove(0).ticket;
    let effects = shell.handle(Input::Finished(Finished { ticket, outcome: Err(DiskFull) }));
    let given_back = effects.iter().filter(|effect| matches!(effect, Effect::GiveBack { .. })).count();
    assert_eq!(given_back, 4);
    assert!(!effects.iter().any(is_announcement), "an attempt that is never made would count against the chunk");
}

#[test]
fn outputs_that_wait_for_their_turn_are_counted() {
    let mut shell = Shell::new();
    assert_eq!(shell.driver.backlog(), 0);
    (0..3).for_each(|number| shell.arrive(number));
    assert_eq!((shell.steps.len(), shell.driver.backlog()), (1, 2), "one at a time is taken in");
    shell.run_next();
    assert_eq!((shell.steps.len(), shell.driver.backlog()), (1, 1));
}

/// Found by the simulator: all threads are busy for long with another job, so that a log is not read any further; nobody seemed to
/// work on this one, and what stood in the log was called lost.
#[test]
fn rows_that_wait_for_a_thread_are_work_under_way() {
    let mut shell = Shell::new();
    assert_eq!(shell.driver.under_way(), 0);
    shell.arrive(0);
    assert_eq!((shell.driver.machine().under_way(), shell.driver.under_way()), (0, 1));
    shell.run_next();
    assert_eq!(shell.driver.under_way(), 0);
}

fn ends_told(effects: &[Effect<NoRows>]) -> Vec<&QueryEnded> {
    let told = |effect| match effect {
        &Effect::Tell(Fact::QueryEnded { query: QueryId(0), ref end }) => Some(end),
        _ => None,
    };
    effects.iter().filter_map(told).collect()
}

/// The end of a query is told as soon as it is final, before the job is concluded, and again when the word of it may be lost.
#[test]
fn the_end_of_a_query_is_told_until_the_control_log_has_it() {
    let mut shell = Shell::new();
    shell.close(1);
    shell.arrive(0);
    shell.run_next();
    let effects = shell.run_next();
    assert_eq!(ends_told(&effects), [&answered(7)], "though the job is not concluded");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::AnnounceEnd(_))));
    assert_eq!(ends_told(&shell.handle(Input::Stalled)), [&answered(7)]);
    shell.facts.apply(1, &Fact::QueryEnded { query: QueryId(0), end: answered(7) }).expect("the first end");
    assert!(ends_told(&shell.handle(Input::Stalled)).is_empty());
}
