//! Consuming from a work queue: every message is given to one consumer, and to another if that one goes away.

use std::time::Duration;

use futures::StreamExt;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::FieldTable;

use crate::{
    connection::{Connection, Watch},
    declare::{put, text},
    error::{Error, Result},
    lapin_errors::{lost, short, while_using},
    message::{Delivery, PROBE_KIND, Properties, number_header},
    sockets::Channel,
};

/// A consumer with a channel of its own. Dropping it gives its unacknowledged messages back.
#[derive(Debug)]
pub struct Consumer {
    queue: String,
    deliveries: Deliveries,
    acker: Acker,
}

/// A subscription that the broker does not end for this long is left to the end of its channel.
const CANCEL_WITHIN: Duration = Duration::from_secs(10);

/// An exclusive queue of a process that hangs forgets its oldest messages instead of filling the broker.
const EXCLUSIVE_MAX_LENGTH: i64 = 10_000;

/// What a channel delivers. Dropping it cancels the subscription in good order: the broker's answer is waited for before
/// the channel can be closed. lapin takes an answer that comes after the close for a fault, and gives up the connection.
#[derive(Debug)]
pub(crate) struct Deliveries {
    queue: String,
    inner: Option<lapin::Consumer>,
    channel: Channel,
    health: Watch,
}

impl Deliveries {
    pub(crate) fn new(queue: &str, inner: lapin::Consumer, channel: Channel, connection: &Connection) -> Self {
        Self { queue: queue.to_owned(), inner: Some(inner), channel, health: connection.watch() }
    }

    /// The next one. Whoever waits here hears of a connection that somebody has given up, though it may still deliver.
    pub(crate) async fn next(&mut self) -> Result<lapin::message::Delivery> {
        let over = || Error::Lost(format!("the broker delivers no more from '{}'", self.queue));
        let inner = self.inner.as_mut().ok_or_else(over)?;
        tokio::select! {
            biased;
            error = self.health.closed() => Err(error),
            delivery = inner.next() => delivery.ok_or_else(over)?.map_err(|error| lost(&error)),
        }
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        let (Some(inner), Ok(runtime)) = (self.inner.take(), tokio::runtime::Handle::try_current()) else { return };
        let channel = self.channel.clone();
        runtime.spawn(async move {
            let cancelling = channel.basic_cancel(inner.tag(), BasicCancelOptions::default());
            // If this fails, channel or connection are gone, and the subscription with them.
            drop(tokio::time::timeout(CANCEL_WITHIN, cancelling).await);
            drop((inner, channel));
        });
    }
}

impl Consumer {
    /// Begins to consume. At most `prefetch` messages are unacknowledged at a time.
    pub async fn open(connection: &Connection, queue: &str, prefetch: u16) -> Result<Consumer> {
        Self::open_on(connection, connection.channel().await?, queue, prefetch).await
    }

    /// Creates a queue that belongs to the connection and dies with it, bound to `fanout` if that is given, and begins to
    /// consume from it.
    ///
    /// Others can see that its owner is gone by [`Publisher::probe`](crate::Publisher::probe). Everything happens on one
    /// channel, because the broker gives such a queue to the AMQP connection that made it and to no other.
    pub async fn open_exclusive(
        connection: &Connection,
        queue: &str,
        fanout: Option<&str>,
        prefetch: u16,
    ) -> Result<Consumer> {
        let name = short(queue)?;
        let channel = connection.channel().await?;
        let mut arguments = FieldTable::default();
        put(&mut arguments, "x-queue-type", text("classic"));
        put(&mut arguments, "x-max-length", EXCLUSIVE_MAX_LENGTH.into());
        let options = QueueDeclareOptions { exclusive: true, auto_delete: true, ..QueueDeclareOptions::default() };
        let declared = channel.queue_declare(name.clone(), options, arguments);
        connection.answer(queue, declared, |error| while_using(queue, error)).await?;
        if let Some(fanout) = fanout {
            let options = QueueBindOptions::default();
            let bound = channel.queue_bind(name, short(fanout)?, "".into(), options, FieldTable::default());
            connection.answer(queue, bound, |error| while_using(fanout, error)).await?;
        }
        Self::open_on(connection, channel, queue, prefetch).await
    }

    async fn open_on(connection: &Connection, channel: Channel, queue: &str, prefetch: u16) -> Result<Consumer> {
        connection.answer(queue, channel.basic_qos(prefetch.max(1), BasicQosOptions::default()), lost).await?;
        let options = BasicConsumeOptions::default();
        let deliveries = channel.basic_consume(short(queue)?, "".into(), options, FieldTable::default());
        let deliveries = connection.answer(queue, deliveries, |error| while_using(queue, error)).await?;
        let deliveries = Deliveries::new(queue, deliveries, channel.clone(), connection);
        Ok(Consumer { queue: queue.to_owned(), deliveries, acker: Acker { channel } })
    }

    /// The next message. It can be cancelled without losing one.
    ///
    /// Any error means that this consumer is over and that its unacknowledged messages go to others.
    pub async fn next(&mut self) -> Result<Delivery> {
        loop {
            let delivery = self.deliveries.next().await?;
            let properties = Properties::from_amqp(&delivery.properties);
            if delivery.data.is_empty() && properties.kind.as_deref() == Some(PROBE_KIND) {
                self.acker.ack(delivery.delivery_tag).await?;
                continue;
            }
            return Ok(Delivery {
                properties,
                redelivered: delivery.redelivered,
                delivery_count: number_header(&delivery.properties, "x-delivery-count"),
                tag: delivery.delivery_tag,
                body: delivery.data,
            });
        }
    }

    /// Tells the broker that the message is done with and can be forgotten.
    pub async fn ack(&self, tag: u64) -> Result<()> {
        self.acker.ack(tag).await
    }

    /// Gives the message back, for this or another consumer.
    pub async fn nack_requeue(&self, tag: u64) -> Result<()> {
        self.acker.nack_requeue(tag).await
    }

    /// A handle with which other tasks can acknowledge while this one waits in [`Consumer::next`].
    pub fn acker(&self) -> Acker {
        self.acker.clone()
    }

    /// The queue's name.
    pub fn queue(&self) -> &str {
        &self.queue
    }
}

/// Acknowledges messages of one [`Consumer`]. The consumer's channel stays open as long as its ackers.
#[derive(Debug, Clone)]
pub struct Acker {
    // Tags are numbers of this channel, and nothing recovers it, so a tag can never mean another message.
    channel: Channel,
}

impl Acker {
    /// Tells the broker that the message is done with and can be forgotten.
    pub async fn ack(&self, tag: u64) -> Result<()> {
        self.channel.basic_ack(tag, BasicAckOptions { multiple: false }).await.map_err(|error| lost(&error))
    }

    /// Gives the message back, for this or another consumer.
    pub async fn nack_requeue(&self, tag: u64) -> Result<()> {
        let options = BasicNackOptions { multiple: false, requeue: true };
        self.channel.basic_nack(tag, options).await.map_err(|error| lost(&error))
    }

    /// Tells the broker that all messages up to this one are done with.
    pub(crate) async fn ack_up_to(&self, tag: u64) -> Result<()> {
        self.channel.basic_ack(tag, BasicAckOptions { multiple: true }).await.map_err(|error| lost(&error))
    }

    pub(crate) fn new(channel: Channel) -> Self {
        Self { channel }
    }
}
