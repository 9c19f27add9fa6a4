//! Reading what clients send: bounded in size, memory and time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::limits::MAX_JSON_BYTES;
use crate::problem::{Code, Problem};

/// A body in memory, with the right to be there.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

/// Reads a whole body of at most `limit` bytes.
pub(crate) async fn receive(app: &App, headers: &HeaderMap, body: Body, limit: usize) -> Result<Received, Problem> {
    let too_large =
        || Problem::new(Code::TooLarge, format!("the body has more than {limit} bytes: send less at a time"));
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > limit) {
        return Err(too_large());
    }
    let need = announced.unwrap_or(limit).clamp(1, app.limits.upload_memory_bytes.max(1));
    let need = u32::try_from(need).unwrap_or(u32::MAX);
    let room = Arc::clone(&app.upload_memory).acquire_many_owned(need).await.map_err(Problem::internal)?;
    let mut bytes = Vec::with_capacity(announced.unwrap_or_default());
    let mut parts = Parts::new(body, app.limits.idle);
    let reading = async {
        while let Some(part) = parts.next().await? {
            if bytes.len() + part.len() > limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&part);
        }
        Ok(())
    };
    tokio::time::timeout(app.limits.body, reading).await.map_err(|_| too_slow())??;
    Ok(Received { bytes, _room: room })
}

/// Reads a JSON document. An empty body is an empty object.
pub(crate) async fn receive_json<T: DeserializeOwned>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Problem> {
    let received = receive(app, headers, body, MAX_JSON_BYTES).await?;
    let bytes: &[u8] = if received.bytes.is_empty() { b"{}" } else { &received.bytes };
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(Code::BadRequest, format!("the JSON body is wrong: {error}")))
}

/// A body, part by part.
#[derive(Debug)]
pub(crate) struct Parts {
    body: Body,
    idle: Duration,
}

impl Parts {
    /// A client that sends nothing for `idle` is gone.
    pub(crate) fn new(body: Body, idle: Duration) -> Self {
        Self { body, idle }
    }

    /// The next part; `None` after the last, and only then: a cut connection is an error.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let frame = tokio::time::timeout(self.idle, self.body.frame()).await.map_err(|_| too_slow())?;
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    return Err(Problem::new(Code::BadRequest, format!("the body is cut off: {error}; send it again")));
                }
            }
        }
    }
}

fn too_slow() -> Problem {
    Problem::new(Code::RequestTimeout, "the body came too slowly: send it again, or in smaller pieces")
}
