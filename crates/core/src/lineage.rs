//! Lineage: which bytes an output was made of, so that two versions of one chunk never end up in one answer.
//!
//! ```text
//!  chunk's bytes ──SHA-256──▶ ChunkDigest ─▶ Lineage of its outputs ──▶ partition log: EdgeSums ─▶ Lineage of the task's output ─┐
//!                                                   │                                                                            │
//!                                                   └──────────▶ results log: LineageCheck ◀── recomputed over the topology ─────┘
//! ```
//!
//! A message says what it was made of: the digest of a chunk, or the combination of everything that an inner task took from
//! its partition's log. Combining does not depend on the order of arrival, so every owner of a partition finds the same. The
//! owner of the results knows every chunk's digest from the accounts. From these it computes what every inner task must have
//! taken, and compares: a partition that took another version of a chunk, or not all that its log held, fails the job.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::{Error, Partition, QueryId, Route, Source, StageId, TableId, TaskSet, Topology};

/// The identity of a chunk's bytes, before any compression: the first 64 bits of their SHA-256.
///
/// Digests are only ever compared between versions of the same chunk, so two versions that differ by accident pass for the
/// same once in 2^64 times, however many chunks a job has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkDigest(pub u64);

impl ChunkDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        ChunkHasher::default().finish_with(bytes)
    }

    /// The digest with this text: 16 digits of `0-9a-f`.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        is_plain.then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for ChunkDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for ChunkDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChunkDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no digest of a chunk")))
    }
}

/// A [`ChunkDigest`] of bytes that come in pieces.
#[derive(Debug, Clone, Default)]
pub struct ChunkHasher(Sha256);

impl ChunkHasher {
    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes.
    pub fn finish(self) -> ChunkDigest {
        let hash: [u8; 32] = self.0.finalize().into();
        let (first, _) = hash.split_first_chunk().expect("a SHA-256 has more than eight bytes");
        ChunkDigest(u64::from_be_bytes(*first))
    }

    fn finish_with(mut self, bytes: &[u8]) -> ChunkDigest {
        self.update(bytes);
        self.finish()
    }
}

/// What an output was made of. Outputs of one source with the same lineage were made of the same bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lineage {
    /// Of a chunk: its digest. Of an inner task: the combination of all outputs that it took from its partition's log.
    pub input: u64,
    /// The combination of the broadcasts that it used; 0 where it used none.
    pub broadcasts: u64,
}

impl Lineage {
    /// The lineage of a chunk's outputs.
    pub fn of_chunk(digest: ChunkDigest, broadcasts: u64) -> Self {
        Self { input: digest.0, broadcasts }
    }

    /// One number for an output of this source and lineage. These are added up, so that the order does not matter.
    fn term(self, source: Source) -> u64 {
        let (kind, major, minor) = match source {
            Source::Chunk { table, number } => (1, u64::from(table.0), number),
            Source::Task { stage, partition } => (2, u64::from(stage.0), u64::from(partition.0)),
        };
        scrambled(&[kind, major, minor, self.input, self.broadcasts])
    }
}

/// The combined lineage of the outputs taken from a partition's log or from the broadcast log, per edge. It is kept and given
/// away together with the rows of these edges, so that rows which are lost on the way to their task are missed.
#[derive(Debug, Clone, Default)]
pub struct EdgeSums {
    /// The edges that a message of a chunk of this table is for.
    edges_of: BTreeMap<TableId, Vec<StageId>>,
    sums: BTreeMap<StageId, u64>,
}

impl EdgeSums {
    /// Nothing taken yet from a partition's log.
    pub fn of_partition(topology: &Topology, partition: Partition) -> Self {
        Self::new(topology, |edge| topology.arrives_in(edge, partition))
    }

    /// Nothing taken yet from the broadcast log.
    pub fn of_broadcast(topology: &Topology) -> Self {
        Self::new(topology, |edge| topology.stage(edge).route == Route::Broadcast)
    }

    fn new(topology: &Topology, arrives: impl Fn(StageId) -> bool) -> Self {
        let mut edges_of: BTreeMap<TableId, Vec<StageId>> = BTreeMap::new();
        for (edge, shape) in topology.stages().filter(|(edge, _)| arrives(*edge)) {
            if let TaskSet::PerChunk(table) = shape.tasks {
                edges_of.entry(table).or_default().push(edge);
            }
        }
        Self { edges_of, sums: BTreeMap::new() }
    }

    /// Takes note of an output: once, however many parts it has.
    pub fn take(&mut self, source: Source, lineage: Lineage) {
        let term = lineage.term(source);
        let edges = match &source {
            Source::Chunk { table, .. } => self.edges_of.get(table).map_or(&[][..], Vec::as_slice),
            Source::Task { stage, .. } => std::slice::from_ref(stage),
        };
        for &edge in edges {
            let sum = self.sums.entry(edge).or_default();
            *sum = sum.wrapping_add(term);
        }
    }

