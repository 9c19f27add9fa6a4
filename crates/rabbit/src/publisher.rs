//! Publishing with confirms, from many callers at once.
//!
//! One task per publisher owns the channel (`publishing_task.rs`). Callers hand it their messages and wait. At most
//! [`PublisherOptions::window`] messages are under way; others wait before they are copied anywhere, so memory is bounded.

use std::{sync::Arc, time::Duration};

use lapin::{BasicProperties, types::ShortString};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::{
    connection::Connection,
    error::{Error, Result},
    lapin_errors::{lost, short},
    message::{PROBE_KIND, Properties},
    publishing_task::{Command, Deadlines, PERSISTENT, PublishingTask, TRANSIENT, Waiting, gone},
};

/// The largest body: 4.x brokers take 16 MiB by default, and close the channel above that.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// How long a probe may wait in the queue of a process that does not read.
const PROBE_EXPIRATION_MS: &str = "1000";

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// Straight to this queue or stream.
    Queue(&'a str),
    /// To all queues bound to this exchange.
    Fanout(&'a str),
}

/// How much may be under way at once, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublisherOptions {
    /// Messages sent and not yet confirmed.
    pub window: usize,
    /// Their bytes. A single larger message passes alone.
    pub window_bytes: usize,
    /// A message that was written to the socket this long ago and is not confirmed will not be
    /// ([`Error::Unconfirmed`]). Neither the wait for the window counts nor the time of an alarm.
    pub confirm_within: Duration,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self { window: 64, window_bytes: 64 * 1024 * 1024, confirm_within: Duration::from_secs(10) }
    }
}

/// A handle for publishing; clones share one channel.
///
/// After [`Error::Lost`] it stays lost: open a new one on a new connection. The same is wise after [`Error::Unconfirmed`]:
/// a confirm that does not come although the broker takes messages is as good as a lost connection. (m) A channel of version
/// 3.10.8 that is opened just when a stream's leader is being replaced may wait for it for ever.
#[derive(Debug, Clone)]
pub struct Publisher {
    connection: Connection,
    commands: mpsc::UnboundedSender<Box<Command>>,
    slots: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    options: PublisherOptions,
}

impl Publisher {
    /// A publisher with the default window.
    pub async fn open(connection: &Connection) -> Result<Publisher> {
        Self::open_with(connection, PublisherOptions::default()).await
    }

    /// A publisher with another window.
    pub async fn open_with(connection: &Connection, options: PublisherOptions) -> Result<Publisher> {
        let options = PublisherOptions {
            window: options.window.clamp(1, 10_000),
            window_bytes: options.window_bytes.clamp(1, u32::MAX as usize),
            ..options
        };
        let channel = connection.channel().await?;
        connection.answer("confirms", channel.confirm_select(Default::default()), lost).await?;
        // Unbounded, but every command holds a slot of the window.
        let (commands, inbox) = mpsc::unbounded_channel();
        let deadlines = Deadlines { confirm_within: options.confirm_within, write_within: connection.answer_timeout() };
        tokio::spawn(PublishingTask::new(channel, deadlines).run(inbox, connection.watch()));
        Ok(Publisher {
            connection: connection.clone(),
            commands,
            slots: Arc::new(Semaphore::new(options.window)),
            bytes: Arc::new(Semaphore::new(options.window_bytes)),
            options,
        })
    }

    /// Sends a persistent message and waits until the broker has it.
    ///
    /// [`Error::Unroutable`] if no queue takes it, [`Error::NotReady`] if its queue is not yet back after a restart,
    /// [`Error::Full`] if the queue is at its limit, [`Error::Lost`] if it is not known whether it arrived. If the future is dropped, the message may be sent all the same.
    pub async fn publish(&self, target: Target<'_>, body: Vec<u8>, properties: &Properties) -> Result<()> {
        match self.send(target, body, properties.to_amqp()?.with_delivery_mode(PERSISTENT), true).await {
            Err(Error::Unroutable { target: name }) if matches!(target, Target::Queue(_)) => {
                Err(self.why_unroutable(name).await)
            }
            outcome => outcome,
        }
    }

    /// For some seconds after a restart the broker returns messages for queues that it has not yet recovered. Asked for
    /// the queue itself, it knows the difference.
    async fn why_unroutable(&self, name: String) -> Error {
        match self.connection.queue_depth(&name).await {
            Ok(None) => Error::Unroutable { target: name },
            Ok(Some(_)) | Err(Error::Locked { .. }) => {
                Error::NotReady { name, detail: "the broker was still recovering it".to_owned() }
            }
            Err(error) => error,
        }
    }

    /// Sends a message that may be lost, to whoever is there. For heartbeats.
    pub async fn publish_transient(&self, target: Target<'_>, body: Vec<u8>, properties: &Properties) -> Result<()> {
        self.send(target, body, properties.to_amqp()?.with_delivery_mode(TRANSIENT), false).await
    }

    /// Whether a queue of this name exists, asked with an empty message that [`Consumer`](crate::Consumer) drops unseen.
    ///
    /// It works for the exclusive queues of others, and is the fastest way to notice that their process is gone.
    pub async fn probe(&self, queue: &str) -> Result<bool> {
        let properties = BasicProperties::default()
            .with_type(PROBE_KIND.into())
            .with_expiration(PROBE_EXPIRATION_MS.into())
            .with_delivery_mode(TRANSIENT);
        match self.send(Target::Queue(queue), Vec::new(), properties, true).await {
            // A full queue is there.
            Ok(()) | Err(Error::Full { .. }) => Ok(true),
            Err(Error::Unroutable { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        target: Target<'_>,
        body: Vec<u8>,
        properties: BasicProperties,
        mandatory: bool,
    ) -> Result<()> {
        if body.len() > MAX_BODY_BYTES {
            return Err(Error::TooLarge { bytes: body.len(), limit: MAX_BODY_BYTES });
        }
        let (exchange, routing_key, name) = match target {
            Target::Queue(name) => (ShortString::default(), short(name)?, name),
            Target::Fanout(name) => (short(name)?, ShortString::default(), name),
        };
        let permits = self.permits(body.len()).await?;
        let (reply, outcome) = oneshot::channel();
        let waiting = Waiting::new(name, reply, permits);
        let command = Command { exchange, routing_key, mandatory, body, properties, waiting };
        self.commands.send(Box::new(command)).map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }

    async fn permits(&self, bytes: usize) -> Result<[OwnedSemaphorePermit; 2]> {
        let bytes = bytes.min(self.options.window_bytes) as u32;
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| gone())?;
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(bytes).await.map_err(|_| gone())?;
        Ok([slot, bytes])
    }
}
