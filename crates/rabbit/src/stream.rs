//! Reading a stream: a log in which reading removes nothing.

use std::time::Duration;

use lapin::{
    options::{BasicConsumeOptions, BasicQosOptions},
    types::{AMQPValue, FieldTable},
};
use tenaz_core::StreamSilence;
use tokio::time::Instant;

use crate::{
    connection::Connection,
    consumer::{Acker, Deliveries},
    error::{Error, Result},
    lapin_errors::{lost, short, while_using},
    message::{Properties, StreamMessage, number_header},
};

/// How many messages the broker may send ahead. 32 of 1 MiB are enough for full speed and a bounded amount of memory.
const DEFAULT_PREFETCH: u16 = 32;

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offset {
    /// The oldest message that is still there.
    First,
    /// The message at this offset, or the first after it: pass the last offset seen plus one.
    Next(u64),
    /// Only what is published from now on.
    New,
}

/// Reads one stream from an offset on, and waits at its end for more.
///
/// Silence may mean that there is nothing new, or that the broker has forgotten to wake this subscription: (m) in version
/// 3.10.8 a replica that has just followed another leader wakes those who wait for it in the order in which they came, last
/// first, and nobody behind one who waits for a later message. So who has heard nothing for a while subscribes again, which
/// puts them first. [`StreamSilence`] says when.
#[derive(Debug)]
pub struct StreamReader {
    connection: Connection,
    stream: String,
    prefetch: u16,
    /// Where a subscription begins now; `None` for one that wants only what is new, before anything was.
    from: Option<u64>,
    subscription: Subscription,
    /// When the times of `silence` begin.
    began: Instant,
    silence: StreamSilence,
}

/// A consumer of a stream, on a channel of its own.
#[derive(Debug)]
struct Subscription {
    deliveries: Deliveries,
    acker: Acker,
    /// Messages taken and not yet acknowledged; acknowledging is what makes the broker send more.
    taken: u16,
    last_tag: u64,
}

impl StreamReader {
    /// Begins to read.
    pub async fn open(connection: &Connection, stream: &str, from: Offset) -> Result<StreamReader> {
        Self::open_with(connection, stream, from, DEFAULT_PREFETCH).await
    }

    /// Begins to read with at most `prefetch` messages sent ahead.
    pub async fn open_with(connection: &Connection, stream: &str, from: Offset, prefetch: u16) -> Result<StreamReader> {
        let prefetch = prefetch.max(1);
        Ok(StreamReader {
            subscription: Subscription::open(connection, stream, from, prefetch).await?,
            connection: connection.clone(),
            stream: stream.to_owned(),
            prefetch,
            from: match from {
                Offset::First => Some(0),
                Offset::Next(offset) => Some(offset),
                Offset::New => None,
            },
            began: Instant::now(),
            silence: StreamSilence::new(0),
        })
    }

    /// The next message, in order of offsets. It can be cancelled without losing one.
    ///
    /// Any error means that this reader is over: open another at [`Offset::Next`].
    pub async fn next(&mut self) -> Result<StreamMessage> {
        loop {
            if self.subscription.taken >= (self.prefetch / 4).max(1) {
                // First, because this call may be cancelled while it waits.
                self.subscription.taken = 0;
                self.subscription.acker.ack_up_to(self.subscription.last_tag).await?;
            }
            let due = self.began + Duration::from_millis(self.silence.due_ms());
            let delivery = match tokio::time::timeout_at(due, self.subscription.deliveries.next()).await {
                Ok(delivery) => delivery?,
                Err(_) => {
                    self.subscribe_again().await?;
                    continue;
                }
            };
            self.silence.heard(self.now_ms());
            self.subscription.taken += 1;
            self.subscription.last_tag = delivery.delivery_tag;
            let offset = number_header(&delivery.properties, "x-stream-offset").ok_or_else(|| Error::Unsupported {
                name: self.stream.clone(),
                detail: "its messages have no offset, so it is not a stream".to_owned(),
            })?;
            // The broker begins at the start of the chunk that holds the offset.
            if self.from.is_none_or(|from| offset >= from) {
                self.from = Some(offset + 1);
                let properties = Properties::from_amqp(&delivery.properties);
                return Ok(StreamMessage { offset, body: delivery.data, properties });
            }
        }
    }

    async fn subscribe_again(&mut self) -> Result<()> {
        if let Some(from) = self.from {
            tracing::trace!(
                stream = self.stream,
                from,
                "silent for {} ms: subscribing again",
                self.silence.allowed_ms()
            );
            // A message that is on its way to the old subscription comes again.
            self.subscription =
                Subscription::open(&self.connection, &self.stream, Offset::Next(from), self.prefetch).await?;
        }
        self.silence.subscribed_again(self.now_ms());
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The stream's name.
    pub fn stream(&self) -> &str {
        &self.stream
    }
}

impl Subscription {
    async fn open(connection: &Connection, stream: &str, from: Offset, prefetch: u16) -> Result<Self> {
        let name = short(stream)?;
        let channel = connection.channel().await?;
        connection.answer(stream, channel.basic_qos(prefetch, BasicQosOptions::default()), lost).await?;
        let mut arguments = FieldTable::default();
        arguments.insert("x-stream-offset".into(), offset_argument(from));
        let deliveries = channel.basic_consume(name, "".into(), BasicConsumeOptions::default(), arguments);
        let deliveries = connection.answer(stream, deliveries, |error| while_using(stream, error)).await?;
        let deliveries = Deliveries::new(stream, deliveries, channel.clone(), connection);
        Ok(Self { deliveries, acker: Acker::new(channel), taken: 0, last_tag: 0 })
    }
}

fn offset_argument(from: Offset) -> AMQPValue {
    match from {
        Offset::First => AMQPValue::LongString("first".into()),
        Offset::New => AMQPValue::LongString("next".into()),
        // An offset above the largest that AMQP can say does not exist, and never will.
        Offset::Next(offset) => AMQPValue::LongLongInt(i64::try_from(offset).unwrap_or(i64::MAX)),
    }
}
