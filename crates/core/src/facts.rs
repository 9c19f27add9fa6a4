//! What the control log of a job says: what was uploaded, which tables are complete, what was tried.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::digest_store::DigestStore;
use crate::{
    Attempt, ChunkDigest, Error, IntervalSet, MemberId, Promise, QueryEnded, QueryId, QueueSilence, Source, TableId,
    Witness,
};

/// A fact about a job. Facts may be repeated and may come in any order, except that the first closing of a table counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fact")]
pub enum Fact {
    /// These chunks of a table are in their work queue, confirmed.
    Uploaded {
        /// The table.
        table: TableId,
        /// The chunks.
        chunks: Promise,
        /// The digests of their bytes, in the order of their numbers.
        digests: Vec<ChunkDigest>,
    },
    /// A whole file was uploaded and cut into chunks by a gateway.
    FileUploaded {
        /// The table.
        table: TableId,
        /// The file's ordinal within the table, from 1.
        file: u32,
        /// How many chunks it has.
        chunks: u64,
        /// How many records.
        records: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// The table has exactly these chunks.
    TableClosed {
        /// The table.
        table: TableId,
        /// Its chunks.
        chunks: Promise,
        /// Its records, where whoever sent them counted.
        records: Option<u64>,
        /// The bytes of its files.
        bytes: u64,
    },
    /// Somebody is about to run this.
    Attempted {
        /// What.
        source: Source,
        /// Who.
        by: Attempt,
    },
    /// Somebody has finished this, so that it is not what earlier attempts failed of.
    Exonerated {
        /// What.
        source: Source,
    },
    /// Somebody is about to plan the job.
    PlanBegun {
        /// Who.
        by: MemberId,
    },
    /// It has planned the job, or found that it cannot be planned.
    PlanEnded {
        /// Who.
        by: MemberId,
    },
    /// The broker has lost these chunks: they are to be sent again.
    Lost {
        /// The table.
        table: TableId,
        /// The chunks.
        chunks: Promise,
    },
    /// A gateway waits in vain for the first confirm of a wave's work queue.
    QueueSilent {
        /// The wave.
        wave: u16,
        /// The round that is being counted: see [`QueueSilence`].
        round: u32,
        /// The connection over which it waits.
        by: Witness,
        /// For how long, in milliseconds.
        ms: u64,
    },
    /// The silence of a wave's work queue is counted anew: it was made anew, or was looked into in vain.
    QueueCleared {
        /// The wave.
        wave: u16,
        /// The round that begins.
        round: u32,
    },
    /// The answer to a query is complete, or the query has failed. The first such fact of a query counts.
    QueryEnded {
        /// The query.
        query: QueryId,
        /// What came of it.
        end: QueryEnded,
    },
    /// A client is still there.
    Touched,
}

/// What is known of a file that a gateway cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadedFile {
    /// Its chunks.
    pub chunks: u64,
    /// Its records.
    pub records: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// A table that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedTable {
    /// Its chunks.
    pub chunks: Promise,
    /// Its records, where they were counted.
    pub records: Option<u64>,
    /// The bytes of its files.
    pub bytes: u64,
}

/// The chunk numbers of files that gateways cut: the file's ordinal in the upper half.
pub const FILE_SHIFT: u32 = 32;

/// The sum of all facts read so far.
#[derive(Debug, Clone, Default)]
pub struct JobFacts {
    uploaded: BTreeMap<TableId, IntervalSet>,
    /// Of all chunks that were ever uploaded: one that was lost must come again as it was.
    digests: BTreeMap<TableId, DigestStore>,
    closed: BTreeMap<TableId, ClosedTable>,
    files: BTreeMap<(TableId, u32), UploadedFile>,
    attempts: BTreeMap<Source, BTreeSet<Attempt>>,
    /// Who has begun to plan the job, and has not ended yet.
    planning: BTreeSet<MemberId>,
    /// Work queues that were waited for in vain, by wave.
    silent: BTreeMap<u16, QueueSilence>,
    /// Queries that have ended.
    ended: BTreeMap<QueryId, QueryEnded>,
    next_offset: u64,
}

