//! What the election promises to those who run it, one story each.

use tenaz_core::{ElectionEvent as Event, Pace, Term};

use crate::world::{World, id};

fn calm(count: usize, down: &[usize]) -> (World, Term) {
    let mut world = World::new(count, Pace::of_silence(6));
    world.down.extend(down);
    world.recovers(30).expect("a leader");
    let term = world.agreed().expect("a leader");
    (world, term)
}

#[test]
fn the_highest_that_lives_leads() {
    assert_eq!(calm(1, &[]).1.leader, id(0));
    assert_eq!(calm(2, &[]).1.leader, id(1));
    assert_eq!(calm(3, &[]).1.leader, id(2));
    assert_eq!(calm(3, &[2]).1.leader, id(1));
    assert_eq!(calm(5, &[2, 4]).1.leader, id(3));
}

#[test]
fn without_a_majority_nobody_leads() {
    let mut world = World::new(5, Pace::of_silence(6));
    world.down.extend([0, 1, 2]);
    assert_eq!(world.recovers(200), None);
    assert!(world.led.is_empty());
}

#[test]
fn one_that_keeps_crashing_and_returning_does_not_disturb_a_healthy_leader() {
    let (mut world, term) = calm(3, &[2]);
    for ticks_alive in (1..40).chain((1..40).rev()) {
        world.restart(2);
        for _ in 0..ticks_alive {
            world.calm_tick();
            assert_eq!(world.nodes[1].leading(), Some(term));
        }
        world.down.insert(2);
        world.calm_tick();
    }
    world.restart(2);
    world.calm_tick();
    assert_eq!(world.agreed(), Some(term), "and it follows");
}

#[test]
fn a_leader_that_is_cut_off_steps_down_and_the_majority_elects_another_and_keeps_it() {
    let (mut world, term) = calm(5, &[]);
    world.cut.extend((0..4).map(|node| (node, 4)));
    (0..12).for_each(|_| world.calm_tick());
    assert_eq!(world.nodes[4].leading(), None);
    let second = world.nodes[3].leading().expect("the next highest");
    assert!(second > term);
    (0..40).for_each(|_| world.calm_tick());
    world.cut.clear();
    (0..40).for_each(|_| world.calm_tick());
    assert_eq!(world.agreed(), Some(second), "its campaigns in the dark have cost the others nothing");
}

#[test]
fn a_leader_that_wakes_from_a_pause_gives_no_more_orders() {
    let (mut world, term) = calm(3, &[]);
    world.happen(2, Event::Woken);
    assert_eq!(world.nodes[2].leading(), None);
    assert!(world.recovers(30).is_some());
    assert!(world.agreed() > Some(term));
}

#[test]
fn a_hint_saves_the_wait() {
    let (mut world, _) = calm(3, &[]);
    world.down.insert(2);
    (0..2).for_each(|node| world.happen(node, Event::PeerSuspected(id(2))));
    world.settle();
    assert_eq!(world.agreed().map(|term| term.leader), Some(id(1)));
}

#[test]
fn a_wrong_hint_costs_nothing() {
    let (mut world, term) = calm(3, &[]);
    // It stands at once, and is refused by the leader and by the one that hears the leader.
    [1, 2].into_iter().for_each(|node| world.happen(0, Event::PeerSuspected(id(node))));
    assert!(world.nodes[0].standing().is_some());
    (0..10).for_each(|_| world.calm_tick());
    assert_eq!(world.agreed(), Some(term));
}

#[test]
fn when_all_have_forgotten_the_fence_has_not_and_the_new_leader_gets_past_it() {
    let (mut world, _) = calm(3, &[]);
    for _ in 0..5 {
        world.happen(2, Event::Woken);
        world.recovers(30).expect("a leader");
    }
    let before = world.fence.highest();
    (0..3).for_each(|node| world.restart(node));
    world.recovers(30).expect("a leader");
    assert!(world.agreed() > before && world.fence.highest() == world.agreed());
}

#[test]
fn a_higher_one_that_answers_and_never_leads_does_not_block_the_others() {
    // It hears and is heard by the lowest only, so it has no majority of 5, while the others have one.
    let mut world = World::new(5, Pace::of_silence(6));
    world.down.insert(3);
    world.cut.extend([(1, 4), (2, 4)]);
    let led = (0..120).any(|_| {
        world.calm_tick();
        world.nodes[..3].iter().any(|node| node.leading().is_some())
    });
    assert!(led);
}
