//! The text of a `cluster.toml`, as TOML sees it. Every value keeps its place, so that a mistake can be pointed at.

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClusterFile {
    pub(super) name: Spanned<String>,
    pub(super) prefix: Option<Spanned<String>>,
    pub(super) broker: Option<Spanned<String>>,
    pub(super) key_file: Option<Spanned<String>>,
    pub(super) broker_node: Option<Spanned<BrokerNodeEntry>>,
    #[serde(default)]
    pub(super) supervision: SupervisionEntry,
    #[serde(default)]
    pub(super) restarts: RestartsEntry,
    #[serde(default)]
    pub(super) machine: Vec<Spanned<MachineEntry>>,
    #[serde(default)]
    pub(super) supervisor: Vec<SupervisorEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BrokerNodeEntry {
    pub(super) machine: Spanned<String>,
    pub(super) port: Spanned<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SupervisionEntry {
    pub(super) heartbeat_every: Option<Spanned<String>>,
    pub(super) hang_after: Option<Spanned<String>>,
    pub(super) start_within: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RestartsEntry {
    pub(super) backoff: Option<Spanned<String>>,
    pub(super) backoff_cap: Option<Spanned<String>>,
    pub(super) healthy_after: Option<Spanned<String>>,
    pub(super) failed_starts: Option<Spanned<u32>>,
    pub(super) per_process: Option<Spanned<u32>>,
    pub(super) per_cluster: Option<Spanned<u32>>,
    pub(super) window: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct MachineEntry {
    pub(super) name: Spanned<String>,
    pub(super) address: Spanned<String>,
    pub(super) back_end: Option<Spanned<String>>,
    pub(super) workers: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) gateways: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) worker_options: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) gateway_options: Vec<Spanned<String>>,
    pub(super) docker: Option<Spanned<DockerEntry>>,
    pub(super) systemd: Option<Spanned<SystemdEntry>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DockerEntry {
    pub(super) socket: Option<Spanned<String>>,
    pub(super) label: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SystemdEntry {
    pub(super) units: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) user: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SupervisorEntry {
    pub(super) id: Spanned<u16>,
    pub(super) machine: Spanned<String>,
    pub(super) listen: Spanned<String>,
}
