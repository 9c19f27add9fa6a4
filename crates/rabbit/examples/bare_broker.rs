//! How fast the bare broker is: bodies through one quorum queue, published with confirms, consumed and acknowledged.
//!
//! ```text
//! cargo run --release -p tenaz-rabbit --example bare_broker -- amqp://guest:guest@127.0.0.1:5672 [MESSAGES [BYTES]]
//! ```
//!
//! Without a URL (or with `private`) it starts a private node. The last line is JSON, for the benchmark.
#![allow(clippy::print_stdout)]

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use tenaz_rabbit::{
    BrokerSettings, Connection, Consumer, Properties, Publisher, QueueSpec, Result, Target,
    node::{NodeOptions, PrivateNode},
};

const QUEUE: &str = "tenaz.bare-broker";
const PREFETCH: u16 = 8;
const PUBLISHING_TASKS: u64 = 32;

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "private".to_owned());
    let messages: u64 = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let bytes: usize = arguments.next().map_or(Ok(1 << 20), |text| text.parse())?;
    let mut private = None;
    let settings: BrokerSettings = if url == "private" {
        let dir = std::env::temp_dir().join(format!("tenaz-bare-broker-{}", std::process::id()));
        let node = private.insert((PrivateNode::start(NodeOptions::new(&dir, "bare")).await?, dir));
        node.0.settings()
    } else {
        url.parse()?
    };
    let seconds = measure(&settings, messages, bytes).await?;
    let megabytes = messages as f64 * bytes as f64 / 1e6;
    println!("{messages} messages of {bytes} bytes in {seconds:.2} s: {:.0} MB/s", megabytes / seconds);
    println!(
        r#"{{"messages":{messages},"message_bytes":{bytes},"seconds":{seconds:.3},"mb_per_second":{:.1}}}"#,
        megabytes / seconds
    );
    if let Some((node, dir)) = private {
        drop(node);
        std::fs::remove_dir_all(dir)?;
    }
    Ok(())
}

/// Publishes and consumes at the same time, on two connections, and returns the seconds until the last ack.
async fn measure(settings: &BrokerSettings, messages: u64, bytes: usize) -> Result<f64> {
    let sending = Connection::open(settings, "bare broker, publishing").await?;
    let receiving = Connection::open(settings, "bare broker, consuming").await?;
    sending.delete_queue(QUEUE).await?;
    sending.declare_queue(&QueueSpec::new(QUEUE)).await?;
    let publisher = Publisher::open(&sending).await?;
    let mut consumer = Consumer::open(&receiving, QUEUE, PREFETCH).await?;
    let body = noise(bytes);
    let started = Instant::now();
    let next = AtomicU64::new(0);
    let publish = async || {
        while next.fetch_add(1, Ordering::Relaxed) < messages {
            publisher.publish(Target::Queue(QUEUE), body.clone(), &Properties::default()).await?;
        }
        Ok(())
    };
    let consume = async {
        for _ in 0..messages {
            let delivery = consumer.next().await?;
            consumer.ack(delivery.tag).await?;
        }
        Ok(())
    };
    let publishing = futures::future::try_join_all((0..PUBLISHING_TASKS).map(|_| publish()));
    futures::future::try_join(publishing, consume).await?;
    let seconds = started.elapsed().as_secs_f64();
    sending.delete_queue(QUEUE).await?;
    Ok(seconds)
}

/// Bytes that do not compress (xorshift).
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}
