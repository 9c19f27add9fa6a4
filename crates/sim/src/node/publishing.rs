//! What a worker sends, until the broker has it.

use tenaz_core::{End, Fact, Input, Log, RegistryEvent, Work};

use super::Part;
use crate::broker::{ControlEntry, Envelope, PublishId};
use crate::mutation::Mutation;
use crate::process::{Surroundings, registry_bytes};
use crate::rows::Message;

/// Something that was sent and is not confirmed.
pub(super) enum Sent {
    /// A message of a task's output.
    Rows {
        work: Work,
        message: u32,
        log: Log,
        body: Message,
    },
    Fact(Fact),
    /// The end of the job.
    Farewell(End),
}

impl Sent {
    pub(super) fn belongs_to_task(&self) -> bool {
        matches!(self, Self::Rows { .. })
    }
}

impl Part {
    pub(super) fn send(&mut self, sent: Sent, at: &mut Surroundings<'_>) {
        let Some(connection) = at.base.connection else { return };
        let envelope = match &sent {
            Sent::Rows { log, body, .. } => Envelope::Rows(self.job, *log, body.clone()),
            Sent::Fact(fact) => Envelope::Control(self.job, ControlEntry::Fact(fact.clone())),
            Sent::Farewell(end) => {
                let event = RegistryEvent::Ended { id: at.job(self.job).card.id.clone(), end: end.clone() };
                let bytes = registry_bytes(&event, at.mutation);
                Envelope::Registry(event, bytes)
            }
        };
        let id = at.broker.publish(connection, envelope, at.now);
        self.unconfirmed.insert(id, sent);
    }

    pub(super) fn tell(&mut self, fact: Fact, at: &mut Surroundings<'_>) {
        at.trace.note(format_args!("  tells {fact:?}"));
        if let Fact::Lost { table, chunks } = &fact {
            at.checks.called_lost(self.job, *table, chunks);
        }
        self.send(Sent::Fact(fact), at);
    }

    /// Rows that are certain already. If such a message is lost, they come with the finished task.
    pub(super) fn show(&self, messages: Vec<Message>, at: &mut Surroundings<'_>) {
        let Some(connection) = at.base.connection else { return };
        for message in messages {
            at.broker.publish(connection, Envelope::Rows(self.job, Log::Results, message), at.now);
        }
    }

    pub(super) fn say_farewell(&mut self, at: &mut Surroundings<'_>) {
        if let Some(end) = self.farewell.clone() {
            self.send(Sent::Farewell(end), at);
            if at.mutation == Mutation::EndOnce {
                self.farewell = None;
            }
        }
    }

    /// Whether this was sent by it, and is not confirmed.
    pub(super) fn has_sent(&self, id: PublishId) -> bool {
        self.unconfirmed.contains_key(&id)
    }

    /// The broker has answered: it has taken a message, or has refused it.
    pub(crate) fn confirmed(&mut self, id: PublishId, is_accepted: bool, at: &mut Surroundings<'_>) {
        let Some(sent) = self.unconfirmed.remove(&id) else { return };
        match sent {
            Sent::Rows { work, message, .. } if is_accepted || at.mutation == Mutation::RefusalIsConfirm => {
                let (work, message) = self.confirmed_as(work, message, at.mutation);
                self.handle(Input::Confirmed { work, message }, at);
            }
            Sent::Rows { .. } if at.mutation == Mutation::RefusedRows => {}
            Sent::Fact(_) if is_accepted || at.mutation == Mutation::RefusedFact => {}
            Sent::Farewell(end) if is_accepted => {
                // A later one may differ, and has not arrived.
                if self.farewell.as_ref() == Some(&end) {
                    self.farewell = None;
                }
            }
            sent => self.send(sent, at),
        }
    }

    fn confirmed_as(&self, work: Work, message: u32, mutation: Mutation) -> (Work, u32) {
        let first = self.unconfirmed.values().find_map(|sent| match sent {
            Sent::Rows { work, message, .. } => Some((*work, *message)),
            _ => None,
        });
        first.filter(|_| mutation == Mutation::ConfirmMixedUp).unwrap_or((work, message))
    }
}
