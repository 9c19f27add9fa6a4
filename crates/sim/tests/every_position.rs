//! A small job of every shape, with one fault at every single step of it.

mod parallel;

use parallel::in_parallel;
use tenaz_core::End;
use tenaz_sim::{Fault, Options, Plan, Report, SHAPES, Shape, run};

/// A small job of each shape: two partitions, up to two chunks a table.
const SEEDS: [u64; 1] = [1];

fn with_plan(shape: Shape, seed: u64, plan: Plan) -> Report {
    run(&Options { seed, shape: Some(shape), plan: Some(plan), ..Options::default() }).expect("shapes are valid")
}

/// Runs every shape with one fault before each step that the undisturbed job makes.
fn at_every_step(fault: Fault) {
    let mut positions = Vec::new();
    for shape in SHAPES {
        for seed in SEEDS {
            let calm = with_plan(shape, seed, Vec::new());
            assert_eq!(
                (calm.violation, calm.end.map(|end| end.is_done())),
                (None, Some(true)),
                "{shape:?} without faults"
            );
            positions.extend((0..=calm.steps).map(|step| (shape, seed, step)));
        }
    }
    let reports = in_parallel(positions, |&(shape, seed, step)| {
        let report = with_plan(shape, seed, vec![(step, fault)]);
        let place = format!("{shape:?}, seed {seed}, {fault:?} before step {step}");
        assert_eq!(report.violation, None, "{place}");
        let is_cancelled = report.end == Some(End::Cancelled) && fault == Fault::Cancel(0);
        assert!(is_cancelled || report.end.as_ref().is_some_and(End::is_done), "{place}: {:?}", report.end);
        report
    });
    let fired = reports.iter().filter(|report| !report.fired.is_empty()).count();
    // A queue dies only before it has stored a chunk.
    let least = match fault {
        Fault::DeadQueue(0) => 1,
        // A client that has sent everything is only waited for.
        Fault::KillClient | Fault::CutClient => 3,
        _ => 5,
    };
    assert!(fired * 10 > reports.len() * least, "{fired} of {} faults fired", reports.len());
}

#[test]
fn a_worker_is_killed() {
    at_every_step(Fault::KillWorker(0));
    at_every_step(Fault::KillWorker(1));
}

#[test]
fn a_worker_is_cut_off() {
    at_every_step(Fault::CutWorker(0));
    at_every_step(Fault::CutWorker(1));
}

#[test]
fn a_worker_sleeps_while_others_take_over() {
    at_every_step(Fault::Pause(0, 2_000));
}

#[test]
fn a_worker_is_believed_dead() {
    at_every_step(Fault::Suspect(0));
}

#[test]
fn a_worker_seems_to_come_and_go() {
    at_every_step(Fault::Flap(0, 400));
}

#[test]
fn a_worker_believes_that_nothing_moves() {
    at_every_step(Fault::Stall(1));
}

#[test]
fn a_disk_is_full_and_another_worker_does_the_job() {
    at_every_step(Fault::FullDisk(0, 1_000_000));
}

#[test]
fn a_disk_is_full_for_a_while() {
    at_every_step(Fault::FullDisk(1, 100));
}

#[test]
fn a_worker_leaves_and_another_joins() {
    at_every_step(Fault::Drain(0));
}

#[test]
fn a_channel_is_lost() {
    at_every_step(Fault::LoseChannel(0));
}

#[test]
fn a_worker_is_not_served_any_more() {
    at_every_step(Fault::ForgetConsumer(1));
    at_every_step(Fault::SilentStreams(0, 500));
}

#[test]
fn the_broker_refuses_messages_or_takes_none() {
    at_every_step(Fault::FullQueues(200));
    at_every_step(Fault::Alarm(200));
}

#[test]
fn the_broker_restarts() {
    at_every_step(Fault::RestartBroker);
}

#[test]
fn the_power_fails() {
    at_every_step(Fault::PowerCut);
}

#[test]
fn a_gateway_is_killed_or_cut_off() {
    at_every_step(Fault::KillGateway(0));
    at_every_step(Fault::CutGateway(0));
}

#[test]
fn a_connection_refuses_every_chunk() {
    at_every_step(Fault::RefusingChannel(0));
}

#[test]
fn the_broker_stands_still_or_is_slow() {
    at_every_step(Fault::StalledDisk(300));
    at_every_step(Fault::SlowBroker(300));
}

#[test]
fn a_task_takes_long() {
    at_every_step(Fault::LongTask(0, 500));
}

#[test]
fn the_client_is_away_for_a_while() {
    at_every_step(Fault::LeaveClient(0, 300));
}

#[test]
fn a_job_is_cancelled() {
    at_every_step(Fault::Cancel(0));
}

#[test]
fn a_work_queue_was_not_written_to_disk() {
    at_every_step(Fault::DeadQueue(0));
}

#[test]
fn the_client_is_killed_or_cut_off() {
    at_every_step(Fault::KillClient);
    at_every_step(Fault::CutClient);
}
