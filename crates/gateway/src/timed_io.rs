//! A socket that gives up on a peer that takes nothing.
//!
//! Reading needs no such guard here: hyper times the head of a request, and `body` times what follows. But a response
//! waits in hyper's buffers until the peer takes it, and a peer that never does would keep its connection for ever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// A socket whose writes must make progress.
#[derive(Debug)]
pub(crate) struct TimedIo {
    socket: TcpStream,
    patience: Duration,
    /// Runs while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl TimedIo {
    /// Writes that make no progress for `patience` fail.
    pub(crate) fn new(socket: TcpStream, patience: Duration) -> Self {
        Self { socket, patience, stalled: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + patience)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl AsyncRead for TimedIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TimedIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.watch(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write_vectored(cx, parts);
        self.watch(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.socket).poll_flush(cx);
        self.watch(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair(patience: Duration) -> (TimedIo, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (TimedIo::new(listener.accept().await.unwrap().0, patience), peer)
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (mut timed, _peer) = pair(Duration::from_millis(50)).await;
        let error = timed.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_slow_peer_that_takes_something_is_served() {
        let (mut timed, mut peer) = pair(Duration::from_secs(60)).await;
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            peer.read_to_end(&mut read).await.unwrap();
            read.len()
        });
        timed.write_all(&vec![1; 8 << 20]).await.unwrap();
        timed.shutdown().await.unwrap();
        assert_eq!(reading.await.unwrap(), 8 << 20);
    }
}
