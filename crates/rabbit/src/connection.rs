//! A connection to a broker, and what is known about its health.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, future::join_all};
use lapin::{Event, tcp::OwnedTLSConfig};
use tokio::sync::watch;

use crate::{
    error::{Error, Result},
    handshake::Version,
    lapin_errors::lost,
    settings::BrokerSettings,
    sockets::{Channel, Dial, Opened, Sockets},
};

/// lapin reports a loss as an event; this catches the ways in which a connection ends without one.
const HEALTH_CHECK: Duration = Duration::from_secs(1);

/// A connection to one node of a broker. Clones share it; it closes when the last clone, publisher and consumer on it are
/// gone.
///
/// When it has more consumers and readers than one AMQP connection may have channels, it opens further AMQP connections to the
/// same node, up to [`MAX_SOCKETS`](crate::limits::MAX_SOCKETS). They live and die together: the loss of one is the loss of
/// all.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    sockets: Sockets,
    health: watch::Receiver<Health>,
    set_health: Arc<watch::Sender<Health>>,
    address: String,
    version: Version,
}

#[derive(Debug, Clone, PartialEq)]
enum Health {
    Open,
    Blocked,
    Closed(String),
}

impl Connection {
    /// Connects to the first node that answers. `name` is shown in RabbitMQ's list of connections.
    pub async fn open(settings: &BrokerSettings, name: &str) -> Result<Connection> {
        let mut urls = settings.resolved_urls()?;
        let tls = OwnedTLSConfig { identity: None, cert_chain: settings.ca_text()? };
        fastrand::shuffle(&mut urls);
        let mut failure = None;
        for url in urls {
            let dial = Dial { url, settings: settings.clone(), tls: tls.clone(), name: name.to_owned() };
            match Self::open_one(dial).await {
                // A node that is away may be replaced by another; a wrong password is wrong everywhere.
                Err(error) if error.is_temporary() => failure = Some(error),
                done => return done,
            }
        }
        Err(failure.unwrap_or_else(|| Error::Settings("no broker URL was given".to_owned())))
    }

    async fn open_one(dial: Dial) -> Result<Connection> {
        let (first, version) = dial.connect(&dial.name).await?;
        let (set_health, health) = watch::channel(Health::Open);
        let set_health = Arc::new(set_health);
        keep_watch(&first, &set_health);
        let address = dial.url.address();
        let sockets = Sockets::new(dial, first);
        Ok(Connection { inner: Arc::new(Inner { sockets, health, set_health, address, version }) })
    }

    /// Whether the broker has raised an alarm (memory or disk) and takes no messages for now. Publishes wait meanwhile.
    pub fn is_blocked(&self) -> bool {
        *self.inner.health.borrow() == Health::Blocked
    }

    /// Whether it is still there, as far as is known.
    pub fn is_open(&self) -> bool {
        self.inner.sockets.all().iter().all(|socket| socket.lapin().status().connected())
            && !matches!(*self.inner.health.borrow(), Health::Closed(_))
    }

    /// Waits until the connection is gone, and says why ([`Error::Lost`]).
    pub async fn closed(&self) -> Error {
        self.watch().closed().await
    }

    /// Closes it, whoever still uses it; exclusive queues that it declared are deleted, unacknowledged messages go to others.
    pub async fn close(&self) {
        turn(&self.inner.set_health, Health::Closed("closed by this process".to_owned()));
        // An error means that it is closed already, which is what was asked for.
        join_all(self.inner.sockets.all().iter().map(|socket| async {
            let _ = self.answer("a farewell", socket.lapin().close(200, "closed".into()), lost).await;
        }))
        .await;
    }

    /// Host and port of the node that answered.
    pub fn address(&self) -> &str {
        &self.inner.address
    }

    /// The version of the broker.
    pub fn version(&self) -> Version {
        self.inner.version
    }

    /// The most channels that this connection can have: a consumer, reader or publisher needs one each.
    pub fn max_channels(&self) -> usize {
        self.inner.sockets.max_channels()
    }

    /// A channel of its own, so that an error that closes it does not disturb others.
    pub(crate) async fn channel(&self) -> Result<Channel> {
        let sockets = &self.inner.sockets;
        loop {
            let open = sockets.open();
            for socket in &open {
                match self.answer("a new channel", socket.open_channel(), lost).await? {
                    Opened::Channel(channel) => {
                        sockets.has_room();
                        return Ok(Channel::new(channel, socket));
                    }
                    Opened::Full => {}
                    Opened::WornOut => sockets.retire(socket),
                }
            }
            if let Some(socket) = sockets.grow(&open).await? {
                keep_watch(socket.lapin(), &self.inner.set_health);
            }
        }
    }