impl JobFacts {
    /// Takes the fact at `offset` in. False if it was read before.
    ///
    /// Closing a table twice differently, or a chunk with two digests, is an error: one of two clients has other files. So is a
    /// query with two different ends.
    pub fn apply(&mut self, offset: u64, fact: &Fact) -> Result<bool, Error> {
        if offset < self.next_offset {
            return Ok(false);
        }
        self.next_offset = offset + 1;
        match fact {
            Fact::Uploaded { table, chunks, digests } => self.upload(*table, chunks, digests)?,
            Fact::FileUploaded { table, file, chunks, records, bytes } => {
                let uploaded = UploadedFile { chunks: *chunks, records: *records, bytes: *bytes };
                self.files.insert((*table, *file), uploaded);
            }
            Fact::TableClosed { table, chunks, records, bytes } => {
                let now = ClosedTable { chunks: chunks.clone(), records: *records, bytes: *bytes };
                let before = self.closed.entry(*table).or_insert_with(|| now.clone());
                if before.chunks != now.chunks {
                    let (before, now) = (before.chunks.len(), now.chunks.len());
                    return Err(Error::ClosedTwice { table: *table, before, now });
                }
            }
            Fact::Attempted { source, by } => {
                self.attempts.entry(*source).or_default().insert(*by);
            }
            Fact::Exonerated { source } => {
                self.attempts.remove(source);
            }
            Fact::PlanBegun { by } => {
                self.planning.insert(*by);
            }
            Fact::PlanEnded { by } => {
                self.planning.remove(by);
            }
            Fact::Lost { table, chunks } => {
                let uploaded = self.uploaded.entry(*table).or_default();
                chunks.ranges().iter().for_each(|&(first, end)| uploaded.remove_range(first, end));
            }
            Fact::QueueSilent { wave, round, by, ms } => self.silent.entry(*wave).or_default().note(*round, *by, *ms),
            Fact::QueueCleared { wave, round } => self.silent.entry(*wave).or_default().begin(*round),
            Fact::QueryEnded { query, end } => {
                let before = self.ended.entry(*query).or_insert_with(|| end.clone());
                if !before.agrees_with(end) {
                    return Err(Error::AnsweredTwice { query: *query });
                }
            }
            Fact::Touched => {}
        }
        Ok(true)
    }

    fn upload(&mut self, table: TableId, chunks: &Promise, digests: &[ChunkDigest]) -> Result<(), Error> {
        if chunks.len() != digests.len() as u64 {
            return Err(Error::BadReceipt { table, chunks: chunks.len(), digests: digests.len() });
        }
        let uploaded = self.uploaded.entry(table).or_default();
        let known = self.digests.entry(table).or_default();
        let mut changed = None;
        for (number, &digest) in chunks.numbers().zip(digests) {
            uploaded.insert(number);
            let before = known.get_or_insert(number, digest);
            if before != digest {
                changed.get_or_insert(Error::ChunkChanged { table, number, before, now: digest });
            }
        }
        changed.map_or(Ok(()), Err)
    }

    /// The digest of a chunk's bytes, if it was ever uploaded.
    pub fn digest(&self, table: TableId, number: u64) -> Option<ChunkDigest> {
        self.digests.get(&table)?.get(number)
    }

    /// Whether a chunk of these bytes agrees with what was uploaded under its number, if anything was.
    ///
    /// # Errors
    /// Names the chunk if its bytes are others.
    pub fn check_digest(&self, table: TableId, number: u64, digest: ChunkDigest) -> Result<(), Error> {
        match self.digest(table, number) {
            Some(before) if before != digest => Err(Error::ChunkChanged { table, number, before, now: digest }),
            _ => Ok(()),
        }
    }

    /// How many have begun to plan the job and died, or left, before they ended.
    pub fn planners_lost(&self, is_alive: impl Fn(MemberId) -> bool) -> usize {
        self.planning.iter().filter(|&&member| !is_alive(member)).count()
    }

    /// For how long the work queue of a wave was waited for in vain.
    pub fn queue_silence(&self, wave: u16) -> QueueSilence {
        self.silent.get(&wave).cloned().unwrap_or_default()
    }

