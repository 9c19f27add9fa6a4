//! Creating, checking and deleting queues, streams and exchanges.
//!
//! Every operation has a channel of its own: the broker answers an impossible one by closing the channel.

use std::time::Duration;

use lapin::{
    ExchangeKind,
    options::{ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions},
    types::{AMQPValue, FieldTable},
};

use crate::{
    connection::Connection,
    error::{Error, Result},
    handshake::Version,
    lapin_errors::{short, while_using},
};

/// How often a message may be redelivered: in practice for ever.
///
/// The default of 4.x (20) drops messages silently, and "no limit" (-1) makes 3.10 drop them at the first redelivery.
pub const DELIVERY_LIMIT: i64 = 2_000_000_000;

/// From 4.3 a quorum queue keeps messages of a consumer whose *node* died for 60 s unless told otherwise.
const CONSUMER_DISCONNECTED_TIMEOUT: (&str, i64) = ("x-consumer-disconnected-timeout", 5_000);
const CONSUMER_DISCONNECTED_TIMEOUT_SINCE: Version = Version { major: 4, minor: 3 };

/// A durable quorum queue for competing consumers. A full one refuses messages ([`Error::Full`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its name, at most 255 bytes.
    pub name: String,
    /// The most messages that may wait, if bounded.
    pub max_length: Option<u32>,
    /// The most bytes that may wait, if bounded.
    pub max_length_bytes: Option<u64>,
}

impl QueueSpec {
    /// A queue without bounds.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), max_length: None, max_length_bytes: None }
    }

    fn arguments(&self, delivery_limit: i64) -> FieldTable {
        let mut table = FieldTable::default();
        put(&mut table, "x-queue-type", text("quorum"));
        put(&mut table, "x-delivery-limit", delivery_limit.into());
        put(&mut table, "x-overflow", text("reject-publish"));
        if let Some(messages) = self.max_length {
            put(&mut table, "x-max-length", i64::from(messages).into());
        }
        if let Some(bytes) = self.max_length_bytes {
            put(&mut table, "x-max-length-bytes", signed(bytes));
        }
        table
    }
}

/// A stream: a log that many can read by offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSpec {
    /// Its name, at most 255 bytes.
    pub name: String,
    /// Old segments are dropped above this size, if bounded.
    pub max_length_bytes: Option<u64>,
    /// Segments older than this are dropped, if bounded.
    pub max_age: Option<Duration>,
    /// The size of one file; space is given back in these steps. The broker's default is 500 MB.
    pub segment_bytes: Option<u64>,
}

impl StreamSpec {
    /// A stream that keeps everything.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), max_length_bytes: None, max_age: None, segment_bytes: None }
    }

    fn arguments(&self) -> FieldTable {
        let mut table = FieldTable::default();
        put(&mut table, "x-queue-type", text("stream"));
        if let Some(bytes) = self.max_length_bytes {
            put(&mut table, "x-max-length-bytes", signed(bytes));
        }
        if let Some(age) = self.max_age {
            put(&mut table, "x-max-age", text(&format!("{}s", age.as_secs().max(1))));
        }
        if let Some(bytes) = self.segment_bytes {
            put(&mut table, "x-stream-max-segment-size-bytes", signed(bytes));
        }
        table
    }
}

const DURABLE: QueueDeclareOptions =
    QueueDeclareOptions { passive: false, durable: true, exclusive: false, auto_delete: false, nowait: false };

impl Connection {
    /// Creates the queue, or checks that the existing one is the same ([`Error::Precondition`] if not).
    pub async fn declare_queue(&self, spec: &QueueSpec) -> Result<()> {
        let plain = spec.arguments(DELIVERY_LIMIT);
        if self.version() < CONSUMER_DISCONNECTED_TIMEOUT_SINCE {
            return self.declare(&spec.name, DURABLE, plain).await.map(drop);
        }
        let mut prompt = plain.clone();
        let (key, millis) = CONSUMER_DISCONNECTED_TIMEOUT;
        put(&mut prompt, key, millis.into());
        match self.declare(&spec.name, DURABLE, prompt).await {
            // Made before the broker was upgraded, or the argument is not taken after all: everything else must agree.
            Err(Error::Precondition { .. }) => self.declare(&spec.name, DURABLE, plain).await.map(drop),
            done => done.map(drop),
        }
    }

    /// Creates the stream, or checks that the existing one is the same ([`Error::Precondition`] if not).
    pub async fn declare_stream(&self, spec: &StreamSpec) -> Result<()> {
        self.declare(&spec.name, DURABLE, spec.arguments()).await.map(drop)
    }