    /// The combination of what was taken over these edges.
    pub fn of_edges<'a>(&self, edges: impl IntoIterator<Item = &'a StageId>) -> u64 {
        combined(edges, |edge| self.sums.get(&edge).copied())
    }

    /// What was taken over this edge has been given away.
    pub fn forget(&mut self, edge: StageId) {
        self.sums.remove(&edge);
    }
}

/// The combined lineage of everything taken from the results log, and the check that all of it is one version.
#[derive(Debug, Clone, Default)]
pub struct LineageCheck {
    tables: BTreeMap<TableId, TableSum>,
    stages: BTreeMap<StageId, u64>,
}

/// The accounts of a table's chunks.
#[derive(Debug, Clone, Copy)]
struct TableSum {
    sum: u64,
    /// The broadcasts of the first chunk, and whether those of another were different.
    broadcasts: u64,
    broadcasts_differ: bool,
}

impl LineageCheck {
    /// Takes note of an output: once, however many parts it has.
    pub fn take(&mut self, source: Source, lineage: Lineage) {
        let term = lineage.term(source);
        match source {
            Source::Chunk { table, .. } => {
                let nothing = TableSum { sum: 0, broadcasts: lineage.broadcasts, broadcasts_differ: false };
                let found = self.tables.entry(table).or_insert(nothing);
                found.sum = found.sum.wrapping_add(term);
                found.broadcasts_differ |= found.broadcasts != lineage.broadcasts;
            }
            Source::Task { stage, .. } => {
                let sum = self.stages.entry(stage).or_default();
                *sum = sum.wrapping_add(term);
            }
        }
    }

    /// Whether every task took exactly the chunks that are accounted for, in the version that is accounted for.
    ///
    /// # Errors
    /// Names a stage or a table of which that is not so.
    pub fn check(&self, topology: &Topology) -> Result<(), Error> {
        self.check_only(topology, |_| true, |_| true)
    }

    /// The same for one query, whose rows and whose tables' accounts are complete. Others may not be.
    ///
    /// # Errors
    /// Names a stage or a table of which that is not so.
    pub fn check_query(&self, topology: &Topology, query: QueryId) -> Result<(), Error> {
        let tables = topology.tables_of(query);
        self.check_only(topology, |of| of == query, |table| tables.contains(&table))
    }

    fn check_only(
        &self,
        topology: &Topology,
        is_wanted: impl Fn(QueryId) -> bool,
        is_complete: impl Fn(TableId) -> bool,
    ) -> Result<(), Error> {
        let expected = self.expected(topology);
        for (stage, shape) in topology.stages() {
            if let (Route::Results(query), TaskSet::PerPartition | TaskSet::Single(_)) = (shape.route, shape.tasks)
                && is_wanted(query)
                && self.stages.get(&stage) != expected.get(&stage)
            {
                return Err(Error::MixedInput { stage });
            }
        }
        for (&table, found) in self.tables.iter().filter(|(table, _)| is_complete(**table)) {
            let edges: BTreeSet<StageId> = topology.broadcasts_of(table);
            let broadcasts = combined(&edges, |edge| expected.get(&edge).copied());
            if found.broadcasts_differ || found.broadcasts != broadcasts {
                return Err(Error::MixedBroadcast { table });
            }
        }
        Ok(())
    }

    /// What must have been taken over every edge, given the chunks that are accounted for. An edge over which nothing came
    /// has no entry.
    fn expected(&self, topology: &Topology) -> BTreeMap<StageId, u64> {
        let mut expected: BTreeMap<StageId, u64> = BTreeMap::new();
        // Stages only read earlier ones, so what they read is there.
        for (stage, shape) in topology.stages() {
            let of = |edge: StageId| expected.get(&edge).copied();
            let sum = match shape.tasks {
                TaskSet::PerChunk(table) => self.tables.get(&table).map(|found| found.sum),
                TaskSet::PerPartition | TaskSet::Single(_) => {
                    let broadcasts = combined(&shape.broadcasts, of);
                    let partitions = (0..topology.partitions()).map(Partition);
                    let terms = partitions.filter(|&partition| topology.runs_on(stage, partition)).map(|partition| {
                        let reads = shape.reads.iter().filter(|edge| topology.arrives_in(**edge, partition));
                        let lineage = Lineage { input: combined(reads, of), broadcasts };
                        lineage.term(Source::Task { stage, partition })
                    });
                    Some(terms.fold(0, u64::wrapping_add))
                }
            };
            expected.extend(sum.map(|sum| (stage, sum)));
        }
        expected
    }
}

fn combined<'a>(edges: impl IntoIterator<Item = &'a StageId>, sum_of: impl Fn(StageId) -> Option<u64>) -> u64 {
    let sums = edges.into_iter().filter_map(|&edge| Some((edge, sum_of(edge)?)));
    sums.fold(0, |all, (edge, sum)| all.wrapping_add(scrambled(&[3, u64::from(edge.0), sum])))
}

