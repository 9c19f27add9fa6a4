//! Mistakes on purpose: what the shell of a driver may get wrong. Without one, everything passes through.

use tenaz_core::{
    ChunkDigest, Effect, Fact, Failure, Input, JobFailure, Log, Partition, RowEngine, Source, Tag, Ticket, Work,
};

use super::Part;
use crate::engine::SimEngine;
use crate::mutation::Mutation;
use crate::process::Surroundings;
use crate::rows::Message;

/// What an effect must know of the input that it follows from.
pub(super) enum Hint {
    Nothing,
    Connected,
    /// A message of this log.
    Arrived(Log, Message),
}

impl Part {
    /// The input as the shell hands it in.
    pub(super) fn spoil_input(
        &mut self,
        input: Input<SimEngine>,
        at: &mut Surroundings<'_>,
    ) -> (Input<SimEngine>, Hint) {
        match (input, at.mutation) {
            (input, Mutation::None) => (input, Hint::Nothing),
            (Input::Connected, Mutation::IgnoreWaves) => {
                self.consumers.extend((0..self.scenario.waves.len()).map(|wave| (wave, 0)));
                (Input::Connected, Hint::Connected)
            }
            (Input::Connected, _) => (Input::Connected, Hint::Connected),
            (Input::Delivered { wave, tag, source, digest, redelivered, leaf, mut consumer }, mutation) => {
                let present = self.driver.consumer(wave);
                if mutation == Mutation::IgnoreWaves && present.is_none() {
                    // Only what the engine finds matters.
                    drop(self.engine.run_chunk(leaf));
                    self.report_findings(at);
                }
                if mutation == Mutation::StaleConsumer || mutation == Mutation::IgnoreWaves {
                    consumer = present.unwrap_or(consumer);
                }
                let digest = self.believed_digest(source, digest, at);
                (Input::Delivered { wave, consumer, tag, source, digest, redelivered, leaf }, Hint::Nothing)
            }
            (Input::Arrived { log, mut reading, offset, mut header, body, permit }, mutation) => {
                if mutation == Mutation::MixContents {
                    header.content = 0;
                }
                if mutation == Mutation::StaleReading {
                    reading = self.driver.reading(log).unwrap_or(reading);
                }
                let input = ChunkDigest(header.lineage.input);
                header.lineage.input = self.believed_digest(header.source, input, at).0;
                let hint = Hint::Arrived(log, body.clone());
                (Input::Arrived { log, reading, offset, header, body, permit }, hint)
            }
            (Input::Attempted { source, mut by }, Mutation::CompanyIgnored) => {
                by.alone |= by.member != at.base.member;
                (Input::Attempted { source, by }, Hint::Nothing)
            }
            (input, _) => (input, Hint::Nothing),
        }
    }

    fn believed_digest(&self, source: Source, digest: ChunkDigest, at: &Surroundings<'_>) -> ChunkDigest {
        match source {
            Source::Chunk { table, number }
                if matches!(at.mutation, Mutation::NoReceiptCheck | Mutation::NoLineage) =>
            {
                self.facts(at).and_then(|facts| facts.digest(table, number)).unwrap_or(digest)
            }
            _ => digest,
        }
    }

    /// The effect as the shell carries it out, if it does.
    pub(super) fn spoil_effect(
        &mut self,
        effect: Effect<SimEngine>,
        hint: &Hint,
        at: &mut Surroundings<'_>,
    ) -> Option<Effect<SimEngine>> {
        let is_reconnect = matches!(hint, Hint::Connected);
        match (effect, at.mutation) {
            (effect, Mutation::None) => Some(effect),
            (Effect::Publish { .. }, Mutation::NoRepublish) if is_reconnect => None,
            (Effect::Read { log: Log::Partition(_), from: 1.., .. }, Mutation::NoReread) if is_reconnect => None,
            (Effect::Tell(Fact::Lost { .. }), Mutation::NoReport) => None,
            (Effect::Fail(JobFailure::Protocol(Failure::Quarantined { .. })), Mutation::NoQuarantine) => None,
            (Effect::Ack { tag }, _) if self.deliveries.get(&tag).is_some_and(|delivery| delivery.acked) => None,
            (Effect::Dropped, Mutation::NoDedup) => {
                self.take_anyway(hint);
                None
            }
            (Effect::Tell(fact), mutation) => self.spoil_fact(fact, mutation, at),
            (Effect::Publish { work, message, log, body }, mutation) => {
                self.spoil_publish((work, message), log, body, mutation, at)
            }
            (Effect::GiveBack { tag }, Mutation::KeepChunks) => {
                self.deliveries.remove(&tag);
                None
            }
            (Effect::Ack { tag }, Mutation::AckMultiple) => {
                self.ack_earlier(tag, at);
                Some(Effect::Ack { tag })
            }
            (effect, _) => Some(effect),
        }
    }

