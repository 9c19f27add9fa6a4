//! A gateway from start to end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenaz_cluster::{Book, Janitor, Link, Membership, Role};
use tenaz_core::ProcessRole;
use tenaz_vitals::Vitals;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::certificates::Certificates;
use crate::job_time::end_late_jobs;
use crate::observer::observe;
use crate::routes::router;
use crate::server::{Ending, Entrance, serve};
use crate::status::count_jobs;
use crate::tokens::Tokens;
use crate::{Error, GatewaySettings};

/// Time that streams have to say goodbye.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    url: String,
    membership: Arc<Membership>,
    ending: Ending,
    connections: TaskTracker,
    serving: JoinHandle<()>,
    vitals: Arc<Vitals>,
}

impl Gateway {
    /// Listens, reads the registry, joins the cluster, cleans up after jobs as all gateways do, and serves.
    ///
    /// The link stays the caller's: close it after [`Gateway::shutdown`].
    pub async fn start(link: Link, settings: GatewaySettings) -> Result<Self, Error> {
        settings.check()?;
        let vitals = match &settings.vitals {
            Some(vitals) => Arc::clone(vitals),
            None => Vitals::alone(ProcessRole::Gateway)?,
        };
        let pulse = vitals.pulse();
        pulse.during(Self::begin(link, settings, vitals)).await
    }

    async fn begin(link: Link, settings: GatewaySettings, vitals: Arc<Vitals>) -> Result<Self, Error> {
        let tokens = settings.tokens_file.as_deref().map(Tokens::open).transpose()?.map(Arc::new);
        let unheard = |source| Error::Listen { address: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(unheard)?;
        let address = listener.local_addr().map_err(unheard)?;
        let certificates = settings.tls.as_ref().map(Certificates::open).transpose()?.map(Arc::new);
        let scheme = if certificates.is_some() { "https" } else { "http" };
        let url = settings.url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
        // Those who watch over it ask where it answers nobody else, if there is such a place: it is never full.
        if vitals.http_addr().is_none() && certificates.is_none() {
            vitals.set_http(address);
        }
        vitals.set_url(url.clone());
        let reconnects = vitals.metrics().gateway().broker_reconnects.clone();
        link.count_reconnects(move |count| {
            reconnects.inc_by(count);
        });
        let book = Book::open(&link).await?;
        let own_url = url.clone();
        let told = Arc::clone(&vitals);
        let say_url = move |beat: &mut tenaz_cluster::Beat| {
            beat.url = Some(own_url.clone());
            told.say(|name, life, pulse, up_ms| {
                (beat.signs.name, beat.signs.life) = (name, life);
                (beat.signs.pulse, beat.signs.up_ms) = (pulse, up_ms);
            });
        };
        let membership = Membership::join(&link, Role::Gateway, Membership::new_id()?, say_url);
        Janitor::start(&link, &book, &membership, settings.patience);
        let ending = Ending::default();
        if let Some(tokens) = &tokens {
            let (tokens, closing) = (Arc::clone(tokens), ending.closing.clone());
            tokio::spawn(async move { tokens.watch(closing).await });
        }
        if let Some(certificates) = &certificates {
            let (certificates, closing) = (Arc::clone(certificates), ending.closing.clone());
            tokio::spawn(async move { certificates.watch(closing).await });
        }
        let member = Arc::clone(&membership);
        let app = Arc::new(App::new(link, book, member, tokens, &settings, Arc::clone(&vitals), ending.clone()));
        tokio::spawn(count_jobs(Arc::clone(&app)));
        tokio::spawn(end_late_jobs(Arc::clone(&app)));
        tokio::spawn(observe(Arc::clone(&app)));
        let connections = TaskTracker::new();
        let limits = &settings.limits;
        let entrance = Entrance { router: router(app), certificates, idle: limits.idle, ending: ending.clone() };
        let serving = serve(listener, entrance, limits.connections, connections.clone());
        // The pulse of the loop that accepts connections.
        let pulse = vitals.pulse();
        let serving = tokio::spawn(async move { pulse.during(serving).await });
        vitals.set_ready(true);
        Ok(Self { address, url, membership, ending, connections, serving, vitals })
    }

    /// Under which URL clients reach it, unless the settings say another.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, lets requests finish within `deadline`, and leaves the cluster. Streams that are still going on
    /// shortly before the deadline end with an error record.
    pub async fn shutdown(mut self, deadline: Duration) {
        self.vitals.set_draining();
        let pulse = self.vitals.pulse();
        pulse.during(self.end(deadline)).await;
    }

    async fn end(&mut self, deadline: Duration) {
        self.ending.closing.cancel();
        self.connections.close();
        let _ = (&mut self.serving).await;
        if timeout(deadline.saturating_sub(LAST_WORDS), self.connections.wait()).await.is_err() {
            self.ending.cut.cancel();
            if timeout(LAST_WORDS.min(deadline), self.connections.wait()).await.is_err() {
                self.ending.kill.cancel();
                self.connections.wait().await;
            }
        }
        self.membership.leave().await;
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.ending.closing.cancel();
        self.ending.cut.cancel();
        self.ending.kill.cancel();
    }
}