    /// The end of a query, if it has ended.
    pub fn query_end(&self, query: QueryId) -> Option<&QueryEnded> {
        self.ended.get(&query)
    }

    /// All queries that have ended.
    pub fn query_ends(&self) -> impl Iterator<Item = (QueryId, &QueryEnded)> {
        self.ended.iter().map(|(&query, end)| (query, end))
    }

    /// The offset to read from next.
    pub fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// The chunks of a table that are known to be in the cluster.
    pub fn uploaded(&self, table: TableId) -> IntervalSet {
        self.uploaded.get(&table).cloned().unwrap_or_default()
    }

    /// The table, if it is complete.
    pub fn closed(&self, table: TableId) -> Option<&ClosedTable> {
        self.closed.get(&table)
    }

    /// All complete tables.
    pub fn closed_tables(&self) -> impl Iterator<Item = (TableId, &ClosedTable)> {
        self.closed.iter().map(|(&table, closed)| (table, closed))
    }

    /// A file that a gateway cut.
    pub fn file(&self, table: TableId, file: u32) -> Option<UploadedFile> {
        self.files.get(&(table, file)).copied()
    }

    /// The ordinals of the table's files that gateways cut.
    pub fn files(&self, table: TableId) -> impl Iterator<Item = (u32, UploadedFile)> + '_ {
        let range = self.files.range((table, 0)..=(table, u32::MAX));
        range.map(|((_, file), uploaded)| (*file, *uploaded))
    }

    /// The chunks of a table that are not in the cluster. `total` is the number the client means to send, where the table
    /// is not closed yet.
    pub fn missing(&self, table: TableId, total: Option<u64>) -> Vec<(u64, u64)> {
        let uploaded = self.uploaded(table);
        match (self.closed(table), total) {
            (Some(closed), _) => closed.chunks.missing_from(&uploaded),
            (None, Some(total)) => Promise::count(total).missing_from(&uploaded),
            (None, None) => Vec::new(),
        }
    }

    /// Whether all these tables are closed and all their chunks are in the cluster.
    pub fn is_uploaded(&self, tables: impl IntoIterator<Item = TableId>) -> bool {
        tables.into_iter().all(|table| self.closed.contains_key(&table) && self.missing(table, None).is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(0);

    fn uploaded(first: u64, end: u64) -> Fact {
        let digests = (first..end).map(ChunkDigest).collect();
        Fact::Uploaded { table: TABLE, chunks: Promise::runs([(first, end)]), digests }
    }

    fn closed(chunks: u64) -> Fact {
        Fact::TableClosed { table: TABLE, chunks: Promise::count(chunks), records: None, bytes: 0 }
    }

    #[test]
    fn what_is_missing_is_what_was_promised_and_not_confirmed() {
        let mut facts = JobFacts::default();
        assert_eq!(facts.apply(0, &uploaded(0, 2)), Ok(true));
        assert_eq!(facts.apply(0, &uploaded(0, 9)), Ok(false), "read before");
        assert_eq!(facts.missing(TABLE, Some(4)), vec![(2, 4)]);
        assert_eq!(facts.apply(1, &closed(3)), Ok(true));
        assert!(!facts.is_uploaded([TABLE]));
        assert_eq!(facts.apply(2, &uploaded(2, 3)), Ok(true));
        assert!(facts.is_uploaded([TABLE]));
        assert_eq!(facts.apply(3, &Fact::Lost { table: TABLE, chunks: Promise::runs([(1, 2)]) }), Ok(true));
        assert_eq!(facts.missing(TABLE, None), vec![(1, 2)]);
    }

    #[test]
    fn a_chunk_with_two_digests_is_a_contradiction_that_names_it() {
        let mut facts = JobFacts::default();
        assert_eq!(facts.apply(0, &uploaded(0, 3)), Ok(true));
        assert_eq!(facts.apply(1, &uploaded(1, 2)), Ok(true), "the same again");
        assert_eq!(facts.digest(TABLE, 2), Some(ChunkDigest(2)));
        let digests = vec![ChunkDigest(1), ChunkDigest(9), ChunkDigest(3)];
        let other = Fact::Uploaded { table: TABLE, chunks: Promise::runs([(1, 4)]), digests };
        let (before, now) = (ChunkDigest(2), ChunkDigest(9));
        let changed = Error::ChunkChanged { table: TABLE, number: 2, before, now };
        assert_eq!(facts.apply(2, &other), Err(changed.clone()));
        assert_eq!(facts.digest(TABLE, 2), Some(ChunkDigest(2)), "the first counts");
        assert!(facts.uploaded(TABLE).contains(3), "what else the receipt says is true");
        // A chunk that the broker has lost must come again as it was.
        assert_eq!(facts.apply(3, &Fact::Lost { table: TABLE, chunks: Promise::runs([(2, 3)]) }), Ok(true));
        assert_eq!(facts.check_digest(TABLE, 2, ChunkDigest(9)), Err(changed));
        assert_eq!(facts.check_digest(TABLE, 2, ChunkDigest(2)), Ok(()));
        let bad = Fact::Uploaded { table: TABLE, chunks: Promise::count(2), digests: Vec::new() };
        assert!(matches!(facts.apply(4, &bad), Err(Error::BadReceipt { .. })));
    }

    #[test]
    fn the_silence_of_a_queue_adds_up_from_gateway_to_gateway_until_it_is_cleared() {
        let mut facts = JobFacts::default();
        let silent = |member, round, ms| {
            let by = Witness { member: crate::MemberId(member), epoch: 1 };
            Fact::QueueSilent { wave: 3, round, by, ms }
        };
        assert_eq!(facts.apply(0, &silent(1, 0, 4000)), Ok(true));
        assert!(!facts.queue_silence(3).is_long());
        assert_eq!(facts.apply(1, &silent(2, 0, 4000)), Ok(true));
        assert!(facts.queue_silence(3).is_long());
        assert!(facts.queue_silence(2).is_empty(), "another wave");
        assert_eq!(facts.apply(2, &Fact::QueueCleared { wave: 3, round: 1 }), Ok(true));
        assert_eq!(facts.apply(3, &silent(1, 0, 9000)), Ok(true));
        assert!(facts.queue_silence(3).is_empty());
    }

    #[test]
    fn a_plan_that_was_begun_without_an_end_is_remembered_of_those_who_are_gone() {
        let mut facts = JobFacts::default();
        for (offset, member) in [1, 2, 3].into_iter().enumerate() {
            assert_eq!(facts.apply(offset as u64, &Fact::PlanBegun { by: MemberId(member) }), Ok(true));
        }
        assert_eq!(facts.apply(3, &Fact::PlanEnded { by: MemberId(2) }), Ok(true));
        assert_eq!(facts.planners_lost(|_| false), 2);
        assert_eq!(facts.planners_lost(|member| member == MemberId(3)), 1);
    }

    #[test]
    fn the_first_end_of_a_query_counts_and_another_answer_is_a_contradiction() {
        let ended = |rows, at_ms| {
            let outcome = crate::QueryOutcome::Answered { rows, fingerprint: "f".to_owned() };
            Fact::QueryEnded { query: QueryId(1), end: QueryEnded { outcome, at_ms } }
        };
        let mut facts = JobFacts::default();
        assert_eq!(facts.apply(0, &ended(3, 10)), Ok(true));
        assert_eq!(facts.apply(1, &ended(3, 20)), Ok(true), "a second owner of the results");
        assert_eq!(facts.query_end(QueryId(1)).map(|end| end.at_ms), Some(10));
        assert_eq!(facts.apply(2, &ended(4, 10)), Err(Error::AnsweredTwice { query: QueryId(1) }));
        assert_eq!(facts.query_ends().count(), 1);
    }

    #[test]
    fn two_clients_with_different_files_are_found_out() {
        let mut facts = JobFacts::default();
        assert_eq!(facts.apply(0, &closed(3)), Ok(true));
        assert_eq!(facts.apply(1, &closed(3)), Ok(true));
        assert!(matches!(facts.apply(2, &closed(4)), Err(Error::ClosedTwice { .. })));
    }
}
