//! Work queues that seem not to work: what a gateway sees of them, and what it does about them.

use tenaz_core::limits::SILENCE_NOTE_MS;
use tenaz_core::{Fact, Probe, QueueAction, QueueEvent, QueueSilence, Sighting, Witness};

use super::Desk;
use crate::broker::{ControlEntry, Envelope, Job};
use crate::mutation::Mutation;
use crate::process::Surroundings;

/// What a queue is called.
pub(super) fn queue_name(job: Job, wave: usize) -> String {
    format!("{job}.{wave}")
}

impl Desk {
    /// A queue has confirmed a chunk.
    pub(super) fn queue_confirmed(&mut self, job: Job, wave: usize, at: &Surroundings<'_>) {
        self.watch.handle(&queue_name(job, wave), QueueEvent::Confirmed, at.now_ms);
    }

    /// A queue has refused a chunk that was sent in this round of its silence.
    pub(super) fn queue_refused(&mut self, (job, wave): (Job, usize), round: u32, at: &mut Surroundings<'_>) {
        let sighting = sighting(job, wave, round, at);
        let refused = QueueEvent::Refused { sighting: sighting.clone(), waiting: at.broker.waiting(job, wave) };
        let action = self.watch.handle(&queue_name(job, wave), refused, at.now_ms);
        self.do_about(job, wave, sighting, action, at);
    }

    /// Looks at the queues whose confirms are waited for.
    pub(super) fn watch_queues(&mut self, at: &mut Surroundings<'_>) {
        if !at.base.is_served(at.broker) || at.now < at.blocked_until || at.mutation == Mutation::NoQueueMend {
            return;
        }
        let waiting: Vec<_> = self.tasks.values().filter_map(|task| task.waits_for_queue(at)).collect();
        for (queue, round, since_ms) in waiting {
            let ms = at.now_ms.saturating_sub(since_ms) / SILENCE_NOTE_MS * SILENCE_NOTE_MS;
            if ms > 0 {
                self.queue_waited(queue, round, ms, at);
            }
        }
    }

    fn queue_waited(&mut self, (job, wave): (Job, usize), round: u32, ms: u64, at: &mut Surroundings<'_>) {
        let sighting = sighting(job, wave, round, at);
        let waited = QueueEvent::Waited { sighting: sighting.clone(), ms };
        let action = self.watch.handle(&queue_name(job, wave), waited, at.now_ms);
        self.do_about(job, wave, sighting, action, at);
    }

    /// Does what has to be done about a queue that was silent or refused.
    fn do_about(
        &mut self,
        job: Job,
        wave: usize,
        sighting: Sighting,
        action: Option<QueueAction>,
        at: &mut Surroundings<'_>,
    ) {
        let Sighting { by, recorded, confirmed_chunks, .. } = sighting;
        match action {
            Some(QueueAction::Reconnect) if at.mutation != Mutation::NoGiveUp => {
                at.trace.note(format_args!("  an empty queue refuses messages"));
                at.base.gives_session_up = true;
            }
            Some(QueueAction::Note { round, ms }) => {
                note(job, Fact::QueueSilent { wave: wave as u16, round, by, ms }, at)
            }
            Some(QueueAction::Probe) => {
                let is_reckless = at.mutation == Mutation::DeleteConfirmed;
                let probe = Probe {
                    broker_stores: !at.is_stalled || is_reckless,
                    waiting: at.broker.waiting(job, wave).map(|waiting| if is_reckless { 0 } else { waiting }),
                    confirmed_chunks,
                    recorded,
                };
                at.trace.note(format_args!("  {probe:?}"));
                let action = self.watch.handle(&queue_name(job, wave), QueueEvent::Probed(probe), at.now_ms);
                self.after_probe(job, wave, action, at);
            }
            _ => {}
        }
    }

    fn after_probe(&mut self, job: Job, wave: usize, action: Option<QueueAction>, at: &mut Surroundings<'_>) {
        match action {
            Some(QueueAction::MakeAnew { round }) => {
                note(job, Fact::QueueCleared { wave: wave as u16, round }, at);
                let held = at.broker.make_queue_anew(job, wave);
                at.trace.note(format_args!("  the queue of wave {wave} of job {job} is made anew"));
                if held > 0 {
                    at.checks.broken(format!("a work queue was deleted with {held} confirmed chunks in it"));
                }
                note(job, Fact::QueueCleared { wave: wave as u16, round: QueueAction::after(round) }, at);
                self.queue_confirmed(job, wave, at);
            }
            Some(QueueAction::Clear { round }) => note(job, Fact::QueueCleared { wave: wave as u16, round }, at),
            _ => {}
        }
    }
}

/// A queue that did not do what it should, with what is known of it.
fn sighting(job: Job, wave: usize, sent_in_round: u32, at: &Surroundings<'_>) -> Sighting {
    let recorded = silence_of(job, wave, at);
    let by = Witness { member: at.base.member, epoch: at.base.epoch };
    Sighting { by, recorded, confirmed_chunks: confirmed_chunks(job, wave, at), sent_in_round }
}

/// What the control log says of a queue's silence.
pub(super) fn silence_of(job: Job, wave: usize, at: &Surroundings<'_>) -> QueueSilence {
    at.base.jobs.get(&job).map(|booked| booked.control.facts.queue_silence(wave as u16)).unwrap_or_default()
}

/// Chunks of a wave that any gateway was told were stored.
fn confirmed_chunks(job: Job, wave: usize, at: &Surroundings<'_>) -> u64 {
    if at.mutation == Mutation::DeleteConfirmed {
        return 0;
    }
    let booked = at.base.jobs.get(&job).filter(|booked| booked.control.is_caught_up());
    let tables = &at.job(job).scenario.waves[wave].tables;
    booked.map_or(u64::MAX, |booked| tables.iter().map(|&table| booked.control.facts.uploaded(table).len()).sum())
}

/// Writes something down that only saves time.
fn note(job: Job, fact: Fact, at: &mut Surroundings<'_>) {
    if let Some(connection) = at.base.connection {
        at.broker.publish(connection, Envelope::Control(job, ControlEntry::Fact(fact)), at.now);
    }
}

/// A client is there: that is written down now and then.
pub(super) fn touch(job: Job, at: &mut Surroundings<'_>) {
    let every = at.setup.patience.idle_ms / 4;
    let is_quiet = at.base.jobs.get(&job).is_some_and(|booked| at.now_ms.saturating_sub(booked.active_ms()) > every);
    if is_quiet && at.mutation != Mutation::NoTouch {
        note(job, Fact::Touched, at);
    }
}