/// Mixes words so that sums of results are as good as random (the finalizer of SplitMix64). Versions differ by accident, not
/// by intent, so this need not withstand an attack.
fn scrambled(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |hash: u64, word| {
        let mut z = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QueryId, StageShape};

    const DIMENSION: TableId = TableId(0);
    const FACTS: TableId = TableId(1);

    /// A dimension broadcast to the scan of the facts, an aggregate per partition, and a single stage behind it.
    fn topology() -> Topology {
        let stage = |tasks, reads: &[u16], broadcasts: &[u16], route| {
            let ids = |ids: &[u16]| ids.iter().map(|&id| StageId(id)).collect();
            StageShape { tasks, reads: ids(reads), broadcasts: ids(broadcasts), route }
        };
        let stages = vec![
            stage(TaskSet::PerChunk(DIMENSION), &[], &[], Route::Broadcast),
            stage(TaskSet::PerChunk(FACTS), &[], &[0], Route::Hash),
            stage(TaskSet::PerPartition, &[1], &[], Route::One(Partition(1))),
            stage(TaskSet::Single(Partition(1)), &[2], &[], Route::Results(QueryId(0))),
        ];
        Topology::new(3, 2, stages).expect("a valid topology")
    }

    fn chunk(table: TableId, number: u64) -> Source {
        Source::Chunk { table, number }
    }

    /// A whole job, with the digests that each party saw: of the dimension in the broadcast log, and of fact `number` in the
    /// log of a partition; in the accounts all digests are 7.
    fn conclusion(dimension: u64, fact: impl Fn(Partition, u64) -> Option<u64>) -> Result<(), Error> {
        let topology = topology();
        let mut results = LineageCheck::default();
        let mut broadcast = EdgeSums::of_broadcast(&topology);
        results.take(chunk(DIMENSION, 0), Lineage::of_chunk(ChunkDigest(7), 0));
        broadcast.take(chunk(DIMENSION, 0), Lineage::of_chunk(ChunkDigest(dimension), 0));
        let broadcasts = broadcast.of_edges(&[StageId(0)]);
        let mut last = EdgeSums::of_partition(&topology, Partition(1));
        for partition in (0..3).map(Partition) {
            let mut sums = EdgeSums::of_partition(&topology, partition);
            for number in [2, 0, 1] {
                if let Some(digest) = fact(partition, number) {
                    sums.take(chunk(FACTS, number), Lineage::of_chunk(ChunkDigest(digest), broadcasts));
                }
            }
            let lineage = Lineage { input: sums.of_edges(&[StageId(1)]), broadcasts: 0 };
            last.take(Source::Task { stage: StageId(2), partition }, lineage);
        }
        (0..3).for_each(|n| results.take(chunk(FACTS, n), Lineage::of_chunk(ChunkDigest(7), broadcasts)));
        let lineage = Lineage { input: last.of_edges(&[StageId(2)]), broadcasts: 0 };
        results.take(Source::Task { stage: StageId(3), partition: Partition(1) }, lineage);
        results.check(&topology)
    }

    #[test]
    fn one_version_of_every_chunk_everywhere_is_right() {
        assert_eq!(conclusion(7, |_, _| Some(7)), Ok(()));
    }

    #[test]
    fn another_version_in_one_partition_is_found_two_stages_later() {
        let mixed = conclusion(7, |p, n| Some(if (p, n) == (Partition(2), 1) { 8 } else { 7 }));
        assert_eq!(mixed, Err(Error::MixedInput { stage: StageId(3) }));
        assert_eq!(
            conclusion(7, |_, n| Some(if n == 1 { 8 } else { 7 })),
            mixed,
            "all partitions, but not the account"
        );
    }

    #[test]
    fn rows_that_a_task_did_not_get_are_missed() {
        let lost = conclusion(7, |p, n| ((p, n) != (Partition(0), 2)).then_some(7));
        assert_eq!(lost, Err(Error::MixedInput { stage: StageId(3) }));
    }

    #[test]
    fn another_version_of_a_broadcast_is_found() {
        assert_eq!(conclusion(8, |_, _| Some(7)), Err(Error::MixedBroadcast { table: FACTS }));
    }

    #[test]
    fn versions_that_changed_places_are_not_the_same() {
        let swapped = conclusion(7, |p, n| Some(if p == Partition(0) { [8, 6, 7][n as usize] } else { 7 }));
        assert!(swapped.is_err());
    }

    #[test]
    fn a_digest_travels_as_text() {
        let digest = ChunkDigest::of(b"");
        assert_eq!(digest.to_string(), "e3b0c44298fc1c14", "sha256sum says the same");
        assert_eq!(ChunkDigest::parse("e3b0c44298fc1c14"), Some(digest));
        for wrong in ["", "e3b0", "E3B0C44298FC1C14", "+3b0c44298fc1c14"] {
            assert_eq!(ChunkDigest::parse(wrong), None, "{wrong}");
        }
        let mut pieces = ChunkHasher::default();
        [&b"1,a\n"[..], b"", b"2,b\n"].iter().for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.finish(), ChunkDigest::of(b"1,a\n2,b\n"));
    }
}
