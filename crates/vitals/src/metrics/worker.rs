//! What a worker counts.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::{long_seconds, register_counters, register_gauges};

/// What a worker counts. Clones count into the same; a default one is shown nowhere.
#[derive(Debug, Clone)]
pub struct WorkerMetrics {
    /// Records decoded and found good.
    pub rows_accepted: Counter,
    /// Records found bad.
    pub rows_rejected: Counter,
    /// Bytes of chunks, as CSV.
    pub bytes_in: Counter,
    /// Bytes published.
    pub bytes_out: Counter,
    /// Chunks worked off.
    pub chunks: Counter,
    /// Inner tasks run.
    pub tasks: Counter,
    /// Messages that had been received before.
    pub duplicates_dropped: Counter,
    /// Logs read again from the start, because a partition was taken over or the broker was away.
    pub replays: Counter,
    /// From the beginning of such a reading until all that was there has been read.
    pub recovery_seconds: Histogram,
    /// Connections to the broker made again.
    pub broker_reconnects: Counter,
    /// Pieces of work that wait for a thread.
    pub queue_depth: Gauge,
    /// Jobs that it works for.
    pub jobs_running: Gauge,
}

impl Default for WorkerMetrics {
    fn default() -> Self {
        Self {
            rows_accepted: Counter::default(),
            rows_rejected: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            chunks: Counter::default(),
            tasks: Counter::default(),
            duplicates_dropped: Counter::default(),
            replays: Counter::default(),
            recovery_seconds: long_seconds(),
            broker_reconnects: Counter::default(),
            queue_depth: Gauge::default(),
            jobs_running: Gauge::default(),
        }
    }
}

impl WorkerMetrics {
    pub(super) fn register(&self, to: &mut Registry) {
        let rows = [("accepted", &self.rows_accepted), ("rejected", &self.rows_rejected)];
        register_counters(to, "rows", "Records of chunks worked off", "outcome", &rows);
        let bytes = [("in", &self.bytes_in), ("out", &self.bytes_out)];
        register_counters(to, "bytes", "Bytes of chunks read, and of messages published", "direction", &bytes);
        to.register("chunks", "Chunks worked off", self.chunks.clone());
        to.register("tasks", "Inner tasks run", self.tasks.clone());
        to.register(
            "duplicates_dropped",
            "Messages dropped because they had been received before",
            self.duplicates_dropped.clone(),
        );
        to.register(
            "replays",
            "Logs read from the start, after a partition was taken over or the broker was away",
            self.replays.clone(),
        );
        to.register_with_unit(
            "recovery",
            "From the beginning of a replay until all that was in the log has been read",
            Unit::Seconds,
            self.recovery_seconds.clone(),
        );
        to.register("broker_reconnects", "Connections to the broker made again", self.broker_reconnects.clone());
        register_gauges(to, "queue_depth", "What waits", "queue", &[("work", &self.queue_depth)]);
        register_gauges(to, "jobs", "Jobs that it works for", "state", &[("running", &self.jobs_running)]);
    }
}
