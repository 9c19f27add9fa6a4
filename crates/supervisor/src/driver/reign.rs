//! Leading: the keeper decides, and its decisions become orders.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use tenaz_core::{
    ElectionEvent, Incarnation, Keeper, KeeperEvent, KeeperPolicy, OrderFailure, ProcessName, ProcessRole,
    ProcessState, Term,
};
use tenaz_vitals::Heard;

use super::{Driver, gauge};
use crate::config::Config;
use crate::executor::{Order, OrderResult};
use crate::limits::COUNT_EVERY;

/// What a leader knows.
pub(super) struct Reign {
    pub(super) term: Term,
    pub(super) keeper: Keeper,
    /// Processes that are gone or hang, since when, and why: until they are ready again.
    trouble: BTreeMap<ProcessName, (Instant, &'static str)>,
    /// Its own progress, which it need not be told.
    own_pulse: u64,
    counted: Option<Instant>,
}

pub(crate) fn policy(config: &Config) -> KeeperPolicy {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let (supervision, restarts) = (&config.supervision, &config.restarts);
    KeeperPolicy {
        hang_after_ms: ms(supervision.hang_after),
        start_within_ms: ms(supervision.start_within),
        backoff_ms: ms(restarts.backoff),
        backoff_cap_ms: ms(restarts.backoff_cap),
        healthy_after_ms: ms(restarts.healthy_after),
        failed_starts: restarts.failed_starts,
        per_process: restarts.per_process as usize,
        per_cluster: restarts.per_cluster as usize,
        window_ms: ms(restarts.window),
    }
}

impl Driver {
    pub(super) fn begin_reign(&mut self, term: Term) {
        let processes = self.config.processes().into_iter().map(|spec| (spec.name, spec.role));
        let keeper = Keeper::new(self.policy, term.life.0 ^ term.round, processes, self.clock.now_ms());
        self.reign = Some(Reign { term, keeper, trouble: BTreeMap::new(), own_pulse: 0, counted: None });
        self.home.event("elected", json!({"supervisor": self.me.id, "term": term}));
        tracing::info!(%term, "this supervisor leads");
        self.metrics.leader.set(1);
        self.metrics.term_round.set(gauge(term.round));
        // What it has heard while it followed: who is ready need not be waited for.
        let recent = self.heard.iter().filter(|(_, heard)| heard.at.elapsed() < self.config.supervision.hang_after);
        let events: Vec<_> = recent.map(|(name, heard)| self.looks.heard(name, heard)).collect();
        events.into_iter().for_each(|event| self.keep(event));
        self.looks.all_now();
        self.look_where_due();
    }

    pub(super) fn end_reign(&mut self, term: Term) {
        self.reign = None;
        self.home.event("stepped_down", json!({"supervisor": self.me.id, "term": term}));
        tracing::info!(%term, "this supervisor leads no longer");
        self.metrics.leader.set(0);
    }

    /// Tells the keeper, if there is one, and does what it says.
    pub(super) fn keep(&mut self, event: KeeperEvent) {
        let now_ms = self.clock.now_ms();
        let Some(reign) = &mut self.reign else { return };
        for action in reign.keeper.handle(event, now_ms) {
            self.act(action);
        }
    }

    pub(super) fn reign_tick(&mut self) {
        let Some(reign) = &mut self.reign else { return };
        // Whoever counts this is alive.
        reign.own_pulse += 1;
        let (name, pulse) = (self.me.name(), reign.own_pulse);
        let incarnation = reign.keeper.running(&name).unwrap_or_default();
        self.keep(KeeperEvent::Heard { name, incarnation, ready: true, draining: false, pulse });
        self.hear_connections(pulse);
        self.keep(KeeperEvent::Ticked);
        self.count_processes();
    }

    /// Of a supervisor that sends no heartbeats, its connection is all that there is.
    fn hear_connections(&mut self, pulse: u64) {
        let Some(reign) = &self.reign else { return };
        let mute = self.config.supervisors.iter().map(|other| (other.id, other.name()));
        let mute = mute.filter(|(id, name)| self.peers.is_up(*id) && !self.heard.contains_key(name));
        let lives = mute.filter_map(|(_, name)| Some((reign.keeper.running(&name)?, name)));
        for (incarnation, name) in lives.collect::<Vec<_>>() {
            self.keep(KeeperEvent::Heard { name, incarnation, ready: true, draining: false, pulse });
        }
    }

