//! What is asked of the simulated cluster: a shape of job, its data, and the answer that is right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenaz_core::{
    ChunkDigest, Error, FailedStages, FaultClass, Lineage, Log, Partition, QueryId, QueryOutcome, Route, Source,
    StageFailure, StageId, StageShape, TableId, TaskSet, Topology, Wave,
};

use crate::engine::RealJob;
use crate::rng::Rng;
use crate::rows::{Message, Op, Row, TaskRows, cut, partition_of};
use crate::store::LogState;

/// The kinds of job that are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// One table by hash, an aggregate per partition, a single top.
    Aggregate,
    /// A small table broadcast to the scans of a large one: two waves.
    Dimension,
    /// Two tables joined by hash.
    Join,
    /// Rows straight to the results.
    Filter,
    /// Inner stages that feed inner stages.
    Chain,
    /// An inner stage that needs a broadcast made by another inner stage.
    InnerBroadcast,
    /// Two queries over one table, one of them spread over the partitions regardless of keys.
    TwoQueries,
    /// Three waves, each of which waits for the one before.
    Waves,
    /// A job of a real engine ([`Options::real`](crate::Options::real)).
    Real,
}

/// All shapes of the simulator's own.
pub const SHAPES: [Shape; 8] = [
    Shape::Aggregate,
    Shape::Dimension,
    Shape::Join,
    Shape::Filter,
    Shape::Chain,
    Shape::InnerBroadcast,
    Shape::TwoQueries,
    Shape::Waves,
];

type Stage = (TaskSet, &'static [u16], &'static [u16], Route, Op);

impl Shape {
    fn stages(self) -> Vec<Stage> {
        let leaf = |table| TaskSet::PerChunk(TableId(table));
        let (each, single) = (TaskSet::PerPartition, TaskSet::Single(Partition(0)));
        let (hash, one) = (Route::Hash, Route::One(Partition(0)));
        let results = |query| Route::Results(QueryId(query));
        match self {
            Self::Aggregate => vec![
                (leaf(0), &[], &[], hash, Op::Sum),
                (each, &[0], &[], one, Op::Sum),
                (single, &[1], &[], results(0), Op::Top(5)),
            ],
            Self::Dimension => vec![
                (leaf(0), &[], &[], Route::Broadcast, Op::Scan),
                (leaf(1), &[], &[0], hash, Op::Lookup),
                (each, &[1], &[], results(0), Op::Sum),
            ],
            Self::Join => vec![
                (leaf(0), &[], &[], hash, Op::Scan),
                (leaf(1), &[], &[], hash, Op::Even),
                (each, &[0, 1], &[], results(0), Op::Join),
            ],
            Self::Filter => vec![(leaf(0), &[], &[], results(0), Op::Even)],
            Self::Chain => vec![
                (leaf(0), &[], &[], hash, Op::Sum),
                (each, &[0], &[], hash, Op::SumAndRekey),
                (each, &[1], &[], one, Op::Count),
                (single, &[2], &[], results(0), Op::Top(3)),
            ],
            Self::InnerBroadcast => vec![
                (leaf(0), &[], &[], hash, Op::Sum),
                (each, &[0], &[], Route::Broadcast, Op::Sum),
                (leaf(1), &[], &[], hash, Op::Scan),
                (each, &[2], &[1], results(0), Op::Lookup),
            ],
            Self::TwoQueries => vec![
                (leaf(0), &[], &[], results(0), Op::Even),
                (leaf(0), &[], &[], Route::Spread, Op::Sum),
                (each, &[1], &[], one, Op::Sum),
                (single, &[2], &[], results(1), Op::Sum),
            ],
            Self::Waves => vec![
                (leaf(0), &[], &[], hash, Op::Sum),
                (each, &[0], &[], Route::Broadcast, Op::Sum),
                (leaf(1), &[], &[1], Route::Broadcast, Op::Lookup),
                (leaf(2), &[], &[2], hash, Op::Lookup),
                (each, &[3], &[], results(0), Op::Sum),
            ],
            Self::Real => Vec::new(),
        }
    }

    fn tables(self) -> usize {
        match self {
            Self::Aggregate | Self::Filter | Self::Chain | Self::TwoQueries => 1,
            Self::Dimension | Self::Join | Self::InnerBroadcast => 2,
            Self::Waves => 3,
            Self::Real => 0,
        }
    }
}

/// A version of a chunk's bytes: a file may be changed between two attempts to send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// As the file was at first.
    First,
    /// As it was after the change.
    Second,
}

/// A chunk that is sent in two versions.
#[derive(Debug, Clone)]
pub(crate) struct ChangedChunk {
    /// The chunk.
    pub(crate) source: Source,
    /// Its rows in the second version.
    rows: Vec<Row>,
    /// The answer with the second version.
    pub(crate) answer: RightAnswer,
}

