//! One AMQP connection, and what is known about its health.

use std::{io, sync::Arc, time::Duration};

use futures::StreamExt;
use lapin::{
    Event,
    tcp::OwnedTLSConfig,
    uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo},
};
use tokio::sync::watch;

use crate::{
    error::{Error, Result},
    handshake::{Version, checked_version},
    lapin_errors::{lost, while_opening},
    random::shuffle,
    settings::{BrokerSettings, BrokerUrl},
};

/// lapin reports a loss as an event; this catches the ways in which a connection ends without one.
const HEALTH_CHECK: Duration = Duration::from_secs(1);

/// One AMQP connection. Clones share it; it closes when the last clone, publisher and consumer on it are gone.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    lapin: lapin::Connection,
    health: watch::Receiver<Health>,
    set_health: Arc<watch::Sender<Health>>,
    address: String,
    version: Version,
    answer_timeout: Duration,
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
        shuffle(&mut urls);
        let mut failure = None;
        for url in &urls {
            match Self::open_one(url, settings, &tls, name).await {
                // A node that is away may be replaced by another; a wrong password is wrong everywhere.
                Err(error) if error.is_temporary() => failure = Some(error),
                done => return done,
            }
        }
        Err(failure.unwrap_or_else(|| Error::Settings("no broker URL was given".to_owned())))
    }

    async fn open_one(
        url: &BrokerUrl,
        settings: &BrokerSettings,
        tls: &OwnedTLSConfig,
        name: &str,
    ) -> Result<Connection> {
        let connect = async {
            let uri = amqp_uri(url, settings);
            let version = checked_version(url, &uri, tls).await?;
            let properties = lapin::ConnectionProperties::default()
                .with_connection_name(name.into())
                .with_client_property("product".into(), "tenaz".into())
                .with_client_property("version".into(), env!("CARGO_PKG_VERSION").into());
            let runtime = lapin::runtime::default_runtime().map_err(|error| while_opening(url, &error))?;
            let connected = lapin::Connection::connect_uri_with_config(uri, properties, tls.clone(), runtime).await;
            Ok((connected.map_err(|error| while_opening(url, &error))?, version))
        };
        let (lapin, version) = tokio::time::timeout(settings.connect_timeout, connect).await.unwrap_or_else(|_| {
            Err(Error::Unreachable { address: url.address(), source: Arc::new(io::ErrorKind::TimedOut.into()) })
        })?;
        Ok(Self::watched(lapin, url.address(), version, settings.answer_timeout))
    }

    fn watched(lapin: lapin::Connection, address: String, version: Version, answer_timeout: Duration) -> Connection {
        let (set_health, health) = watch::channel(Health::Open);
        let set_health = Arc::new(set_health);
        tokio::spawn(watch_health(lapin.status().clone(), lapin.events_listener(), Arc::clone(&set_health)));
        Connection { inner: Arc::new(Inner { lapin, health, set_health, address, version, answer_timeout }) }
    }

    /// Whether the broker has raised an alarm (memory or disk) and takes no messages for now. Publishes wait meanwhile.
    pub fn is_blocked(&self) -> bool {
        *self.inner.health.borrow() == Health::Blocked
    }

    /// Whether it is still there, as far as is known.
    pub fn is_open(&self) -> bool {
        self.inner.lapin.status().connected() && !matches!(*self.inner.health.borrow(), Health::Closed(_))
    }

    /// Waits until the connection is gone, and says why ([`Error::Lost`]).
    pub async fn closed(&self) -> Error {
        self.watch().closed().await
    }

    /// Closes it, whoever still uses it; exclusive queues that it declared are deleted, unacknowledged messages go to others.
    pub async fn close(&self) {
        turn(&self.inner.set_health, Health::Closed("closed by this process".to_owned()));
        // An error means that it is closed already, which is what was asked for.
        let _ = self.answer("a farewell", self.inner.lapin.close(200, "closed".into()), lost).await;
    }

    /// Host and port of the node that answered.
    pub fn address(&self) -> &str {
        &self.inner.address
    }

    /// The version of the broker.
    pub fn version(&self) -> Version {
        self.inner.version
    }

    /// A channel of its own, so that an error that closes it does not disturb others.
    pub(crate) async fn channel(&self) -> Result<lapin::Channel> {
        let in_words = |error: &lapin::Error| match error.kind() {
            lapin::ErrorKind::ChannelsLimitReached => Error::TooManyChannels,
            _ => lost(error),
        };
        self.answer("a new channel", self.inner.lapin.create_channel(), in_words).await
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
            match tokio::time::timeout(self.inner.answer_timeout, &mut question).await {
                Ok(answer) => return answer.map_err(|error| in_words(&error)),
                // Under an alarm the broker does not even listen.
                Err(_) if self.is_blocked() => {}
                Err(_) => return Err(self.give_up(what)),
            }
        }
    }

    fn give_up(&self, what: &str) -> Error {
        let seconds = self.inner.answer_timeout.as_secs();
        let detail = format!("no answer about {what} for {seconds} s");
        tracing::warn!(address = self.inner.address, "{detail}; this connection is given up");
        turn(&self.inner.set_health, Health::Closed(detail.clone()));
        Error::Lost(detail)
    }

    /// Tells when it is gone, without keeping it open.
    pub(crate) fn watch(&self) -> Watch {
        Watch { health: self.inner.health.clone() }
    }
}

/// Tells when a connection is gone.
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
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("address", &self.inner.address).finish_non_exhaustive()
    }
}

fn amqp_uri(url: &BrokerUrl, settings: &BrokerSettings) -> AMQPUri {
    AMQPUri {
        scheme: if url.tls { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo { username: url.user.clone(), password: url.password.clone() },
            host: url.host.clone(),
            port: url.port,
        },
        vhost: url.vhost.clone(),
        query: AMQPQueryString {
            heartbeat: Some(u16::try_from(settings.heartbeat.as_secs().max(1)).unwrap_or(u16::MAX)),
            ..AMQPQueryString::default()
        },
    }
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