    fn spoil_fact(&mut self, fact: Fact, mutation: Mutation, at: &mut Surroundings<'_>) -> Option<Effect<SimEngine>> {
        if let Fact::Attempted { source, by } = fact {
            match mutation {
                Mutation::AttemptUnwritten => self.handle(Input::Attempted { source, by }, at),
                Mutation::ExonerateUnfinished => {
                    self.tell(Fact::Attempted { source, by }, at);
                    return Some(Effect::Tell(Fact::Exonerated { source }));
                }
                _ => {}
            }
        }
        Some(Effect::Tell(fact))
    }

    fn spoil_publish(
        &mut self,
        (work, message): (Work, u32),
        mut log: Log,
        body: Message,
        mutation: Mutation,
        at: &mut Surroundings<'_>,
    ) -> Option<Effect<SimEngine>> {
        let is_left_out = match mutation {
            Mutation::FirstMessageOnly => message > 0,
            Mutation::NoEmptyMessages => body.rows.is_empty() && body.records.is_none(),
            _ => false,
        };
        if is_left_out {
            self.handle(Input::Confirmed { work, message }, at);
            return None;
        }
        if mutation == Mutation::WrongLog && log == Log::Partition(Partition(0)) {
            log = Log::Partition(Partition(self.scenario.topology.partitions() - 1));
        }
        Some(Effect::Publish { work, message, log, body })
    }

    fn ack_earlier(&mut self, tag: Tag, at: &mut Surroundings<'_>) {
        let connection = at.base.connection;
        let is_open = |delivery: &super::Delivery| !delivery.acked && Some(delivery.connection) == connection;
        let earlier = self.deliveries.range(..tag).filter(|(_, delivery)| is_open(delivery));
        let earlier: Vec<Tag> = earlier.map(|(tag, _)| *tag).collect();
        earlier.into_iter().for_each(|tag| self.ack(tag, at));
    }

    /// Lets a message that the driver has dropped touch the rows of its log.
    fn take_anyway(&self, hint: &Hint) {
        let Hint::Arrived(log, message) = hint else { return };
        if let Some(rows) = self.engine.toy().and_then(|engine| engine.rows(*log)) {
            rows.borrow_mut().take([message.clone()]);
        }
    }

    /// The driver has heard of the end of a step.
    pub(super) fn after_finished(&mut self, ticket: Ticket, at: &mut Surroundings<'_>) {
        match (ticket, at.mutation) {
            (Ticket::Chunk(tag), Mutation::AckBeforeConfirm)
                if self.deliveries.get(&tag).is_some_and(|delivery| !delivery.acked) =>
            {
                self.ack(tag, at);
            }
            (Ticket::Take { log: Log::Results, .. }, Mutation::ConcludeEarly) => self.conclude_present(at),
            (Ticket::Take { log: Log::Results, .. }, Mutation::AnswerEarly) => self.answer_present(at),
            _ => {}
        }
    }

    /// Concludes once more, though the rows were taken out.
    pub(super) fn conclude_again(&mut self, at: &mut Surroundings<'_>) {
        let has_concluded = at.checks.conclusions[self.job] > 0 && self.driver.machine().owns_results();
        if at.mutation == Mutation::ConcludeTwice && has_concluded {
            self.conclude_present(at);
        }
    }

    fn answer_present(&self, at: &Surroundings<'_>) {
        let Some(facts) = self.facts(at) else { return };
        let closed = facts.closed_tables().map(|(table, closed)| (table, closed.clone())).collect();
        if let Some(engine) = self.engine.toy()
            && let Some(rows) = engine.rows(Log::Results)
        {
            for &query in self.scenario.answer.keys() {
                // Only what the engine finds matters.
                drop(engine.make_answer(&rows, query, &closed));
            }
        }
    }

    fn conclude_present(&self, at: &Surroundings<'_>) {
        let Some(facts) = self.facts(at) else { return };
        let closed = facts.closed_tables().map(|(table, closed)| (table, closed.clone())).collect();
        if let Some(engine) = self.engine.toy()
            && let Some(rows) = engine.rows(Log::Results)
        {
            // Only what the engine finds matters.
            drop(engine.conclude(&rows, &closed));
        }
    }
}
