//! A small job of every shape, with one fault at every single step of it.

mod parallel;

use parallel::in_parallel;
use tenaz_core::End;
use tenaz_sim::{Fault, Options, Plan, Report, SHAPES, Shape, run};

/// Two small jobs of each shape: two partitions, up to two chunks a table, and a different order of steps.
const SEEDS: [u64; 2] = [1, 3];

fn with_plan(shape: Shape, seed: u64, plan: Plan) -> Report {
    run(&Options { seed, shape: Some(shape), plan: Some(plan), ..Options::default() }).expect("shapes are valid")
}

/// Runs every shape with one fault before each step that the undisturbed job makes.
fn at_every_step(fault: Fault) {
    let mut positions = Vec::new();
    for shape in SHAPES {
        for seed in SEEDS {
            let calm = with_plan(shape, seed, Vec::new());
            assert_eq!((calm.violation, calm.end), (None, Some(End::Done)), "{shape:?} without faults");
            positions.extend((0..=calm.steps).map(|step| (shape, seed, step)));
        }
    }
    let reports = in_parallel(positions, |&(shape, seed, step)| {
        let report = with_plan(shape, seed, vec![(step, fault)]);
        let place = format!("{shape:?}, seed {seed}, {fault:?} before step {step}");
        assert_eq!(report.violation, None, "{place}");
        assert_eq!(report.end, Some(End::Done), "{place}");
        report
    });
    let fired = reports.iter().filter(|report| !report.fired.is_empty()).count();
    assert!(fired * 10 > reports.len() * 7, "{fired} of {} faults fired", reports.len());
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
fn a_worker_believes_that_nothing_moves() {
    at_every_step(Fault::Stall(1));
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
fn the_client_is_killed_or_cut_off() {
    at_every_step(Fault::KillClient);
    at_every_step(Fault::CutClient);
}
