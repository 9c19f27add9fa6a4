//! The election of a leader, searched and simulated.

mod behaviour;
mod model;
mod simulation;
mod world;

use model::{Budget, Flaw, Supervisors};
use stateright::{Checker, Model};
use tenaz_core::Pace;

fn supervisors(count: usize, flaw: Flaw) -> Supervisors {
    Supervisors {
        count,
        pace: Pace::of_silence(1),
        max_round: 2,
        max_beat: 1,
        talk: false,
        budget: Budget { ticks: None, restarts: 1, wakes: 0, hints: 0 },
        flaw,
        orders: false,
        recovery: None,
        leap: true,
    }
}

#[test]
fn explore() {
    let n = |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let count = n("N", 3) as usize;
    let mut model = supervisors(count, Flaw::None);
    model.pace = Pace::of_silence(n("SIL", 1) as u32);
    model.max_round = n("R", 2);
    model.orders = n("O", 0) > 0;
    model.talk = n("TALK", 0) > 0;
    model.max_beat = n("B", 1);
    model.leap = n("L", 1) > 0;
    model.recovery = (n("REC", 0) > 0).then_some(n("REC", 0) as usize);
    model.budget = Budget {
        ticks: (n("T", 0) > 0).then(|| vec![n("T", 3) as u8; count]),
        restarts: n("C", 1) as u8,
        wakes: n("W", 0) as u8,
        hints: n("H", 0) as u8,
    };
    let start = std::time::Instant::now();
    let mut b = model.checker().threads(2).timeout(std::time::Duration::from_secs(n("S", 20)));
    if n("D", 0) > 0 { b = b.target_max_depth(n("D", 0) as usize); }
    let checker = b.spawn_bfs().join();
    eprintln!("states {} unique {} depth {} {:?} done {}", checker.state_count(), checker.unique_state_count(), checker.max_depth(), start.elapsed(), checker.is_done());
    for (name, path) in checker.discoveries() {
        eprintln!("{name}: {:?}", path.into_actions());
    }
}