/// The right answer: the sorted rows of each query, or the stage whose failure it has failed with.
pub(crate) type RightAnswer = BTreeMap<QueryId, Result<Vec<Row>, StageId>>;

/// A stage that fails when there is a row with this key in its input. Whether there is does not depend on chunks or partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Intolerance {
    stage: StageId,
    key: u32,
}

/// How large a job is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// The largest number of partitions.
    pub(crate) partitions: u64,
    /// The largest number of chunks of a table.
    pub(crate) chunks: u64,
    /// The largest number of rows of a chunk.
    pub(crate) rows: u64,
}

/// A job, its data and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    /// What kind of job it is.
    pub(crate) shape: Shape,
    /// Its shape, as the protocol sees it.
    pub(crate) topology: Topology,
    /// The waves of its tables.
    pub(crate) waves: Vec<Wave>,
    /// For each table the rows of its chunks.
    pub(crate) tables: Vec<Vec<Vec<Row>>>,
    /// The right answer.
    pub(crate) answer: RightAnswer,
    /// What fails.
    intolerance: Option<Intolerance>,
    /// A chunk whose file was changed.
    pub(crate) changed: Option<ChangedChunk>,
    ops: Vec<Op>,
    rows_per_part: usize,
    real: Option<Arc<dyn RealJob>>,
}

impl Scenario {
    /// A job of this shape with chosen data.
    pub(crate) fn new(shape: Shape, size: Size, rng: &mut Rng) -> Result<Self, Error> {
        let stages = shape.stages();
        let ops = stages.iter().map(|stage| stage.4).collect();
        let ids = |ids: &[u16]| ids.iter().map(|&id| StageId(id)).collect();
        let shapes = stages.into_iter().map(|(tasks, reads, broadcasts, route, _)| StageShape {
            tasks,
            reads: ids(reads),
            broadcasts: ids(broadcasts),
            route,
        });
        let partitions = rng.between(1, size.partitions) as u16;
        let topology = Topology::new(partitions, shape.tables(), shapes.collect())?;
        // An empty table is rare, and a table like any other.
        let chunks = |rng: &mut Rng| if rng.chance(4) { 0 } else { rng.between(1, size.chunks) };
        let tables: Vec<Vec<Vec<Row>>> = (0..shape.tables())
            .map(|_| (0..chunks(rng)).map(|_| rows(rng.below(size.rows + 1), rng)).collect())
            .collect();
        let rows_per_part = rng.between(1, 4) as usize;
        let waves = topology.waves();
        let answer = BTreeMap::new();
        let intolerance = Intolerance::chosen(&topology, &tables);
        let mut scenario =
            Self { shape, topology, waves, tables, answer, intolerance, changed: None, ops, rows_per_part, real: None };
        scenario.answer = scenario.oracle();
        Ok(scenario)
    }

    /// A job of a real engine.
    pub(crate) fn of_real(job: Arc<dyn RealJob>) -> Self {
        let topology = job.topology();
        Self {
            shape: Shape::Real,
            waves: topology.waves(),
            topology,
            tables: Vec::new(),
            answer: BTreeMap::new(),
            intolerance: None,
            changed: None,
            ops: Vec::new(),
            rows_per_part: 1,
            real: Some(job),
        }
    }

    /// The job of a real engine, if it is one.
    pub(crate) fn real(&self) -> Option<&Arc<dyn RealJob>> {
        self.real.as_ref()
    }

    /// Lets one of the chunks have a second version, with as many records and other values.
    pub(crate) fn change_a_chunk(&mut self, rng: &mut Rng) {
        let tables = self.tables.iter().enumerate();
        let chunks: Vec<(usize, usize)> =
            tables.flat_map(|(table, chunks)| (0..chunks.len()).map(move |number| (table, number))).collect();
        let Some(&(table, number)) = chunks.get(rng.index(chunks.len())) else { return };
        let rows = rows(self.tables[table][number].len() as u64, rng);
        let first = std::mem::replace(&mut self.tables[table][number], rows);
        let answer = self.oracle();
        let rows = std::mem::replace(&mut self.tables[table][number], first);
        let source = Source::Chunk { table: TableId(table as u16), number: number as u64 };
        self.changed = Some(ChangedChunk { source, rows, answer });
    }

    /// The digest of a chunk's bytes.
    pub(crate) fn digest(&self, source: Source, version: Version) -> ChunkDigest {
        if let (Some(job), Source::Chunk { table, number }) = (&self.real, source) {
            return job.tables()[usize::from(table.0)][number as usize].digest;
        }
        ChunkDigest::of(format!("{source} {version:?}").as_bytes())
    }

