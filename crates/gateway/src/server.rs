//! Connections: accepted up to a limit, timed, ended in good order.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::limits::MAX_HEAD_BYTES;
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

/// Serves until `ending` says otherwise. The tracker knows when the last connection is gone.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    connections: usize,
    idle: Duration,
    ending: Ending,
    tracker: TaskTracker,
) {
    let slots = Arc::new(Semaphore::new(connections));
    loop {
        let accepted = tokio::select! {
            () = ending.closing.cancelled() => return,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((socket, slot)) = accepted else { continue };
        let (router, ending) = (router.clone(), ending.clone());
        tracker.spawn(async move {
            serve_connection(socket, router, idle, &ending).await;
            drop(slot);
        });
    }
}

/// The next connection, once there is a slot for it: others wait in the system's queue.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((socket, _)) => {
            // Rows and events are small, and somebody waits for them.
            let _ = socket.set_nodelay(true);
            Some((socket, slot))
        }
        Err(error) => {
            // Out of file descriptors, most likely: it passes when connections end.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn serve_connection(socket: TcpStream, router: Router, idle: Duration, ending: &Ending) {
    let io = TokioIo::new(TimedIo::new(socket, idle));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(MAX_HEAD_BYTES.max(64 << 10))
        .serve_connection(io, TowerToHyperService::new(router));
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
            () = ending.kill.cancelled() => return,
            () = ending.closing.cancelled(), if !asked_to_end => {
                asked_to_end = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
