//! A model of the broker: what it keeps, what it promises, and all it may do to those who trust it too much.
//!
//! ```text
//!  publish ─▶ outbox ──accept──▶ queue or log ─▶ confirms ──▶ publisher
//!                │ cut: lost, or accepted later without a word   │ cut: lost
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenaz_core::{Fact, Log, RegistryEvent, Source};

use crate::rng::Rng;
use crate::rows::Message;

/// Something that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Envelope {
    /// A chunk for the work queue of a wave.
    Chunk {
        /// The wave.
        wave: usize,
        /// The chunk.
        source: Source,
    },
    /// Rows for a log.
    Rows(Log, Message),
    /// A fact for the control log.
    Fact(Fact),
    /// An event for the registry.
    Registry(RegistryEvent),
}

/// How many messages at the end of a log a power cut may take.
pub(crate) const MAX_TAIL: usize = 4;

/// A connection, by a number that is never used again.
pub(crate) type ConnectionId = u64;
/// A publish, by a number that is never used again.
pub(crate) type PublishId = u64;

/// One side of a connection: what is under way on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    outbox: VecDeque<(PublishId, Envelope)>,
    confirms: Vec<PublishId>,
    acks: VecDeque<(usize, u64)>,
    unacked: BTreeSet<(usize, u64)>,
}

#[derive(Debug, Clone)]
struct Queued {
    source: Source,
    redelivered: bool,
}

/// A work queue: messages keep their place, also when they come back.
#[derive(Debug, Clone, Default)]
struct Queue {
    ready: BTreeMap<u64, Queued>,
    unacked: BTreeMap<u64, Queued>,
    next_place: u64,
}

/// The parts of one content that were accepted, and how many there are.
type Accepted = BTreeMap<u64, (u32, BTreeSet<u32>)>;

/// The broker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Broker {
    connections: BTreeMap<ConnectionId, Connection>,
    queues: Vec<Queue>,
    logs: BTreeMap<Log, Vec<Message>>,
    control: Vec<Fact>,
    registry: Vec<RegistryEvent>,
    /// Publishes that survived their connection and will be accepted some time.
    ghosts: Vec<Envelope>,
    /// All that was ever accepted, also what a power cut took away.
    accepted: BTreeMap<(Log, Source), Accepted>,
    copies: BTreeMap<Source, u64>,
    last_id: u64,
}

impl Broker {
    /// An empty broker with this many work queues.
    pub(crate) fn new(waves: usize) -> Self {
        Self { queues: vec![Queue::default(); waves], ..Self::default() }
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// A new connection.
    pub(crate) fn connect(&mut self) -> ConnectionId {
        let id = self.next_id();
        self.connections.insert(id, Connection::default());
        id
    }

    /// Whether the connection is still there.
    pub(crate) fn is_open(&self, connection: ConnectionId) -> bool {
        self.connections.contains_key(&connection)
    }

    /// All connections.
    pub(crate) fn connections(&self) -> Vec<ConnectionId> {
        self.connections.keys().copied().collect()
    }

    /// Sends something. Whether it arrives is another question.
    pub(crate) fn publish(&mut self, connection: ConnectionId, envelope: Envelope) -> PublishId {
        let id = self.next_id();
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.outbox.push_back((id, envelope));
        }
        id
    }

