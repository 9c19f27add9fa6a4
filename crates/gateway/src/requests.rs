//! Every request is counted, and its log lines say what it is about.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use tenaz_vitals::GatewayMetrics;
use tracing::{Instrument, Span, field};

/// What counting needs.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    metrics: GatewayMetrics,
    routes: Arc<[&'static str]>,
}

impl Watch {
    pub(crate) fn new(metrics: &GatewayMetrics, routes: impl Iterator<Item = &'static str>) -> Self {
        Self { metrics: metrics.clone(), routes: routes.collect() }
    }

    /// The template of the route: paths have names in them, and there are too many.
    fn route(&self, matched: Option<&MatchedPath>) -> &'static str {
        let found = matched.and_then(|path| self.routes.iter().find(|route| **route == path.as_str()));
        found.copied().unwrap_or("none")
    }
}

/// Counts the request.
pub(crate) async fn watched(State(watch): State<Watch>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = watch.route(request.extensions().get::<MatchedPath>());
    let method = method_name(request.method());
    let span = span_of(route, method, request.uri().path());
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    watch.metrics.request(route, method, status, began.elapsed());
    span.in_scope(|| tracing::debug!(status, "a request is answered"));
    response
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// The job, table, chunk, … that the path names, as fields.
fn span_of(route: &'static str, method: &'static str, path: &str) -> Span {
    let span = tracing::info_span!(
        "request",
        method,
        route,
        job = field::Empty,
        table = field::Empty,
        chunk = field::Empty,
        file = field::Empty,
        query = field::Empty
    );
    for (name, value) in route.split('/').zip(path.split('/')) {
        if let Some(name) = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            span.record(name, value);
        }
    }
    span
}
