//! Requests and answers that are under way end when the token that they came with does.

use std::io;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt;
use futures::stream;

use crate::app::Shared;
use crate::auth::bearer_token;
use crate::tokens::{Holder, Tokens};

/// Bodies of so many bytes are there at once.
const SMALL_BODY_BYTES: u64 = 1 << 20;

/// Ends bodies in both directions with an error as soon as the token of the request is revoked or has expired.
pub(crate) async fn end_with_token(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let Some(tokens) = &app.tokens else { return next.run(request).await };
    let token = bearer_token(request.headers()).map(str::to_owned);
    let held = token.and_then(|token| tokens.holder(&token).map(|holder| (token, holder)));
    let Some((token, holder)) = held else { return next.run(request).await };
    let guard = Guard { tokens: Arc::clone(tokens), token, holder };
    let request = request.map(|body| guard.clone().over(body));
    next.run(request).await.map(|body| guard.over(body))
}

#[derive(Clone)]
struct Guard {
    tokens: Arc<Tokens>,
    token: String,
    holder: Holder,
}

impl Guard {
    /// A small body is as it is; one that takes its time is cut off when the token ends.
    fn over(self, body: Body) -> Body {
        if body.size_hint().exact().is_some_and(|bytes| bytes <= SMALL_BODY_BYTES) {
            return body;
        }
        let revoked = Box::pin(self.tokens.revoked(self.token, self.holder));
        let parts = body.into_data_stream().map(|part| part.map_err(io::Error::other)).take_until(revoked);
        Body::from_stream(ended_with_error(parts))
    }
}

/// The parts, and an error behind them if they were cut off: nobody may take them for all there is.
fn ended_with_error<S, F>(
    parts: stream::TakeUntil<S, F>,
) -> impl futures::Stream<Item = io::Result<axum::body::Bytes>> + Send
where
    S: futures::Stream<Item = io::Result<axum::body::Bytes>> + Send + Unpin + 'static,
    F: Future<Output = ()> + Send + Unpin + 'static,
{
    stream::unfold(Some(parts), |parts| async move {
        let mut parts = parts?;
        match parts.next().await {
            Some(part) => Some((part, Some(parts))),
            None if parts.is_stopped() && parts.take_result().is_some() => {
                Some((Err(io::Error::new(io::ErrorKind::PermissionDenied, "the token has ended")), None))
            }
            None => None,
        }
    })
}
