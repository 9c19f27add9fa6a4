//! The election of a leader: searched exhaustively within bounds, simulated beyond them, and told as stories.
//!
//! A search is complete within its bounds unless it says how deep it goes. The number of different states stands beside each
//! (with a depth, that includes the outermost ones, which were reached and not looked at). It changes with the protocol, and a
//! sudden drop would mean that a search has become blind.

mod behaviour;
mod model;
mod simulation;
mod world;

use model::{Budget, Flaw, Supervisors};
use stateright::{Checker, HasDiscoveries, Model};
use tenaz_core::Pace;

const ONE_LEADER: &str = "one leader per term";
const MAJORITY: &str = "every leader has a majority";
const PROMISE: &str = "a promise is kept for life";
const FENCE: &str = "the fence never goes back";
const RECOVERY: &str = "all recover when the faults stop";
const WISHES: [&str; 5] = [ONE_LEADER, MAJORITY, PROMISE, FENCE, RECOVERY];

const SOMEBODY: &str = "somebody leads";
const TWO: &str = "two lead at a time, in different terms";
const FENCED: &str = "an old leader is fenced off";

/// One round, no faults but those of the network and the clocks.
fn supervisors(count: usize) -> Supervisors {
    Supervisors {
        count,
        pace: Pace::of_silence(1),
        max_round: 1,
        max_beat: 0,
        talk: false,
        budget: Budget { ticks: None, restarts: 0, wakes: 0, hints: 0 },
        flaw: Flaw::None,
        orders: false,
        recovery: None,
        awake: false,
        leap: true,
    }
}

/// Searches all, or to a depth, and expects nothing that must not be, and all of what should be possible.
fn search(model: Supervisors, depth: Option<usize>, possible: &[&'static str]) -> usize {
    let builder = model.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = match depth {
        // With one thread, so that the first way to a state is the shortest.
        Some(depth) => builder.target_max_depth(depth).spawn_bfs().join(),
        None => builder.threads(2).spawn_bfs().join(),
    };
    for wish in WISHES {
        assert!(checker.discovery(wish).is_none(), "not so: {wish}: {:?}", checker.discovery(wish));
    }
    for possible in possible {
        assert!(checker.discovery(possible).is_some(), "the bounds are too narrow: never {possible}");
    }
    checker.unique_state_count()
}

/// Expects that the search finds a flaw.
fn finds(model: Supervisors, wish: &'static str) {
    let checker = model.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery(wish).is_some(), "not found to be broken: {wish}");
}

#[test]
fn three_through_two_restarts() {
    let mut model = supervisors(3);
    model.budget.restarts = 2;
    assert_eq!(search(model, None, &[SOMEBODY, TWO]), 137_478);
}

#[test]
fn three_with_orders_and_beats_through_a_restart() {
    let mut model = supervisors(3);
    (model.max_beat, model.orders) = (1, true);
    (model.budget.ticks, model.budget.restarts) = (Some(vec![2; 3]), 1);
    assert_eq!(search(model, None, &[SOMEBODY, TWO, FENCED]), 103_928);
}

#[test]
fn three_with_orders_and_beats_through_a_pause_and_a_hint() {
    let mut model = supervisors(3);
    (model.max_beat, model.orders) = (1, true);
    model.budget = Budget { ticks: Some(vec![2; 3]), restarts: 0, wakes: 1, hints: 1 };
    assert_eq!(search(model, None, &[SOMEBODY, TWO, FENCED]), 114_149);
}

#[test]
fn three_with_orders_through_two_rounds() {
    let mut model = supervisors(3);
    (model.max_round, model.orders) = (2, true);
    model.budget.ticks = Some(vec![2; 3]);
    assert_eq!(search(model, None, &[SOMEBODY, TWO, FENCED]), 67_369);
}

