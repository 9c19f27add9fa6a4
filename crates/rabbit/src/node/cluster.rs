//! Several private nodes that form one cluster.

use std::{path::Path, sync::Arc};

use super::{NodeNetwork, NodeOptions, PrivateNode, files, process};
use crate::{
    error::{Error, Result},
    settings::BrokerSettings,
};

/// Private nodes that found each other. Kill and restart them one by one through [`PrivateCluster::node`].
#[derive(Debug)]
pub struct PrivateCluster {
    nodes: Vec<PrivateNode>,
}

impl PrivateCluster {
    /// Starts `size` nodes below `dir` at once and waits until all of them answer and know each other.
    pub async fn start(dir: &Path, size: usize) -> Result<PrivateCluster> {
        let name = |index: usize| format!("tenaz{}", index + 1);
        Self::start_with((0..size).map(|index| NodeOptions::new(dir.join(name(index)), name(index))).collect()).await
    }

    /// Starts nodes with these options, whose names and directories differ, as [`PrivateCluster::start`] does.
    pub async fn start_with(options: Vec<NodeOptions>) -> Result<PrivateCluster> {
        let peers: Vec<String> =
            options.iter().map(|options| format!("{}@{}", options.name, options.network.host())).collect();
        let cookie = files::new_secret();
        let mut name_servers = NameServers::default();
        let mut nodes = Vec::with_capacity(options.len());
        for options in options {
            share_cookie(&options.dir, &cookie).map_err(|error| Error::Node {
                name: options.name.clone(),
                detail: format!("cannot write to '{}' ({error}); choose another directory", options.dir.display()),
            })?;
            let epmd = name_servers.serving(&options).await?;
            nodes.push(PrivateNode::prepare(options, epmd, &peers)?);
        }
        let mut cluster = PrivateCluster { nodes };
        for node in &mut cluster.nodes {
            node.launch().await?;
        }
        for node in &mut cluster.nodes {
            node.wait_until_ready().await?;
        }
        cluster.check_size().await?;
        Ok(cluster)
    }

    /// All nodes, separated by commas.
    pub fn url(&self) -> String {
        self.nodes.iter().map(PrivateNode::url).collect::<Vec<_>>().join(",")
    }

    /// Settings with all nodes.
    pub fn settings(&self) -> BrokerSettings {
        BrokerSettings::new(self.nodes.iter().map(PrivateNode::broker_url).collect())
    }

    /// How many nodes there are, running or not.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// One of the nodes, counted from 0.
    pub fn node(&mut self, index: usize) -> Option<&mut PrivateNode> {
        self.nodes.get_mut(index)
    }

    /// Nodes that start at the same moment could form two clusters; better to know now.
    async fn check_size(&self) -> Result<()> {
        let Some(first) = self.nodes.first() else { return Ok(()) };
        let running = first.ctl(&["eval", "length(rabbit_nodes:all_running())."]).await?;
        if running.trim() == self.nodes.len().to_string() {
            return Ok(());
        }
        Err(first.failed(&format!("{} of {} nodes found each other; start again", running.trim(), self.nodes.len())))
    }
}

/// The name servers of a cluster, one in each network.
#[derive(Default)]
struct NameServers {
    running: Vec<(NodeNetwork, Arc<process::Epmd>)>,
}

impl NameServers {
    async fn serving(&mut self, options: &NodeOptions) -> Result<Arc<process::Epmd>> {
        if let Some((_, epmd)) = self.running.iter().find(|(network, _)| *network == options.network) {
            return Ok(Arc::clone(epmd));
        }
        let port = self.running.first().map(|(_, epmd)| epmd.port());
        let epmd = Arc::new(process::Epmd::start(options, port).await?);
        self.running.push((options.network.clone(), Arc::clone(&epmd)));
        Ok(epmd)
    }
}

fn share_cookie(dir: &Path, cookie: &str) -> std::io::Result<()> {
    let home = dir.join("home");
    std::fs::create_dir_all(&home)?;
    let path = home.join(".erlang.cookie");
    if path.exists() {
        std::fs::remove_file(&path)?;
    }
    files::write_cookie(&path, cookie)
}
