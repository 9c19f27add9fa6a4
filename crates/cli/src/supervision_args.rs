//! The command line of clusters: up, status, down, chaos, and the processes that watch over one.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tenaz_core::ProcessRole;

use crate::args::threads;
use crate::cluster_args::{HttpArgs, LogArgs, VitalsArgs, duration};
use crate::transport_args::TransportArgs;

/// Which cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// The cluster's directory [default: .tenaz].
    #[arg(long, value_name = "DIR", env = "TENAZ_CLUSTER")]
    pub(crate) cluster: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz up\n  tenaz up --workers 4 --gateways 2\n  tenaz up --broker amqp://user:password@localhost:5672\n  tenaz up --detach && tenaz status && tenaz down\n  tenaz up --config cluster.toml --machine a\n\nWithout --broker it runs a private RabbitMQ node of its own, found on this machine, next to whatever else runs here.\nA cluster that was here before comes back as its cluster.toml says, with what the options change; the rest stays as it was.\nCtrl-C stops everything in order. Whatever dies meanwhile is started again."
)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) described: DescriptionArgs,
    /// Start what this file describes, instead of what the options say.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workers", "gateways", "supervisors", "broker", "prefix", "port", "threads"])]
    pub(crate) config: Option<PathBuf>,
    /// Which machine of that file this is [default: the only one].
    #[arg(long, value_name = "NAME", requires = "config")]
    pub(crate) machine: Option<String>,
    /// Come back when everything is ready, and leave it running.
    #[arg(long)]
    pub(crate) detach: bool,
}

/// What a cluster is to be. The defaults are those of a new one; of one that was here before, what is not mentioned stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct DescriptionArgs {
    /// How many workers [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=512))]
    pub(crate) workers: Option<u16>,
    /// How many gateways [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub(crate) gateways: Option<u16>,
    /// How many supervisors, an odd number [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9))]
    pub(crate) supervisors: Option<u16>,
    /// Use this broker instead of running one: amqp://user:password@host:5672/vhost.
    #[arg(long, value_name = "URL[,URL]", env = "TENAZ_BROKER")]
    pub(crate) broker: Option<String>,
    /// What all names on the broker begin with [default: tenaz].
    #[arg(long, value_name = "NAME", env = "TENAZ_PREFIX")]
    pub(crate) prefix: Option<String>,
    /// Where the first gateway listens, on this machine; the others take the next free ports [default: 7400].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Working threads of each worker [default: one per core].
    #[arg(long, value_name = "N", env = "TENAZ_THREADS", value_parser = threads)]
    pub(crate) threads: Option<usize>,
}

impl DescriptionArgs {
    /// Whether an option says anything about what the cluster is to be.
    pub(crate) fn mentions_anything(&self) -> bool {
        *self != Self::default()
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz status\n  tenaz status --cluster /srv/tenaz\n  tenaz status --format json\n\nExit codes: 0 everything is up, 1 something is not, 75 nobody answers."
)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = StatusFormat::Table)]
    pub(crate) format: StatusFormat,
    /// The token that the gateways ask for, to see the jobs.
    #[arg(long, value_name = "TOKEN", env = "TENAZ_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// A file with the token in its first line, instead of --token.
    #[arg(long, value_name = "FILE", env = "TENAZ_TOKEN_FILE", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusFormat {
    /// For people.
    Table,
    /// For programs.
    Json,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz down\n  tenaz down --cluster /srv/tenaz --discard-jobs\n\nLeaves no process and no port. Jobs and results stay on the broker for the next `tenaz up`, unless --discard-jobs says\notherwise. Logs and events stay in the directory."
)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Throw jobs and their results away, finished or not: no queue stays on the broker.
    #[arg(long)]
    pub(crate) discard_jobs: bool,
    /// What happens anyway; scripts of earlier versions say it.
    #[arg(long, hide = true, conflicts_with = "discard_jobs")]
    pub(crate) keep: bool,
    /// How long processes may finish what they have begun.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    pub(crate) drain: Duration,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz chaos --every 1s --roles worker,gateway,supervisor,broker --seed 7 --for 60s\n  tenaz chaos --roles worker --actions kill --for 10s > what-it-did.ndjson\n\nKills, pauses and restarts processes of this cluster, and of no other. The same seed gives the same schedule. What it did\ngoes to standard output, one JSON object a line."
)]
pub(crate) struct ChaosArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// How often it strikes, on average.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2s")]
    pub(crate) every: Duration,
    /// Whom it may strike: worker, gateway, supervisor, broker.
    #[arg(long, value_name = "ROLES", value_delimiter = ',', default_value = "worker,gateway,supervisor")]
    pub(crate) roles: Vec<ProcessRole>,
    /// What it may do: kill (SIGKILL), pause (SIGSTOP, later SIGCONT), restart (SIGTERM).
    #[arg(long, value_enum, value_name = "ACTIONS", value_delimiter = ',', default_value = "kill,pause,restart")]
    pub(crate) actions: Vec<ChaosAction>,
    /// Another seed gives another schedule.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How long.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub(crate) duration: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChaosAction {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT a while later.
    Pause,
    /// SIGTERM.
    Restart,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tenaz supervisor --cluster /srv/tenaz --id 1\n  tenaz supervisor --cluster /srv/tenaz --id 1 --check\n\nOne of those that cluster.toml in the directory names. `tenaz up` starts them; under systemd or Docker start one each.\nWorkers and gateways go on without any supervisor; whatever dies then stays dead."
)]
pub(crate) struct SupervisorArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Which of the supervisors in cluster.toml this is.
    #[arg(long, value_name = "N", env = "TENAZ_SUPERVISOR_ID")]
    pub(crate) id: u16,
    /// Only check cluster.toml and the key.
    #[arg(long)]
    pub(crate) check: bool,
    /// Which of its lives this is [default: one more than the last].
    #[arg(long, value_name = "NUMBER", env = "TENAZ_INCARNATION", hide = true)]
    pub(crate) incarnation: Option<u64>,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// A private RabbitMQ node as a process that supervisors can watch.
#[derive(Debug, Args)]
pub(crate) struct BrokerNodeArgs {
    /// Where it keeps its data.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Its AMQP port, on 127.0.0.1.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: u16,
    /// Who may log in, as user:password; everybody as guest if nobody is named.
    #[arg(long, value_name = "USERS", env = "TENAZ_BROKER_USERS", hide_env_values = true, value_delimiter = ',')]
    pub(crate) users: Vec<String>,
    /// What the names begin with that those users may use.
    #[arg(long, value_name = "NAME", default_value = "tenaz")]
    pub(crate) prefix: String,
    #[command(flatten)]
    pub(crate) vitals: VitalsArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  tenaz probe http://127.0.0.1:9090/readyz\n\nFor health checks in containers that have no curl. Exit codes: 0 the answer is a success, 1 it is not."
)]
pub(crate) struct ProbeArgs {
    /// What to ask for: http://HOST:PORT/PATH.
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// How long to wait for the answer.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2s")]
    pub(crate) timeout: Duration,
}
