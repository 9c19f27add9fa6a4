//! Faults at random. What must never happen is asserted by the world itself.

use proptest::prelude::*;
use tenaz_core::{Ending, KeeperPolicy, ProcessRole, ProcessState};

use crate::world::{Mood, Nature, World};

#[derive(Debug, Clone)]
enum Fault {
    Crash(usize, Ending),
    Mood(usize, Mood),
    Drain(usize),
    Takeover,
    Sleep(u64),
    LoseOrders(usize),
}

fn roles(broker: bool) -> Vec<ProcessRole> {
    let others = [ProcessRole::Worker, ProcessRole::Worker, ProcessRole::Gateway, ProcessRole::Supervisor];
    others.into_iter().chain(broker.then_some(ProcessRole::Broker)).collect()
}

fn fault() -> impl Strategy<Value = Fault> {
    let ending = prop_oneof![
        Just(Ending::Signalled(9)),
        Just(Ending::Exited(0)),
        Just(Ending::Exited(1)),
        Just(Ending::Exited(75)),
        Just(Ending::Unknown),
    ];
    let mood = prop_oneof![Just(Mood::Well), Just(Mood::Frozen), Just(Mood::Unheard), Just(Mood::Stopped)];
    prop_oneof![
        4 => (0..5usize, ending).prop_map(|(i, ending)| Fault::Crash(i, ending)),
        4 => (0..5usize, mood).prop_map(|(i, mood)| Fault::Mood(i, mood)),
        1 => (0..5usize).prop_map(Fault::Drain),
        1 => Just(Fault::Takeover),
        1 => (200..20_000u64).prop_map(Fault::Sleep),
        1 => (1..4usize).prop_map(Fault::LoseOrders),
    ]
}

fn nature() -> impl Strategy<Value = Nature> {
    prop_oneof![
        6 => Just(Nature::Good),
        1 => Just(Nature::EndsAtStart(1)),
        1 => Just(Nature::EndsAtStart(75)),
        1 => (0..30_000u64).prop_map(Nature::EndsAfter),
        1 => Just(Nature::NeverReady),
    ]
}

fn apply(world: &mut World, fault: Fault) {
    let count = world.processes.len();
    match fault {
        Fault::Crash(i, ending) => world.crash(i % count, ending),
        Fault::Mood(i, mood) => world.set_mood(i % count, mood),
        Fault::Drain(i) => {
            if let Some(life) = &mut world.processes[i % count].life {
                life.draining = true;
            }
        }
        Fault::Takeover => world.takeover(),
        Fault::Sleep(ms) => world.asleep_until_ms = world.now_ms + ms,
        Fault::LoseOrders(orders) => world.lose_orders = orders,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn whatever_happens_nothing_is_started_twice_killed_for_nothing_or_forgotten(
        natures in prop::collection::vec(nature(), 5),
        broker in any::<bool>(),
        per_cluster in 2..40usize,
        faults in prop::collection::vec((100..8_000u64, fault()), 0..60),
    ) {
        let policy = KeeperPolicy { per_cluster, per_process: 10, window_ms: 120_000, ..KeeperPolicy::default() };
        let processes: Vec<_> = roles(broker).into_iter().zip(natures).collect();
        let mut world = World::new(policy, &processes);
        for (after_ms, fault) in faults {
            world.run(after_ms);
            apply(&mut world, fault);
        }
        // The faults stop: whatever still stands still is found, and the waits are over. What ends by itself does so still.
        for i in 0..world.processes.len() {
            if world.processes[i].life.as_ref().is_some_and(|life| life.mood == Mood::Unheard) {
                world.set_mood(i, Mood::Well);
            }
            if world.processes[i].nature != Nature::Good {
                world.processes[i].nature = Nature::Good;
            }
        }
        (world.asleep_until_ms, world.lose_orders) = (world.asleep_until_ms.min(world.now_ms), 0);
        world.run(20_000);
        let deadline = world.now_ms + 700_000;
        while world.now_ms < deadline && !world.is_settled() {
            world.run(5_000);
        }
        let broker_is_up = world.processes.iter().all(|p| p.role != ProcessRole::Broker || p.given_up.is_none());
        for (i, process) in world.processes.iter().enumerate() {
            let needs_broker = matches!(process.role, ProcessRole::Worker | ProcessRole::Gateway);
            if process.given_up.is_some() {
                prop_assert_eq!(world.state(i), ProcessState::GivenUp);
            } else if broker_is_up || !needs_broker || process.life.is_some() {
                prop_assert!(process.is_ready(world.now_ms), "{}: {:?}", process.name, world.state(i));
            } else {
                prop_assert_eq!(world.state(i), ProcessState::Held);
            }
        }
    }

    #[test]
    fn what_crashes_for_ever_is_given_up_after_few_starts(
        nature in prop_oneof![
            Just(Nature::EndsAtStart(1)),
            Just(Nature::NeverReady),
            (0..15_000u64).prop_map(Nature::EndsAfter),
        ],
        takeovers in prop::collection::vec(1_000..100_000u64, 0..20),
    ) {
        let mut world = World::new(KeeperPolicy::default(), &[(ProcessRole::Worker, nature), (ProcessRole::Worker, Nature::Good)]);
        let unsure = takeovers.len();
        for after_ms in takeovers {
            world.run(after_ms);
            world.takeover();
        }
        let deadline = world.now_ms + 1_200_000;
        while world.now_ms < deadline && world.processes[0].given_up.is_none() {
            world.run(5_000);
        }
        prop_assert!(world.processes[0].given_up.is_some(), "{:?}", world.state(0));
        let most = match nature {
            Nature::EndsAfter(_) => 31,
            // Of a life that ended while nobody led, nobody may know whether it was ready.
            _ => 5 + unsure,
        };
        prop_assert!(world.starts(0) <= most, "{} starts", world.starts(0));
        prop_assert_eq!(world.starts(1), 1, "the other one is not concerned");
    }

    #[test]
    fn the_same_events_give_the_same_actions(faults in prop::collection::vec((100..8_000u64, fault()), 0..20)) {
        let run = || {
            let natures: Vec<_> = roles(true).into_iter().map(|role| (role, Nature::Good)).collect();
            let mut world = World::new(KeeperPolicy::default(), &natures);
            for (after_ms, fault) in faults.clone() {
                world.run(after_ms);
                apply(&mut world, fault);
            }
            world.actions
        };
        prop_assert_eq!(run(), run());
    }
}
