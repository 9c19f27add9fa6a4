//! The results log as a reader sees it. Whoever reads it from the start, in any process, sees the same.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use tenaz_cluster::{LogMessage, ResultEnd};
use tenaz_core::{Inbox, Mailbox, Promise, QueryId, Source, StageId, TableId, Topology, Verdict};
use tenaz_engine::{Edge, JobPlan};

use super::rows::decode;
use crate::Error;
use crate::job_rows::{ChunkAccount, Message, RejectPiece};
use crate::row_set::RowSet;

/// The kinds of messages in a results log.
pub(super) mod kind {
    /// Rows of a finished task, and the account of a chunk.
    pub(crate) const ROWS: &str = "rows";
    /// Rows that are certain before their task is finished. A hint: the task's own rows repeat them.
    pub(crate) const EARLY: &str = "early";
    /// Everything is there.
    pub(crate) const END: &str = "end";
}

/// Something that a reader of the results learns.
#[derive(Debug)]
pub enum ResultEvent {
    /// Rows of an answer, each told once. Those of an ordered answer come in order.
    Rows(QueryId, RecordBatch),
    /// What became of a chunk's records.
    Account(Source, ChunkAccount),
    /// Some bad records of a chunk.
    Rejects(Source, RejectPiece),
    /// All answers are complete.
    End(ResultEnd),
}

/// Reads a results log.
#[derive(Debug)]
pub struct ResultsFold {
    plan: Arc<JobPlan>,
    mailbox: Mailbox,
    held: BTreeMap<(Source, u64), BTreeMap<u32, Message>>,
    /// For stages that answer early: the rows told already.
    told: BTreeMap<StageId, RowSet>,
    log: String,
    ended: bool,
}

impl ResultsFold {
    /// Nothing read yet. `log` is the log's name, for errors.
    pub fn new(plan: Arc<JobPlan>, topology: &Topology, log: String) -> Self {
        let mailbox = Mailbox::new(Inbox::of_results(topology));
        Self { plan, mailbox, held: BTreeMap::new(), told: BTreeMap::new(), log, ended: false }
    }

    /// The offset to read from next.
    pub fn next_offset(&self) -> u64 {
        self.mailbox.next_offset()
    }

    /// Which chunks of a table are promised, where that is known. It only helps to name what is missing.
    pub fn promise(&mut self, table: TableId, promise: &Promise) -> Result<(), Error> {
        Ok(self.mailbox.inbox_mut().promise(table, promise)?)
    }

    /// Takes a message in and says what is new. After the end nothing is.
    pub fn take(&mut self, message: &LogMessage) -> Result<Vec<ResultEvent>, Error> {
        if self.ended {
            return Ok(Vec::new());
        }
        match message.kind.as_str() {
            kind::ROWS => {
                let decoded = decode(&self.log, &message.body)?;
                self.rows(message.offset, decoded)
            }
            kind::EARLY => self.early(decode(&self.log, &message.body)?),
            kind::END => {
                let end = serde_json::from_slice(&message.body).map_err(|error| tenaz_cluster::Error::BadMessage {
                    place: self.log.clone(),
                    detail: error.to_string(),
                })?;
                self.ended = true;
                Ok(vec![ResultEvent::End(end)])
            }
            other => {
                Err(tenaz_cluster::Error::BadMessage { place: self.log.clone(), detail: format!("it is a {other:?}") }
                    .into())
            }
        }
    }

    fn rows(&mut self, offset: u64, message: Message) -> Result<Vec<ResultEvent>, Error> {
        let id = message.id;
        match self.mailbox.receive(offset, id) {
            Verdict::Drop => Ok(Vec::new()),
            Verdict::Hold => {
                self.held.entry((id.source, id.content)).or_default().insert(id.part, message);
                Ok(Vec::new())
            }
            Verdict::Take => {
                let mut parts = self.held.remove(&(id.source, id.content)).unwrap_or_default();
                parts.insert(id.part, message);
                self.held.retain(|(source, _), _| *source != id.source);
                let mut events = Vec::new();
                for message in parts.into_values() {
                    self.tell(id.source, message, &mut events)?;
                }
                Ok(events)
            }
        }
    }

    fn tell(&mut self, source: Source, message: Message, events: &mut Vec<ResultEvent>) -> Result<(), Error> {
        for (stage, batch) in message.rows {
            let Edge::Results(query) = self.plan.stage(stage).edge else { continue };
            let news = match self.told.get_mut(&stage) {
                Some(told) => told.news(&batch)?,
                None => batch,
            };
            if news.num_rows() > 0 {
                events.push(ResultEvent::Rows(query, news));
            }
        }
        events.extend(message.account.map(|account| ResultEvent::Account(source, account)));
        events.extend(message.rejects.map(|rejects| ResultEvent::Rejects(source, rejects)));
        Ok(())
    }

    fn early(&mut self, message: Message) -> Result<Vec<ResultEvent>, Error> {
        let mut events = Vec::new();
        if self.mailbox.inbox().has(message.id.source) {
            return Ok(events);
        }
        for (stage, batch) in message.rows {
            let Edge::Results(query) = self.plan.stage(stage).edge else { continue };
            if let Entry::Vacant(entry) = self.told.entry(stage) {
                entry.insert(RowSet::new(&batch.schema())?);
            }
            if let Some(told) = self.told.get_mut(&stage) {
                let news = told.news(&batch)?;
                if news.num_rows() > 0 {
                    events.push(ResultEvent::Rows(query, news));
                }
            }
        }
        Ok(events)
    }
}
