//! What every process of a cluster shows of itself: heartbeats to the supervisors, `/healthz`, `/readyz` and `/metrics`, and what systemd
//! waits for.
//!
//! A process starts its [`Vitals`] and beats a [`Pulse`] in each of its loops; a supervisor hears heartbeats through a
//! [`HeartbeatListener`]. Everything that travels is sealed with the cluster's [`Key`]. This crate decides nothing
//! about anybody's life, and knows neither the broker nor a query.

mod challenge;
mod cipher;
mod cluster_id;
mod error;
mod health;
mod heartbeat;
mod http;
mod key;
pub mod limits;
mod listener;
mod metrics;
mod probe;
mod pulse;
mod resolve;
mod sender;
mod systemd;
mod vitals;
mod wire;

pub use cipher::{Cipher, TAG_BYTES};
pub use cluster_id::ClusterId;
pub use error::{Error, Refusal};
pub use health::{Health, Readiness};
pub use heartbeat::{Counters, Heartbeat, Identity};
pub use key::Key;
pub use listener::{Heard, HeartbeatListener, Refused};
pub use metrics::{BrokerMetrics, GatewayMetrics, METRICS_CONTENT_TYPE, Metrics, SupervisorMetrics, WorkerMetrics};
pub use probe::{Probed, probe, status_of};
pub use prometheus_client::metrics::counter::Counter;
pub use prometheus_client::metrics::gauge::Gauge;
pub use prometheus_client::metrics::histogram::Histogram;
pub use pulse::Pulse;
pub use vitals::{Vitals, VitalsSettings};
