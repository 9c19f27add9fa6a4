//! A client and its gateway: uploads chunks in any order, closes tables, and sends again what is missing.

use std::collections::{BTreeMap, BTreeSet};

use tenaz_core::{Fact, JobFacts, Promise, Source, TableId};

use crate::broker::{Broker, ConnectionId, Envelope, PublishId};
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::trace::Trace;

/// How far a chunk is on its way, as far as this client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upload {
    /// Sent, not confirmed.
    Sent,
    /// In its queue; the fact that says so is not confirmed.
    Confirmed,
    /// The fact is in the control log.
    Known,
}

/// The client. All it keeps can be found out again from the control log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client {
    /// Its connection; perhaps dead without its knowledge.
    pub(crate) connection: Option<ConnectionId>,
    facts: JobFacts,
    read_to: usize,
    uploads: BTreeMap<(TableId, u64), Upload>,
    closing: BTreeSet<TableId>,
    unconfirmed: BTreeMap<PublishId, (TableId, u64)>,
    /// In how many of a hundred cases a chunk is sent twice.
    twice_percent: u64,
}

impl Client {
    /// A client that has not connected yet.
    pub(crate) fn new(twice_percent: u64) -> Self {
        Self { twice_percent, ..Self::default() }
    }

    /// A new connection, perhaps through another gateway: what was under way is in doubt, what is known is read again.
    pub(crate) fn connect(&mut self, broker: &mut Broker) {
        *self = Self { connection: Some(broker.connect()), ..Self::new(self.twice_percent) };
    }

    /// The connection is gone.
    pub(crate) fn disconnected(&mut self) {
        self.connection = None;
    }

    /// Chunks that are to be sent now.
    fn to_send(&self, scenario: &Scenario) -> Vec<(TableId, u64)> {
        let tables = (0..scenario.topology.tables() as u16).map(TableId);
        let missing = tables.flat_map(|table| {
            let ranges = self.facts.missing(table, Some(scenario.chunks(table)));
            ranges.into_iter().flat_map(|(first, end)| first..end).map(move |number| (table, number))
        });
        missing.filter(|chunk| !self.uploads.contains_key(chunk)).collect()
    }

    /// Whether there is a chunk to be sent.
    pub(crate) fn wants_to_send(&self, scenario: &Scenario) -> bool {
        !self.to_send(scenario).is_empty()
    }

    /// Sends one of the missing chunks, now and then twice.
    pub(crate) fn send(&mut self, scenario: &Scenario, broker: &mut Broker, rng: &mut Rng, trace: &mut Trace) {
        let (Some(connection), missing) = (self.connection, self.to_send(scenario)) else { return };
        let Some(&(table, number)) = missing.get(rng.index(missing.len())) else { return };
        trace.note(format_args!("client sends chunk {number} of table {}", table.0));
        let chunk = Envelope::Chunk { wave: scenario.wave_of(table), source: Source::Chunk { table, number } };
        if rng.chance(self.twice_percent) {
            broker.publish(connection, chunk.clone());
        }
        self.unconfirmed.insert(broker.publish(connection, chunk), (table, number));
        self.uploads.insert((table, number), Upload::Sent);
    }

    /// A table whose chunks are all known to be in the cluster, and which nobody has closed.
    pub(crate) fn to_close(&self, scenario: &Scenario) -> Option<TableId> {
        let mut tables = (0..scenario.topology.tables() as u16).map(TableId);
        tables.find(|&table| {
            self.facts.closed(table).is_none()
                && !self.closing.contains(&table)
                && self.facts.missing(table, Some(scenario.chunks(table))).is_empty()
        })
    }

    /// Closes a table.
    pub(crate) fn close(&mut self, table: TableId, scenario: &Scenario, broker: &mut Broker, trace: &mut Trace) {
        let Some(connection) = self.connection else { return };
        trace.note(format_args!("client closes table {}", table.0));
        let chunks = Promise::count(scenario.chunks(table));
        let records = Some(scenario.records(table));
        broker.publish(connection, Envelope::Fact(Fact::TableClosed { table, chunks, records, bytes: 0 }));
        self.closing.insert(table);
    }

    /// A confirm: only now may the chunk be called uploaded.
    pub(crate) fn confirmed(&mut self, id: PublishId, broker: &mut Broker, trace: &mut Trace) {
        let (Some(connection), Some((table, number))) = (self.connection, self.unconfirmed.remove(&id)) else { return };
        let Some(upload) = self.uploads.get_mut(&(table, number)) else { return };
        match *upload {
            Upload::Sent => {
                *upload = Upload::Confirmed;
                trace.note(format_args!("client knows chunk {number} of table {} confirmed", table.0));
                let chunks = Promise::runs([(number, number + 1)]);
                let fact = Envelope::Fact(Fact::Uploaded { table, chunks });
                self.unconfirmed.insert(broker.publish(connection, fact), (table, number));
            }
            Upload::Confirmed => *upload = Upload::Known,
            Upload::Known => {}
        }
    }

    /// Whether the control log has news.
    pub(crate) fn can_read(&self, broker: &Broker) -> bool {
        self.read_to < broker.control().len()
    }

    /// Reads the next fact.
    pub(crate) fn read(&mut self, broker: &Broker) -> Result<(), tenaz_core::Error> {
        let Some(fact) = broker.control().get(self.read_to) else { return Ok(()) };
        self.facts.apply(self.read_to as u64, fact)?;
        self.read_to += 1;
        // Where a loss and an upload cross each other, the chunk is sent once too often rather than never.
        let (table, chunks, is_lost) = match fact {
            Fact::Uploaded { table, chunks } => (*table, chunks, false),
            Fact::Lost { table, chunks } => (*table, chunks, true),
            _ => return Ok(()),
        };
        self.uploads.retain(|&(of, number), upload| {
            of != table || !chunks.has(number) || (*upload != Upload::Known && !is_lost)
        });
        Ok(())
    }
}