    /// The answer without any chunks, partitions or messages: every stage once, over all rows. There is one intolerance at most,
    /// so a stage has failed with it or not at all.
    fn oracle(&self) -> RightAnswer {
        let mut made: Vec<Vec<Row>> = Vec::new();
        let mut failed: BTreeSet<StageId> = BTreeSet::new();
        let mut answer = RightAnswer::new();
        for (id, stage) in self.topology.stages() {
            let of = |ids: &[StageId]| ids.iter().map(|id| made[usize::from(id.0)].clone()).collect::<Vec<_>>();
            let inputs = match stage.tasks {
                TaskSet::PerChunk(table) => vec![self.tables[usize::from(table.0)].concat()],
                TaskSet::PerPartition | TaskSet::Single(_) => of(&stage.reads),
            };
            let rows = self.ops[usize::from(id.0)].apply(&inputs, &of(&stage.broadcasts).concat());
            let inherits = stage.reads.iter().chain(&stage.broadcasts).any(|read| failed.contains(read));
            // A table without chunks needs no broadcast.
            let has_tasks = !matches!(stage.tasks, TaskSet::PerChunk(table) if self.chunks(table) == 0);
            if has_tasks && (inherits || self.fails(id, &inputs)) {
                failed.insert(id);
            }
            if let (Route::Results(query), Some(intolerance)) = (stage.route, self.intolerance)
                && failed.contains(&id)
            {
                answer.insert(query, Err(intolerance.stage));
            } else if let Route::Results(query) = stage.route
                && let Ok(known) = answer.entry(query).or_insert_with(|| Ok(Vec::new()))
            {
                known.extend(rows.iter().copied());
            }
            made.push(rows);
        }
        answer.values_mut().flatten().for_each(|rows| rows.sort());
        answer
    }

    /// Whether a stage fails over these inputs.
    fn fails(&self, stage: StageId, inputs: &[Vec<Row>]) -> bool {
        let has = |key: u32| inputs.iter().flatten().any(|row| row.key == key);
        self.intolerance.is_some_and(|intolerance| intolerance.stage == stage && has(intolerance.key))
    }

    /// The answer that these rows of the results log are; a query of which a stage has failed has none, whatever rows of it have
    /// come.
    pub(crate) fn answer_of(&self, results: &LogState, query: QueryId) -> Result<Vec<Row>, StageId> {
        if let Some(failure) = results.failed().of_query(&self.topology, query) {
            return Err(failure.stage);
        }
        let is_of_query = |stage: StageId| self.topology.stage(stage).route == Route::Results(query);
        let mut rows: Vec<Row> = results.rows().filter(|(stage, _)| is_of_query(*stage)).map(|(_, row)| row).collect();
        rows.sort();
        Ok(rows)
    }

    /// The end of a query as it is told. The rows themselves are the fingerprint.
    pub(crate) fn outcome(&self, results: &LogState, query: QueryId) -> QueryOutcome {
        match self.answer_of(results, query) {
            Ok(rows) => QueryOutcome::Answered { rows: rows.len() as u64, fingerprint: format!("{rows:?}") },
            Err(stage) => {
                let text = format!("stage {} has failed", stage.0);
                QueryOutcome::Failed { class: FaultClass::Query, text: text.into() }
            }
        }
    }

    /// The number of chunks of a table.
    pub(crate) fn chunks(&self, table: TableId) -> u64 {
        let real = self.real.as_ref().map(|job| job.tables()[usize::from(table.0)].len());
        real.unwrap_or_else(|| self.tables[usize::from(table.0)].len()) as u64
    }

    /// The number of records of a table.
    pub(crate) fn records(&self, table: TableId) -> u64 {
        match &self.real {
            Some(job) => job.tables()[usize::from(table.0)].iter().map(|chunk| chunk.records).sum(),
            None => self.tables[usize::from(table.0)].iter().map(|chunk| chunk.len() as u64).sum(),
        }
    }

    /// The wave of a table.
    pub(crate) fn wave_of(&self, table: TableId) -> usize {
        self.waves.iter().position(|wave| wave.tables.contains(&table)).unwrap_or(0)
    }

    /// Runs the leaf work of a chunk. `broadcast` gives the rows of a broadcast edge.
    pub(crate) fn run_chunk(
        &self,
        (table, number): (TableId, u64),
        version: Version,
        broadcast: impl Fn(StageId) -> Vec<Row>,
        failed_broadcasts: &FailedStages,
    ) -> TaskRows {
        let rows = match &self.changed {
            Some(changed) if version == Version::Second => &changed.rows,
            _ => &self.tables[usize::from(table.0)][number as usize],
        };
        let source = Source::Chunk { table, number };
        let mut made = TaskRows::default();
        for stage in self.topology.leaves(table) {
            let inherited = failed_broadcasts.among(&self.topology.stage(stage).broadcasts).cloned();
            self.run((stage, source), inherited, std::slice::from_ref(rows), &broadcast, &mut made);
        }
        made
    }

