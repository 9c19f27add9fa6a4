//! The task behind a [`Publisher`](crate::Publisher): one per channel, because lapin mixes up the confirms of tasks that
//! publish on one channel.
//!
//! ```text
//!            written to the socket            acked, nacked or returned
//!  Writing ─────────────────────────▶ Written ─────────────────────────▶ the caller is told (settle.rs)
//!     │ nothing was written for `write_within`   │ no confirm within `confirm_within`
//!     ▼                                          ▼
//!  Unconfirmed                          Unconfirmed; the place in the window is free again
//! ```

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use lapin::{BasicProperties, Confirmation, PublisherConfirm, options::BasicPublishOptions, types::ShortString};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    time::{Instant, sleep_until},
};

use crate::{
    connection::Watch,
    error::{Error, Result},
    lapin_errors::{lost, while_using},
    settle::{Carried, Completion, Number, Settlement, Verdict},
    sockets::Channel,
};

/// Where the flush of [`Settlement`] goes: no queue has this name, and it is not mandatory, so the broker drops it.
const NOWHERE: &str = "tenaz.nowhere";

/// AMQP's delivery mode of a message that survives a restart of the broker.
pub(crate) const PERSISTENT: u8 = 2;
/// AMQP's delivery mode of a message that may be lost.
pub(crate) const TRANSIENT: u8 = 1;

/// A deadline that is never reached, for a timer that must have one.
const FAR: Duration = Duration::from_secs(3600);

/// A message that a caller hands to the task.
pub(crate) struct Command {
    pub(crate) exchange: ShortString,
    pub(crate) routing_key: ShortString,
    pub(crate) mandatory: bool,
    pub(crate) body: Vec<u8>,
    pub(crate) properties: BasicProperties,
    pub(crate) waiting: Waiting,
}

/// A caller that waits for its outcome.
pub(crate) struct Waiting {
    target: String,
    reply: oneshot::Sender<Result<()>>,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Waiting {
    /// A caller with its places in the window.
    pub(crate) fn new(target: &str, reply: oneshot::Sender<Result<()>>, permits: [OwnedSemaphorePermit; 2]) -> Self {
        Self { target: target.to_owned(), reply, _permits: permits }
    }

    fn finish(self, outcome: Result<()>) {
        // A caller that went away does not want to know.
        let _ = self.reply.send(outcome);
    }
}

/// How long a message may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// From the moment it is written to the socket until its confirm.
    pub(crate) confirm_within: Duration,
    /// For as long nothing may be written to the socket although there is something to write.
    pub(crate) write_within: Duration,
}

/// One message on its way. While it is being written, the clock is that of the whole channel: it waits behind others.
struct Flight {
    number: Number,
    step: FlightStep,
}

enum FlightStep {
    Writing {
        since: Instant,
        future: BoxFuture<'static, lapin::Result<PublisherConfirm>>,
    },
    Written {
        since: Instant,
        confirm: PublisherConfirm,
    },
    /// Its caller was told that no confirm came; one that comes later only keeps the count.
    Overdue {
        confirm: PublisherConfirm,
    },
}

enum Event {
    Completed(Vec<(Number, lapin::Result<Confirmation>)>),
    Command(Box<Command>),
    /// Something was written: there is another deadline.
    Written,
    /// All handles are gone and everything is answered.
    Done,
}

/// The task that owns the channel.
pub(crate) struct PublishingTask {
    channel: Channel,
    deadlines: Deadlines,
    next_number: Number,
    flights: Vec<Flight>,
    waiting: HashMap<Number, Waiting>,
    settlement: Settlement,
    flush: Option<Number>,
    /// When a message was last written completely.
    last_written: Instant,
}

impl PublishingTask {
    /// A task for a channel in confirm mode that nothing else publishes on.
    pub(crate) fn new(channel: Channel, deadlines: Deadlines) -> Self {
        Self {
            channel,
            deadlines,
            next_number: 1,
            flights: Vec::new(),
            waiting: HashMap::new(),
            settlement: Settlement::default(),
            flush: None,
            last_written: Instant::now(),
        }
    }

