//! Server-sent events: how a job goes on. Every event says how things are, so none is needed to understand another.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::job::Job;
use super::requests::find;
use crate::limits::{EVENT_EVERY, HEARTBEAT, PIECES_AHEAD};
use crate::problem::Problem;
use crate::server::Shared;

/// `GET /v1/jobs/{job}/events`
pub(crate) async fn events(State(local): State<Shared>, Path(id): Path<String>) -> Result<Response, Problem> {
    let job = find(&local, &id)?;
    let (sender, receiver) = mpsc::channel::<Bytes>(PIECES_AHEAD);
    tokio::spawn(async move {
        tokio::select! {
            () = tell(&job, &sender) => {}
            () = sender.closed() => {}
            () = local.stop.cancelled() => {}
        }
    });
    let pieces = futures::stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|piece| (Ok::<_, Infallible>(piece), receiver))
    });
    Ok(([(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")], Body::from_stream(pieces))
        .into_response())
}

async fn tell(job: &Arc<Job>, sender: &mpsc::Sender<Bytes>) {
    let mut changes = job.changes();
    let mut told: Option<Snapshot> = None;
    let mut spoken = Instant::now();
    loop {
        changes.borrow_and_update();
        let has_ended = job.has_ended();
        let now = Snapshot::of(job);
        let mut text = now.news(told.as_ref());
        if has_ended {
            let end = json!({"state": job.name(), "error": job.error(), "results": job.results()});
            text.push_str(&event("end", &end));
        }
        if text.is_empty() && spoken.elapsed() >= HEARTBEAT {
            text = ": still here\n\n".to_owned();
        }
        if !text.is_empty() {
            spoken = Instant::now();
            if sender.send(text.into()).await.is_err() {
                return;
            }
        }
        if has_ended {
            return;
        }
        told = Some(now);
        // Progress has no signal of its own; an end does, and is told at once.
        tokio::select! {
            () = tokio::time::sleep(EVENT_EVERY) => {}
            () = ended(job, &mut changes) => {}
        }
    }
}

async fn ended(job: &Job, changes: &mut tokio::sync::watch::Receiver<u64>) {
    while !job.has_ended() {
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// How things are.
struct Snapshot {
    state: Value,
    tables: Vec<Value>,
    questions: Vec<Value>,
    progress: Value,
}

impl Snapshot {
    fn of(job: &Job) -> Self {
        Self {
            state: json!({"state": job.name()}),
            tables: job.tables(),
            questions: job.questions(),
            progress: job.progress(),
        }
    }

    fn news(&self, told: Option<&Self>) -> String {
        let mut text = String::new();
        if told.is_none_or(|told| told.state != self.state) {
            text.push_str(&event("state", &self.state));
        }
        let lists = [
            ("table", &self.tables, told.map(|told| &told.tables)),
            ("question", &self.questions, told.map(|told| &told.questions)),
        ];
        for (name, now, before) in lists {
            for (place, item) in now.iter().enumerate() {
                if before.is_none_or(|before| before.get(place) != Some(item)) {
                    text.push_str(&event(name, item));
                }
            }
        }
        if told.is_none_or(|told| told.progress != self.progress) {
            text.push_str(&event("progress", &self.progress));
        }
        text
    }
}

fn event(name: &str, data: &Value) -> String {
    // JSON has no line ends of its own here, so one line of data is enough.
    format!("event: {name}\ndata: {data}\n\n")
}
