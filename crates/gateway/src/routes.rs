//! The table of routes.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};

use crate::app::Shared;
use crate::problem::{Code, PROBLEM_JSON, Problem};
use crate::requests::{Watch, watched};
use crate::token_guard::end_with_token;
use crate::{about, chunks, cluster, digests, events, files, finish, jobs, named_limits, rejects, results};

/// A route: method, path, and who serves it.
pub(crate) struct Route {
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    serve: MethodRouter<Shared>,
}

/// All routes.
pub(crate) fn table() -> Vec<Route> {
    let route = |method, path, serve| Route { method, path, serve };
    vec![
        route("post", "/v1/jobs", post(jobs::create)),
        route("get", "/v1/jobs", get(jobs::list)),
        route("get", "/v1/jobs/{job}", get(jobs::state)),
        route("delete", "/v1/jobs/{job}", delete(jobs::delete)),
        route("post", "/v1/jobs/{job}/cancel", post(jobs::cancel)),
        route("put", "/v1/jobs/{job}/tables/{table}/chunks/{chunk}", put(chunks::upload)),
        route("post", "/v1/jobs/{job}/tables/{table}/finish", post(finish::finish)),
        route("get", "/v1/jobs/{job}/missing", get(finish::missing)),
        route("get", "/v1/jobs/{job}/tables/{table}/digests", get(digests::digests)),
        route("put", "/v1/jobs/{job}/tables/{table}/files/{file}", put(files::upload)),
        route("put", "/v1/jobs/{job}/tables/{table}/data", put(files::upload_table)),
        route("get", "/v1/jobs/{job}/results/{query}", get(results::results)),
        route("get", "/v1/jobs/{job}/rejects", get(rejects::rejects)),
        route("get", "/v1/jobs/{job}/events", get(events::events)),
        route("get", "/v1/cluster", get(cluster::cluster)),
        route("get", "/v1/cluster/events", get(cluster::events)),
        route("get", "/v1/limits", get(named_limits::limits)),
        route("get", "/v1/openapi.json", get(about::openapi)),
        route("get", "/healthz", get(about::health)),
        route("get", "/readyz", get(about::ready)),
        route("get", "/metrics", get(about::metrics)),
        route("get", "/", get(about::help)),
    ]
}

/// The router of all routes.
pub(crate) fn router(app: Shared) -> Router {
    let table = table();
    let watch = Watch::new(&app.metrics, table.iter().map(|route| route.path));
    let routes = table.into_iter().fold(Router::new(), |router, route| router.route(route.path, route.serve));
    // Files of the page are no part of the API.
    routes
        .route("/ui/{*path}", get(about::page_file))
        .layer(axum::middleware::map_response(as_problem))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), end_with_token))
        .layer(axum::middleware::from_fn_with_state(watch, watched))
        .with_state(app)
}

/// Errors that axum itself answers become problem documents, too.
async fn as_problem(response: Response) -> Response {
    let status = response.status();
    let is_problem = response.headers().get("content-type").is_some_and(|kind| kind == PROBLEM_JSON);
    if is_problem || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (code, text) = match status {
        StatusCode::NOT_FOUND => (Code::NotFound, "there is no such path: see /v1/openapi.json"),
        StatusCode::METHOD_NOT_ALLOWED => (Code::MethodNotAllowed, "this path has other methods: see /v1/openapi.json"),
        status if status.is_client_error() => (Code::BadRequest, "the path or its parameters cannot be read"),
        _ => (Code::Internal, "this is a fault in tenaz"),
    };
    let mut problem = Problem::new(code, text).into_response();
    if let Some(allow) = response.headers().get("allow") {
        problem.headers_mut().insert("allow", allow.clone());
    }
    problem
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_openapi_document_has_the_routes_of_the_router_and_all_codes() {
        let document: Value = serde_json::from_str(tenaz_api::openapi::TEXT).unwrap();
        let mut documented = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                assert!(operation["summary"].is_string() && operation["responses"].is_object(), "{method} {path}");
                documented.insert((method.clone(), path.clone()));
            }
        }
        let served: BTreeSet<_> =
            table().into_iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
        assert_eq!(documented, served);
        let codes = document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"].as_array().unwrap();
        let codes: Vec<&str> = codes.iter().map(|code| code.as_str().unwrap()).collect();
        assert_eq!(codes, Code::ALL.map(Code::name));
    }
}
