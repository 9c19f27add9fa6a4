//! What a keeper does, case by case.

use tenaz_core::{
    Ending, Incarnation, KeeperAction, KeeperEvent, KeeperPolicy, OrderFailure, OutsideCause, Past, ProcessRole,
    ProcessState, Trouble,
};

use crate::world::{Mood, Nature, TICK_MS, World};

fn workers(natures: &[Nature]) -> World {
    let natures: Vec<_> = natures.iter().map(|nature| (ProcessRole::Worker, *nature)).collect();
    World::new(KeeperPolicy::default(), &natures)
}

fn running(nature: Nature) -> World {
    let mut world = workers(&[nature]);
    world.run(2_000);
    assert_eq!(world.state(0), ProcessState::Ready);
    world
}

/// How long it took from now until the process was started again.
fn time_to_start(world: &mut World) -> u64 {
    let (starts, from) = (world.starts(0), world.now_ms);
    while world.starts(0) == starts && world.now_ms < from + 1_000_000 {
        world.step();
    }
    world.now_ms - from
}

#[test]
fn the_first_restart_is_at_once_and_the_following_back_off_until_it_is_healthy_again() {
    let mut world = running(Nature::Good);
    let mut waits = vec![];
    for _ in 0..8 {
        world.crash(0, Ending::Signalled(9));
        waits.push(time_to_start(&mut world));
        world.run(1_000);
    }
    // What the back-end sees arrives a tick late here.
    assert!(waits[0] <= 2 * TICK_MS, "{waits:?}");
    for (i, wait) in waits.iter().enumerate().skip(1) {
        let whole = 500 << (i - 1);
        assert!((whole / 2..=whole + 3 * TICK_MS).contains(wait), "{waits:?}");
    }
    world.run(12_000);
    world.crash(0, Ending::Signalled(9));
    assert!(time_to_start(&mut world) <= 2 * TICK_MS);
}

#[test]
fn an_exit_with_success_is_an_end_like_any_other() {
    let mut world = running(Nature::Good);
    world.crash(0, Ending::Exited(0));
    assert!(time_to_start(&mut world) <= 2 * TICK_MS);
}

#[test]
fn a_process_that_drains_and_ends_has_not_crashed() {
    let mut world = running(Nature::Good);
    for _ in 0..20 {
        world.processes[0].life.as_mut().expect("runs").draining = true;
        world.run(1_000);
        assert_eq!(world.state(0), ProcessState::Draining);
        world.crash(0, Ending::Exited(0));
        assert!(time_to_start(&mut world) <= 2 * TICK_MS, "no backoff");
        world.run(1_500);
    }
    assert_eq!(world.state(0), ProcessState::Ready);
}

#[test]
fn failed_starts_in_a_row_end_as_given_up_with_the_exit_code() {
    let mut world = workers(&[Nature::EndsAtStart(3)]);
    world.run(60_000);
    assert_eq!(world.starts(0), 5);
    let reason = "5 starts in a row failed, the last with: exit code 3";
    assert_eq!(world.processes[0].given_up.as_deref(), Some(reason));
    world.takeover();
    world.run(600_000);
    assert_eq!(world.starts(0), 5, "given up by one leader is given up by all");
    assert_eq!(world.state(0), ProcessState::GivenUp);
    // Somebody has repaired it.
    (world.processes[0].given_up, world.processes[0].nature) = (None, Nature::Good);
    world.run(2_000);
    assert_eq!(world.state(0), ProcessState::Ready);
}

#[test]
fn a_start_that_cannot_even_be_tried_is_given_up_with_the_reason() {
    let mut world = workers(&[Nature::Good]);
    let name = world.processes[0].name.clone();
    let seen = || KeeperEvent::Seen {
        name: name.clone(),
        role: ProcessRole::Worker,
        running: None,
        ended: None,
        past: Past::default(),
    };
    let mut given_up = None;
    for _ in 0..1_000 {
        world.now_ms += TICK_MS;
        let mut actions = world.keeper.handle(seen(), world.now_ms);
        while let Some(action) = actions.pop() {
            match action {
                KeeperAction::Start { name, incarnation, .. } => {
                    let reason = "there is no program /x".to_owned();
                    let failed = KeeperEvent::OrderFailed { name, incarnation, failure: OrderFailure::Failed, reason };
                    actions = world.keeper.handle(failed, world.now_ms);
                }
                KeeperAction::GiveUp { reason, .. } => given_up = Some(reason),
                _ => panic!("{action:?}"),
            }
        }
    }
    let reason = given_up.expect("given up");
    assert_eq!(reason, "5 starts in a row failed, the last with: there is no program /x");
}

