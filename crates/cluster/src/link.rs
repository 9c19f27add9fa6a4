//! The way to the broker: three connections that are renewed together when one is lost.
//!
//! ```text
//!          open                lost (whoever notices)
//!  start ───────▶ Up(session) ─────────────────────▶ Down ──backoff──▶ Up(next session)
//! ```
//!
//! Publishing and consuming have connections of their own: under an alarm the broker stops reading from connections that
//! publish, and acknowledgements must go through all the same. Heartbeats have a third: a broker that is behind with what a
//! process publishes or reads stops reading from that whole connection, or fills it, and a healthy process would be silent.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use tenaz_rabbit::{Backoff, BrokerSettings, Connection, Properties, Publisher, PublisherOptions, StreamSpec, Target};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits::{EVENTS_BYTES, REGISTRY_BYTES, REGISTRY_SEGMENT_BYTES};
use crate::{Error, Names};

/// Which broker, and under which names.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// The broker.
    pub broker: BrokerSettings,
    /// The deployment's names.
    pub names: Names,
    /// What the broker's screens call the connection.
    pub connection_name: String,
}

/// One life of the link.
#[derive(Debug)]
pub struct Session {
    /// Counts the lives of this link.
    pub epoch: u64,
    /// For queues and logs to be read.
    pub reading: Connection,
    /// For publishing.
    pub writing: Connection,
    /// Publishes on `writing`.
    pub publisher: Publisher,
    /// Publishes chunks on `writing`, over a channel of its own. (m) A broker of version 3.10.8 does not read on from a channel over
    /// which a message for a dead quorum queue waits: control logs must not stand behind it.
    chunk_publisher: Publisher,
    /// For heartbeats and probes of this and of other processes.
    pub beating: Connection,
    /// Publishes on `beating`.
    pub beat_publisher: Publisher,
    lost: CancellationToken,
    /// Why it is lost, as whoever noticed first was told.
    reason: OnceLock<String>,
}

impl Session {
    /// Somebody met this error while reading: if it means that a connection is gone, the link is renewed. A reader may
    /// also be lost because its queue was deleted; that is nobody else's business.
    pub fn met(&self, error: &tenaz_rabbit::Error) {
        if error.is_lost() && !self.is_open() {
            self.lose(error);
        }
    }

    fn is_open(&self) -> bool {
        [&self.reading, &self.writing, &self.beating].into_iter().all(Connection::is_open)
    }

    /// Somebody met this error while publishing. A publisher that is lost stays lost, so the link is renewed.
    pub fn met_publishing(&self, error: &tenaz_rabbit::Error) {
        if error.is_lost() {
            self.lose(error);
        }
    }

    /// Publishes to a queue or stream, and waits until the broker has confirmed it. What arrives twice counts once, so whoever
    /// was not told tries again with the next session.
    pub async fn publish(
        &self,
        queue: &str,
        body: Vec<u8>,
        properties: &Properties,
    ) -> Result<(), tenaz_rabbit::Error> {
        self.publisher.publish(Target::Queue(queue), body, properties).await
    }

    /// Publishes a chunk to a work queue, and waits until the broker has confirmed it.
    pub async fn publish_chunk(
        &self,
        queue: &str,
        body: Vec<u8>,
        properties: &Properties,
    ) -> Result<(), tenaz_rabbit::Error> {
        self.chunk_publisher.publish(Target::Queue(queue), body, properties).await
    }

    /// Somebody waits in vain, though nothing says that a connection is gone.
    pub fn give_up(&self, reason: &str) {
        self.reason.get_or_init(|| reason.to_owned());
        self.lost.cancel();
    }

    fn lose(&self, error: &tenaz_rabbit::Error) {
        self.give_up(&error.to_string());
    }

    /// Closes the connections, so that the broker knows at once: it gives to others what was delivered here.
    async fn close(&self) {
        self.lost.cancel();
        tokio::join!(self.reading.close(), self.writing.close(), self.beating.close());
    }

    /// Waits until this life is over.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Whether this life is over.
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }
}

#[derive(Debug, Clone)]
enum State {
    Down(String),
    Up(Arc<Session>),
}

/// The link of one process.
#[derive(Debug, Clone)]
pub struct Link {
    settings: Arc<LinkSettings>,
    state: watch::Receiver<State>,
    closing: CancellationToken,
}

impl Link {
    /// Connects. What goes wrong now is told; what goes wrong later is mended.
    pub async fn open(settings: LinkSettings) -> Result<Self, Error> {
        let first = connect(&settings, 1).await?;
        let (sender, state) = watch::channel(State::Up(Arc::clone(&first)));
        let settings = Arc::new(settings);
        let closing = CancellationToken::new();
        tokio::spawn(keep_up(Arc::clone(&settings), first, sender, closing.clone()));
        Ok(Self { settings, state, closing })
    }

    /// The deployment's names.
    pub fn names(&self) -> &Names {
        &self.settings.names
    }

