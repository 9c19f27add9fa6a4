//! A private RabbitMQ node for as long as standard input is open: for benchmarks and for trying things out.
//!
//! ```text
//! cargo run -p tenaz-rabbit --example private_node -- DIR
//! ```
//!
//! Prints the node's URL when it is ready, and ends the node when standard input ends.
#![allow(clippy::print_stdout)]

use std::io::Read;

use tenaz_rabbit::node::{NodeOptions, PrivateNode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: private_node DIR")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut node = runtime.block_on(PrivateNode::start(NodeOptions::new(dir, "private")))?;
    println!("{}", node.url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    runtime.block_on(node.stop())?;
    Ok(())
}
