//! `GET /v1/cluster`: this one process, in the shape of a cluster.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tenaz_words::{rfc3339, unix_ms};

use crate::server::Shared;

/// `GET /v1/cluster`
pub(crate) async fn cluster(State(local): State<Shared>) -> Json<Value> {
    let doing: Vec<Value> = local
        .jobs
        .running()
        .iter()
        .map(|job| json!({"job": job.id, "text": "reads and computes", "seconds": job.seconds()}))
        .collect();
    let usage = Usage::now();
    let member = json!({
        "name": "this process", "role": "worker", "life": 1, "state": "up", "text": null, "host": null,
        "pid": std::process::id(), "url": null, "build": null, "silent_seconds": 0, "up_seconds": usage.up_seconds,
        "pulse": null, "memory_bytes": usage.memory_bytes, "threads": local.jobs.threads(),
        "cpu_seconds": usage.cpu_seconds, "restarts": 0, "last_ending": null, "claims": [], "doing": doing,
    });
    Json(json!({
        "at": rfc3339(unix_ms()),
        "seen_by": "this process",
        "event_id": null,
        "supervision": "none",
        "leader": null,
        "broker": {"state": "up", "text": "none is needed: this is one process"},
        "members": [member],
        "tenants": [],
    }))
}

/// `GET /v1/cluster/events`: nothing befalls one process that could still tell of it.
pub(crate) async fn events(State(local): State<Shared>) -> Response {
    let stop = local.stop.clone();
    let pieces = futures::stream::unfold(0u64, move |round| {
        let stop = stop.clone();
        async move {
            if round > 0 {
                tokio::select! {
                    () = stop.cancelled() => return None,
                    () = tokio::time::sleep(Duration::from_secs(15)) => {}
                }
            }
            let piece = if round == 0 { ": all\n\n" } else { ": still here\n\n" };
            Some((Ok::<_, Infallible>(piece), round + 1))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response()
}

/// What the system says of this process; nothing where it says nothing.
struct Usage {
    memory_bytes: Option<u64>,
    cpu_seconds: Option<f64>,
    up_seconds: Option<f64>,
}

impl Usage {
    /// Ticks of a second and bytes of a page, as Linux has them on all machines that we know.
    const TICKS: f64 = 100.0;
    const PAGE: u64 = 4096;

    fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let pages = read("/proc/self/statm").and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
        // The name in the second field may have spaces.
        let stat = read("/proc/self/stat");
        let fields: Vec<f64> =
            stat.as_deref().and_then(|text| text.rsplit_once(')')).map_or_else(Vec::new, |(_, rest)| {
                rest.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect()
            });
        let system_up = read("/proc/uptime").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let begun = fields.get(19).map(|ticks| ticks / Self::TICKS);
        Self {
            memory_bytes: pages.map(|pages| pages * Self::PAGE),
            cpu_seconds: (fields.len() > 12).then(|| (fields[11] + fields[12]) / Self::TICKS),
            up_seconds: system_up.zip(begun).map(|(now, begun)| (now - begun).max(0.0)),
        }
    }
}