#[test]
fn an_end_for_a_reason_outside_backs_off_and_never_ends_as_given_up() {
    let mut world = workers(&[Nature::EndsAtStart(75)]);
    world.run(3_600_000);
    assert!(world.processes[0].given_up.is_none());
    assert!((100..250).contains(&world.starts(0)), "{} starts in an hour", world.starts(0));
    world.processes[0].nature = Nature::Good;
    world.run(600_000);
    assert_eq!(world.state(0), ProcessState::Ready);
}

#[test]
fn a_start_that_something_outside_obstructs_is_tried_for_as_long_as_that_lasts() {
    let mut world = workers(&[Nature::Good]);
    world.obstacle = Some(OutsideCause::NoDiskSpace);
    world.run(3_600_000);
    let tries = world.actions.iter().filter(|(_, action)| matches!(action, KeeperAction::Start { .. })).count();
    assert!((100..250).contains(&tries), "{tries} tries in an hour");
    let standing = world.keeper.standing(&world.processes[0].name, world.now_ms);
    assert_eq!((standing.state, standing.detail.as_deref()), (ProcessState::Waiting, Some("the disk is full")));
    world.obstacle = None;
    world.run(31_000);
    assert_eq!((world.state(0), &world.processes[0].given_up), (ProcessState::Ready, &None));
    world.crash(0, Ending::Signalled(9));
    world.run(60_000);
    assert_eq!((world.state(0), &world.processes[0].given_up), (ProcessState::Ready, &None));
}

#[test]
fn what_was_obstructed_for_long_is_not_given_up_for_its_first_crash_afterwards() {
    let mut world = workers(&[Nature::EndsAtStart(75)]);
    world.run(7_200_000);
    world.processes[0].nature = Nature::Good;
    while world.state(0) != ProcessState::Ready {
        world.step();
    }
    world.crash(0, Ending::Signalled(9));
    world.run(60_000);
    assert_eq!((world.state(0), &world.processes[0].given_up), (ProcessState::Ready, &None));
}

#[test]
fn a_process_that_stands_still_is_killed_and_started_again() {
    for (mood, frozen) in [(Mood::Frozen, true), (Mood::Stopped, false)] {
        let mut world = running(Nature::Good);
        world.set_mood(0, mood);
        world.run(2_400);
        assert_eq!(world.processes[0].kills, 0);
        world.run(1_700);
        assert_eq!((world.processes[0].kills, world.starts(0)), (1, 2), "{mood:?}");
        let why = world.actions.iter().find_map(|(_, action)| match action {
            KeeperAction::Kill { why, .. } => Some(*why),
            _ => None,
        });
        assert_eq!(matches!(why, Some(Trouble::Frozen { .. })), frozen, "{why:?}");
    }
}

#[test]
fn a_process_whose_heartbeats_get_lost_is_asked_and_left_alone() {
    let mut world = running(Nature::Good);
    world.set_mood(0, Mood::Unheard);
    world.run(60_000);
    assert_eq!((world.state(0), world.processes[0].kills), (ProcessState::Quiet, 0));
    assert!(world.actions.iter().any(|(_, action)| matches!(action, KeeperAction::Probe { .. })));
    world.set_mood(0, Mood::Well);
    world.run(1_000);
    assert_eq!(world.state(0), ProcessState::Ready);
}

#[test]
fn a_process_that_does_not_get_ready_in_time_is_killed_and_counts_as_a_failed_start() {
    let mut world = workers(&[Nature::NeverReady]);
    world.run(59_000);
    assert_eq!((world.state(0), world.processes[0].kills), (ProcessState::Starting, 0));
    world.run(2_000);
    assert_eq!(world.processes[0].kills, 1);
    world.run(400_000);
    assert!(world.processes[0].given_up.as_deref().is_some_and(|reason| reason.contains("not ready")));
}

#[test]
fn a_process_that_freezes_just_before_it_is_too_late_to_get_ready_gets_no_more_time() {
    let mut world = workers(&[Nature::NeverReady]);
    world.run(59_000);
    world.set_mood(0, Mood::Frozen);
    world.run(2_000);
    assert_eq!(world.processes[0].kills, 1);
}

