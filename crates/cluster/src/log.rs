//! Reading a log.

use tenaz_rabbit::{Backoff, Offset, StreamReader};
use tokio::sync::mpsc;

use crate::{Error, Link, Session};

/// A message of a log.
#[derive(Debug)]
pub struct LogMessage {
    /// Its place.
    pub offset: u64,
    /// What it is.
    pub kind: String,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// Reads a log from `from` on and hands its messages over, until the session or the taker is gone. A log that is not
/// there may be one whose broker is just coming back: it is tried again until whoever knows better drops the future.
pub async fn read_log(session: &Session, name: &str, from: u64, taker: &mpsc::Sender<LogMessage>) -> Result<(), Error> {
    let mut next = from;
    let mut backoff = Backoff::new();
    loop {
        let error = match StreamReader::open(&session.reading, name, Offset::Next(next)).await {
            Err(error) => error,
            Ok(mut reader) => loop {
                match reader.next().await {
                    Ok(message) => {
                        backoff.reset();
                        next = message.offset + 1;
                        let message = LogMessage {
                            offset: message.offset,
                            kind: message.properties.kind.unwrap_or_default(),
                            body: message.body,
                        };
                        if taker.send(message).await.is_err() {
                            return Ok(());
                        }
                    }
                    Err(error) => break error,
                }
            },
        };
        session.met(&error);
        let not_there = matches!(error, tenaz_rabbit::Error::NotFound { .. });
        if session.is_lost() || !(error.is_temporary() || not_there) {
            return Err(error.into());
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

/// Reads a log over as many sessions as it takes.
pub(crate) async fn follow_log(link: Link, name: String, taker: mpsc::Sender<LogMessage>) {
    let (inner, mut messages) = mpsc::channel(crate::limits::READ_AHEAD);
    let mut next = 0;
    loop {
        let session = link.session().await;
        let reading = read_log(&session, &name, next, &inner);
        tokio::pin!(reading);
        let ended = loop {
            tokio::select! {
                biased;
                Some(message) = messages.recv() => {
                    next = message.offset + 1;
                    if taker.send(message).await.is_err() {
                        return;
                    }
                }
                ended = &mut reading => break ended,
            }
        };
        if let Err(error) = ended
            && !error.is_temporary()
        {
            tracing::error!(log = name, %error, "a log cannot be read");
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        // What was handed over before the session ended counts as read.
        while let Ok(message) = messages.try_recv() {
            next = message.offset + 1;
            if taker.send(message).await.is_err() {
                return;
            }
        }
    }
}
