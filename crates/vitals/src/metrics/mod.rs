//! Metrics: Prometheus names, base units, few labels. A process shows the groups that it asked for.

mod broker;
mod gateway;
mod supervisor;
mod worker;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tenaz_core::ProcessRole;

pub use broker::BrokerMetrics;
pub use gateway::GatewayMetrics;
pub use supervisor::SupervisorMetrics;
pub use worker::WorkerMetrics;

use crate::heartbeat::{Counters, Identity};

/// The `Content-Type` of [`Metrics::encode`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Label sets are arrays of fixed texts, so that no input can become a label.
pub(crate) type Labels<const N: usize> = [(&'static str, &'static str); N];

/// What a process counts.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    worker: OnceLock<WorkerMetrics>,
    gateway: OnceLock<GatewayMetrics>,
    supervisor: OnceLock<SupervisorMetrics>,
    broker: OnceLock<BrokerMetrics>,
}

impl Metrics {
    /// Those that every process has, and those of its role.
    pub fn new(identity: &Identity) -> Self {
        let mut registry = Registry::with_prefix("tenaz");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program that runs", build);
        let process = Info::new([
            ("cluster", identity.cluster.to_string()),
            ("name", identity.name.to_string()),
            ("role", identity.role.to_string()),
            ("incarnation", identity.incarnation.to_string()),
        ]);
        registry.register("process", "Which process this is", process);
        let since = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
        since.set(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64());
        registry.register_with_unit("process_start_time", "When it was started", Unit::Seconds, since);
        let metrics = Self {
            registry: Mutex::new(registry),
            worker: OnceLock::new(),
            gateway: OnceLock::new(),
            supervisor: OnceLock::new(),
            broker: OnceLock::new(),
        };
        match identity.role {
            ProcessRole::Worker => drop(metrics.worker()),
            ProcessRole::Gateway => drop(metrics.gateway()),
            ProcessRole::Supervisor => drop(metrics.supervisor()),
            ProcessRole::Broker => drop(metrics.broker()),
        }
        metrics
    }

    /// A worker's; shown from the first call on. Clones count into the same.
    pub fn worker(&self) -> WorkerMetrics {
        self.worker.get_or_init(|| self.shown(WorkerMetrics::register)).clone()
    }

    /// A gateway's; shown from the first call on. Clones count into the same.
    pub fn gateway(&self) -> GatewayMetrics {
        self.gateway.get_or_init(|| self.shown(GatewayMetrics::register)).clone()
    }

    /// A supervisor's; shown from the first call on. Clones count into the same.
    pub fn supervisor(&self) -> SupervisorMetrics {
        self.supervisor.get_or_init(|| self.shown(SupervisorMetrics::register)).clone()
    }

    /// Those of a process that runs a broker; shown from the first call on. Clones count into the same.
    pub fn broker(&self) -> BrokerMetrics {
        self.broker.get_or_init(|| self.shown(BrokerMetrics::register)).clone()
    }

    /// All of them, as `/metrics` shows them. See [`METRICS_CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode(&mut text, &registry).expect("a String takes all");
        text
    }

    /// What heartbeats carry of them.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        if let Some(worker) = self.worker.get() {
            counters.chunks += worker.chunks.get();
            counters.rows += worker.rows_accepted.get() + worker.rows_rejected.get();
            counters.bytes += worker.bytes_in.get();
            counters.jobs += u64::try_from(worker.jobs_running.get()).unwrap_or(0);
        }
        if let Some(gateway) = self.gateway.get() {
            counters.chunks += gateway.chunks.get();
            counters.bytes += gateway.bytes_in.get();
            counters.jobs += gateway.open_jobs();
        }
        counters
    }

    fn shown<G: Default>(&self, register: impl FnOnce(&G, &mut Registry)) -> G {
        let group = G::default();
        register(&group, &mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
        group
    }
}

