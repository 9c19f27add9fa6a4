//! Work queues that seem not to work, and what to do about them.
//!
//! ```text
//!  a message waits for its confirm, or is refused though nothing waits in the queue
//!          │ every second ──▶ Note (into the job's control log, for the next gateway)
//!          │ long enough over two connections, of whichever gateways
//!          ▼
//!        Probe ──┬─ the broker stores messages elsewhere, and nothing confirmed can be in this queue, for a while ──▶ MakeAnew
//!                └─ otherwise nothing is certain ──▶ Clear: the counting begins anew
//!
//!  refused for a while over one connection ──▶ Reconnect
//! ```
//!
//! (m) Two faults of RabbitMQ 3.10.8 are behind this. A lone broker that is killed within a second or two of a queue's
//! declaration may come back with a queue that takes messages, holds none, and never confirms or delivers one: made anew it works.
//! And a channel whose first message to a queue comes just after the node of the queue's leader has died refuses that message
//! and all after it, though another node leads by then: another connection does not. A queue whose server is gone refuses over
//! every connection.
//!
//! A broker whose disk stands still looks like the first of them: no queue confirms anything, and all their messages are
//! there when it goes on. Deleting a queue then would throw them away. So the broker has to show first that it stores
//! messages (a probe: another queue of the same kind is made, and confirms a message), and a queue is deleted only if no chunk was
//! ever confirmed in it. One that holds confirmed chunks and stays silent is waited for.

use std::collections::BTreeMap;

use crate::limits::{MAX_WATCHED_QUEUES, REFUSING_MS, REVIVAL_MS, SILENCE_NOTE_MS};
use crate::{QueueSilence, Witness};

/// Something that was seen of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueEvent {
    /// A message was confirmed.
    Confirmed,
    /// A message has waited for its confirm, and is neither confirmed nor refused.
    Waited {
        /// Who waits, and what is known of the queue.
        sighting: Sighting,
        /// For how long, in milliseconds.
        ms: u64,
    },
    /// A message was refused as if the queue were full.
    Refused {
        /// Who was refused, and what is known of the queue.
        sighting: Sighting,
        /// How many messages wait in the queue, if the broker says.
        waiting: Option<u32>,
    },
    /// A [`QueueAction::Probe`] has ended.
    Probed(Probe),
}

/// A queue that did not do what it should, with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The connection over which it did not.
    pub by: Witness,
    /// What the job's control log says of the queue's silence.
    pub recorded: QueueSilence,
    /// How many chunks the queue has confirmed to any gateway.
    pub confirmed_chunks: u64,
    /// The round that was being counted when the message was sent that is waited for. What a queue has swallowed that was made
    /// anew since says nothing of the new one.
    pub sent_in_round: u32,
}

/// What a probe has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Whether another queue of the same kind could be made, and has confirmed a message.
    pub broker_stores: bool,
    /// How many messages wait in the suspected queue, if the broker says.
    pub waiting: Option<u32>,
    /// How many chunks the suspected queue has confirmed to any gateway.
    pub confirmed_chunks: u64,
    /// What the job's control log says of the queue's silence.
    pub recorded: QueueSilence,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueAction {
    /// Write down that the queue was silent: [`Fact::QueueSilent`](crate::Fact::QueueSilent).
    Note {
        /// The round that is being counted.
        round: u32,
        /// For how long, over the connection of the event.
        ms: u64,
    },
    /// Find out whether the broker stores messages at all, and tell by [`QueueEvent::Probed`].
    Probe,
    /// Write down that this round begins ([`Fact::QueueCleared`](crate::Fact::QueueCleared)), so that nobody else deletes the queue
    /// for what is known now; then delete it and declare it again; then write down that the [`next`](QueueAction::after) round
    /// begins, so that what was sent to the old queue meanwhile is not held against the new one. One attempt: if it fails, the
    /// suspicion has to grow anew first.
    MakeAnew {
        /// The round that begins.
        round: u32,
    },
    /// Write down that this round begins, and leave the queue alone.
    Clear {
        /// The round that begins.
        round: u32,
    },
    /// Give the present connection up.
    Reconnect,
}

