//! Server-sent events: how a job goes on.
//!
//! Every event says how things are, not what has changed, so none is needed to understand another. The id of an event is
//! the place in the job's control log up to which it takes everything into account: the same at every gateway, so a client
//! that was cut off goes on anywhere with `Last-Event-ID` and is told only what is new since.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use tenaz_api::{ErrorRecord, JobEnd, JobProgress, JobState, Question, StateEvent, TableState, Waiting, WaitingEvent};
use tenaz_core::End;
use tokio::time::Instant;

use crate::app::{App, Job, Shared};
use crate::auth::Tenant;
use crate::limits::{APPEAR_WAIT, EVENT_EVERY, EVENT_HEARTBEAT};
use crate::problem::{Code, Problem};
use crate::results_log::read_end;
use crate::state::{progress, questions, results, summarize, table, waiting_for};
use crate::stream::{self, Out};

/// `GET /v1/jobs/{job}/events`
pub(crate) async fn events(
    State(app): State<Shared>,
    tenant: Tenant,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = app.job(&tenant, &id).await?;
    let last = match headers.get("last-event-id") {
        None => None,
        Some(value) => Some(value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok()).ok_or_else(|| {
            Problem::new(Code::BadRequest, "Last-Event-ID is not an id of this stream: leave it out")
        })?),
    };
    let (out, response) = stream::open(&app, "text/event-stream")?;
    tokio::spawn(async move {
        tokio::select! {
            () = tell_events(&app, &job, last, &out) => {}
            () = out.closed() => {}
            // Any gateway can go on from here.
            () = app.ending.closing.cancelled() => {}
        }
    });
    Ok(response)
}

/// How things are.
#[derive(Debug, Clone, PartialEq)]
struct Snapshot {
    id: u64,
    state: JobState,
    tables: Vec<TableState>,
    questions: Vec<Question>,
    progress: JobProgress,
    waiting: Option<Waiting>,
    end: Option<End>,
}

fn look(app: &App, job: &Job) -> Option<Snapshot> {
    app.book.view(job.id(), |view| Snapshot {
        id: view.facts.next_offset(),
        state: summarize(view),
        tables: job.planned.read_tables().map(|id| table(job, view, id)).collect(),
        questions: questions(job, view, None),
        progress: progress(app, view),
        waiting: waiting_for(app, job, view),
        end: view.end.clone(),
    })
}

async fn tell_events(app: &Shared, job: &Job, last: Option<u64>, out: &Out) {
    if let Some(last) = last {
        // Another gateway may have read further than this one has.
        let caught_up = app.book.wait(job.id(), |view| (view.facts.next_offset() >= last).then_some(()));
        let _ = tokio::time::timeout(APPEAR_WAIT, caught_up).await;
    }
    app.settled(job.id()).await;
    let Some(mut changes) = app.book.changes_of(job.id()) else { return };
    let mut told: Option<Snapshot> = look(app, job).filter(|now| last == Some(now.id));
    let mut spoken = Instant::now();
    loop {
        changes.borrow_and_update();
        app.settled(job.id()).await;
        let Some(now) = look(app, job) else {
            let end = JobEnd { state: JobState::Expired, error: Some(ErrorRecord::gone()), results: None };
            out.send(event("end", None, &end)).await;
            return;
        };
        let mut bytes = news(told.as_ref(), &now);
        if let Some(end) = &now.end {
            bytes.extend(last_event(app, job, &now, end).await);
            out.send(bytes).await;
            return;
        }
        if bytes.is_empty() && spoken.elapsed() >= EVENT_HEARTBEAT {
            bytes = b": still here\n\n".to_vec();
        }
        if !bytes.is_empty() {
            spoken = Instant::now();
            if !out.send(bytes).await {
                return;
            }
        }
        told = Some(now);
        // Uploads change a job hundreds of times a second; whoever watches needs no more than a few.
        tokio::time::sleep(EVENT_EVERY / 2).await;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { tokio::time::sleep(EVENT_EVERY).await },
            () = tokio::time::sleep(EVENT_EVERY) => {}
        }
    }
}

