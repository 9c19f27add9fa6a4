//! A supervisor as a whole: takes its name, listens, and drives.

use std::sync::Arc;

use tenaz_core::SupervisorId;
use tenaz_vitals::{ClusterId, HeartbeatListener, Key, Vitals};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::driver::{Driver, Parts};
use crate::error::Error;
use crate::executor::Executor;
use crate::home::Home;
use crate::peers::{PeerRefusals, PeerSettings, Peers};

/// Which supervisor, of which cluster.
#[derive(Debug, Clone)]
pub struct SupervisorSettings {
    /// Its number in cluster.toml.
    pub id: SupervisorId,
    /// The cluster's directory on this machine.
    pub home: Home,
    /// The cluster's description.
    pub config: Config,
    /// The cluster's key.
    pub key: Key,
    /// Which cluster.
    pub cluster: ClusterId,
    /// What it shows of itself.
    pub vitals: Option<Arc<Vitals>>,
}

/// One of the supervisors of a cluster.
#[derive(Debug)]
pub struct Supervisor;

impl Supervisor {
    /// Takes part until it is told to stop. The processes go on without it.
    ///
    /// # Errors
    /// It cannot begin: cluster.toml does not know it, it runs already, or its address is taken.
    pub async fn run(settings: SupervisorSettings, stop: CancellationToken) -> Result<(), Error> {
        let machine = &configured(&settings)?.machine;
        let executor = Executor::open(&settings.home, &settings.config, machine)?;
        Self::run_with(settings, executor, stop).await
    }

    /// The same with any executor, for tests.
    ///
    /// # Errors
    /// As [`Supervisor::run`].
    #[doc(hidden)]
    pub async fn run_with(
        settings: SupervisorSettings,
        executor: Executor,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let me = configured(&settings)?.clone();
        let SupervisorSettings { id, home, config, key, cluster, vitals } = settings;
        let (taker, name) = (home.clone(), me.name());
        let taken = tokio::task::spawn_blocking(move || taker.hold_identity(&name)).await;
        let taken = taken.map_err(|error| Error::Interrupted(error.to_string()))??;
        // Held until the end.
        let Some(_identity) = taken else { return Err(Error::RunsAlready { name: me.name() }) };

        let metrics = vitals.as_ref().map(|vitals| vitals.metrics().supervisor()).unwrap_or_default();
        let listener = HeartbeatListener::bind(me.listen, key.for_heartbeats(), cluster.clone()).await?;
        let listener = listener.counting_into(&metrics);
        let refusals = Arc::new(PeerRefusals::counting_into(metrics.clone()));
        let others = config.supervisors.iter().filter(|other| other.id != id);
        let peers = others.map(|other| (other.id, other.listen)).collect();
        let settings = PeerSettings { me: id, listen: me.listen, peers, key, cluster };
        let (peers, peer_events) = Peers::open(settings, Arc::clone(&refusals)).await?;
        let parts = Parts { me, home, config, executor, vitals, metrics, listener, refusals, peers, peer_events };
        Driver::new(parts)?.run(stop).await;
        Ok(())
    }
}

fn configured(settings: &SupervisorSettings) -> Result<&crate::config::Supervisor, Error> {
    let SupervisorSettings { id, config, .. } = settings;
    config.supervisor(*id).ok_or_else(|| {
        let known: Vec<_> = config.supervisors.iter().map(|supervisor| supervisor.id.to_string()).collect();
        Error::NoSuchSupervisor { id: *id, known: known.join(", ") }
    })
}
