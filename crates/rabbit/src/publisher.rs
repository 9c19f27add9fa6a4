//! Publishing with confirms, from many callers at once.
//!
//! One task per publisher owns the channel, because lapin mixes up the confirms of tasks that publish on one channel.
//! Callers hand it their messages and wait. At most [`PublisherOptions::window`] messages are under way; others wait
//! before they are copied anywhere, so memory is bounded.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use lapin::{BasicProperties, Confirmation, options::BasicPublishOptions, types::ShortString};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::{
    connection::Connection,
    error::{Error, Result},
    lapin_errors::{lost, short, while_using},
    message::{PROBE_KIND, Properties},
    settle::{Carried, Completion, Number, Settlement, Verdict},
};

/// The largest body: 4.x brokers take 16 MiB by default, and close the channel above that.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// How long a probe may wait in the queue of a process that does not read.
const PROBE_EXPIRATION_MS: &str = "1000";

/// Where the flush of [`Settlement`] goes: no queue has this name, and it is not mandatory, so the broker drops it.
const NOWHERE: &str = "tenaz.nowhere";

const PERSISTENT: u8 = 2;
const TRANSIENT: u8 = 1;

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
    /// A broker that takes messages and has not confirmed one for this long will not ([`Error::Unconfirmed`]).
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
        let mut watch = connection.watch();
        tokio::spawn(Task::new(channel).run(inbox, async move { watch.closed().await }));
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
        let mut sending = std::pin::pin!(self.send_for_ever(target, body, properties, mandatory));
        loop {
            match tokio::time::timeout(self.options.confirm_within, &mut sending).await {
                Ok(done) => return done,
                Err(_) if self.connection.is_blocked() => {}
                Err(_) => {
                    let (Target::Queue(name) | Target::Fanout(name)) = target;
                    let seconds = self.options.confirm_within.as_secs();
                    return Err(Error::Unconfirmed { target: name.to_owned(), seconds });
                }
            }
        }
    }

    async fn send_for_ever(
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
        let waiting = Waiting { target: name.to_owned(), reply, _permits: permits };
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

fn gone() -> Error {
    Error::Lost("the publisher has ended".to_owned())
}

struct Command {
    exchange: ShortString,
    routing_key: ShortString,
    mandatory: bool,
    body: Vec<u8>,
    properties: BasicProperties,
    waiting: Waiting,
}

/// A caller that waits for its outcome.
struct Waiting {
    target: String,
    reply: oneshot::Sender<Result<()>>,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Waiting {
    fn finish(self, outcome: Result<()>) {
        // A caller that went away does not want to know.
        let _ = self.reply.send(outcome);
    }
}

/// One message on its way: writing, then waiting for its confirm.
struct Flight {
    number: Number,
    future: Pin<Box<dyn Future<Output = lapin::Result<Confirmation>> + Send>>,
}

enum Event {
    Completed(Vec<(Number, lapin::Result<Confirmation>)>),
    Command(Box<Command>),
    Closed(Error),
    /// All handles are gone and everything is answered.
    Done,
}

/// The task that owns the channel.
struct Task {
    channel: lapin::Channel,
    next_number: Number,
    flights: Vec<Flight>,
    waiting: HashMap<Number, Waiting>,
    settlement: Settlement,
    flush: Option<Number>,
}

impl Task {
    fn new(channel: lapin::Channel) -> Self {
        Self {
            channel,
            next_number: 1,
            flights: Vec::new(),
            waiting: HashMap::new(),
            settlement: Settlement::default(),
            flush: None,
        }
    }

    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Box<Command>>, closed: impl Future<Output = Error>) {
        let mut closed = std::pin::pin!(closed);
        loop {
            match poll_fn(|cx| self.poll_event(cx, &mut inbox, closed.as_mut())).await {
                Event::Completed(batch) => self.complete(batch),
                Event::Command(command) => self.start(*command),
                Event::Closed(error) => {
                    self.fail_all(&error);
                    inbox.close();
                    while let Some(command) = inbox.recv().await {
                        command.waiting.finish(Err(error.clone()));
                    }
                    return;
                }
                Event::Done => return,
            }
        }
    }

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        inbox: &mut mpsc::UnboundedReceiver<Box<Command>>,
        closed: Pin<&mut impl Future<Output = Error>>,
    ) -> Poll<Event> {
        let completed = self.sweep(cx);
        if !completed.is_empty() {
            return Poll::Ready(Event::Completed(completed));
        }
        match inbox.poll_recv(cx) {
            Poll::Ready(Some(command)) => return Poll::Ready(Event::Command(command)),
            Poll::Ready(None) if self.flights.is_empty() => return Poll::Ready(Event::Done),
            Poll::Ready(None) | Poll::Pending => {}
        }
        closed.poll(cx).map(Event::Closed)
    }

    /// Everything that is complete now. It goes round until a whole round finds nothing new, so that whatever completed
    /// before something in this batch is in this batch too: [`Settlement`] relies on that.
    fn sweep(&mut self, cx: &mut Context<'_>) -> Vec<(Number, lapin::Result<Confirmation>)> {
        let mut completed = Vec::new();
        loop {
            let before = completed.len();
            self.flights.retain_mut(|flight| match flight.future.as_mut().poll(cx) {
                Poll::Ready(outcome) => {
                    completed.push((flight.number, outcome));
                    false
                }
                Poll::Pending => true,
            });
            if completed.len() == before {
                return completed;
            }
        }
    }

    fn start(&mut self, command: Command) {
        let Command { exchange, routing_key, mandatory, body, properties, waiting } = command;
        let number = self.launch(exchange, routing_key, mandatory, body, properties);
        self.waiting.insert(number, waiting);
    }

    /// Puts a message on its way. The future is first polled by this task's next sweep, and that first poll both
    /// registers the confirm and queues the frames: so both happen in the same order.
    fn launch(
        &mut self,
        exchange: ShortString,
        routing_key: ShortString,
        mandatory: bool,
        body: Vec<u8>,
        properties: BasicProperties,
    ) -> Number {
        let number = self.next_number;
        self.next_number += 1;
        let channel = self.channel.clone();
        let properties = properties.with_correlation_id(number.to_string().as_str().into());
        let options = BasicPublishOptions { mandatory, immediate: false };
        let future = Box::pin(async move {
            let sent = channel.basic_publish(exchange, routing_key, options, &body, properties).await;
            drop(body);
            sent?.await
        });
        self.flights.push(Flight { number, future });
        number
    }

    fn complete(&mut self, batch: Vec<(Number, lapin::Result<Confirmation>)>) {
        let mut completions = Vec::with_capacity(batch.len());
        let mut failure = None;
        for (number, outcome) in batch {
            if self.flush == Some(number) {
                self.flush = None;
            }
            match outcome {
                Ok(Confirmation::Ack(message)) => completions.push(completion(number, true, message)),
                Ok(Confirmation::Nack(message)) => completions.push(completion(number, false, message)),
                // Cannot be: the channel is in confirm mode.
                Ok(Confirmation::NotRequested) => self.fail(number, gone()),
                Err(error) => {
                    let blamed = self.blame(number, &error);
                    self.fail(number, blamed);
                    failure = Some(lost(&error));
                }
            }
        }
        for (number, verdict) in self.settlement.settle(&completions) {
            let Some(waiting) = self.waiting.remove(&number) else { continue };
            let target = waiting.target.clone();
            waiting.finish(match verdict {
                Verdict::Confirmed => Ok(()),
                Verdict::Refused => Err(Error::Full { target }),
                Verdict::Returned => Err(Error::Unroutable { target }),
            });
        }
        if let Some(error) = failure {
            for number in self.settlement.abandon() {
                self.fail(number, error.clone());
            }
        }
        if self.settlement.needs_flush() && self.flush.is_none() {
            let properties = BasicProperties::default().with_delivery_mode(TRANSIENT);
            let number = self.launch(ShortString::default(), NOWHERE.into(), false, Vec::new(), properties);
            self.flush = Some(number);
        }
    }

    /// The broker closes the channel for one bad message (no such exchange, no permission); only that one is to blame.
    fn blame(&self, number: Number, error: &lapin::Error) -> Error {
        match (self.waiting.get(&number), error.kind()) {
            (Some(waiting), lapin::ErrorKind::ProtocolError(amqp))
                if amqp.get_message().as_str().contains(&format!("'{}'", waiting.target)) =>
            {
                while_using(&waiting.target, error)
            }
            _ => lost(error),
        }
    }

    fn fail(&mut self, number: Number, error: Error) {
        if let Some(waiting) = self.waiting.remove(&number) {
            waiting.finish(Err(error));
        }
    }

    fn fail_all(&mut self, error: &Error) {
        for (_, waiting) in self.waiting.drain() {
            waiting.finish(Err(error.clone()));
        }
        self.flights.clear();
    }
}

fn completion(number: Number, acked: bool, message: Option<lapin::message::BasicReturnMessage>) -> Completion {
    let carried = match message {
        None => Carried::Nothing,
        // Zero is never a number of ours: a return without one belongs to nobody, but it did come from the queue.
        Some(message) => Carried::Return(
            message.properties.correlation_id().as_ref().and_then(|id| id.as_str().parse().ok()).unwrap_or(0),
        ),
    };
    Completion { number, acked, carried }
}