    fn count_processes(&mut self) {
        if self.reign.as_ref().is_none_or(|reign| reign.counted.is_some_and(|at| at.elapsed() < COUNT_EVERY)) {
            return;
        }
        let (now_ms, names) = (self.clock.now_ms(), self.processes());
        let Some(reign) = &mut self.reign else { return };
        reign.counted = Some(Instant::now());
        let mut counts = BTreeMap::new();
        for (name, role, _) in &names {
            *counts.entry((*role, reign.keeper.standing(name, now_ms).state.as_str())).or_insert(0) += 1;
        }
        for role in ProcessRole::ALL {
            for state in ProcessState::ALL.map(ProcessState::as_str) {
                self.metrics.set_processes(role, state, counts.get(&(role, state)).copied().unwrap_or(0));
            }
        }
    }

    /// Something is wrong with a process: from now on it counts how long that lasts.
    pub(super) fn note_trouble(&mut self, name: &ProcessName, reason: &'static str) {
        if let Some(reign) = &mut self.reign {
            reign.trouble.entry(name.clone()).or_insert_with(|| (Instant::now(), reason));
        }
    }

    /// Before the keeper hears of it, because afterwards it is no longer news.
    pub(super) fn note_end(&mut self, event: &KeeperEvent) {
        if let (KeeperEvent::Seen { name, running: None, .. }, Some(reign)) = (event, &self.reign)
            && reign.keeper.running(name).is_some()
        {
            self.note_trouble(name, "died");
        }
    }

    /// It is ready again.
    pub(super) fn note_ready(&mut self, name: &ProcessName, heard: &Heard) {
        let Some(reign) = &mut self.reign else { return };
        let current = reign.keeper.running(name) == Some(self.looks.life_of(name, heard));
        if heard.heartbeat.ready
            && current
            && let Some((since, _)) = reign.trouble.remove(name)
        {
            self.metrics.restart_seconds.observe(since.elapsed().as_secs_f64());
        }
    }

    pub(super) fn on_ordered(
        &mut self,
        term: Term,
        order: &Order,
        incarnation: Incarnation,
        result: Result<OrderResult, String>,
    ) {
        if let Ok(OrderResult::Fenced(highest)) = &result {
            self.elect(ElectionEvent::Fenced(*highest));
        }
        if self.reign.as_ref().is_none_or(|reign| reign.term != term) {
            return;
        }
        let name = order.name().clone();
        self.note_machine_of(&name);
        let failed =
            |failure: OrderFailure, reason: String| KeeperEvent::OrderFailed { name, incarnation, failure, reason };
        match result {
            Ok(OrderResult::Done) => self.note_restart(order),
            Ok(OrderResult::Closed) => self.keep(KeeperEvent::Closed),
            Ok(OrderResult::Fenced(highest)) => {
                self.keep(failed(OrderFailure::NotTried, format!("term {highest} leads")));
            }
            Ok(OrderResult::OutOfDate(reason)) => self.keep(failed(OrderFailure::NotTried, reason)),
            Ok(OrderResult::Obstructed(cause, reason)) => {
                tracing::warn!(process = %order.name(), %cause, reason, "something is in the way of an order");
                self.keep(failed(OrderFailure::Obstructed(cause), reason));
            }
            Ok(OrderResult::Failed(reason)) => {
                tracing::warn!(process = %order.name(), reason, "an order failed");
                self.keep(failed(OrderFailure::Failed, reason));
            }
            Err(reason) => self.keep(failed(OrderFailure::NotTried, reason)),
        }
    }

    fn note_restart(&mut self, order: &Order) {
        if let (Order::Start { name, incarnation, .. }, Some(reign)) = (order, &self.reign)
            && *incarnation > Incarnation(1)
        {
            let reason = reign.trouble.get(name).map_or("died", |(_, reason)| *reason);
            let role = self.processes().iter().find(|(known, ..)| known == name).map(|(_, role, _)| *role);
            role.into_iter().for_each(|role| self.metrics.restarted(role, reason));
        }
    }

    /// Its machine is to be looked at.
    fn note_machine_of(&mut self, name: &ProcessName) {
        if let Some(machine) = self.machine_of(name) {
            self.looks.now(&machine);
            self.look_where_due();
        }
    }
}
