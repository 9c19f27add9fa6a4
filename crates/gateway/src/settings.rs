//! What a deployment decides.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenaz_cluster::Patience;
use tenaz_core::limits::MAX_PARTITIONS;
use tenaz_vitals::Vitals;

use crate::Error;
use crate::certificates::{Certificates, TlsFiles};
use crate::supervision::Supervisors;
use crate::tokens::Tokens;

/// How to run a gateway.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// Where to listen. Other than loopback only with a tokens file.
    pub listen: SocketAddr,
    /// The URL that other processes are told; `None`: made of the address.
    pub url: Option<String>,
    /// Who may use it: one `tenant:sha256-hex-of-token` per line. `None`: everybody on this machine is tenant `public`.
    pub tokens_file: Option<PathBuf>,
    /// The certificate for HTTPS. `None`: plain HTTP.
    pub tls: Option<TlsFiles>,
    /// How long jobs may stay without a sign of their client.
    pub patience: Patience,
    /// Bounds.
    pub limits: Limits,
    /// Where rows go that do not fit into memory.
    pub temp_dir: PathBuf,
    /// How it shows itself to supervisors; nobody watches it without.
    pub vitals: Option<Arc<Vitals>>,
    /// The way to the cluster's supervisors, if it has any.
    pub supervisors: Option<Arc<dyn Supervisors>>,
}

impl GatewaySettings {
    /// A gateway on this address with default bounds.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            url: None,
            tokens_file: None,
            tls: None,
            patience: Patience::default(),
            limits: Limits::default(),
            temp_dir: std::env::temp_dir(),
            vitals: None,
            supervisors: None,
        }
    }

    /// Finds mistakes that need no broker to be found.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(files) = &self.tls {
            Certificates::open(files)?;
        }
        match &self.tokens_file {
            Some(path) => Tokens::open(path).map(drop),
            None if !self.listen.ip().is_loopback() => Err(Error::Unsafe(self.listen)),
            None => Ok(()),
        }
    }
}

/// Bounds that a deployment may move.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Jobs that have not ended, of all tenants.
    pub open_jobs: usize,
    /// Jobs that have not ended, of one tenant.
    pub open_jobs_per_tenant: usize,
    /// Jobs that are there at all, ended ones included.
    pub jobs: usize,
    /// Jobs of one tenant, ended ones included.
    pub jobs_per_tenant: usize,
    /// Requests a second of one tenant at one gateway, for a while more of them.
    pub requests_per_second: usize,
    /// Partitions of a job.
    pub partitions: usize,
    /// How long a job may take from its creation to its end.
    pub job_time: Duration,
    /// Bytes of data that a job may announce.
    pub data_bytes: u64,
    /// How long planning a job may take. Workers give it longer: what was planned here must not fail there.
    pub planning: Duration,
    /// Connections of clients.
    pub connections: usize,
    /// Results, rejects and events streamed at a time.
    pub streams: usize,
    /// Whole files received at a time. As many again may wait for other tables.
    pub files: usize,
    /// Bytes of uploads in memory.
    pub upload_memory_bytes: usize,
    /// Bytes of rows at rest in memory, over all streams.
    pub row_memory_bytes: usize,
    /// How long a request waits for the broker to come back.
    pub broker_wait: Duration,
    /// How long a request waits while the broker takes no messages for lack of memory or disk.
    pub blocked_wait: Duration,
    /// How long a chunk waits for room in its job's work queue.
    pub queue_wait: Duration,
    /// How long a new job waits for a worker to be heard of.
    pub worker_wait: Duration,
    /// A client that sends or takes nothing for this long is gone.
    pub idle: Duration,
    /// The body of a chunk or a JSON document must be there within this time.
    pub body: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            open_jobs: 64,
            open_jobs_per_tenant: 16,
            jobs: 1024,
            jobs_per_tenant: 512,
            requests_per_second: 2000,
            partitions: usize::from(MAX_PARTITIONS),
            job_time: Duration::from_secs(24 * 3600),
            data_bytes: 1 << 40,
            planning: Duration::from_secs(10),
            connections: 1024,
            streams: 128,
            files: 16,
            upload_memory_bytes: 256 << 20,
            row_memory_bytes: 64 << 20,
            broker_wait: Duration::from_secs(30),
            blocked_wait: Duration::from_secs(600),
            queue_wait: Duration::from_secs(5),
            worker_wait: Duration::from_secs(2),
            idle: Duration::from_secs(60),
            body: Duration::from_secs(120),
        }
    }
}
