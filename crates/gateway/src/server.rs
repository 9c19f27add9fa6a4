//! Connections: accepted up to a limit, timed, ended in good order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::certificates::Certificates;
use crate::limits::{MAX_HEAD_BYTES, STRANGER_PATIENCE};
use crate::strangers::{Introduction, Strangers};
use crate::timed_io::TimedIo;

/// What ends connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    /// No new connections; those that are open end after their current request.
    pub(crate) closing: CancellationToken,
    /// Streams end now, with an error record.
    pub(crate) cut: CancellationToken,
    /// Connections end now.
    pub(crate) kill: CancellationToken,
}

/// Where clients come in.
#[derive(Clone)]
pub(crate) struct Entrance {
    pub(crate) router: Router,
    /// Without it, connections are plain HTTP.
    pub(crate) certificates: Option<Arc<Certificates>>,
    /// A client that takes nothing, or asks for nothing, for this long is gone.
    pub(crate) idle: Duration,
    pub(crate) ending: Ending,
}

/// Serves until it is ended. The tracker knows when the last connection is gone.
pub(crate) async fn serve(listener: TcpListener, entrance: Entrance, connections: usize, tracker: TaskTracker) {
    let (slots, strangers) = (Arc::new(Semaphore::new(connections)), Strangers::default());
    loop {
        let accepted = tokio::select! {
            () = entrance.ending.closing.cancelled() => return,
            accepted = accept(&listener, &slots, &strangers) => accepted,
        };
        let Some((socket, slot)) = accepted else { continue };
        let (entrance, introduction) = (entrance.clone(), strangers.welcome());
        tracker.spawn(async move {
            entrance.admit(socket, introduction).await;
            drop(slot);
        });
    }
}

/// The next connection, once there is a slot for it: a stranger makes room, and if there is none it waits.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    strangers: &Strangers,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    match listener.accept().await {
        Ok((socket, _)) => {
            // Rows and events are small, and somebody waits for them.
            let _ = socket.set_nodelay(true);
            if slots.available_permits() == 0 {
                strangers.evict_oldest();
            }
            Some((socket, Arc::clone(slots).acquire_owned().await.ok()?))
        }
        Err(error) => {
            // Out of file descriptors, most likely: it passes when connections end.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

impl Entrance {
    async fn admit(&self, socket: TcpStream, introduction: Introduction) {
        let timed = TimedIo::new(socket, self.idle);
        let unwelcome = introduction.clone();
        let served = async {
            match &self.certificates {
                None => self.serve_connection(timed, introduction).await,
                Some(certificates) => match certificates.acceptor().accept(timed).await {
                    Ok(encrypted) => self.serve_connection(encrypted, introduction).await,
                    Err(error) => no_handshake(&error),
                },
            }
        };
        tokio::select! {
            () = served => {}
            () = unwelcome.unwelcome(STRANGER_PATIENCE) => {
                tracing::debug!("a client that did not say who it is was sent away");
            }
            () = self.ending.kill.cancelled() => {}
        }
    }

    async fn serve_connection(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        introduction: Introduction,
    ) {
        // Whatever the request needs to tell the connection whose it is.
        let router = self.router.clone();
        let service = tower_service_fn(router, introduction);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle)
            .max_buf_size(MAX_HEAD_BYTES.max(64 << 10))
            .serve_connection(TokioIo::new(io), service);
        let mut connection = std::pin::pin!(connection);
        let mut asked_to_end = false;
        loop {
            tokio::select! {
                served = connection.as_mut() => {
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection ended early");
                    }
                    return;
                }
                () = self.ending.closing.cancelled(), if !asked_to_end => {
                    asked_to_end = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// The router, with the introduction of the connection in every request.
fn tower_service_fn(
    router: Router,
    introduction: Introduction,
) -> impl hyper::service::Service<
    hyper::Request<Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future = impl Future<Output = Result<axum::response::Response, std::convert::Infallible>> + Send,
> {
    let router = TowerToHyperService::new(router);
    hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(introduction.clone());
        hyper::service::Service::call(&router, request)
    })
}

fn no_handshake(error: &io::Error) {
    tracing::debug!(%error, "a connection did not become HTTPS");
}