    /// Whether something waits to be accepted on this connection.
    pub(crate) fn has_outgoing(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|c| !c.outbox.is_empty() || !c.acks.is_empty())
    }

    /// Accepts one of the next publishes or acknowledgements of a connection: channels overtake each other.
    pub(crate) fn accept(&mut self, connection: ConnectionId, rng: &mut Rng) -> Option<Envelope> {
        let open = self.connections.get_mut(&connection)?;
        let publish_first = open.acks.is_empty() || (!open.outbox.is_empty() && rng.chance(50));
        if !publish_first {
            let (wave, place) = open.acks.pop_front()?;
            open.unacked.remove(&(wave, place));
            self.queues[wave].unacked.remove(&place);
            return None;
        }
        let at = rng.index(open.outbox.len().min(3));
        let (id, envelope) = open.outbox.remove(at)?;
        open.confirms.push(id);
        self.store(envelope.clone());
        Some(envelope)
    }

    /// Whether publishes of dead connections are still under way.
    pub(crate) fn has_ghosts(&self) -> bool {
        !self.ghosts.is_empty()
    }

    /// Accepts a publish of a connection that is long dead.
    pub(crate) fn accept_ghost(&mut self, rng: &mut Rng) -> Option<Envelope> {
        if self.ghosts.is_empty() {
            return None;
        }
        let ghost = self.ghosts.swap_remove(rng.index(self.ghosts.len()));
        self.store(ghost.clone());
        Some(ghost)
    }

    fn store(&mut self, envelope: Envelope) {
        match envelope {
            Envelope::Chunk { wave, source } => {
                let queue = &mut self.queues[wave];
                queue.ready.insert(queue.next_place, Queued { source, redelivered: false });
                queue.next_place += 1;
                *self.copies.entry(source).or_default() += 1;
            }
            Envelope::Rows(log, message) => {
                let header = message.header;
                let accepted = self.accepted.entry((log, header.source)).or_default();
                accepted.entry(header.content).or_insert((header.parts, BTreeSet::new())).1.insert(header.part);
                self.logs.entry(log).or_default().push(message);
            }
            Envelope::Fact(fact) => self.control.push(fact),
            Envelope::Registry(event) => self.registry.push(event),
        }
    }

    /// Whether a confirm is under way.
    pub(crate) fn has_confirms(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|c| !c.confirms.is_empty())
    }

    /// One of the confirms under way, in any order.
    pub(crate) fn take_confirm(&mut self, connection: ConnectionId, rng: &mut Rng) -> Option<PublishId> {
        let confirms = &mut self.connections.get_mut(&connection)?.confirms;
        if confirms.is_empty() { None } else { Some(confirms.swap_remove(rng.index(confirms.len()))) }
    }

    /// Whether a chunk of the wave can be delivered to this connection.
    pub(crate) fn can_deliver(&self, connection: ConnectionId, wave: usize, prefetch: usize) -> bool {
        let free = self.connections.get(&connection).is_some_and(|c| c.unacked.len() < prefetch);
        free && !self.queues[wave].ready.is_empty()
    }

    /// Delivers the next chunk of the wave: its place, the chunk, and whether somebody had it before.
    pub(crate) fn deliver(&mut self, connection: ConnectionId, wave: usize) -> Option<(u64, Source, bool)> {
        let open = self.connections.get_mut(&connection)?;
        let (place, queued) = self.queues[wave].ready.pop_first()?;
        let delivery = (place, queued.source, queued.redelivered);
        self.queues[wave].unacked.insert(place, queued);
        open.unacked.insert((wave, place));
        Some(delivery)
    }

    /// Sends an acknowledgement.
    pub(crate) fn ack(&mut self, connection: ConnectionId, wave: usize, place: u64) {
        if let Some(open) = self.connections.get_mut(&connection) {
            open.acks.push_back((wave, place));
        }
    }

    /// Cuts a connection: what it carried is lost or becomes a ghost, its deliveries go back to their places.
    pub(crate) fn cut(&mut self, connection: ConnectionId, rng: &mut Rng) {
        let Some(closed) = self.connections.remove(&connection) else { return };
        for (wave, place) in closed.unacked {
            let queue = &mut self.queues[wave];
            if let Some(queued) = queue.unacked.remove(&place) {
                queue.ready.insert(place, Queued { redelivered: true, ..queued });
            }
        }
        let survivors = closed.outbox.into_iter().map(|(_, envelope)| envelope).filter(|_| rng.chance(30));
        self.ghosts.extend(survivors);
    }

    /// The power fails: confirmed messages at the ends of some logs are gone. Queues are synced to disk and keep theirs.
    pub(crate) fn lose_tails(&mut self, rng: &mut Rng) -> usize {
        let mut lost = 0;
        for log in self.logs.values_mut() {
            let tail = if rng.chance(60) { rng.index(log.len().min(MAX_TAIL) + 1) } else { 0 };
            log.truncate(log.len() - tail);
            lost += tail;
        }
        let tail = if rng.chance(60) { rng.index(self.control.len().min(MAX_TAIL) + 1) } else { 0 };
        self.control.truncate(self.control.len() - tail);
        lost + tail
    }

    /// The message at an offset.
    pub(crate) fn message(&self, log: Log, offset: u64) -> Option<&Message> {
        self.logs.get(&log)?.get(offset as usize)
    }

    /// Where a reader starts that asks for `from`: a log that ends before begins with whatever comes next.
    pub(crate) fn start(&self, log: Log, from: u64) -> u64 {
        from.min(self.logs.get(&log).map_or(0, |log| log.len() as u64))
    }

    /// The control log.
    pub(crate) fn control(&self) -> &[Fact] {
        &self.control
    }

    /// The registry.
    pub(crate) fn registry(&self) -> &[RegistryEvent] {
        &self.registry
    }

    /// Writes to the registry what was there before the run.
    pub(crate) fn seed_registry(&mut self, event: RegistryEvent) {
        self.registry.push(event);
    }

    /// Whether the log has, or had, a whole output of this source.
    pub(crate) fn was_accepted(&self, log: Log, source: Source) -> bool {
        let accepted = self.accepted.get(&(log, source));
        accepted.is_some_and(|contents| contents.values().any(|(parts, seen)| seen.len() as u32 == *parts))
    }

    /// How often the chunk was put into its queue.
    pub(crate) fn copies(&self, source: Source) -> u64 {
        self.copies.get(&source).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenaz_core::TableId;

    #[test]
    fn a_cut_connection_gives_its_chunks_back_to_their_places() {
        let mut broker = Broker::new(1);
        let mut rng = Rng::new(1);
        let chunk = |number| Source::Chunk { table: TableId(0), number };
        (0..3).for_each(|number| broker.store(Envelope::Chunk { wave: 0, source: chunk(number) }));
        let (first, second) = (broker.connect(), broker.connect());
        assert_eq!(broker.deliver(first, 0), Some((0, chunk(0), false)));
        assert_eq!(broker.deliver(first, 0), Some((1, chunk(1), false)));
        broker.ack(first, 0, 0);
        broker.accept(first, &mut rng);
        broker.cut(first, &mut rng);
        assert_eq!(broker.deliver(second, 0), Some((1, chunk(1), true)));
        assert_eq!(broker.deliver(second, 0), Some((2, chunk(2), false)));
    }

    #[test]
    fn a_confirm_is_lost_with_its_connection_but_the_message_is_not() {
        let mut broker = Broker::new(1);
        let mut rng = Rng::new(1);
        let connection = broker.connect();
        broker.publish(connection, Envelope::Fact(Fact::Touched));
        broker.accept(connection, &mut rng);
        broker.cut(connection, &mut rng);
        assert_eq!(broker.control(), [Fact::Touched]);
        assert_eq!(broker.take_confirm(connection, &mut rng), None);
    }
}