/// The events that take a client from one view of the job to another.
fn news(told: Option<&Snapshot>, now: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    if told.is_none_or(|told| told.state != now.state) {
        bytes.extend(event("state", Some(now.id), &StateEvent { state: now.state }));
    }
    for (index, table) in now.tables.iter().enumerate() {
        if told.is_none_or(|told| told.tables.get(index) != Some(table)) {
            bytes.extend(event("table", Some(now.id), table));
        }
    }
    for (index, question) in now.questions.iter().enumerate() {
        if told.is_none_or(|told| told.questions.get(index) != Some(question)) {
            bytes.extend(event("question", Some(now.id), question));
        }
    }
    if told.is_none_or(|told| told.progress != now.progress) {
        bytes.extend(event("progress", None, &now.progress));
    }
    let waiting = told.map(|told| &told.waiting);
    if waiting != Some(&now.waiting) && (waiting.is_some() || now.waiting.is_some()) {
        bytes.extend(event("waiting", None, &WaitingEvent { waiting_for: now.waiting.clone() }));
    }
    bytes
}

async fn last_event(app: &Shared, job: &Job, now: &Snapshot, end: &End) -> Vec<u8> {
    let mut data = JobEnd { state: JobState::of_end(end), error: ErrorRecord::of_end(end), results: None };
    if data.error.is_none() {
        match app.within(read_end(app, job)).await {
            Ok(Ok(found)) => data.results = app.book.view(job.id(), |view| results(job, view, &found.end)),
            // The client comes back for it.
            Ok(Err(_)) | Err(_) => return Vec::new(),
        }
    }
    event("end", Some(now.id), &data)
}

pub(crate) fn event(name: &str, id: Option<u64>, data: &impl Serialize) -> Vec<u8> {
    let data = serde_json::to_string(data).expect("events are plain data");
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    // JSON has no line ends of its own here, so one line of data is enough.
    format!("event: {name}\n{id}data: {data}\n\n").into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table(name: &str, chunks_received: u64) -> TableState {
        let (chunks, records, bytes) = (None, None, None);
        TableState { name: name.to_owned(), chunks_received, closed: false, chunks, records, bytes }
    }

    fn snapshot(id: u64, received: u64) -> Snapshot {
        Snapshot {
            id,
            state: JobState::Uploading,
            tables: vec![table("a", received), table("b", 0)],
            questions: Vec::new(),
            progress: JobProgress::default(),
            waiting: None,
            end: None,
        }
    }

    #[test]
    fn a_newcomer_is_told_everything_and_others_only_what_is_new() {
        let all = String::from_utf8(news(None, &snapshot(3, 1))).unwrap();
        let first = "event: state\nid: 3\ndata: {\"state\":\"uploading\"}\n\n";
        assert!(all.starts_with(first), "{all}");
        assert_eq!(all.matches("event: table").count(), 2);
        assert_eq!(all.matches("event: progress\ndata: ").count(), 1);
        let more = String::from_utf8(news(Some(&snapshot(3, 1)), &snapshot(4, 2))).unwrap();
        let table =
            "{\"name\":\"a\",\"chunks_received\":2,\"closed\":false,\"chunks\":null,\"records\":null,\"bytes\":null}";
        assert_eq!(more, format!("event: table\nid: 4\ndata: {table}\n\n"));
        assert!(news(Some(&snapshot(4, 2)), &snapshot(4, 2)).is_empty());
    }

    #[test]
    fn waiting_and_going_on_are_both_told() {
        let mut stuck = snapshot(3, 1);
        stuck.waiting = Some(Waiting { code: "workers".to_owned(), text: "none".to_owned() });
        let text = |told: &Snapshot, now: &Snapshot| String::from_utf8(news(Some(told), now)).unwrap();
        assert!(
            text(&snapshot(3, 1), &stuck).contains("event: waiting\ndata: {\"waiting_for\":{\"code\":\"workers\",")
        );
        assert!(text(&stuck, &snapshot(3, 1)).contains("data: {\"waiting_for\":null}"));
    }
}