    /// The current session; waits while there is none.
    pub async fn session(&self) -> Arc<Session> {
        let mut state = self.state.clone();
        loop {
            if let State::Up(session) = &*state.borrow_and_update()
                && !session.is_lost()
            {
                return Arc::clone(session);
            }
            if state.changed().await.is_err() {
                // The link is closed: nobody will ever be served again.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Tells how many connections were made again, whenever some were, until the link is closed.
    pub fn count_reconnects(&self, mut tell: impl FnMut(u64) + Send + 'static) {
        let link = self.clone();
        tokio::spawn(async move {
            let mut epoch = 1;
            let counting = async {
                loop {
                    let session = link.session().await;
                    if session.epoch > epoch {
                        tell(session.epoch - epoch);
                        epoch = session.epoch;
                    }
                    session.lost().await;
                }
            };
            tokio::select! {
                () = link.closing.cancelled() => {}
                () = counting => {}
            }
        });
    }

    /// How many sessions there have been, the present one included; 0 while there is none.
    pub fn epoch(&self) -> u64 {
        match &*self.state.borrow() {
            State::Up(session) => session.epoch,
            State::Down(_) => 0,
        }
    }

    /// Why there is no session, if there is none.
    pub fn trouble(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Down(reason) => Some(reason.clone()),
            State::Up(session) if session.is_lost() => Some("the connection to the broker was lost".to_owned()),
            State::Up(_) => None,
        }
    }

    /// Whether the broker has stopped taking messages for lack of memory or disk.
    pub fn is_blocked(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(session) if session.writing.is_blocked())
    }

    /// Closes the connections, so that the broker knows at once.
    pub async fn close(&self) {
        self.closing.cancel();
        let session = match &*self.state.borrow() {
            State::Up(session) => Some(Arc::clone(session)),
            State::Down(_) => None,
        };
        if let Some(session) = session {
            session.close().await;
        }
    }

    /// Sends a message to a queue or log until the broker confirms it, over as many sessions as that takes. A queue that
    /// is not there may be one whose broker is just coming back: whoever knows better drops the future.
    pub async fn publish(&self, queue: &str, kind: &str, body: Arc<[u8]>) -> Result<(), Error> {
        let properties = Properties::of_kind(kind);
        let mut backoff = Backoff::new();
        loop {
            let session = self.session().await;
            match session.publish(queue, body.to_vec(), &properties).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_temporary() || matches!(error, tenaz_rabbit::Error::Unroutable { .. }) => {
                    session.met_publishing(&error);
                    tokio::time::sleep(backoff.next_delay()).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Does something on the broker until it succeeds or fails for good.
    pub async fn persist<T, F>(&self, mut attempt: impl FnMut(Arc<Session>) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, tenaz_rabbit::Error>>,
    {
        let mut backoff = Backoff::new();
        loop {
            let session = self.session().await;
            match attempt(Arc::clone(&session)).await {
                Ok(value) => return Ok(value),
                Err(error) if error.is_temporary() => {
                    session.met(&error);
                    tokio::time::sleep(backoff.next_delay()).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The connections, and what all processes need on the broker: declaring it again is harmless.
async fn connect(settings: &LinkSettings, epoch: u64) -> Result<Arc<Session>, Error> {
    let name = |what: &str| format!("{} ({what})", settings.connection_name);
    let names = [name("reading"), name("writing"), name("heartbeats")];
    let [reading, writing, beating] = names.each_ref().map(|name| Connection::open(&settings.broker, name));
    let (reading, writing, beating) = tokio::try_join!(reading, writing, beating)?;
    reading
        .declare_stream(&StreamSpec {
            name: settings.names.registry(),
            max_length_bytes: Some(REGISTRY_BYTES),
            max_age: None,
            segment_bytes: Some(REGISTRY_SEGMENT_BYTES),
        })
        .await?;
    reading
        .declare_stream(&StreamSpec {
            name: settings.names.events(),
            max_length_bytes: Some(EVENTS_BYTES),
            max_age: None,
            segment_bytes: Some(REGISTRY_SEGMENT_BYTES),
        })
        .await?;
    reading.declare_fanout(&settings.names.members()).await?;
    let confirms = PublisherOptions { confirm_within: settings.broker.confirm_timeout, ..PublisherOptions::default() };
    let (publisher, chunk_publisher, beat_publisher) = tokio::try_join!(
        Publisher::open_with(&writing, confirms),
        Publisher::open_with(&writing, confirms),
        Publisher::open(&beating)
    )?;
    Ok(Arc::new(Session {
        epoch,
        reading,
        writing,
        publisher,
        chunk_publisher,
        beating,
        beat_publisher,
        lost: CancellationToken::new(),
        reason: OnceLock::new(),
    }))
}

async fn keep_up(
    settings: Arc<LinkSettings>,
    mut session: Arc<Session>,
    state: watch::Sender<State>,
    closing: CancellationToken,
) {
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = session.lost() => {}
            error = session.reading.closed() => session.lose(&error),
            error = session.writing.closed() => session.lose(&error),
            error = session.beating.closed() => session.lose(&error),
        }
        session.lost.cancel();
        if closing.is_cancelled() {
            return;
        }
        let reason = session.reason.get().map_or("closed", String::as_str);
        tracing::warn!(reason, "the connection to the broker is lost; connecting again");
        state.send_replace(State::Down("the connection to the broker was lost".to_owned()));
        // It may still work, and somebody may still wait for it: they go on with the next one.
        let over = Arc::clone(&session);
        tokio::spawn(async move { over.close().await });
        let mut backoff = Backoff::new();
        session = loop {
            let next = tokio::select! {
                () = closing.cancelled() => return,
                next = connect(&settings, session.epoch + 1) => next,
            };
            match next {
                Ok(next) => break next,
                Err(error) => {
                    tracing::debug!(%error, "the broker cannot be reached");
                    state.send_replace(State::Down(error.to_string()));
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        };
        tracing::info!(epoch = session.epoch, "connected to the broker again");
        state.send_replace(State::Up(Arc::clone(&session)));
    }
}
