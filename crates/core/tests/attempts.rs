//! Which task is blamed when workers die: the one that kills, never one that ran beside it.

use std::collections::BTreeSet;

use tenaz_core::{
    Action, Attempt, Clearance, Event, Exposure, Failure, JobWorker, MemberId, Partition, Promise, QueryId, Route,
    Source, StageId, StageShape, TableId, Tag, TaskSet, Topology, Work,
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

fn beside_others(member: u64, number: u64) -> Attempt {
    Attempt { member: MemberId(member), number, alone: false }
}

fn alone(member: u64, number: u64) -> Attempt {
    Attempt { alone: true, ..beside_others(member, number) }
}

fn attempted(worker: &mut JobWorker, source: Source, by: Attempt) -> Vec<Action> {
    worker.handle(Event::Attempted { source, by })
}

#[test]
fn one_announcement_at_a_time_and_suspects_run_alone() {
    let mut worker = worker(9);
    let by = |number| beside_others(9, number);
    assert_eq!(redelivered(&mut worker, 1, 0), vec![Action::Announce { source: chunk(0), by: by(1) }]);
    assert_eq!(redelivered(&mut worker, 2, 1), vec![], "the first announcement has not come back");
    attempted(&mut worker, chunk(0), beside_others(1, 1));
    attempted(&mut worker, chunk(0), beside_others(2, 1));
    let next = Action::Announce { source: chunk(1), by: by(2) };
    assert_eq!(
        attempted(&mut worker, chunk(0), beside_others(9, 1)),
        vec![next],
        "two have died of it, perhaps: it has to wait"
    );
    let run = |tag| Action::Run { work: Work::Chunk(Tag(tag)), sources: 0 };
    assert_eq!(attempted(&mut worker, chunk(1), beside_others(9, 2)), vec![run(2)]);
    worker.handle(Event::TaskFinished { work: Work::Chunk(Tag(2)), messages: 1 });
    let announced = worker.handle(Event::Cleared(Clearance::Alone));
    assert_eq!(announced, vec![Action::Announce { source: chunk(0), by: alone(9, 3) }]);
    assert_eq!(attempted(&mut worker, chunk(0), alone(9, 3)), vec![run(1)]);
    let actions = worker.handle(Event::TaskFinished { work: Work::Chunk(Tag(1)), messages: 1 });
    assert!(actions.contains(&Action::Exonerate { source: chunk(0) }), "it has come to its end");
}

#[test]
fn what_was_begun_too_often_is_given_up_unless_somebody_finished_it() {
    for exonerated in [false, true] {
        let mut worker = worker(9);
        for by in [beside_others(1, 1), beside_others(2, 1), alone(3, 1), alone(4, 1), alone(5, 1)] {
            assert_eq!(attempted(&mut worker, chunk(0), by), vec![]);
        }
        if exonerated {
            worker.handle(Event::Exonerated { source: chunk(0) });
        }
        redelivered(&mut worker, 1, 0);
        // Nothing else runs in the process.
        let announced = worker.handle(Event::Cleared(Clearance::Alone));
        assert_eq!(announced.is_empty(), exonerated, "what is no suspect was announced at once");
        let failure = Failure::Quarantined { task: chunk(0), attempts: 5 };
        let expected =
            if exonerated { Action::Run { work: Work::Chunk(Tag(1)), sources: 0 } } else { Action::Fail { failure } };
        let by = if exonerated { beside_others(9, 1) } else { alone(9, 1) };
        assert_eq!(attempted(&mut worker, chunk(0), by), vec![expected]);
    }
}

/// Found by the simulator: another job's poison kills process after process while the same chunk is announced there.
#[test]
fn deaths_beside_others_convict_nobody() {
    let mut worker = worker(99);
    (1..=50).for_each(|member| assert_eq!(attempted(&mut worker, chunk(0), beside_others(member, 1)), vec![]));
    redelivered(&mut worker, 1, 0);
    worker.handle(Event::Cleared(Clearance::Alone));
    let run = Action::Run { work: Work::Chunk(Tag(1)), sources: 0 };
    assert_eq!(attempted(&mut worker, chunk(0), alone(99, 1)), vec![run]);
}

#[test]
fn a_worker_that_tries_again_has_survived_but_patience_ends() {
    let mut worker = worker(9);
    let again = |worker: &mut JobWorker, number| {
        worker.handle(Event::Disconnected);
        worker.handle(Event::Connected);
        redelivered(worker, number, 0);
        let is_suspect = worker.exposure().has_suspect;
        worker.handle(Event::Cleared(if is_suspect { Clearance::Alone } else { Clearance::Shared }));
        attempted(worker, chunk(0), Attempt { alone: is_suspect, ..beside_others(9, number) })
    };
    for number in 1..=22 {
        assert_eq!(again(&mut worker, number), vec![Action::Run { work: Work::Chunk(Tag(number)), sources: 0 }]);
    }
    assert!(matches!(again(&mut worker, 23)[..], [Action::Fail { .. }]));
}

#[test]
fn inner_tasks_that_nobody_suspects_run_side_by_side() {
    let mut worker = worker(9);
    worker.handle(Event::TableClosed { table: TABLE, promise: Promise::count(0) });
    let partitions = BTreeSet::from([Partition(0), Partition(1)]);
    let task = |partition| Source::Task { stage: StageId(1), partition: Partition(partition) };
    let actions = worker.handle(Event::OwnershipChanged { partitions, results: false });
    let announced = |partition, number| Action::Announce { source: task(partition), by: beside_others(9, number) };
    assert!(actions.contains(&announced(0, 1)) && !actions.contains(&announced(1, 2)));
    let actions = attempted(&mut worker, task(0), beside_others(9, 1));
    assert!(matches!(actions[..], [Action::Run { .. }, Action::Announce { .. }]), "{actions:?}");
    let actions = attempted(&mut worker, task(1), beside_others(9, 2));
    assert!(matches!(actions[..], [Action::Run { .. }]), "{actions:?}");
}

#[test]
fn a_suspect_waits_until_it_may_run_alone_and_nothing_is_begun_beside_it() {
    let mut worker = worker(9);
    (1..=2).for_each(|member| assert_eq!(attempted(&mut worker, chunk(0), beside_others(member, 1)), vec![]));
    assert_eq!(redelivered(&mut worker, 1, 0), vec![], "a suspect");
    let by = |number| beside_others(9, number);
    assert_eq!(redelivered(&mut worker, 2, 1), vec![Action::Announce { source: chunk(1), by: by(1) }], "harmless");
    let exposure = |begun, has_suspect, clearance| Exposure { begun, has_suspect, clearance };
    assert_eq!(worker.exposure(), exposure(1, true, Clearance::Shared));
    assert_eq!(worker.handle(Event::Cleared(Clearance::Held)), vec![]);
    let run = |tag| Action::Run { work: Work::Chunk(Tag(tag)), sources: 0 };
    assert_eq!(attempted(&mut worker, chunk(1), beside_others(9, 1)), vec![run(2)], "what is announced goes on");
    let fresh = Event::ChunkDelivered { tag: Tag(3), source: chunk(2), redelivered: false };
    assert_eq!(worker.handle(fresh), vec![], "nothing is begun");
    worker.handle(Event::TaskFinished { work: Work::Chunk(Tag(2)), messages: 1 });
    assert_eq!(worker.exposure(), exposure(0, true, Clearance::Held));
    let announced = worker.handle(Event::Cleared(Clearance::Alone));
    assert_eq!(announced, vec![Action::Announce { source: chunk(0), by: alone(9, 2) }]);
    assert_eq!(attempted(&mut worker, chunk(0), alone(9, 2)), vec![run(1)]);
    assert_eq!(worker.exposure(), exposure(1, false, Clearance::Alone));
    let finished = worker.handle(Event::TaskFinished { work: Work::Chunk(Tag(1)), messages: 1 });
    assert!(finished.contains(&Action::Exonerate { source: chunk(0) }), "{finished:?}");
    assert_eq!(worker.exposure(), exposure(0, false, Clearance::Alone), "the next one is another's");
    assert_eq!(worker.handle(Event::Cleared(Clearance::Shared)), vec![run(3)]);
}
