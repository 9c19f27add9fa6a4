//! Reading a stream: a log in which reading removes nothing.

use lapin::{
    options::{BasicConsumeOptions, BasicQosOptions},
    types::{AMQPValue, FieldTable},
};

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
#[derive(Debug)]
pub struct StreamReader {
    stream: String,
    deliveries: Deliveries,
    acker: Acker,
    from: u64,
    /// Messages taken and not yet acknowledged; acknowledging is what makes the broker send more.
    taken: u16,
    last_tag: u64,
    ack_every: u16,
}

impl StreamReader {
    /// Begins to read.
    pub async fn open(connection: &Connection, stream: &str, from: Offset) -> Result<StreamReader> {
        Self::open_with(connection, stream, from, DEFAULT_PREFETCH).await
    }

    /// Begins to read with at most `prefetch` messages sent ahead.
    pub async fn open_with(connection: &Connection, stream: &str, from: Offset, prefetch: u16) -> Result<StreamReader> {
        let prefetch = prefetch.max(1);
        let name = short(stream)?;
        let channel = connection.channel().await?;
        connection.answer(stream, channel.basic_qos(prefetch, BasicQosOptions::default()), lost).await?;
        let mut arguments = FieldTable::default();
        arguments.insert("x-stream-offset".into(), offset_argument(from));
        let deliveries = channel.basic_consume(name, "".into(), BasicConsumeOptions::default(), arguments);
        let deliveries = connection.answer(stream, deliveries, |error| while_using(stream, error)).await?;
        Ok(StreamReader {
            stream: stream.to_owned(),
            deliveries: Deliveries::new(deliveries, channel.clone()),
            acker: Acker::new(channel),
            from: if let Offset::Next(offset) = from { offset } else { 0 },
            taken: 0,
            last_tag: 0,
            ack_every: (prefetch / 4).max(1),
        })
    }

    /// The next message, in order of offsets. It can be cancelled without losing one.
    ///
    /// Any error means that this reader is over: open another at [`Offset::Next`].
    pub async fn next(&mut self) -> Result<StreamMessage> {
        loop {
            if self.taken >= self.ack_every {
                // First, because this call may be cancelled while it waits.
                self.taken = 0;
                self.acker.ack_up_to(self.last_tag).await?;
            }
            let delivery = match self.deliveries.next().await {
                Some(Ok(delivery)) => delivery,
                Some(Err(error)) => return Err(lost(&error)),
                None => return Err(Error::Lost(format!("the broker delivers no more from '{}'", self.stream))),
            };
            self.taken += 1;
            self.last_tag = delivery.delivery_tag;
            let offset = number_header(&delivery.properties, "x-stream-offset").ok_or_else(|| Error::Unsupported {
                name: self.stream.clone(),
                detail: "its messages have no offset, so it is not a stream".to_owned(),
            })?;
            // The broker begins at the start of the chunk that holds the offset.
            if offset >= self.from {
                let properties = Properties::from_amqp(&delivery.properties);
                return Ok(StreamMessage { offset, body: delivery.data, properties });
            }
        }
    }

    /// The stream's name.
    pub fn stream(&self) -> &str {
        &self.stream
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
