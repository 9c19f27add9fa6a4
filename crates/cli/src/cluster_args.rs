//! The command line of the cluster's processes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tenaz_core::ProcessName;
use tenaz_vitals::ClusterId;
use tenaz_words::parse_span;

use crate::args::{size, threads};

/// How to reach the broker: the same for every process of a cluster.
#[derive(Debug, Args)]
pub(crate) struct BrokerArgs {
    /// Where RabbitMQ is: amqp://user:password@host:5672/vhost, or amqps://. Several nodes of one cluster with commas.
    #[arg(long, value_name = "URL[,URL]", env = "TENAZ_BROKER")]
    pub(crate) broker: String,
    /// A file with user:password in its first line, instead of those in the URL.
    #[arg(long, value_name = "FILE", env = "TENAZ_CREDENTIALS_FILE")]
    pub(crate) credentials_file: Option<PathBuf>,
    /// Certificates (PEM) to trust for amqps://, besides those of the system.
    #[arg(long, value_name = "FILE", env = "TENAZ_CA_FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// What all names on the broker begin with: deployments with different prefixes can share a broker.
    #[arg(long, value_name = "NAME", env = "TENAZ_PREFIX", default_value = "tenaz")]
    pub(crate) prefix: String,
    /// How long an unfinished upload may stay without a sign of its client, such as 90s or 10m.
    #[arg(long, value_name = "TIME", env = "TENAZ_EXPIRE", value_parser = duration, default_value = "10m")]
    pub(crate) expire: Duration,
    /// How long results stay without a sign of their client.
    #[arg(long, value_name = "TIME", env = "TENAZ_KEEP", value_parser = duration, default_value = "10m")]
    pub(crate) keep: Duration,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// How to log: the same for every process of a cluster.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// What is logged: error, warn, info, debug, or a filter such as tenaz_runtime=debug.
    #[arg(long, value_name = "LEVEL", env = "TENAZ_LOG", default_value = "info")]
    pub(crate) log: String,
    /// How it is logged, on standard error.
    #[arg(long, value_enum, env = "TENAZ_LOG_FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// How supervisors know the process: the same for every process of a cluster.
#[derive(Debug, Args)]
pub(crate) struct VitalsArgs {
    /// Its name in the cluster, such as worker-1 [default: made of its role, machine and process id].
    #[arg(long, value_name = "NAME", env = "TENAZ_NAME")]
    pub(crate) name: Option<ProcessName>,
    /// Supervisors to send heartbeats to.
    #[arg(long, value_name = "HOST:PORT,…", env = "TENAZ_SUPERVISORS", value_delimiter = ',')]
    pub(crate) supervisors: Vec<String>,
    /// The cluster's key, which seals heartbeats: a file with 64 hexadecimal digits that only its owner can read.
    #[arg(long, value_name = "FILE", env = "TENAZ_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Which of its lives this is [default: the time].
    #[arg(long, value_name = "NUMBER", env = "TENAZ_INCARNATION", hide = true)]
    pub(crate) incarnation: Option<u64>,
    /// The cluster's id [default: made of its key].
    #[arg(long, value_name = "ID", env = "TENAZ_CLUSTER_ID", hide = true)]
    pub(crate) cluster_id: Option<ClusterId>,
    /// How often heartbeats are sent.
    #[arg(long, value_name = "TIME", env = "TENAZ_HEARTBEAT_EVERY", value_parser = duration, default_value = "500ms", hide = true)]
    pub(crate) heartbeat_every: Duration,
}

/// Where a process that serves nothing else answers questions about itself.
#[derive(Debug, Args)]
pub(crate) struct HttpArgs {
    /// Where to serve /healthz, /readyz and /metrics; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", env = "TENAZ_HTTP")]
    pub(crate) http: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs: one JSON object a line.
    Json,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz worker --broker amqp://localhost\n  tenaz worker --broker amqp://a,amqp://b,amqp://c --threads 8 --memory 2G\n\nWorkers are interchangeable: start as many as you like, on any machine, and kill any of them at any time.\nSIGTERM lets a worker finish the chunks it has begun."
)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) broker: BrokerArgs,
    #[command(flatten)]
    pub(crate) vitals: VitalsArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    /// Working threads [default: one per core].
    #[arg(long, value_name = "N", env = "TENAZ_THREADS", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Memory for rows at rest; what does not fit goes to temporary files. Bytes, or with K, M, G.
    #[arg(long, value_name = "SIZE", env = "TENAZ_MEMORY", value_parser = size, default_value = "256M")]
    pub(crate) memory: usize,
    /// Disk for temporary files, over all jobs. A worker that has used it up gives the work that needs more back.
    #[arg(long, value_name = "SIZE", env = "TENAZ_SPOOL_LIMIT", value_parser = size, default_value = "64G")]
    pub(crate) spool_limit: usize,
    /// How long a worker that was told to stop may finish what it has begun.
    #[arg(long, value_name = "TIME", env = "TENAZ_DRAIN", value_parser = duration, default_value = "20s")]
    pub(crate) drain: Duration,
    /// What goes wrong on purpose, for tests.
    #[arg(long, value_name = "FAULTS", hide = true, default_value = "")]
    pub(crate) faults: tenaz_runtime::cluster::Faults,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz gateway --broker amqp://localhost\n  tenaz gateway --broker amqp://localhost --listen 0.0.0.0:8080 --tokens tokens.txt\n\nGateways keep nothing: start several, and give clients all their URLs.\nThe tokens file has one tenant:hash per line; `printf %s TOKEN | sha256sum` makes the hash."
)]
pub(crate) struct GatewayArgs {
    #[command(flatten)]
    pub(crate) broker: BrokerArgs,
    #[command(flatten)]
    pub(crate) vitals: VitalsArgs,
    /// Where to listen; port 0 takes a free one. An address that other machines can reach needs --tokens.
    #[arg(long, value_name = "ADDRESS", env = "TENAZ_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Who may use it: a file with one tenant:sha256-of-token per line.
    #[arg(long, value_name = "FILE", env = "TENAZ_TOKENS")]
    pub(crate) tokens: Option<PathBuf>,
    /// The certificate for HTTPS, in PEM, with those between it and its authority. It is read again when it changes.
    #[arg(long, value_name = "FILE", env = "TENAZ_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", env = "TENAZ_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    /// A limit, such as job-time=2h or open-jobs-per-tenant=4; may be given several times. GET /v1/limits shows all.
    #[arg(long, value_name = "NAME=VALUE", env = "TENAZ_LIMITS", value_delimiter = ',')]
    pub(crate) limit: Vec<String>,
    /// The URL under which clients reach it, if that is not its address.
    #[arg(long, value_name = "URL", env = "TENAZ_URL")]
    pub(crate) url: Option<String>,
    /// How long a gateway that was told to stop may finish its requests.
    #[arg(long, value_name = "TIME", env = "TENAZ_DRAIN", value_parser = duration, default_value = "20s")]
    pub(crate) drain: Duration,
}

/// A time such as `500ms`, `90s`, `10m`, `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let found = parse_span(text).filter(|time| !time.is_zero());
    found.ok_or_else(|| "write a time such as 500ms, 90s, 10m or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["90", "s", "-1s", "0s", "1d", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
