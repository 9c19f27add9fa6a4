//! What a process has: its heart, its pulse, what it shows.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenaz_core::ProcessRole;

use crate::error::Error;
use crate::health::{Health, Readiness};
use crate::heartbeat::{Heartbeat, Identity};
use crate::http::HttpServer;
use crate::key::Key;
use crate::limits::{MAX_EVERY, MAX_SUPERVISORS, MIN_EVERY};
use crate::metrics::Metrics;
use crate::pulse::{Pulse, Pulses};
use crate::sender::Sender;
use crate::systemd::{self, Watchdog};

/// How a process shows itself.
#[derive(Debug, Clone)]
pub struct VitalsSettings {
    /// Who it is.
    pub identity: Identity,
    /// The cluster's key; needed when there are supervisors.
    pub key: Option<Key>,
    /// Where supervisors listen, as `host:port`. Without any, no heartbeats are sent.
    pub supervisors: Vec<String>,
    /// How often heartbeats are sent.
    pub every: Duration,
    /// Where to serve `/healthz`, `/readyz` and `/metrics`; port 0 for any free one.
    pub http: Option<SocketAddr>,
}

/// What a process shows of itself. Ends when it is dropped.
#[derive(Debug)]
pub struct Vitals {
    shared: Arc<Shared>,
    sender: Option<Sender>,
    http: Option<HttpServer>,
    _watchdog: Option<Watchdog>,
}

impl Vitals {
    /// Starts sending heartbeats and serving. Not ready yet.
    pub async fn start(settings: VitalsSettings) -> Result<Arc<Self>, Error> {
        let VitalsSettings { identity, key, supervisors, every, http } = settings;
        if !(MIN_EVERY..=MAX_EVERY).contains(&every) {
            let what = format!("a heartbeat every {every:?} is out of bounds: {MIN_EVERY:?} to {MAX_EVERY:?}");
            return Err(Error::Setting { what });
        }
        if supervisors.len() > MAX_SUPERVISORS {
            let what = format!("{} supervisors are too many: at most {MAX_SUPERVISORS}", supervisors.len());
            return Err(Error::Setting { what });
        }
        let shared = Arc::new(Shared::new(identity)?);
        let http = match http {
            Some(addr) => Some(HttpServer::start(addr, Arc::clone(&shared)).await?),
            None => None,
        };
        if let Some(http) = &http {
            shared.set_http(http.addr());
        }
        let sender = match (supervisors.is_empty(), key) {
            (true, _) => None,
            (false, None) => return Err(Error::NoKey),
            (false, Some(key)) => Some(Sender::start(Arc::clone(&shared), key, supervisors, every)?),
        };
        let watchdog = Watchdog::start(Arc::clone(&shared))?;
        Ok(Arc::new(Self { shared, sender, http, _watchdog: watchdog }))
    }

    /// Those of a process that nobody watches: it counts, and is silent.
    pub fn alone(role: ProcessRole) -> Result<Arc<Self>, Error> {
        let shared = Arc::new(Shared::new(Identity::alone(role))?);
        Ok(Arc::new(Self { shared, sender: None, http: None, _watchdog: None }))
    }

    /// Who this process is.
    pub fn identity(&self) -> &Identity {
        &self.shared.identity
    }

    /// A pulse for one more loop of this process: see [`Pulse`].
    pub fn pulse(&self) -> Pulse {
        self.shared.pulses.add()
    }

    /// Whether the process does what it is there for.
    pub fn set_ready(&self, ready: bool) {
        if self.shared.ready.swap(ready, Ordering::SeqCst) != ready {
            if ready {
                systemd::tell_ready();
            }
            self.tell();
        }
    }

    /// The process has been told to end.
    pub fn set_draining(&self) {
        if !self.shared.draining.swap(true, Ordering::SeqCst) {
            systemd::tell_stopping();
            self.tell();
        }
    }

    /// Where clients reach it.
    pub fn set_url(&self, url: String) {
        self.shared.places().url = Some(url);
        self.tell();
    }

    /// Where it answers `/healthz` itself.
    pub fn set_http(&self, addr: SocketAddr) {
        self.shared.set_http(addr);
        self.tell();
    }

    /// What it counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Where it answers `/healthz`.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpServer::addr).or(self.shared.places().http)
    }

    /// What `/healthz` says, for processes that serve it themselves.
    pub fn health(&self) -> Health {
        self.shared.health()
    }

    /// Name, life, pulse and the milliseconds since the start, for heartbeats of another kind.
    pub fn say(&self, hear: impl FnOnce(String, u64, u64, u64)) {
        let beat = self.shared.heartbeat();
        hear(beat.identity.name.to_string(), beat.identity.incarnation.0, beat.pulse, beat.up_ms);
    }

    /// What `/readyz` says.
    pub fn readiness(&self) -> Readiness {
        self.shared.readiness()
    }

    fn tell(&self) {
        if let Some(sender) = &self.sender {
            sender.tell();
        }
    }
}

/// What the sender and the server know.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) identity: Identity,
    pub(crate) token: u64,
    pub(crate) metrics: Arc<Metrics>,
    pulses: Pulses,
    ready: AtomicBool,
    draining: AtomicBool,
    places: Mutex<Places>,
    started: Instant,
}

/// Where the process is reached.
#[derive(Debug, Default)]
struct Places {
    http: Option<SocketAddr>,
    url: Option<String>,
}

impl Shared {
    fn new(identity: Identity) -> Result<Self, Error> {
        Ok(Self {
            token: draw()?,
            metrics: Arc::new(Metrics::new(&identity)),
            identity,
            pulses: Pulses::default(),
            ready: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            places: Mutex::default(),
            started: Instant::now(),
        })
    }

    /// A heartbeat of this moment; sequence and challenge are the sender's.
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        let (http, url) = {
            let places = self.places();
            (places.http, places.url.clone())
        };
        Heartbeat {
            identity: self.identity.clone(),
            token: self.token,
            pid: std::process::id(),
            sequence: 0,
            challenge: 0,
            ready: self.ready.load(Ordering::SeqCst),
            draining: self.draining.load(Ordering::SeqCst),
            pulse: self.pulses.read(),
            counters: self.metrics.counters(),
            http,
            url,
            up_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Moves on while all loops turn.
    pub(crate) fn pulse(&self) -> u64 {
        self.pulses.read()
    }

    pub(crate) fn health(&self) -> Health {
        Health {
            status: "up".to_owned(),
            name: self.identity.name.clone(),
            role: self.identity.role,
            incarnation: self.identity.incarnation,
            pulse: self.pulses.read(),
            ready: self.readiness() == Readiness::Ready,
        }
    }

    pub(crate) fn readiness(&self) -> Readiness {
        if self.draining.load(Ordering::SeqCst) {
            Readiness::Draining
        } else if self.ready.load(Ordering::SeqCst) {
            Readiness::Ready
        } else {
            Readiness::NotReady
        }
    }

    fn set_http(&self, addr: SocketAddr) {
        self.places().http = Some(addr);
    }

    fn places(&self) -> std::sync::MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random number that is not 0, because 0 means none.
pub(crate) fn draw() -> Result<u64, Error> {
    loop {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
        match u64::from_be_bytes(bytes) {
            0 => {}
            drawn => return Ok(drawn),
        }
    }
}
