//! The network in which a node listens.

use std::{net::Ipv4Addr, path::Path, process::Command};

/// Where a node listens: its broker, Erlang's distribution and its name server. Usually the loopback interface.
///
/// Tests cut nodes off from each other: such a node runs in a network namespace of its own, at an address that the others reach
/// over a link which the test can take down. `guest` may log in from elsewhere only with `loopback_users = none` among the
/// node's [`extra_config`](super::NodeOptions::extra_config).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNetwork {
    /// The address on which the node listens.
    pub address: Ipv4Addr,
    /// The network namespace of the node's processes, by its name for `ip netns`; `None`: the one of this process.
    pub namespace: Option<String>,
}

impl Default for NodeNetwork {
    fn default() -> Self {
        Self { address: Ipv4Addr::LOCALHOST, namespace: None }
    }
}

impl NodeNetwork {
    /// The part of the Erlang node's name behind the `@`.
    pub(super) fn host(&self) -> String {
        match self.has_long_names() {
            false => "localhost".to_owned(),
            true => self.address.to_string(),
        }
    }

    /// Whether the name of the node's host has dots in it, which Erlang has to be told.
    pub(super) fn has_long_names(&self) -> bool {
        !self.address.is_loopback()
    }

    /// The address as an Erlang term.
    pub(super) fn erlang_address(&self) -> String {
        let [a, b, c, d] = self.address.octets();
        format!("{{{a},{b},{c},{d}}}")
    }

    /// A command that runs in the namespace. `nsenter` becomes the program, so that it is still our child.
    pub(super) fn command(&self, program: &Path) -> Command {
        let Some(namespace) = &self.namespace else { return Command::new(program) };
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{namespace}")).arg("--").arg(program);
        command
    }
}