/// Counters with one label, one for each of its values.
fn register_counters(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    counters: &[(&'static str, &Counter)],
) {
    let family = OneLabel { label, of: counters.iter().map(|(value, counter)| (*value, (*counter).clone())).collect() };
    registry.register(name, help, family);
}

/// Gauges with one label, one for each of its values.
fn register_gauges(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    gauges: &[(&'static str, &Gauge)],
) {
    let family = OneLabel { label, of: gauges.iter().map(|(value, gauge)| (*value, (*gauge).clone())).collect() };
    registry.register(name, help, family);
}

/// A family whose members are known, so that each is a field of its own elsewhere and all are shown from the start.
#[derive(Debug)]
struct OneLabel<M> {
    label: &'static str,
    of: Vec<(&'static str, M)>,
}

impl<M> prometheus_client::encoding::EncodeMetric for OneLabel<M>
where
    M: prometheus_client::encoding::EncodeMetric + prometheus_client::metrics::TypedMetric,
{
    fn encode(&self, mut encoder: prometheus_client::encoding::MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (value, metric) in &self.of {
            metric.encode(encoder.encode_family(&[(self.label, *value)])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> prometheus_client::metrics::MetricType {
        M::TYPE
    }
}

/// Seconds from 10 ms to 80 s: what a recovery, a restart may take.
fn long_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 14))
}

/// Seconds from 1 ms to 16 s: what a request may take.
fn short_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// A family of histograms of [`short_seconds`].
type RequestSeconds = Family<Labels<1>, Histogram, fn() -> Histogram>;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tenaz_core::Incarnation;

    use super::*;

    fn metrics(role: ProcessRole) -> Metrics {
        Metrics::new(&Identity {
            cluster: "00000000000000ff".parse().unwrap(),
            name: "x-1".parse().unwrap(),
            role,
            incarnation: Incarnation(3),
        })
    }

    /// The names and types that a role shows, in order.
    fn names(text: &str) -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
    }

    #[test]
    fn a_process_shows_what_concerns_its_role() {
        let own = ["tenaz_build info", "tenaz_process info", "tenaz_process_start_time_seconds gauge"];
        let of = |role| {
            let names = names(&metrics(role).encode());
            assert_eq!(names[..3], own);
            names[3..].to_vec()
        };
        assert_eq!(
            of(ProcessRole::Worker),
            [
                "tenaz_rows counter",
                "tenaz_bytes counter",
                "tenaz_chunks counter",
                "tenaz_tasks counter",
                "tenaz_duplicates_dropped counter",
                "tenaz_replays counter",
                "tenaz_recovery_seconds histogram",
                "tenaz_broker_reconnects counter",
                "tenaz_queue_depth gauge",
                "tenaz_jobs gauge",
            ]
        );
        assert_eq!(
            of(ProcessRole::Gateway),
            [
                "tenaz_bytes counter",
                "tenaz_results_messages counter",
                "tenaz_chunks counter",
                "tenaz_broker_reconnects counter",
                "tenaz_queue_depth gauge",
                "tenaz_jobs gauge",
            ],
            "requests are shown from the first one on"
        );
        assert_eq!(
            of(ProcessRole::Supervisor),
            [
                "tenaz_leader gauge",
                "tenaz_term_round gauge",
                "tenaz_heartbeats counter",
                "tenaz_heartbeats_refused counter",
                "tenaz_restart_seconds histogram",
            ],
            "restarts, processes and refused messages are shown from the first one on"
        );
        assert_eq!(of(ProcessRole::Broker), ["tenaz_broker_up gauge", "tenaz_broker_checks counter"]);
    }

    #[test]
    fn the_text_is_as_scrapers_want_it() {
        let metrics = metrics(ProcessRole::Worker);
        let worker = metrics.worker();
        worker.rows_accepted.inc_by(5);
        worker.rows_rejected.inc_by(2);
        worker.bytes_in.inc_by(100);
        worker.chunks.inc();
        worker.jobs_running.set(1);
        worker.queue_depth.set(4);
        worker.recovery_seconds.observe(0.3);
        let text = metrics.encode();
        for line in [
            "tenaz_build_info{version=\"0.1.0\"} 1",
            "tenaz_process_info{cluster=\"00000000000000ff\",name=\"x-1\",role=\"worker\",incarnation=\"3\"} 1",
            "tenaz_rows_total{outcome=\"accepted\"} 5",
            "tenaz_rows_total{outcome=\"rejected\"} 2",
            "tenaz_bytes_total{direction=\"in\"} 100",
            "tenaz_bytes_total{direction=\"out\"} 0",
            "tenaz_chunks_total 1",
            "tenaz_duplicates_dropped_total 0",
            "tenaz_replays_total 0",
            "tenaz_recovery_seconds_count 1",
            "tenaz_queue_depth{queue=\"work\"} 4",
            "tenaz_jobs{state=\"running\"} 1",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert_eq!(metrics.counters(), Counters { chunks: 1, rows: 7, bytes: 100, jobs: 1 });

        let metrics = super::tests::metrics(ProcessRole::Gateway);
        metrics.gateway().request("/v1/jobs/{job}", "GET", 404, std::time::Duration::from_millis(3));
        let text = metrics.encode();
        let line = "tenaz_http_requests_total{route=\"/v1/jobs/{job}\",method=\"GET\",status=\"4xx\"} 1";
        assert!(text.lines().any(|found| found == line), "{text}");
        assert!(
            text.contains("tenaz_http_request_duration_seconds_bucket{le=\"0.004\",route=\"/v1/jobs/{job}\"} 1"),
            "{text}"
        );

        let metrics = super::tests::metrics(ProcessRole::Supervisor);
        let supervisor = metrics.supervisor();
        supervisor.restarted(ProcessRole::Worker, "died");
        supervisor.set_processes(ProcessRole::Worker, "ready", 3);
        supervisor.peer_message_refused("forged");
        let text = metrics.encode();
        for line in [
            "tenaz_restarts_total{role=\"worker\",reason=\"died\"} 1",
            "tenaz_processes{role=\"worker\",state=\"ready\"} 3",
            "tenaz_peer_messages_refused_total{reason=\"forged\"} 1",
            "tenaz_heartbeats_refused_total{reason=\"replayed\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