#[test]
fn a_new_leader_kills_nobody_before_it_has_led_for_as_long_as_a_hang_takes() {
    let mut world = running(Nature::Good);
    world.set_mood(0, Mood::Stopped);
    for _ in 0..10 {
        world.run(2_500);
        world.takeover();
    }
    assert_eq!(world.processes[0].kills, 0);
}

#[test]
fn a_leader_that_was_asleep_kills_nobody_when_it_wakes() {
    let mut world = running(Nature::Good);
    for _ in 0..10 {
        world.asleep_until_ms = world.now_ms + 10_000;
        world.run(11_000);
    }
    assert_eq!((world.state(0), world.processes[0].kills), (ProcessState::Ready, 0));
}

#[test]
fn workers_and_gateways_wait_for_a_managed_broker() {
    let roles = [ProcessRole::Gateway, ProcessRole::Worker, ProcessRole::Broker, ProcessRole::Supervisor];
    let mut world = World::new(KeeperPolicy::default(), &roles.map(|role| (role, Nature::Good)));
    world.processes[2].nature = Nature::EndsAtStart(75);
    world.run(5_000);
    assert_eq!([0, 1, 3].map(|i| world.state(i)), [ProcessState::Held, ProcessState::Held, ProcessState::Ready]);
    let standing = world.keeper.standing(&world.processes[0].name, world.now_ms);
    assert_eq!(standing.detail.as_deref(), Some("broker-2 is not ready"));
    world.processes[2].nature = Nature::Good;
    world.run(20_000);
    assert_eq!([0, 1, 2].map(|i| world.state(i)), [ProcessState::Ready; 3]);
    world.crash(2, Ending::Signalled(9));
    world.run(1_000);
    assert_eq!(world.starts(0), 1, "those that run are left alone");
}

#[test]
fn a_cluster_over_its_budget_holds_restarts_back_and_goes_on_when_the_window_allows() {
    let policy = KeeperPolicy { per_cluster: 4, window_ms: 60_000, ..KeeperPolicy::default() };
    let mut world = World::new(policy, &[(ProcessRole::Worker, Nature::Good); 6]);
    world.run(2_000);
    assert_eq!((0..6).map(|i| world.starts(i)).sum::<usize>(), 6, "first starts are free");
    (0..6).for_each(|i| world.crash(i, Ending::Signalled(9)));
    world.run(2_000);
    let states: Vec<_> = (0..6).map(|i| world.state(i)).collect();
    assert_eq!(states.iter().filter(|state| **state == ProcessState::Ready).count(), 4);
    assert_eq!(states[4..], [ProcessState::Held; 2]);
    let standing = world.keeper.standing(&world.processes[5].name, world.now_ms);
    assert!(standing.wait_ms.is_some_and(|ms| (50_000..60_000).contains(&ms)), "{standing:?}");
    world.run(60_000);
    assert!((0..6).all(|i| world.state(i) == ProcessState::Ready));
}

#[test]
fn nothing_is_done_about_what_nobody_can_see() {
    let mut world = running(Nature::Good);
    let name = world.processes[0].name.clone();
    for _ in 0..600 {
        world.now_ms += TICK_MS;
        let actions = world.keeper.handle(KeeperEvent::Ticked, world.now_ms);
        assert!(actions.iter().all(|action| matches!(action, KeeperAction::Probe { .. })), "{actions:?}");
    }
    assert_eq!(world.keeper.standing(&name, world.now_ms).state, ProcessState::Unknown);
}

#[test]
fn an_order_that_got_lost_is_given_again_as_another_life() {
    let mut world = running(Nature::Good);
    world.lose_orders = 3;
    world.crash(0, Ending::Signalled(9));
    world.run(3_000);
    assert_eq!(world.processes[0].incarnation, Incarnation(5));
    assert_eq!(world.state(0), ProcessState::Ready);
}

#[test]
fn nothing_is_started_or_killed_when_the_cluster_is_being_stopped() {
    let mut world = running(Nature::Good);
    world.tell(KeeperEvent::Closed);
    world.crash(0, Ending::Exited(0));
    world.run(100_000);
    assert_eq!((world.starts(0), world.state(0)), (1, ProcessState::Stopped));
}
