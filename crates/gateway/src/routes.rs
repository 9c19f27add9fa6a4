//! The table of routes.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};

use crate::app::Shared;
use crate::problem::{Code, PROBLEM_JSON, Problem};
use crate::{chunks, finish, jobs, results};

/// A route: method, path, and who serves it.
pub(crate) struct Route {
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
        route("get", "/v1/jobs/{job}/results/{query}", get(results::results)),
    ]
}

/// The router of all routes.
pub(crate) fn router(app: Shared) -> Router {
    let routes = table().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.serve));
    routes.layer(axum::middleware::map_response(as_problem)).with_state(app)
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
