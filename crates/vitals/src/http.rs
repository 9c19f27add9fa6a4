//! `/healthz`, `/readyz` and `/metrics` of processes that serve nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::Error;
use crate::health::{Health, Readiness};
use crate::limits::{CONNECTION_DEADLINE, HEADER_DEADLINE, MAX_CONNECTIONS, MAX_HEAD_BYTES};
use crate::metrics::METRICS_CONTENT_TYPE;
use crate::vitals::Shared;

/// Serves until it is dropped, on the process's own runtime: when that stands, nothing answers.
#[derive(Debug)]
pub(crate) struct HttpServer {
    addr: SocketAddr,
    _ends: DropGuard,
}

impl HttpServer {
    pub(crate) async fn start(addr: SocketAddr, shared: Arc<Shared>) -> Result<Self, Error> {
        let failed = |source| Error::Listen { addr, protocol: "TCP", source };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        let router = Router::new()
            .route("/healthz", get(health))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(shared);
        let ended = CancellationToken::new();
        tokio::spawn(serve(listener, router, ended.clone()));
        Ok(Self { addr, _ends: ended.drop_guard() })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }
}

async fn health(State(shared): State<Arc<Shared>>) -> Json<Health> {
    Json(shared.health())
}

async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, Json<Readiness>) {
    let readiness = shared.readiness();
    let status = match readiness {
        Readiness::Ready => StatusCode::OK,
        Readiness::NotReady | Readiness::Draining => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(readiness))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    ([(header::CONTENT_TYPE, METRICS_CONTENT_TYPE)], shared.metrics.encode()).into_response()
}

async fn serve(listener: TcpListener, router: Router, ended: CancellationToken) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = async {
            // Others wait in the system's queue.
            let slot = Arc::clone(&slots).acquire_owned().await.ok();
            (listener.accept().await, slot)
        };
        let (accepted, slot) = tokio::select! {
            () = ended.cancelled() => return,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((socket, _)) => {
                let (router, ended) = (router.clone(), ended.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = ended.cancelled() => {}
                        () = serve_connection(socket, router) => {}
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: it passes when connections end.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// One request, one answer, within a bounded time.
async fn serve_connection(socket: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_DEADLINE)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router));
    match tokio::time::timeout(CONNECTION_DEADLINE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection ended early"),
        Err(_) => tracing::debug!("a connection took too long"),
    }
}
