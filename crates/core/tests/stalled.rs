//! What a worker does when nothing moves: it names what the broker has lost, and nothing else.

use std::collections::BTreeSet;

use tenaz_core::{
    Action, Event, Header, JobWorker, Log, MemberId, Partition, Promise, QueryId, Route, Source, StageId, StageShape,
    TableId, TaskSet, Topology,
};

const DIMENSION: TableId = TableId(0);
const FACTS: TableId = TableId(1);
const UNUSED: TableId = TableId(2);

/// A dimension that is broadcast to a scan whose rows go straight to the results, and a table that nobody asks for.
fn worker(results: bool) -> JobWorker {
    let stage = |tasks, broadcasts, route| StageShape { tasks, reads: vec![], broadcasts, route };
    let stages = vec![
        stage(TaskSet::PerChunk(DIMENSION), vec![], Route::Broadcast),
        stage(TaskSet::PerChunk(FACTS), vec![StageId(0)], Route::Results(QueryId(0))),
    ];
    let mut worker = JobWorker::new(MemberId(1), Topology::new(1, 3, stages).expect("a valid topology"));
    worker.handle(Event::Connected);
    worker.handle(Event::OwnershipChanged { partitions: BTreeSet::from([Partition(0)]), results });
    for table in [DIMENSION, FACTS, UNUSED] {
        worker.handle(Event::TableClosed { table, promise: Promise::count(1) });
    }
    worker
}

fn arrived(worker: &mut JobWorker, log: Log, table: TableId) -> Vec<Action> {
    let header = Header { source: Source::Chunk { table, number: 0 }, content: 0, part: 0, parts: 1 };
    worker.handle(Event::MessageArrived { log, offset: 0, header })
}

fn lost(table: TableId) -> Action {
    Action::ReportLost { table, chunks: Promise::count(1) }
}

#[test]
fn a_lost_broadcast_is_named_by_everybody_who_waits_for_it() {
    assert_eq!(worker(false).handle(Event::Stalled), vec![lost(DIMENSION)]);
}

#[test]
fn chunks_that_never_come_to_a_log_are_not_missed_there() {
    let mut worker = worker(true);
    assert_eq!(worker.handle(Event::Stalled), vec![lost(DIMENSION), lost(FACTS)]);
    arrived(&mut worker, Log::Broadcast, DIMENSION);
    arrived(&mut worker, Log::Results, DIMENSION);
    assert_eq!(worker.handle(Event::Stalled), vec![lost(FACTS)], "the partition's log has no chunks of any table");
}

#[test]
fn a_job_that_has_concluded_and_does_not_end_is_concluded_again() {
    let mut worker = worker(true);
    arrived(&mut worker, Log::Results, DIMENSION);
    assert!(arrived(&mut worker, Log::Results, FACTS).contains(&Action::Conclude));
    arrived(&mut worker, Log::Broadcast, DIMENSION);
    assert_eq!(worker.handle(Event::Stalled), vec![Action::Conclude]);
}
