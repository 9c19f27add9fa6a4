//! The AMQP connections ("sockets") behind one [`Connection`](crate::Connection), and the channels on them.
//!
//! Every consumer, reader and question has a channel of its own, because the broker answers an impossible request by closing
//! the channel: sharing one would end the readers of healthy streams with each stream that is not ready, and acknowledging
//! several messages at once would acknowledge those of others. A broker allows 2,047 channels on a connection unless told
//! otherwise. When they are used up, another connection to the same node is opened.

use std::{
    io,
    sync::{
        Arc, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use lapin::{
    tcp::OwnedTLSConfig,
    uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo},
};
use tokio::sync::Mutex;

use crate::{
    error::{Error, Result},
    handshake::{Version, checked_version},
    lapin_errors::while_opening,
    limits::MAX_SOCKETS,
    settings::{BrokerSettings, BrokerUrl},
};

/// How to reach one node, again and again.
pub(crate) struct Dial {
    pub(crate) url: BrokerUrl,
    pub(crate) settings: BrokerSettings,
    pub(crate) tls: OwnedTLSConfig,
    /// What the broker's screens call the connection.
    pub(crate) name: String,
}

impl Dial {
    /// Opens an AMQP connection.
    pub(crate) async fn connect(&self, name: &str) -> Result<(lapin::Connection, Version)> {
        let Self { url, settings, tls, .. } = self;
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
        tokio::time::timeout(settings.connect_timeout, connect).await.unwrap_or_else(|_| {
            Err(Error::Unreachable { address: url.address(), source: Arc::new(io::ErrorKind::TimedOut.into()) })
        })
    }
}

/// One AMQP connection.
pub(crate) struct Socket {
    lapin: lapin::Connection,
    /// Channel numbers that cannot be used again.
    spoiled: AtomicUsize,
}

impl Socket {
    fn new(lapin: lapin::Connection) -> Arc<Self> {
        Arc::new(Self { lapin, spoiled: AtomicUsize::new(0) })
    }

    /// lapin's connection.
    pub(crate) fn lapin(&self) -> &lapin::Connection {
        &self.lapin
    }

    fn channel_max(&self) -> usize {
        usize::from(self.lapin.configuration().channel_max())
    }

    /// Opens a channel.
    ///
    /// (m) lapin 4.12 never forgets the error with which the broker closed a channel: its number answers every later use with
    /// that error, and is found out here when its turn comes again.
    pub(crate) async fn open_channel(&self) -> lapin::Result<Opened> {
        use lapin::ErrorKind::{ChannelsLimitReached, InvalidChannelState, ProtocolError};
        loop {
            match self.lapin.create_channel().await {
                Ok(channel) => return Ok(Opened::Channel(channel)),
                Err(error) => match error.kind() {
                    ChannelsLimitReached => return Ok(Opened::Full),
                    ProtocolError(_) | InvalidChannelState(..) if self.lapin.status().connected() => {
                        if self.spoiled.fetch_add(1, Ordering::Relaxed) + 1 >= self.channel_max().div_ceil(2) {
                            return Ok(Opened::WornOut);
                        }
                    }
                    _ => return Err(error),
                },
            }
        }
    }
}

/// What came of opening a channel.
pub(crate) enum Opened {
    /// A channel.
    Channel(lapin::Channel),
    /// All channels of this socket are in use.
    Full,
    /// Many channel numbers of this socket are spoiled: it should be replaced.
    WornOut,
}

/// A channel, which keeps its socket open.
#[derive(Clone)]
pub(crate) struct Channel {
    lapin: lapin::Channel,
    _socket: Arc<Socket>,
}

impl Channel {
    /// A channel of this socket.
    pub(crate) fn new(lapin: lapin::Channel, socket: &Arc<Socket>) -> Self {
        Self { lapin, _socket: Arc::clone(socket) }
    }
}

impl std::ops::Deref for Channel {
    type Target = lapin::Channel;

    fn deref(&self) -> &lapin::Channel {
        &self.lapin
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lapin.fmt(f)
    }
}

/// The AMQP connections behind one connection.
pub(crate) struct Sockets {
    dial: Dial,
    max_channels: usize,
    list: RwLock<SocketList>,
    /// Held while another one is opened.
    growing: Mutex<()>,
    /// Whether it was said that there is no room for more.
    is_full: AtomicBool,
}

#[derive(Default)]
struct SocketList {
    /// Those on which channels are opened.
    open: Vec<Arc<Socket>>,
    /// Those that are worn out; they are closed with their last channel.
    worn_out: Vec<Weak<Socket>>,
}

impl Sockets {
    /// The first connection, and how to open more.
    pub(crate) fn new(dial: Dial, first: lapin::Connection) -> Self {
        let first = Socket::new(first);
        Self {
            dial,
            max_channels: first.channel_max() * MAX_SOCKETS,
            list: RwLock::new(SocketList { open: vec![first], worn_out: Vec::new() }),
            growing: Mutex::new(()),
            is_full: AtomicBool::new(false),
        }
    }

    /// Where they lead.
    pub(crate) fn dial(&self) -> &Dial {
        &self.dial
    }

    /// Channels that there can be at most.
    pub(crate) fn max_channels(&self) -> usize {
        self.max_channels
    }

    /// Those on which channels may be opened, in the order in which they were opened themselves.
    pub(crate) fn open(&self) -> Vec<Arc<Socket>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).open.clone()
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Socket>> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.open.iter().cloned().chain(list.worn_out.iter().filter_map(Weak::upgrade)).collect()
    }

    /// No more channels are opened on this one.
    pub(crate) fn retire(&self, socket: &Arc<Socket>) {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        list.open.retain(|open| !Arc::ptr_eq(open, socket));
        list.worn_out.retain(|worn_out| worn_out.strong_count() > 0);
        list.worn_out.push(Arc::downgrade(socket));
    }

    /// Opens another one, unless others have done so since `known` were all. Gives it back if it is new.
    ///
    /// [`Error::TooManyChannels`] if there are as many as there may be.
    pub(crate) async fn grow(&self, known: &[Arc<Socket>]) -> Result<Option<Arc<Socket>>> {
        let _growing = self.growing.lock().await;
        let open = self.open();
        if open.iter().any(|socket| !known.iter().any(|known| Arc::ptr_eq(known, socket))) {
            return Ok(None);
        }
        if open.len() >= MAX_SOCKETS {
            let channels = self.max_channels;
            if !self.is_full.swap(true, Ordering::Relaxed) {
                tracing::warn!(channels, "all channels to the broker are in use: what needs another one waits");
            }
            return Err(Error::TooManyChannels { channels });
        }
        let name = format!("{} {}", self.dial.name, open.len() + 1);
        // The first connection has shown that name and password are right. A broker that lets no further one in, because of a
        // limit, say, may do so later.
        let (socket, _) = self.dial.connect(&name).await.map_err(|error| {
            if error.is_temporary() {
                return error;
            }
            tracing::warn!(%error, "the channels to the broker are used up, and it takes no further connection");
            Error::TooManyChannels { channels: self.max_channels }
        })?;
        tracing::debug!(name, "the channels of a connection are used up: another one is opened");
        let socket = Socket::new(socket);
        self.list.write().unwrap_or_else(PoisonError::into_inner).open.push(Arc::clone(&socket));
        Ok(Some(socket))
    }

    /// There is room again.
    pub(crate) fn has_room(&self) {
        self.is_full.store(false, Ordering::Relaxed);
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
