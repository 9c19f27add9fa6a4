//! Responses that go on for a while.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use tenaz_vitals::Counter;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::app::Shared;
use crate::limits::STREAM_AHEAD;
use crate::problem::{Code, Problem};

/// Where a stream's bytes go.
#[derive(Debug)]
pub(crate) struct Out {
    pieces: mpsc::Sender<Bytes>,
    sent: Counter,
    _slot: OwnedSemaphorePermit,
}

impl Out {
    /// Sends bytes as soon as the client has taken those before. False: the client is gone.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> bool {
        let count = bytes.len() as u64;
        let sent = bytes.is_empty() || self.pieces.send(bytes.into()).await.is_ok();
        if sent {
            self.sent.inc_by(count);
        }
        sent
    }

    /// Ends when the client is gone.
    pub(crate) async fn closed(&self) {
        self.pieces.closed().await;
    }
}

/// A response and the place to write it to.
pub(crate) fn open(app: &Shared, content_type: &'static str) -> Result<(Out, Response), Problem> {
    let busy = || Problem::new(Code::Busy, format!("{} streams are open: close one", app.limits.streams));
    let slot = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| busy())?;
    let (pieces, waiting) = mpsc::channel::<Bytes>(STREAM_AHEAD);
    let stream = futures::stream::unfold(waiting, |mut waiting| async move {
        waiting.recv().await.map(|piece| (Ok::<_, std::convert::Infallible>(piece), waiting))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok((Out { pieces, sent: app.metrics.bytes_out.clone(), _slot: slot }, response))
}