    /// Runs one stage over its inputs, unless they have failed.
    pub(crate) fn run(
        &self,
        (stage, source): (StageId, Source),
        inherited: Option<StageFailure>,
        inputs: &[Vec<Row>],
        broadcast: impl Fn(StageId) -> Vec<Row>,
        made: &mut TaskRows,
    ) {
        let own = || StageFailure::new(stage, source, FaultClass::Query, "a row that the stage cannot take");
        if let Some(failure) = inherited.or_else(|| self.fails(stage, inputs).then(own)) {
            return made.failed.note(stage, failure);
        }
        let known: Vec<Row> = self.topology.stage(stage).broadcasts.iter().flat_map(|&edge| broadcast(edge)).collect();
        made.rows.push((stage, self.ops[usize::from(stage.0)].apply(inputs, &known)));
    }

    /// The messages that carry what a task has made. `turn` stands for all that makes the order of rows differ from
    /// worker to worker.
    pub(crate) fn messages(
        &self,
        (source, lineage): (Source, Lineage),
        made: &TaskRows,
        turn: u64,
    ) -> Vec<(Log, Message)> {
        let mut messages = Vec::new();
        for log in self.topology.destinations(source) {
            let mut rows: Vec<(StageId, Row)> = Vec::new();
            for (stage, made) in &made.rows {
                let here = made.iter().filter(|row| self.goes_to(*stage, source, row, log));
                rows.extend(here.map(|&row| (*stage, row)));
            }
            if !rows.is_empty() {
                let middle = turn as usize % rows.len();
                rows.rotate_left(middle);
            }
            let records = match (log, source) {
                (Log::Results, Source::Chunk { table, number }) => {
                    Some(self.tables[usize::from(table.0)][number as usize].len() as u64)
                }
                _ => None,
            };
            let failed = made.failed.for_log(&self.topology, log);
            let parts = cut((source, lineage), &rows, (records, &failed), self.rows_per_part);
            messages.extend(parts.into_iter().map(|message| (log, message)));
        }
        messages
    }

    fn goes_to(&self, stage: StageId, source: Source, row: &Row, log: Log) -> bool {
        let partitions = self.topology.partitions();
        match (self.topology.stage(stage).route, log) {
            (Route::Hash, Log::Partition(p)) => partition_of(row.key, partitions) == p.0,
            (Route::Spread, Log::Partition(p)) => {
                let Source::Chunk { number, .. } = source else { return p.0 == 0 };
                number % u64::from(partitions) == u64::from(p.0)
            }
            (Route::One(only), Log::Partition(p)) => only == p,
            (Route::Broadcast, Log::Broadcast) | (Route::Results(_), Log::Results) => true,
            _ => false,
        }
    }
}

impl Intolerance {
    /// In one of three jobs some stage fails, perhaps. The data decides, so that it takes no choice away from the rest.
    fn chosen(topology: &Topology, tables: &[Vec<Vec<Row>>]) -> Option<Self> {
        let all = tables.iter().flatten().flatten();
        let mut rng = Rng::new(all.fold(7, |sum: u64, row| sum.wrapping_mul(31).wrapping_add(row.value as u64)));
        let stage = StageId(rng.index(topology.stages().count()) as u16);
        rng.chance(33).then(|| Self { stage, key: rng.below(6) as u32 })
    }
}

fn rows(count: u64, rng: &mut Rng) -> Vec<Row> {
    (0..count).map(|_| Row { key: rng.below(6) as u32, value: rng.below(50) as i64 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_of_a_task_go_somewhere_exactly_once() {
        for (seed, shape) in SHAPES.into_iter().enumerate() {
            let mut rng = Rng::new(seed as u64);
            let size = Size { partitions: 3, chunks: 3, rows: 4 };
            let scenario = Scenario::new(shape, size, &mut rng).expect("a valid shape");
            for (table, chunks) in scenario.tables.iter().enumerate() {
                for number in 0..chunks.len() as u64 {
                    let table = TableId(table as u16);
                    let known = |_| vec![Row { key: 1, value: 1 }];
                    let made = scenario.run_chunk((table, number), Version::First, known, &FailedStages::default());
                    let made_of = (Source::Chunk { table, number }, Lineage::default());
                    let messages = scenario.messages(made_of, &made, 3);
                    let sent: usize = messages.iter().map(|(_, message)| message.rows.len()).sum();
                    assert_eq!(sent, made.rows.iter().map(|(_, rows)| rows.len()).sum::<usize>());
                }
            }
        }
    }
}