    /// The broker's answer to a question (`what` it is about), its error `in_words`. If none comes for long, though heartbeats do, the connection
    /// counts as lost for everybody: a process that waits for ever is worse than one that connects again.
    pub(crate) async fn answer<T>(
        &self,
        what: &str,
        question: impl Future<Output = lapin::Result<T>>,
        in_words: impl FnOnce(&lapin::Error) -> Error,
    ) -> Result<T> {
        let mut question = std::pin::pin!(question);
        loop {
            match tokio::time::timeout(self.answer_timeout(), &mut question).await {
                Ok(answer) => return answer.map_err(|error| in_words(&error)),
                // Under an alarm the broker does not even listen.
                Err(_) if self.is_blocked() => {}
                Err(_) => return Err(self.give_up(what)),
            }
        }
    }

    fn give_up(&self, what: &str) -> Error {
        let seconds = self.answer_timeout().as_secs();
        let detail = format!("no answer about {what} for {seconds} s");
        tracing::warn!(address = self.inner.address, "{detail}; this connection is given up");
        turn(&self.inner.set_health, Health::Closed(detail));
        Error::Unanswered { what: what.to_owned(), seconds }
    }

    /// How long the broker may take for an answer.
    pub(crate) fn answer_timeout(&self) -> Duration {
        self.inner.sockets.dial().settings.answer_timeout
    }

    /// Tells when it is gone, without keeping it open.
    pub(crate) fn watch(&self) -> Watch {
        Watch { health: self.inner.health.clone() }
    }
}

/// Tells how a connection is, and when it is gone.
#[derive(Debug)]
pub(crate) struct Watch {
    health: watch::Receiver<Health>,
}

impl Watch {
    /// Waits for that, and says why ([`Error::Lost`]).
    pub(crate) async fn closed(&mut self) -> Error {
        match self.health.wait_for(|health| matches!(health, Health::Closed(_))).await.as_deref() {
            Ok(Health::Closed(detail)) => Error::Lost(detail.clone()),
            // The watcher ends only with the connection.
            _ => Error::Lost("it was dropped".to_owned()),
        }
    }

    /// Waits until an alarm begins or ends; fails when the connection is gone ([`Error::Lost`]).
    pub(crate) async fn turned(&mut self) -> Result<()> {
        let seen = |health: &Health| match health {
            Health::Closed(detail) => Err(Error::Lost(detail.clone())),
            Health::Open | Health::Blocked => Ok(()),
        };
        // Gone already, though that is no news.
        seen(&self.health.borrow())?;
        self.health.changed().await.map_err(|_| Error::Lost("it was dropped".to_owned()))?;
        seen(&self.health.borrow_and_update())
    }

    /// Whether an alarm is on.
    pub(crate) fn is_blocked(&self) -> bool {
        *self.health.borrow() == Health::Blocked
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("address", &self.inner.address).finish_non_exhaustive()
    }
}

fn keep_watch(socket: &lapin::Connection, health: &Arc<watch::Sender<Health>>) {
    tokio::spawn(watch_health(socket.status().clone(), socket.events_listener(), Arc::clone(health)));
}

/// What is closed stays closed, for the first reason.
fn turn(health: &watch::Sender<Health>, now: Health) {
    health.send_if_modified(|health| {
        let open = !matches!(health, Health::Closed(_));
        if open {
            *health = now;
        }
        open
    });
}

/// Turns lapin's events into one value. Only one listener may exist: several would steal each other's events.
async fn watch_health(
    status: lapin::ConnectionStatus,
    events: impl futures::Stream<Item = Event> + Send + 'static,
    health: Arc<watch::Sender<Health>>,
) {
    let mut events = std::pin::pin!(events);
    let mut last_error = None;
    loop {
        match tokio::time::timeout(HEALTH_CHECK, events.next()).await {
            Ok(Some(Event::ConnectionBlocked(reason))) => {
                tracing::warn!(%reason, "the broker has raised an alarm; publishing waits");
                turn(&health, Health::Blocked);
            }
            Ok(Some(Event::ConnectionUnblocked)) => {
                tracing::info!("the broker's alarm is over");
                turn(&health, Health::Open);
            }
            Ok(Some(Event::Error(error))) => last_error = Some(error),
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => break,
        }
        // An error may be that of a channel only.
        if !status.connected() {
            break;
        }
    }
    let detail = match last_error.as_ref().map(lost) {
        Some(Error::Lost(detail)) => detail,
        _ => "the connection ended".to_owned(),
    };
    turn(&health, Health::Closed(detail));
}