    /// Creates a fanout exchange that survives restarts of the broker.
    pub async fn declare_fanout(&self, name: &str) -> Result<()> {
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let channel = self.channel().await?;
        let declared = channel.exchange_declare(short(name)?, ExchangeKind::Fanout, options, FieldTable::default());
        self.answer(name, declared, |error| while_using(name, error)).await
    }

    /// Deletes a queue or stream with everything in it. It is fine if there is none.
    pub async fn delete_queue(&self, name: &str) -> Result<()> {
        let channel = self.channel().await?;
        let deleted = channel.queue_delete(short(name)?, QueueDeleteOptions::default());
        fine_if_missing(self.answer(name, deleted, |error| while_using(name, error)).await.map(drop))
    }

    /// Deletes an exchange. It is fine if there is none.
    pub async fn delete_exchange(&self, name: &str) -> Result<()> {
        let channel = self.channel().await?;
        let deleted = channel.exchange_delete(short(name)?, ExchangeDeleteOptions::default());
        fine_if_missing(self.answer(name, deleted, |error| while_using(name, error)).await)
    }

    /// How many messages wait (not counting those at consumers), or `None` if there is no such queue.
    pub async fn queue_depth(&self, name: &str) -> Result<Option<u32>> {
        let options = QueueDeclareOptions { passive: true, ..DURABLE };
        match self.declare(name, options, FieldTable::default()).await {
            Ok(messages) => Ok(Some(messages)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Proves that the queue has our delivery limit, by asking for another one: the broker refuses, and its refusal
    /// names the limit that the queue really has.
    pub async fn check_delivery_limit(&self, spec: &QueueSpec) -> Result<()> {
        let wrong = |detail: &str| Error::DeliveryLimit { name: spec.name.clone(), detail: detail.to_owned() };
        if self.queue_depth(&spec.name).await?.is_none() {
            return Err(Error::NotFound { name: spec.name.clone() });
        }
        match self.declare(&spec.name, DURABLE, spec.arguments(DELIVERY_LIMIT - 1)).await {
            Ok(_) => Err(wrong("accepts any delivery limit without a check")),
            Err(Error::Precondition { detail, .. }) => match current_limit(&detail) {
                Some(limit) if limit == DELIVERY_LIMIT.to_string() => Ok(()),
                Some(limit) => Err(wrong(&format!("has the delivery limit '{limit}' instead of {DELIVERY_LIMIT}"))),
                None => Err(Error::Precondition { name: spec.name.clone(), detail }),
            },
            Err(error) => Err(error),
        }
    }

    async fn declare(&self, name: &str, options: QueueDeclareOptions, arguments: FieldTable) -> Result<u32> {
        let channel = self.channel().await?;
        let declared = channel.queue_declare(short(name)?, options, arguments);
        let queue = self.answer(name, declared, |error| while_using(name, error)).await?;
        Ok(queue.message_count())
    }
}

fn fine_if_missing(deleted: Result<()>) -> Result<()> {
    match deleted {
        Err(Error::NotFound { .. }) => Ok(()),
        outcome => outcome,
    }
}

/// Reads `inequivalent arg 'x-delivery-limit' for queue …: received '1999999999' but current is '2000000000'`, or
/// `… but current is none`.
fn current_limit(refusal: &str) -> Option<&str> {
    let (_, rest) = refusal.split_once("'x-delivery-limit'")?;
    let (_, current) = rest.rsplit_once("current is ")?;
    // 3.10 adds the type: "the value '20' of type 'signedint'".
    let current = current.trim_start_matches("the value ");
    Some(current.split('\'').nth(1).unwrap_or(current))
}

pub(crate) fn put(table: &mut FieldTable, key: &str, value: AMQPValue) {
    table.insert(key.into(), value);
}

pub(crate) fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// RabbitMQ knows no unsigned 64 bit integers.
fn signed(value: u64) -> AMQPValue {
    i64::try_from(value).unwrap_or(i64::MAX).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read_from_the_refusal() {
        let refusal = |current: &str| {
            format!(
                "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'q' in vhost '/': received '7' but current is {current}"
            )
        };
        assert_eq!(current_limit(&refusal("'2000000000'")), Some("2000000000"));
        assert_eq!(current_limit(&refusal("the value '20' of type 'long'")), Some("20"));
        assert_eq!(current_limit(&refusal("none")), Some("none"));
        assert_eq!(current_limit("inequivalent arg 'x-max-length': current is '3'"), None);
    }
}
