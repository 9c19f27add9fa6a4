//! What a process that runs a broker counts.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::register_counters;

/// What a process that runs a broker counts. Clones count into the same; a default one is shown nowhere.
#[derive(Debug, Clone, Default)]
pub struct BrokerMetrics {
    /// 1 while the broker answers.
    pub up: Gauge,
    /// Times that the broker was asked and answered.
    pub checks_passed: Counter,
    /// Times that it did not.
    pub checks_failed: Counter,
}

impl BrokerMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        to.register("broker_up", "1 while the broker answers", self.up.clone());
        let checks = [("passed", &self.checks_passed), ("failed", &self.checks_failed)];
        register_counters(to, "broker_checks", "Times that the broker was asked whether it works", "outcome", &checks);
    }
}
