//! What a gateway says about itself.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tenaz_ui::Host;
use tenaz_vitals::{Health, METRICS_CONTENT_TYPE};

use crate::app::{Shared, broker_away};
use crate::problem::{Code, Problem};
use crate::status::count_jobs_now;

const HELP: &str = "\
tenaz gateway: questions over CSV, answered by a cluster

  curl -X POST -d '{\"workload\": \"coffee\", \"queries\": [\"q1\"]}' $URL/v1/jobs
  curl -T transactions.csv $URL/v1/jobs/JOB/tables/transactions/data
  curl -T transactions.csv.gz -H 'Content-Encoding: gzip' $URL/v1/jobs/JOB/tables/transactions/data
  curl -N $URL/v1/jobs/JOB/results/q1
  curl -N $URL/v1/jobs/JOB/events

Add -H 'Authorization: Bearer TOKEN' where tokens are needed. All of it: /v1/openapi.json
Or use: tenaz submit WORKLOAD --data DIR --gateway URL
";

/// `GET /`: the page for browsers, and a few words for curl.
pub(crate) async fn help(headers: HeaderMap) -> Response {
    if tenaz_ui::wants_page(&headers) {
        return tenaz_ui::page(Host::Gateway, &headers);
    }
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], HELP).into_response()
}

/// `GET /ui/…`: a file of the page.
pub(crate) async fn page_file(Path(path): Path<String>, headers: HeaderMap) -> Response {
    tenaz_ui::asset(&path, &headers)
}

/// `GET /v1/openapi.json`
pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], tenaz_api::openapi::TEXT).into_response()
}

/// `GET /healthz`: the process is up.
pub(crate) async fn health(State(app): State<Shared>) -> Json<Health> {
    Json(app.vitals.health())
}

/// `GET /metrics`: for scrapers, without a token. Nothing in them names a job, a tenant or a file.
pub(crate) async fn metrics(State(app): State<Shared>) -> Response {
    count_jobs_now(&app);
    ([(header::CONTENT_TYPE, METRICS_CONTENT_TYPE)], app.vitals.metrics().encode()).into_response()
}

/// `GET /readyz`: requests can be served. (The registry was read before the first request was.)
pub(crate) async fn ready(State(app): State<Shared>) -> Result<Json<Value>, Problem> {
    if app.ending.closing.is_cancelled() {
        return Err(Problem::new(Code::ShuttingDown, "this gateway is shutting down: use another one"));
    }
    match app.link.trouble() {
        Some(trouble) => Err(broker_away(&trouble)),
        None => Ok(Json(json!({
            "status": "ready",
            "workers": app.membership.worker_count(),
            "broker_blocked": app.link.is_blocked(),
        }))),
    }
}
