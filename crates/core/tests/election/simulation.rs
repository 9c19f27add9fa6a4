//! Long random lives of 3 and 5 supervisors, with every fault at once, and then calm.

use std::collections::BTreeSet;

use tenaz_core::{ElectionEvent as Event, Pace};

use crate::world::{World, id};

/// Ticks within which everybody must agree once the faults stop.
const CALM_TICKS: usize = 60;

/// A small generator (xorshift), so that a seed is a run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

/// What a run has gone through.
#[derive(Debug, Default)]
struct Seen {
    lost: usize,
    repeated: usize,
    crashes: usize,
    pauses: usize,
    partitions: usize,
    terms: usize,
    slowest_recovery: usize,
}

/// One step of a bad day.
fn fault(world: &mut World, paused: &mut BTreeSet<usize>, dice: &mut Dice, seen: &mut Seen) {
    let count = world.nodes.len();
    let node = dice.below(count);
    match dice.below(40) {
        0 => {
            world.down.insert(node);
            seen.crashes += 1;
        }
        1..=3 if world.down.contains(&node) => world.restart(node),
        4 => {
            paused.insert(node);
            seen.pauses += 1;
        }
        5..=7 => {
            // Half of those who were stopped do not notice.
            if paused.remove(&node) && dice.one_in(2) {
                world.happen(node, Event::Woken);
            }
        }
        8 => {
            let side: Vec<bool> = (0..count).map(|_| dice.one_in(2)).collect();
            let pairs = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
            world.cut = pairs.filter(|&(a, b)| side[a] != side[b]).collect();
            seen.partitions += 1;
        }
        9..=10 => world.cut.clear(),
        11 => world.happen(node, Event::PeerSuspected(id(dice.below(count)))),
        12 => world.happen(node, Event::PeerHeard(id(dice.below(count)))),
        13..=20 if !paused.contains(&node) => world.happen(node, Event::Ticked),
        21..=22 if !paused.contains(&node) => world.order(node),
        _ => arrival(world, paused, dice, seen),
    }
}

/// Any message that is in flight arrives, is lost, or arrives and stays in flight.
fn arrival(world: &mut World, paused: &BTreeSet<usize>, dice: &mut Dice, seen: &mut Seen) {
    if world.in_flight.is_empty() {
        return;
    }
    let place = dice.below(world.in_flight.len().min(12));
    let envelope = world.in_flight[place];
    if paused.contains(&envelope.to) {
        return;
    }
    if dice.one_in(10) {
        seen.repeated += 1;
    } else {
        world.in_flight.remove(place);
    }
    if dice.one_in(10) {
        seen.lost += 1;
    } else {
        world.deliver(envelope);
    }
}

fn live(count: usize, seed: u64, seen: &mut Seen) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut world = World::new(count, Pace::of_silence(4));
    for day in 0..4 {
        let mut paused = BTreeSet::new();
        for _ in 0..400 {
            fault(&mut world, &mut paused, &mut dice, seen);
        }
        // The faults stop. A minority may stay down for good.
        world.cut.clear();
        let down: Vec<usize> = world.down.iter().copied().collect();
        down.into_iter().skip(dice.below(count / 2 + 1)).for_each(|node| world.restart(node));
        let took = world.recovers(CALM_TICKS);
        assert!(took.is_some(), "{count} supervisors, seed {seed}, day {day}: no leader after {CALM_TICKS} calm ticks");
        seen.slowest_recovery = seen.slowest_recovery.max(took.unwrap_or_default());
    }
    seen.terms += world.led.len();
}

fn lives(count: usize, seeds: u64) {
    let mut seen = Seen::default();
    (0..seeds).for_each(|seed| live(count, seed, &mut seen));
    let faults = [seen.lost, seen.repeated, seen.crashes, seen.pauses, seen.partitions, seen.terms];
    assert!(faults.iter().all(|&times| times as u64 > seeds), "every fault fired: {seen:?}");
}

#[test]
fn three_supervisors_never_share_a_term_and_agree_once_the_faults_stop() {
    lives(3, 1_500);
}

#[test]
fn five_supervisors_never_share_a_term_and_agree_once_the_faults_stop() {
    lives(5, 1_500);
}