#[test]
fn three_through_two_rounds_and_a_restart() {
    let mut model = supervisors(3);
    model.max_round = 2;
    (model.budget.ticks, model.budget.restarts) = (Some(vec![1, 1, 2]), 1);
    assert_eq!(search(model, None, &[SOMEBODY, TWO]), 112_669);
}

/// From every state, with any one of them down or none, and with all that was ever sent arriving again or nothing.
#[test]
fn three_recover_from_every_state() {
    let mut model = supervisors(3);
    (model.pace, model.talk, model.max_round, model.max_beat) = (Pace::of_silence(3), true, 2, 1);
    (model.budget.ticks, model.budget.restarts) = (Some(vec![1; 3]), 1);
    model.recovery = Some(30);
    assert_eq!(search(model, None, &[SOMEBODY]), 17_692);
}

#[test]
fn three_recover_from_every_state_of_longer_stories() {
    let mut model = supervisors(3);
    (model.pace, model.talk, model.max_round, model.max_beat) = (Pace::of_silence(3), true, 3, 2);
    (model.budget.ticks, model.budget.restarts, model.budget.hints) = (Some(vec![3; 3]), 1, 1);
    model.recovery = Some(30);
    assert_eq!(search(model, Some(9), &[]), 236_111);
}

/// The two highest stand; the others have been up for a while and vote.
#[test]
fn five_with_two_candidates() {
    let mut model = supervisors(5);
    model.awake = true;
    model.budget.ticks = Some(vec![0, 0, 0, 1, 1]);
    assert_eq!(search(model, None, &[SOMEBODY, TWO]), 62_746);
}

#[test]
fn five_with_any_candidates_and_a_restart_to_a_depth() {
    let mut model = supervisors(5);
    (model.awake, model.max_round, model.orders) = (true, 2, true);
    (model.budget.ticks, model.budget.restarts) = (Some(vec![2; 5]), 1);
    assert_eq!(search(model, Some(8), &[SOMEBODY]), 469_784);
}

/// Larger searches, of minutes: `cargo test --release -p tenaz-core --test election -- --ignored`.
#[test]
#[ignore = "minutes"]
fn three_and_five_in_depth() {
    let mut model = supervisors(3);
    (model.max_beat, model.orders) = (1, true);
    model.budget = Budget { ticks: Some(vec![2; 3]), restarts: 1, wakes: 1, hints: 0 };
    search(model, None, &[SOMEBODY, TWO, FENCED]);
    let mut model = supervisors(5);
    model.awake = true;
    model.budget.ticks = Some(vec![0, 0, 1, 1, 1]);
    search(model, None, &[SOMEBODY, TWO]);
}

#[test]
fn the_search_finds_two_leaders_if_a_term_is_a_mere_number() {
    finds(Supervisors { flaw: Flaw::BareTerm, ..supervisors(3) }, ONE_LEADER);
}

#[test]
fn the_search_finds_two_leaders_if_a_life_takes_up_the_terms_of_the_one_before() {
    let mut model = Supervisors { flaw: Flaw::TermWithoutLife, ..supervisors(3) };
    model.budget.restarts = 1;
    finds(model, ONE_LEADER);
}

#[test]
fn the_search_finds_a_voter_that_grants_everything() {
    finds(Supervisors { flaw: Flaw::GrantsEverything, ..supervisors(3) }, PROMISE);
}

#[test]
fn the_search_finds_a_candidate_that_counts_grants_instead_of_voters() {
    finds(Supervisors { flaw: Flaw::CountsGrants, awake: true, ..supervisors(5) }, MAJORITY);
}

#[test]
fn the_search_finds_a_missing_fence() {
    finds(Supervisors { flaw: Flaw::NoFence, orders: true, ..supervisors(3) }, FENCE);
}

#[test]
fn the_search_finds_states_from_which_recovery_takes_its_time() {
    let mut model = supervisors(3);
    (model.pace, model.talk, model.recovery) = (Pace::of_silence(3), true, Some(2));
    finds(model, RECOVERY);
}