    /// Publishes what comes in until the connection or all callers are gone.
    pub(crate) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Box<Command>>, mut health: Watch) {
        loop {
            let due = self.next_deadline();
            tokio::select! {
                biased;
                event = poll_fn(|cx| self.poll_event(cx, &mut inbox)) => match event {
                    Event::Completed(batch) => self.complete(batch),
                    Event::Command(command) => self.start(*command),
                    Event::Written => {}
                    Event::Done => return,
                },
                turned = health.turned() => match turned {
                    // Under an alarm the broker neither reads nor confirms: that time does not count.
                    Ok(()) => self.restart_clocks(),
                    Err(error) => return self.end(&error, inbox).await,
                },
                () = sleep_until(due) => {
                    if health.is_blocked() {
                        self.restart_clocks();
                    } else {
                        self.give_up_overdue();
                    }
                }
            }
        }
    }

    async fn end(mut self, error: &Error, mut inbox: mpsc::UnboundedReceiver<Box<Command>>) {
        for (_, waiting) in self.waiting.drain() {
            waiting.finish(Err(error.clone()));
        }
        inbox.close();
        while let Some(command) = inbox.recv().await {
            command.waiting.finish(Err(error.clone()));
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>, inbox: &mut mpsc::UnboundedReceiver<Box<Command>>) -> Poll<Event> {
        let written = self.last_written;
        let completed = self.sweep(cx);
        if !completed.is_empty() {
            return Poll::Ready(Event::Completed(completed));
        }
        match inbox.poll_recv(cx) {
            Poll::Ready(Some(command)) => Poll::Ready(Event::Command(command)),
            Poll::Ready(None) if self.flights.iter().all(Flight::is_overdue) => Poll::Ready(Event::Done),
            Poll::Ready(None) | Poll::Pending if self.last_written > written => Poll::Ready(Event::Written),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// The time by which the broker should have done something.
    fn next_deadline(&self) -> Instant {
        let far = || Instant::now() + FAR;
        self.flights.iter().filter_map(|flight| self.deadline(flight)).min().unwrap_or_else(far)
    }

    fn deadline(&self, flight: &Flight) -> Option<Instant> {
        match &flight.step {
            FlightStep::Writing { since, .. } => Some(self.last_written.max(*since) + self.deadlines.write_within),
            FlightStep::Written { since, .. } => Some(*since + self.deadlines.confirm_within),
            FlightStep::Overdue { .. } => None,
        }
    }

    fn restart_clocks(&mut self) {
        let now = Instant::now();
        for flight in &mut self.flights {
            if let FlightStep::Writing { since, .. } | FlightStep::Written { since, .. } = &mut flight.step {
                *since = now;
            }
        }
    }

    /// Tells the callers of messages whose time is over. A message that is still being written is dropped: it may be sent
    /// in part, and then the connection is of no use any more.
    fn give_up_overdue(&mut self) {
        let now = Instant::now();
        let (overdue, in_time) = std::mem::take(&mut self.flights)
            .into_iter()
            .partition::<Vec<_>, _>(|flight| self.deadline(flight).is_some_and(|deadline| deadline <= now));
        self.flights = in_time;
        for Flight { number, step } in overdue {
            let allowed = match step {
                FlightStep::Writing { .. } => self.deadlines.write_within,
                FlightStep::Written { confirm, .. } | FlightStep::Overdue { confirm } => {
                    self.flights.push(Flight { number, step: FlightStep::Overdue { confirm } });
                    self.deadlines.confirm_within
                }
            };
            let target = self.waiting.get(&number).map(|waiting| waiting.target.clone()).unwrap_or_default();
            self.fail(number, Error::Unconfirmed { target, seconds: allowed.as_secs() });
        }
    }

    /// Everything that is complete now. It goes round until a whole round finds nothing new, so that whatever completed
    /// before something in this batch is in this batch too: [`Settlement`] relies on that.
    fn sweep(&mut self, cx: &mut Context<'_>) -> Vec<(Number, lapin::Result<Confirmation>)> {
        let mut completed = Vec::new();
        loop {
            let before = completed.len();
            let last_written = &mut self.last_written;
            self.flights.retain_mut(|flight| match flight.step.poll(cx, last_written) {
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
        let future =
            Box::pin(async move { channel.basic_publish(exchange, routing_key, options, &body, properties).await });
        self.flights.push(Flight { number, step: FlightStep::Writing { since: Instant::now(), future } });
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
}

impl Flight {
    /// Whether no caller waits for its confirm any more.
    fn is_overdue(&self) -> bool {
        matches!(self.step, FlightStep::Overdue { .. })
    }
}

impl FlightStep {
    /// Goes as far as it can now; ready with the confirm.
    fn poll(&mut self, cx: &mut Context<'_>, last_written: &mut Instant) -> Poll<lapin::Result<Confirmation>> {
        if let Self::Writing { future, .. } = self {
            match std::task::ready!(future.as_mut().poll(cx)) {
                Err(error) => return Poll::Ready(Err(error)),
                Ok(confirm) => {
                    *last_written = Instant::now();
                    *self = Self::Written { since: *last_written, confirm };
                }
            }
        }
        match self {
            Self::Written { confirm, .. } | Self::Overdue { confirm } => Pin::new(confirm).poll(cx),
            Self::Writing { .. } => Poll::Pending,
        }
    }
}

/// The error of a caller whose task is not there any more.
pub(crate) fn gone() -> Error {
    Error::Lost("the publisher has ended".to_owned())
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
