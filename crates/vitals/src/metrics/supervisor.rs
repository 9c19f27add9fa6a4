//! What a supervisor counts.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tenaz_core::ProcessRole;

use super::{Labels, long_seconds, register_counters};
use crate::error::Refusal;
use crate::listener::Refused;

/// What a supervisor counts. Clones count into the same; a default one is shown nowhere.
#[derive(Debug, Clone)]
pub struct SupervisorMetrics {
    restarts: Family<Labels<2>, Counter>,
    processes: Family<Labels<2>, Gauge>,
    peer_messages_refused: Family<Labels<1>, Counter>,
    /// 1 while it leads.
    pub leader: Gauge,
    /// The round of the term that it knows.
    pub term_round: Gauge,
    /// Heartbeats believed.
    pub heartbeats: Counter,
    /// Heartbeats not believed.
    pub heartbeats_refused: Refused,
    /// From when a death or a hang was noticed until the process was ready again.
    pub restart_seconds: Histogram,
}

impl Default for SupervisorMetrics {
    fn default() -> Self {
        Self {
            restarts: Family::default(),
            processes: Family::default(),
            peer_messages_refused: Family::default(),
            leader: Gauge::default(),
            term_round: Gauge::default(),
            heartbeats: Counter::default(),
            heartbeats_refused: Refused::default(),
            restart_seconds: long_seconds(),
        }
    }
}

impl SupervisorMetrics {
    /// A process was started again: why is a word such as `died`, `hung`.
    pub fn restarted(&self, role: ProcessRole, reason: &'static str) {
        self.restarts.get_or_create(&[("role", role.as_str()), ("reason", reason)]).inc();
    }

    /// So many processes of a role are in this state now. A state that was set once is to be set again when nobody is in
    /// it any more.
    pub fn set_processes(&self, role: ProcessRole, state: &'static str, count: usize) {
        let gauge = self.processes.get_or_create(&[("role", role.as_str()), ("state", state)]);
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A message of a peer was not believed.
    pub fn peer_message_refused(&self, reason: &'static str) {
        self.peer_messages_refused.get_or_create(&[("reason", reason)]).inc();
    }

    pub(super) fn register(&self, to: &mut Registry) {
        to.register("leader", "1 while this supervisor leads", self.leader.clone());
        to.register("term_round", "The round of the term that this supervisor knows", self.term_round.clone());
        to.register("restarts", "Processes started again", self.restarts.clone());
        to.register("processes", "Processes of the cluster", self.processes.clone());
        to.register("heartbeats", "Heartbeats believed", self.heartbeats.clone());
        let refused = Refusal::ALL.map(|refusal| (refusal.as_str(), self.heartbeats_refused.of(refusal)));
        register_counters(to, "heartbeats_refused", "Heartbeats not believed", "reason", &refused);
        to.register(
            "peer_messages_refused",
            "Messages of other supervisors not believed",
            self.peer_messages_refused.clone(),
        );
        to.register_with_unit(
            "restart",
            "From when a death was noticed until the process was ready again",
            Unit::Seconds,
            self.restart_seconds.clone(),
        );
    }
}
