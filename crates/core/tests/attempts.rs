//! Which task is blamed when workers die: the one that kills, never one that ran beside it.

use std::collections::BTreeSet;

use tenaz_core::{
    Action, Attempt, Event, Failure, JobWorker, MemberId, Partition, Promise, QueryId, Route, Source, StageId,
    StageShape, TableId, Tag, TaskSet, Topology, Work,
};

const TABLE: TableId = TableId(0);

fn topology() -> Topology {
    let stage = |tasks, reads, route| StageShape { tasks, reads, broadcasts: vec![], route };
    let stages = vec![
        stage(TaskSet::PerChunk(TABLE), vec![], Route::Hash),
        stage(TaskSet::PerPartition, vec![StageId(0)], Route::Results(QueryId(0))),
    ];
    Topology::new(2, 1, stages).expect("a valid topology")
}

fn chunk(number: u64) -> Source {
    Source::Chunk { table: TABLE, number }
}

fn worker(me: u64) -> JobWorker {
    let mut worker = JobWorker::new(MemberId(me), topology());
    worker.handle(Event::Connected);
    worker
}

fn redelivered(worker: &mut JobWorker, tag: u64, number: u64) -> Vec<Action> {
    worker.handle(Event::ChunkDelivered { tag: Tag(tag), source: chunk(number), redelivered: true })
}

fn attempted(worker: &mut JobWorker, source: Source, member: u64, number: u64) -> Vec<Action> {
    worker.handle(Event::Attempted { source, by: Attempt { member: MemberId(member), number } })
}

#[test]
fn one_announcement_at_a_time_and_suspects_run_alone() {
    let mut worker = worker(9);
    let by = |number| Attempt { member: MemberId(9), number };
    assert_eq!(redelivered(&mut worker, 1, 0), vec![Action::Announce { source: chunk(0), by: by(1) }]);
    assert_eq!(redelivered(&mut worker, 2, 1), vec![], "the first announcement has not come back");
    attempted(&mut worker, chunk(0), 1, 1);
    attempted(&mut worker, chunk(0), 2, 1);
    let run = Action::Run { work: Work::Chunk(Tag(1)), sources: 0 };
    assert_eq!(attempted(&mut worker, chunk(0), 9, 1), vec![run], "two have died of it, perhaps: it runs alone");
    let actions = worker.handle(Event::TaskFinished { work: Work::Chunk(Tag(1)), messages: 1 });
    assert!(actions.contains(&Action::Exonerate { source: chunk(0) }));
    assert!(actions.contains(&Action::Announce { source: chunk(1), by: by(2) }), "it has come to its end");
}

#[test]
fn what_was_begun_too_often_is_given_up_unless_somebody_finished_it() {
    for exonerated in [false, true] {
        let mut worker = worker(9);
        (1..=5).for_each(|member| assert_eq!(attempted(&mut worker, chunk(0), member, 1), vec![]));
        if exonerated {
            worker.handle(Event::Exonerated { source: chunk(0) });
        }
        redelivered(&mut worker, 1, 0);
        let failure = Failure::Quarantined { task: chunk(0), attempts: 5 };
        let expected =
            if exonerated { Action::Run { work: Work::Chunk(Tag(1)), sources: 0 } } else { Action::Fail { failure } };
        assert_eq!(attempted(&mut worker, chunk(0), 9, 1), vec![expected]);
    }
}

#[test]
fn a_worker_that_tries_again_has_survived_but_patience_ends() {
    let mut worker = worker(9);
    let again = |worker: &mut JobWorker, number| {
        worker.handle(Event::Disconnected);
        worker.handle(Event::Connected);
        redelivered(worker, number, 0);
        attempted(worker, chunk(0), 9, number)
    };
    for number in 1..=20 {
        assert_eq!(again(&mut worker, number), vec![Action::Run { work: Work::Chunk(Tag(number)), sources: 0 }]);
    }
    assert!(matches!(again(&mut worker, 21)[..], [Action::Fail { .. }]));
}

#[test]
fn inner_tasks_that_nobody_suspects_run_side_by_side() {
    let mut worker = worker(9);
    worker.handle(Event::TableClosed { table: TABLE, promise: Promise::count(0) });
    let partitions = BTreeSet::from([Partition(0), Partition(1)]);
    let task = |partition| Source::Task { stage: StageId(1), partition: Partition(partition) };
    let actions = worker.handle(Event::OwnershipChanged { partitions, results: false });
    let announced =
        |partition, number| Action::Announce { source: task(partition), by: Attempt { member: MemberId(9), number } };
    assert!(actions.contains(&announced(0, 1)) && !actions.contains(&announced(1, 2)));
    let actions = attempted(&mut worker, task(0), 9, 1);
    assert!(matches!(actions[..], [Action::Run { .. }, Action::Announce { .. }]), "{actions:?}");
    let actions = attempted(&mut worker, task(1), 9, 2);
    assert!(matches!(actions[..], [Action::Run { .. }]), "{actions:?}");
}
