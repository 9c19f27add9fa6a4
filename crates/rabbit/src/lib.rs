//! RabbitMQ as tenaz uses it: connections, queues, streams, confirmed publishing, private nodes.
//!
//! This crate moves bytes. It never knows what a job, a chunk or a row is.
//!
//! | to | use |
//! |---|---|
//! | reach a broker | [`BrokerSettings`], [`Connection`] |
//! | create and delete queues | [`QueueSpec`], [`StreamSpec`], methods of [`Connection`] |
//! | send, knowing that it arrived | [`Publisher`] |
//! | share work among consumers | [`Consumer`] |
//! | read a log by offset | [`StreamReader`] |
//! | run a broker of one's own | [`node::PrivateNode`], [`node::PrivateCluster`] |
//!
//! Nothing here reconnects by itself: every loss is an [`Error`] whose [`Error::is_temporary`] is true, and the caller
//! opens again after a [`Backoff`]. A silent recovery would hide that unacknowledged messages come a second time.
//!
//! Publish and consume on *different* connections: when the broker raises an alarm it stops reading from connections
//! that publish, and acknowledgements on the same connection would wait as well.

mod backoff;
mod connection;
mod consumer;
mod declare;
mod error;
mod handshake;
mod lapin_errors;
pub mod limits;
mod message;
pub mod node;
mod publisher;
mod publishing_task;
mod settings;
mod settle;
mod sockets;
mod stream;

pub use backoff::Backoff;
pub use connection::Connection;
pub use consumer::{Acker, Consumer};
pub use declare::{DELIVERY_LIMIT, QueueSpec, StreamSpec};
pub use error::{Error, NodeObstacle, Result};
pub use handshake::Version;
pub use message::{Delivery, Properties, StreamMessage};
pub use publisher::{MAX_BODY_BYTES, Publisher, PublisherOptions, Target};
pub use settings::{BrokerSettings, BrokerUrl};
pub use stream::{Offset, StreamReader};