impl QueueAction {
    /// The round that begins when the queue of a [`QueueAction::MakeAnew`] of this round was declared again.
    pub fn after(round: u32) -> u32 {
        round + 1
    }
}

/// What is held against a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Suspicion {
    /// How long it was waited for, here and elsewhere.
    silence: QueueSilence,
    /// The last wait that was ordered to be written down, and whose.
    noted: Option<(u32, Witness, u64)>,
    /// The connection over which a probe is under way.
    probing: Option<Witness>,
    /// Since when the broker has been known to store messages elsewhere, while this queue was silent.
    stores_since_ms: Option<u64>,
    /// The connection over which it refuses messages although nothing waits in it, in which round, and since when.
    refusing: Option<(u64, u32, u64)>,
}

impl Suspicion {
    fn waited(&mut self, sighting: &Sighting, ms: u64) -> Option<QueueAction> {
        let by = sighting.by;
        if sighting.confirmed_chunks > 0 {
            // Nothing could be done about it: what it has confirmed may still be there.
            return None;
        }
        self.silence.merge(&sighting.recorded);
        let round = self.silence.round();
        if sighting.sent_in_round != round {
            return None;
        }
        self.silence.note(round, by, ms);
        if self.silence.is_long() {
            return (self.probing.replace(by) != Some(by)).then_some(QueueAction::Probe);
        }
        let before = self.noted.filter(|&(of, whose, _)| (of, whose) == (round, by)).map_or(0, |(_, _, ms)| ms);
        if ms < before + SILENCE_NOTE_MS {
            return None;
        }
        self.noted = Some((round, by, ms));
        Some(QueueAction::Note { round, ms })
    }

    /// An empty queue refuses messages.
    fn refused(&mut self, sighting: &Sighting, now_ms: u64) -> Option<QueueAction> {
        let (epoch, round) = (sighting.by.epoch, sighting.sent_in_round);
        let known = self.refusing.filter(|&(of, during, _)| (of, during) == (epoch, round));
        let (_, _, since) = *self.refusing.insert(known.unwrap_or((epoch, round, now_ms)));
        let ms = now_ms.saturating_sub(since);
        match self.waited(sighting, ms) {
            Some(QueueAction::Note { .. }) | None if ms >= REFUSING_MS => Some(QueueAction::Reconnect),
            action => action,
        }
    }

    fn probed(&mut self, probe: &Probe, now_ms: u64) -> Option<QueueAction> {
        self.probing = None;
        self.silence.merge(&probe.recorded);
        if !self.silence.is_long() {
            // It has confirmed something meanwhile, or another gateway was quicker.
            self.stores_since_ms = None;
            return None;
        }
        let holds_nothing = probe.waiting == Some(0) && probe.confirmed_chunks == 0;
        let looks_dead = probe.broker_stores && holds_nothing;
        let since_ms = *self.stores_since_ms.get_or_insert(now_ms);
        if looks_dead && now_ms.saturating_sub(since_ms) < REVIVAL_MS {
            // A disk that stood still and has just gone on: the queue's confirms, and receipts, may be under way.
            return None;
        }
        self.stores_since_ms = None;
        let round = self.silence.round() + 1;
        self.silence.begin(round);
        Some(match looks_dead {
            true => QueueAction::MakeAnew { round },
            false => QueueAction::Clear { round },
        })
    }
}

/// The queues of one process that seem not to work.
#[derive(Debug, Clone, Default)]
pub struct QueueWatch {
    suspicions: BTreeMap<String, Suspicion>,
}

impl QueueWatch {
    /// The round of a queue's silence in which a message is sent now, given what the control log says of it. What this process has
    /// found itself counts, too: the log may have lost it, or not have it yet.
    pub fn round(&self, queue: &str, recorded: &QueueSilence) -> u32 {
        let known = self.suspicions.get(queue).map_or(0, |suspicion| suspicion.silence.round());
        known.max(recorded.round())
    }

