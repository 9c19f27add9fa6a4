//! Free ports on the loopback interface.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::Duration,
};

use crate::error::{Error, Result};

/// The ports of one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) amqp: u16,
    /// For other nodes and rabbitmqctl.
    pub(super) dist: u16,
}

impl Ports {
    pub(super) fn free(node: &str) -> Result<Ports> {
        // Both are held until both are known, so that they differ.
        let (amqp, dist) = (bind(node)?, bind(node)?);
        Ok(Ports { amqp: number(&amqp, node)?, dist: number(&dist, node)? })
    }
}

/// A port that was free a moment ago.
pub(super) fn free_port(node: &str) -> Result<u16> {
    number(&bind(node)?, node)
}

/// Whether someone accepts connections there.
pub(super) async fn is_open(address: Ipv4Addr, port: u16) -> bool {
    let address = SocketAddr::from((address, port));
    let connect = tokio::net::TcpStream::connect(address);
    matches!(tokio::time::timeout(Duration::from_secs(1), connect).await, Ok(Ok(_)))
}

fn bind(node: &str) -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| no_port(node, &error))
}

fn number(listener: &TcpListener, node: &str) -> Result<u16> {
    listener.local_addr().map(|address| address.port()).map_err(|error| no_port(node, &error))
}

fn no_port(node: &str, error: &std::io::Error) -> Error {
    Error::Node { name: node.to_owned(), detail: format!("no free port on 127.0.0.1 ({error}); close some programs") }
}
