//! What a gateway counts.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::{Labels, RequestSeconds, register_counters, register_gauges, short_seconds};

/// What a gateway counts. Clones count into the same; a default one is shown nowhere.
#[derive(Debug, Clone)]
pub struct GatewayMetrics {
    requests: Family<Labels<3>, Counter>,
    request_seconds: RequestSeconds,
    /// Bytes of chunks taken in, as CSV.
    pub bytes_in: Counter,
    /// Bytes of results given out.
    pub bytes_out: Counter,
    /// Messages of results logs that were read: what asking about jobs and fetching answers costs.
    pub results_messages: Counter,
    /// Chunks taken in: the broker has them.
    pub chunks: Counter,
    /// Connections to the broker made again.
    pub broker_reconnects: Counter,
    /// Chunks taken in of open jobs that no worker has worked off yet.
    pub queue_depth: Gauge,
    jobs: [(&'static str, Gauge); 6],
}

/// The states of jobs, as the API tells them.
const JOB_STATES: [&str; 6] = ["uploading", "processing", "done", "failed", "cancelled", "expired"];

impl Default for GatewayMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(short_seconds),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            results_messages: Counter::default(),
            chunks: Counter::default(),
            broker_reconnects: Counter::default(),
            queue_depth: Gauge::default(),
            jobs: JOB_STATES.map(|state| (state, Gauge::default())),
        }
    }
}

impl GatewayMetrics {
    /// A request was answered: by the route's template, never its path, so that there are few of them and no names.
    pub fn request(&self, route: &'static str, method: &'static str, status: u16, took: Duration) {
        let status = match status {
            100..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        self.requests.get_or_create(&[("route", route), ("method", method), ("status", status)]).inc();
        self.request_seconds.get_or_create(&[("route", route)]).observe(took.as_secs_f64());
    }

    /// How many jobs are in each state now, as the API names them: `uploading`, `processing`, `done`, `failed`,
    /// `cancelled`, `expired`.
    pub fn set_jobs(&self, count: impl Fn(&str) -> usize) {
        for (state, gauge) in &self.jobs {
            gauge.set(i64::try_from(count(state)).unwrap_or(i64::MAX));
        }
    }

    /// Jobs that have not ended.
    pub fn open_jobs(&self) -> u64 {
        let open = self.jobs.iter().filter(|(state, _)| matches!(*state, "uploading" | "processing"));
        open.map(|(_, gauge)| u64::try_from(gauge.get()).unwrap_or(0)).sum()
    }

    pub(super) fn register(&self, to: &mut Registry) {
        to.register("http_requests", "Requests answered", self.requests.clone());
        to.register_with_unit(
            "http_request_duration",
            "From the request's head until the answer's",
            Unit::Seconds,
            self.request_seconds.clone(),
        );
        let bytes = [("in", &self.bytes_in), ("out", &self.bytes_out)];
        register_counters(to, "bytes", "Bytes of chunks taken in, and of results given out", "direction", &bytes);
        to.register("results_messages", "Messages of results logs that were read", self.results_messages.clone());
        to.register("chunks", "Chunks taken in: the broker has them", self.chunks.clone());
        to.register("broker_reconnects", "Connections to the broker made again", self.broker_reconnects.clone());
        register_gauges(to, "queue_depth", "What waits", "queue", &[("chunks", &self.queue_depth)]);
        let jobs: Vec<(&'static str, &Gauge)> = self.jobs.iter().map(|(state, gauge)| (*state, gauge)).collect();
        register_gauges(to, "jobs", "Jobs that are there", "state", &jobs);
    }
}
