//! Reading a log.

use std::time::Duration;

use tenaz_rabbit::{Backoff, Offset, StreamReader};
use tokio::sync::mpsc;

use crate::{Error, Link, Session};

/// A log that could not be read is tried again after at least this long: it may be about to go, and a broker may crash a
/// connection that begins to read a stream just then.
const TRY_AGAIN: Duration = Duration::from_millis(300);

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
        tokio::time::sleep(backoff.next_delay().max(TRY_AGAIN)).await;
    }
}

/// What a follower of a log learns.
#[derive(Debug)]
pub(crate) enum Followed {
    /// Reading begins at the start, perhaps not for the first time: what was known is to be learned anew. A lone broker
    /// whose power was cut may have lost the end of a log, and uses its offsets again.
    Anew,
    /// A message.
    Message(LogMessage),
}

/// Reads a log over as many sessions as it takes, with each of them from its start: offsets do not tell where it was.
pub(crate) async fn follow_log(link: Link, name: String, taker: mpsc::Sender<Followed>) {
    loop {
        let session = link.session().await;
        if taker.send(Followed::Anew).await.is_err() {
            return;
        }
        let (inner, mut messages) = mpsc::channel(crate::limits::READ_AHEAD);
        let reading = async {
            let ended = read_log(&session, &name, 0, &inner).await;
            drop(inner);
            ended
        };
        let handing = async {
            while let Some(message) = messages.recv().await {
                if taker.send(Followed::Message(message)).await.is_err() {
                    return false;
                }
            }
            true
        };
        let (ended, is_wanted) = tokio::join!(reading, handing);
        if !is_wanted {
            return;
        }
        if let Err(error) = ended
            && !error.is_temporary()
        {
            tracing::error!(log = name, %error, "a log cannot be read");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}
