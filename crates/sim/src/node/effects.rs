//! How a simulated worker carries out what the driver says.

use std::rc::Rc;

use tenaz_core::{BoundedText, Classified, Effect, End, Failure, JobFailure, Log, Tag};

use super::publishing::Sent;
use super::reading::{Incoming, Reader};
use super::{Part, Presence};
use crate::broker::Settled;
use crate::engine::{SimEngine, StepError};
use crate::mutation::Mutation;
use crate::process::Surroundings;

/// So many logs a worker that does not count its channels can read.
const CHANNEL_LIMIT: usize = 3;

impl Part {
    pub(super) fn carry_out(&mut self, effect: Effect<SimEngine>, at: &mut Surroundings<'_>) {
        match effect {
            Effect::Run(step) => self.queue(step, at),
            Effect::Read { log, from, reading } => self.begin_reading(log, from, reading, at),
            Effect::StopReading { log } => {
                at.trace.note(format_args!("  releases {log}"));
                self.readers.remove(&log);
                if log == Log::Results && self.farewell.as_ref().is_some_and(End::is_done) {
                    self.farewell = None;
                }
            }
            Effect::TakeChunks { wave, consumer } => {
                at.trace.note(format_args!("  takes wave {wave}"));
                self.consumers.insert(wave, consumer);
            }
            Effect::StopTaking { wave } => {
                self.consumers.remove(&wave);
            }
            Effect::Publish { work, message, log, body } => {
                at.trace.note(format_args!("  sends {message} of {work:?} to {log}"));
                self.send(Sent::Rows { work, message, log, body }, at);
            }
            Effect::Ack { tag } => self.ack(tag, at),
            Effect::GiveBack { tag } => self.give_back(tag, at),
            Effect::Forget { tag } => {
                self.deliveries.remove(&tag);
            }
            Effect::Tell(fact) => self.tell(fact, at),
            Effect::Show(messages) => self.show(messages, at),
            Effect::Dropped => at.trace.note(format_args!("  dropped")),
            Effect::AnnounceEnd(end) => {
                self.farewell = Some(end);
                self.say_farewell(at);
            }
            Effect::StandBack(error) => self.stand_back(&error, at),
            Effect::Fail(JobFailure::Protocol(failure)) => self.fail(&failure, at),
            Effect::Fail(JobFailure::Step { error: StepError::Contradiction(error), .. }) => {
                self.fail(&Failure::Contradiction(error), at);
            }
            Effect::Fail(JobFailure::Step { ticket, source, error }) => {
                at.checks.broken(format!("a job failed that should not: {ticket:?} ({source:?}): {error}"));
            }
        }
    }

    fn begin_reading(&mut self, log: Log, from: u64, reading: u64, at: &mut Surroundings<'_>) {
        let offset = match at.mutation {
            Mutation::ReadBeyondEnd => from,
            Mutation::ReadFromNext => at.broker.start(self.job, log, from + 1),
            _ => at.broker.start(self.job, log, from),
        };
        at.trace.note(format_args!("  reads {log} from {offset}"));
        if at.mutation == Mutation::ChannelLimitSilent && self.readers.len() >= CHANNEL_LIMIT {
            return;
        }
        self.readers.insert(log, Reader { reading, offset, window: Rc::new(()) });
    }

    pub(super) fn ack(&mut self, tag: Tag, at: &mut Surroundings<'_>) {
        let Some(delivery) = self.deliveries.get_mut(&tag) else {
            return at.checks.broken(format!("{tag:?} was acknowledged, but there is no such delivery"));
        };
        let source = delivery.chunk.source;
        if at.base.connection != Some(delivery.connection) {
            return at.checks.broken(format!("{source} was acknowledged over another connection than it came by"));
        }
        if std::mem::replace(&mut delivery.acked, true) {
            return at.checks.broken(format!("{source} was acknowledged twice"));
        }
        at.trace.note(format_args!("  acknowledges {source}"));
        at.checks.ack(self.job, source, self.driver.machine(), at.broker);
        at.broker.say(delivery.connection, (self.job, delivery.wave, delivery.place), Settled::Acked);
    }

    fn give_back(&mut self, tag: Tag, at: &mut Surroundings<'_>) {
        let Some(delivery) = self.deliveries.remove(&tag) else {
            return at.checks.broken(format!("{tag:?} was given back, but there is no such delivery"));
        };
        at.trace.note(format_args!("  gives {} back", delivery.chunk.source));
        // What came by an earlier connection went back with it.
        at.broker.say(delivery.connection, (self.job, delivery.wave, delivery.place), Settled::GivenBack);
    }

    /// Chunks that the driver has never seen go back, too: nobody else would ever get them.
    pub(super) fn give_incoming_back(&mut self, at: &mut Surroundings<'_>) {
        for incoming in std::mem::take(&mut self.incoming) {
            if let (Incoming::Chunk { tag, .. }, true) = (incoming, at.mutation != Mutation::KeepIncoming) {
                self.give_back(tag, at);
            }
        }
    }

    fn stand_back(&mut self, error: &StepError, at: &mut Surroundings<'_>) {
        at.trace.note(format_args!("  stands back: {error}"));
        at.checks.stood_back += 1;
        if at.mutation == Mutation::StandBackFails {
            let (code, reason) = ("no_disk".to_owned(), BoundedText::from(error.to_string()));
            self.farewell = Some(End::Failed { code, reason, class: error.class() });
            self.say_farewell(at);
        }
        if self.presence == Presence::Working {
            self.presence = Presence::StoodBack;
        }
        if at.mutation != Mutation::ClaimAfterStandingBack {
            self.seat.leave();
        }
    }

    pub(super) fn fail(&mut self, failure: &Failure, at: &mut Surroundings<'_>) {
        if at.mutation == Mutation::NoQuarantine {
            return;
        }
        at.trace.note(format_args!("  fails: {failure}"));
        at.checks.fail(self.job, failure, &self.scenario);
        let code = match failure {
            Failure::Quarantined { .. } => "quarantined",
            Failure::Contradiction(_) => "contradiction",
        };
        let (reason, class) = (BoundedText::from(failure.to_string()), failure.class());
        self.farewell = Some(End::Failed { code: code.to_owned(), reason, class });
        self.say_farewell(at);
    }
}