    /// Takes in what was seen of a queue at `now_ms`, of a clock that does not go back, and says what to do.
    pub fn handle(&mut self, queue: &str, event: QueueEvent, now_ms: u64) -> Option<QueueAction> {
        if event == QueueEvent::Confirmed {
            self.suspicions.remove(queue);
            return None;
        }
        // Queues of jobs that are gone stay here. What is forgotten with them is suspected anew.
        if self.suspicions.len() >= MAX_WATCHED_QUEUES && !self.suspicions.contains_key(queue) {
            self.suspicions.clear();
        }
        let suspicion = self.suspicions.entry(queue.to_owned()).or_default();
        match event {
            QueueEvent::Confirmed => None,
            QueueEvent::Waited { sighting, ms } => suspicion.waited(&sighting, ms),
            QueueEvent::Refused { sighting, waiting: Some(0) } => suspicion.refused(&sighting, now_ms),
            // It is full, or the broker does not say.
            QueueEvent::Refused { .. } => {
                suspicion.refusing = None;
                None
            }
            QueueEvent::Probed(probe) => suspicion.probed(&probe, now_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemberId;
    use crate::limits::SILENT_QUEUE_MS;

    fn dead() -> Probe {
        Probe { broker_stores: true, waiting: Some(0), confirmed_chunks: 0, recorded: QueueSilence::default() }
    }

    fn witness(member: u64, epoch: u64) -> Witness {
        Witness { member: MemberId(member), epoch }
    }

    /// A wait of which the control log says nothing.
    fn waited(member: u64, epoch: u64, ms: u64) -> QueueEvent {
        QueueEvent::Waited { sighting: sighting(member, epoch), ms }
    }

    /// The same of a message that was sent in a later round.
    fn waited_in(round: u32, member: u64, epoch: u64, ms: u64) -> QueueEvent {
        QueueEvent::Waited { sighting: Sighting { sent_in_round: round, ..sighting(member, epoch) }, ms }
    }

    fn sighting(member: u64, epoch: u64) -> Sighting {
        let recorded = QueueSilence::default();
        Sighting { by: witness(member, epoch), recorded, confirmed_chunks: 0, sent_in_round: 0 }
    }

    /// A watch that has just asked for a probe of queue `a`.
    fn suspicious() -> QueueWatch {
        let mut watch = QueueWatch::default();
        let long = SILENT_QUEUE_MS;
        assert_eq!(watch.handle("a", waited(1, 3, long), 0), Some(QueueAction::Note { round: 0, ms: long }));
        assert_eq!(watch.handle("a", waited(1, 3, long + 1), 0), None, "over the same connection");
        assert_eq!(watch.handle("b", waited(1, 4, 5), 0), None, "another queue");
        assert_eq!(watch.handle("a", waited(1, 4, 5), 0), Some(QueueAction::Probe));
        assert_eq!(watch.handle("a", waited(1, 4, 6), 0), None, "a probe is under way");
        watch
    }

    #[test]
    fn a_queue_without_confirmed_chunks_is_made_anew_where_others_work() {
        let mut watch = suspicious();
        assert_eq!(watch.handle("a", QueueEvent::Probed(dead()), 10), None, "its disk may have gone on just now");
        assert_eq!(watch.handle("a", waited(1, 4, 7), 10), Some(QueueAction::Probe));
        assert_eq!(watch.handle("a", QueueEvent::Probed(dead()), 9 + REVIVAL_MS), None);
        assert_eq!(watch.handle("a", waited(1, 4, 8), 9 + REVIVAL_MS), Some(QueueAction::Probe));
        let action = watch.handle("a", QueueEvent::Probed(dead()), 10 + REVIVAL_MS);
        assert_eq!(action, Some(QueueAction::MakeAnew { round: 1 }));
    }

    /// Found by the simulator: a disk goes on, one gateway's chunk is confirmed and delivered, and another gateway, which has not
    /// read the receipt yet, finds an empty queue on a broker that stores.
    #[test]
    fn a_queue_that_has_just_come_back_has_time_to_confirm() {
        let mut watch = suspicious();
        assert_eq!(watch.handle("a", QueueEvent::Probed(dead()), 10), None);
        let with_receipt = Probe { confirmed_chunks: 1, ..dead() };
        assert_eq!(watch.handle("a", waited(1, 4, 7), 10), Some(QueueAction::Probe));
        assert_eq!(watch.handle("a", QueueEvent::Probed(with_receipt), 20), Some(QueueAction::Clear { round: 1 }));
    }

    #[test]
    fn a_queue_is_left_alone_while_the_broker_stores_nothing_or_chunks_may_be_in_it() {
        let harmless = [
            Probe { broker_stores: false, ..dead() },
            Probe { waiting: Some(1), ..dead() },
            Probe { waiting: None, ..dead() },
            Probe { confirmed_chunks: 1, ..dead() },
        ];
        for probe in harmless {
            let mut watch = suspicious();
            assert_eq!(watch.handle("a", QueueEvent::Probed(probe), 0), Some(QueueAction::Clear { round: 1 }));
            // The next probe needs as long a silence as the first.
            let long = SILENT_QUEUE_MS;
            let note = Some(QueueAction::Note { round: 1, ms: long });
            assert_eq!(watch.handle("a", waited_in(1, 1, 5, long), 0), note);
            assert_eq!(watch.handle("a", waited_in(1, 1, 6, 5), 0), Some(QueueAction::Probe));
        }
    }

    #[test]
    fn a_queue_with_confirmed_chunks_is_waited_for_without_a_word() {
        let mut watch = QueueWatch::default();
        for epoch in 0..9 {
            let sighting = Sighting { confirmed_chunks: 1, ..sighting(1, epoch) };
            assert_eq!(watch.handle("a", QueueEvent::Waited { sighting, ms: SILENT_QUEUE_MS }, 0), None);
        }
    }

    #[test]
    fn gateways_that_live_for_seconds_go_on_counting_where_the_last_one_died() {
        let mut recorded = QueueSilence::default();
        let mut lives = 0;
        let probed_by = 'lives: loop {
            lives += 1;
            let mut watch = QueueWatch::default();
            // Each lives for 2.5 s after its first message, and its last words are what it wrote every second.
            for ms in [250, 500, 1000, 1500, 2000, 2500] {
                let sighting = Sighting { recorded: recorded.clone(), ..sighting(lives, 1) };
                match watch.handle("a", QueueEvent::Waited { sighting, ms }, 0) {
                    Some(QueueAction::Note { round, ms }) => recorded.note(round, witness(lives, 1), ms),
                    Some(QueueAction::Probe) => break 'lives watch,
                    Some(other) => panic!("{other:?}"),
                    None => {}
                }
            }
        };
        assert_eq!(
            lives,
            SILENT_QUEUE_MS / 2000,
            "2 s of each life are remembered, and those of the last count at once"
        );
        let mut watch = probed_by;
        assert_eq!(watch.handle("a", QueueEvent::Probed(dead()), 0), None);
        let action = watch.handle("a", QueueEvent::Probed(dead()), REVIVAL_MS);
        assert_eq!(action, Some(QueueAction::MakeAnew { round: 1 }));
        recorded.begin(1);
        // Whoever comes next does not make it anew a second time.
        let sighting = Sighting { recorded, sent_in_round: 1, ..sighting(99, 1) };
        let event = QueueEvent::Waited { sighting, ms: 1000 };
        let note = Some(QueueAction::Note { round: 1, ms: 1000 });
        assert_eq!(QueueWatch::default().handle("a", event, 0), note);
    }

    /// Found by the simulator: messages that the dead queue had swallowed were held against the new one, which was deleted with
    /// confirmed chunks in it.
    #[test]
    fn what_was_sent_before_a_queue_was_made_anew_says_nothing_of_the_new_one() {
        let mut watch = suspicious();
        let mut recorded = QueueSilence::default();
        recorded.begin(1);
        for epoch in [4, 5, 6] {
            let sighting = Sighting { recorded: recorded.clone(), ..sighting(1, epoch) };
            assert_eq!(watch.handle("a", QueueEvent::Waited { sighting, ms: 9 * SILENT_QUEUE_MS }, 0), None);
        }
        assert!(watch.suspicions["a"].silence.is_empty());
        let note = Some(QueueAction::Note { round: 1, ms: 1000 });
        assert_eq!(watch.handle("a", waited_in(1, 1, 4, 1000), 0), note, "what was sent to the new one does");
    }

    /// Found by the simulator: the log lost the word that a round had begun, and nothing that was sent ever counted again.
    #[test]
    fn a_round_that_the_log_has_lost_is_counted_all_the_same() {
        let mut watch = suspicious();
        let harmless = Probe { broker_stores: false, ..dead() };
        assert_eq!(watch.handle("a", QueueEvent::Probed(harmless), 0), Some(QueueAction::Clear { round: 1 }));
        let round = watch.round("a", &QueueSilence::default());
        assert_eq!((round, watch.round("b", &QueueSilence::default())), (1, 0));
        let note = Some(QueueAction::Note { round: 1, ms: 1000 });
        assert_eq!(watch.handle("a", waited_in(round, 1, 5, 1000), 0), note);
    }

    #[test]
    fn a_queue_that_another_gateway_has_made_anew_while_it_was_probed_is_left_alone() {
        let mut recorded = QueueSilence::default();
        recorded.begin(1);
        assert_eq!(suspicious().handle("a", QueueEvent::Probed(Probe { recorded, ..dead() }), 0), None);
    }

    #[test]
    fn a_queue_that_confirms_while_it_is_probed_is_not_suspected_any_more() {
        let mut watch = suspicious();
        assert_eq!(watch.handle("a", QueueEvent::Confirmed, 0), None);
        assert_eq!(watch.handle("a", QueueEvent::Probed(dead()), 0), None);
        assert_eq!(watch.handle("b", waited(1, 5, SILENT_QUEUE_MS), 0), Some(QueueAction::Probe), "the other is");
    }

    #[test]
    fn a_connection_over_which_an_empty_queue_refuses_for_a_while_is_given_up() {
        let mut watch = QueueWatch::default();
        let mut refused = |epoch, waiting, now_ms| {
            let sighting = Sighting { confirmed_chunks: 1, ..sighting(1, epoch) };
            watch.handle("a", QueueEvent::Refused { sighting, waiting }, now_ms)
        };
        assert_eq!(refused(3, Some(0), 10), None);
        assert_eq!(refused(3, Some(0), 9 + REFUSING_MS), None);
        assert_eq!(refused(3, Some(0), 10 + REFUSING_MS), Some(QueueAction::Reconnect));
        assert_eq!(refused(4, Some(0), 11 + REFUSING_MS), None, "another connection");
        assert_eq!(refused(4, Some(7), 12 + REFUSING_MS), None, "it is full");
        assert_eq!(refused(4, Some(0), 12 + 2 * REFUSING_MS), None, "and has been since");
        assert_eq!(refused(4, None, 13 + 2 * REFUSING_MS), None, "the broker does not say");
    }

    #[test]
    fn an_empty_queue_that_refuses_over_one_connection_after_the_other_is_looked_into() {
        let mut watch = QueueWatch::default();
        let mut now_ms = 0;
        for epoch in 0.. {
            let mut refused = |now_ms| {
                let sighting = sighting(1, epoch);
                watch.handle("a", QueueEvent::Refused { sighting, waiting: Some(0) }, now_ms)
            };
            assert_eq!(refused(now_ms), None);
            assert_eq!(refused(now_ms + 1000), Some(QueueAction::Note { round: 0, ms: 1000 }));
            now_ms += REFUSING_MS;
            if refused(now_ms) == Some(QueueAction::Probe) {
                break;
            }
            assert_eq!(refused(now_ms), Some(QueueAction::Reconnect));
        }
        assert_eq!(now_ms, SILENT_QUEUE_MS);
        assert_eq!(watch.handle("a", QueueEvent::Probed(dead()), now_ms), None, "it has time to come back");
        let action = watch.handle("a", QueueEvent::Probed(dead()), now_ms + REVIVAL_MS);
        assert_eq!(action, Some(QueueAction::MakeAnew { round: 1 }));
    }

    #[test]
    fn no_more_than_so_many_queues_are_remembered() {
        let mut watch = QueueWatch::default();
        for number in 0..3 * MAX_WATCHED_QUEUES {
            watch.handle(&number.to_string(), waited(1, 1, 1), 0);
            assert!(watch.suspicions.len() <= MAX_WATCHED_QUEUES);
        }
    }
}
