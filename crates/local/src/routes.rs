//! The table of routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use serde_json::json;
use tenaz_ui::Host;

use crate::guard::{Guard, guarded};
use crate::limits::{MAX_PIECE_BYTES, MAX_REQUEST_BYTES};
use crate::problem::Problem;
use crate::server::Shared;
use crate::{files, jobs, process, tables};

const HELP: &str = "tenaz ui: a page for a browser. Open the whole address that it has printed; for programs there is: tenaz sql --help\n";

pub(crate) fn router(local: Shared, guard: Arc<Guard>) -> Router {
    let api = Router::new()
        .route("/v1/tables", get(tables::list).post(tables::look))
        .route("/v1/files", get(files::list))
        .route("/v1/check", post(jobs::check))
        .route("/v1/jobs", get(jobs::list).post(jobs::create))
        .route("/v1/jobs/{job}", get(jobs::state).delete(jobs::forget))
        .route("/v1/jobs/{job}/cancel", post(jobs::cancel))
        .route("/v1/jobs/{job}/events", get(jobs::events))
        .route("/v1/jobs/{job}/results/{query}", get(jobs::results))
        .route("/v1/jobs/{job}/rejects", get(jobs::rejects))
        .route("/v1/jobs/{job}/downloads/{file}", get(jobs::download))
        .route("/v1/cluster", get(process::cluster))
        .route("/v1/cluster/events", get(process::events))
        .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
        .route("/v1/files/{name}", put(files::put).layer(DefaultBodyLimit::max(MAX_PIECE_BYTES)))
        .route("/healthz", get(async || axum::Json(json!({"status": "ok"}))))
        .with_state(local);
    let page = Router::new().route("/", get(page)).route(
        "/ui/{*path}",
        get(async |Path(path): Path<String>, headers: HeaderMap| tenaz_ui::asset(&path, &headers)),
    );
    let missing = async || Problem::not_found("such path; the page is at /");
    api.merge(page).fallback(missing).layer(axum::middleware::from_fn_with_state(guard, guarded))
}

async fn page(headers: HeaderMap) -> Response {
    if tenaz_ui::wants_page(&headers) { tenaz_ui::page(Host::Local, &headers) } else { HELP.into_response() }
}
