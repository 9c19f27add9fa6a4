//! Messages as they go out and come in.

use std::collections::BTreeMap;

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};

use crate::{error::Result, lapin_errors::short};

/// The kind of the messages that [`Publisher::probe`](crate::Publisher::probe) sends; consumers drop them unseen.
pub(crate) const PROBE_KIND: &str = "tenaz.probe";

/// What travels besides the body. Keep it small.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    /// The caller's id of the message (AMQP `message-id`), at most 255 bytes.
    pub message_id: Option<String>,
    /// What is in the body (AMQP `type`), at most 255 bytes.
    pub kind: Option<String>,
    /// Anything else.
    pub headers: BTreeMap<String, String>,
}

impl Properties {
    /// Properties with a kind only.
    pub fn of_kind(kind: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), ..Self::default() }
    }

    /// The same with a message id.
    pub fn with_id(mut self, message_id: impl Into<String>) -> Self {
        self.message_id = Some(message_id.into());
        self
    }

    pub(crate) fn to_amqp(&self) -> Result<BasicProperties> {
        let mut amqp = BasicProperties::default();
        if let Some(id) = &self.message_id {
            amqp = amqp.with_message_id(short(id)?);
        }
        if let Some(kind) = &self.kind {
            amqp = amqp.with_type(short(kind)?);
        }
        if !self.headers.is_empty() {
            let mut table = FieldTable::default();
            for (key, value) in &self.headers {
                table.insert(short(key)?, AMQPValue::LongString(value.as_str().into()));
            }
            amqp = amqp.with_headers(table);
        }
        Ok(amqp)
    }

    pub(crate) fn from_amqp(amqp: &BasicProperties) -> Self {
        let headers = amqp.headers().iter().flat_map(|table| table.inner()).filter_map(|(key, value)| match value {
            AMQPValue::LongString(value) => Some((key.to_string(), value.to_string())),
            _ => None,
        });
        Self {
            message_id: amqp.message_id().as_ref().map(ToString::to_string),
            kind: amqp.kind().as_ref().map(ToString::to_string),
            headers: headers.collect(),
        }
    }
}

/// A message from a queue. It is the consumer's until it is acknowledged, given back, or the connection ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The bytes.
    pub body: Vec<u8>,
    /// Id, kind and headers as the publisher set them.
    pub properties: Properties,
    /// Whether someone may have had it before.
    pub redelivered: bool,
    /// How often it was delivered before in vain (quorum queues, from the second delivery on). Since RabbitMQ 4.3 those do not
    /// count after which it was given back.
    pub delivery_count: Option<u64>,
    /// For [`Consumer::ack`](crate::Consumer::ack); it means nothing to another consumer.
    pub tag: u64,
}

/// A message from a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamMessage {
    /// Its place in the stream; gaps mean nothing.
    pub offset: u64,
    /// The bytes.
    pub body: Vec<u8>,
    /// Id, kind and headers as the publisher set them.
    pub properties: Properties,
}

/// A header that is a number, whatever its width.
pub(crate) fn number_header(amqp: &BasicProperties, key: &str) -> Option<u64> {
    match amqp.headers().as_ref()?.inner().get(key)? {
        AMQPValue::LongLongInt(number) => u64::try_from(*number).ok(),
        AMQPValue::LongInt(number) => u64::try_from(*number).ok(),
        AMQPValue::LongUInt(number) => Some(u64::from(*number)),
        AMQPValue::ShortInt(number) => u64::try_from(*number).ok(),
        AMQPValue::ShortUInt(number) => Some(u64::from(*number)),
        AMQPValue::ShortShortInt(number) => u64::try_from(*number).ok(),
        AMQPValue::ShortShortUInt(number) => Some(u64::from(*number)),
        _ => None,
    }
}
