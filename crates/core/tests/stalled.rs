//! What a worker does when nothing moves: it names what the broker has lost, and nothing else.

use std::collections::BTreeSet;

use tenaz_core::{
    Action, Event, Header, JobWorker, Lineage, Log, MemberId, Partition, Promise, QueryId, Route, Source, StageId,
    StageShape, TableId, TaskSet, Topology,
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
    let source = Source::Chunk { table, number: 0 };
    let header = Header { source, content: 0, part: 0, parts: 1, lineage: Lineage::default() };
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
    assert_eq!(worker.handle(Event::Stalled), vec![lost(DIMENSION)], "those of the facts still wait in their queue");
    arrived(&mut worker, Log::Broadcast, DIMENSION);
    assert_eq!(worker.handle(Event::Stalled), vec![lost(DIMENSION), lost(FACTS)], "two accounts are missing");
    arrived(&mut worker, Log::Results, DIMENSION);
    assert_eq!(worker.handle(Event::Stalled), vec![lost(FACTS)], "the partition's log has no chunks of any table");
}

#[test]
fn answers_are_made_once_however_long_it_takes_and_their_end_is_announced_until_the_job_has_ended() {
    let mut worker = worker(true);
    arrived(&mut worker, Log::Broadcast, DIMENSION);
    arrived(&mut worker, Log::Results, DIMENSION);
    assert!(arrived(&mut worker, Log::Results, FACTS).contains(&make_answer(1)));
    assert!(!worker.is_idle(), "making the answers is work");
    assert_eq!(worker.handle(Event::Stalled), vec![], "what was taken for the answers cannot be taken again");
    assert_eq!(worker.handle(answer_made(1)), vec![Action::Conclude { conclusion: 1 }]);
    assert!(!worker.is_idle(), "so is concluding");
    assert_eq!(worker.handle(Event::Stalled), vec![]);
    assert_eq!(worker.handle(Event::Concluded { conclusion: 1 }), vec![Action::AnnounceEnd]);
    assert!(worker.is_idle());
    assert_eq!(worker.handle(Event::Stalled), vec![Action::AnnounceEnd], "the word of it may have been lost");
}

#[test]
fn results_that_were_given_away_and_came_back_are_concluded_anew() {
    let mut worker = worker(true);
    arrived(&mut worker, Log::Broadcast, DIMENSION);
    let complete = |worker: &mut JobWorker| {
        arrived(worker, Log::Results, DIMENSION);
        arrived(worker, Log::Results, FACTS)
    };
    assert!(complete(&mut worker).contains(&make_answer(1)));
    for results in [false, true] {
        worker.handle(Event::OwnershipChanged { partitions: BTreeSet::from([Partition(0)]), results });
    }
    assert!(complete(&mut worker).contains(&make_answer(2)));
    assert_eq!(worker.handle(answer_made(1)), vec![], "that of the first was dropped");
    assert_eq!(worker.handle(answer_made(2)), vec![Action::Conclude { conclusion: 2 }]);
    assert_eq!(worker.handle(Event::Concluded { conclusion: 1 }), vec![]);
    assert_eq!(worker.handle(Event::Concluded { conclusion: 2 }), vec![Action::AnnounceEnd]);
}

fn make_answer(conclusion: u64) -> Action {
    Action::MakeAnswer { query: QueryId(0), conclusion }
}

fn answer_made(conclusion: u64) -> Event {
    Event::AnswerMade { query: QueryId(0), conclusion }
}
