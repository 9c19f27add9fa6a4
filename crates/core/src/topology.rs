//! The shape of a job: which stage reads what, and where its rows go. No plans, no columns, no data.

use std::collections::{BTreeMap, BTreeSet};

use crate::limits::{MAX_PARTITIONS, MAX_STAGES, MAX_TABLES};
use crate::{Error, Log, Partition, QueryId, Source, StageId, TableId};

/// How many tasks a stage has, and what each of them works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskSet {
    /// A leaf stage: one task per chunk of the table.
    PerChunk(TableId),
    /// One task per partition, run when that partition's input is complete.
    PerPartition,
    /// One task altogether, run by the given partition.
    Single(Partition),
}

/// Where the rows of a stage go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// To the partition that the row's keys hash to.
    Hash,
    /// Every task's rows go to one partition that depends on the task only, to share the work.
    Spread,
    /// All rows to one partition.
    One(Partition),
    /// All rows to everybody who scans.
    Broadcast,
    /// Out of the job, as rows of an answer.
    Results(QueryId),
}

/// One stage: its tasks, the stages it reads, and the route of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageShape {
    /// How many tasks there are.
    pub tasks: TaskSet,
    /// The stages whose edges end here, each of which comes before this one.
    pub reads: Vec<StageId>,
    /// The stages whose rows this one gets by broadcast, each of which comes before this one.
    pub broadcasts: Vec<StageId>,
    /// Where the rows go.
    pub route: Route,
}

/// Tables whose chunks can be worked on at the same time, because they wait for the same broadcasts or for earlier ones.
///
/// Chunks of different waves never share a queue: a worker that has to wait for a broadcast would otherwise hold chunks
/// while the broadcast's own chunks wait behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wave {
    /// The tables.
    pub tables: BTreeSet<TableId>,
    /// The broadcasts that must be complete before a chunk of this wave is worked on.
    pub needs: BTreeSet<StageId>,
}

/// The shape of a whole job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    partitions: u16,
    tables: usize,
    stages: Vec<StageShape>,
}

impl Topology {
    /// Checks limits and that stages only read earlier stages.
    pub fn new(partitions: u16, tables: usize, stages: Vec<StageShape>) -> Result<Self, Error> {
        check("the number of partitions", u64::from(partitions), u64::from(MAX_PARTITIONS))?;
        check("the number of tables", tables as u64, MAX_TABLES as u64)?;
        check("the number of stages", stages.len() as u64, MAX_STAGES as u64)?;
        for (index, stage) in stages.iter().enumerate() {
            if let Some(&reads) = stage.reads.iter().chain(&stage.broadcasts).find(|read| usize::from(read.0) >= index)
            {
                return Err(Error::ForwardRead { stage: StageId(index as u16), reads });
            }
        }
        Ok(Self { partitions: partitions.max(1), tables, stages })
    }

    /// The number of partitions, at least 1.
    pub fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The number of tables.
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// The stages, in an order in which each comes after all it reads.
    pub fn stages(&self) -> impl Iterator<Item = (StageId, &StageShape)> {
        self.stages.iter().enumerate().map(|(index, stage)| (StageId(index as u16), stage))
    }

    /// One stage.
    pub fn stage(&self, id: StageId) -> &StageShape {
        &self.stages[usize::from(id.0)]
    }

    /// The leaf stages that scan `table`.
    pub fn leaves(&self, table: TableId) -> impl Iterator<Item = StageId> {
        self.stages().filter(move |(_, stage)| stage.tasks == TaskSet::PerChunk(table)).map(|(id, _)| id)
    }

    /// The broadcasts that the leaf work of a chunk of `table` uses.
    pub fn broadcasts_of(&self, table: TableId) -> BTreeSet<StageId> {
        self.leaves(table).flat_map(|leaf| self.stage(leaf).broadcasts.iter().copied()).collect()
    }

    /// Whether rows of `stage` can arrive in the log of `partition`.
    pub fn arrives_in(&self, stage: StageId, partition: Partition) -> bool {
        match self.stage(stage).route {
            Route::Hash | Route::Spread => true,
            Route::One(only) => only == partition,
            Route::Broadcast | Route::Results(_) => false,
        }
    }

    /// Whether a task of `stage` runs for `partition`.
    pub fn runs_on(&self, stage: StageId, partition: Partition) -> bool {
        match self.stage(stage).tasks {
            TaskSet::PerChunk(_) => false,
            TaskSet::PerPartition => true,
            TaskSet::Single(only) => only == partition,
        }
    }

    /// How many tasks an inner stage has.
    pub fn inner_tasks(&self, stage: StageId) -> u64 {
        match self.stage(stage).tasks {
            TaskSet::PerChunk(_) => 0,
            TaskSet::PerPartition => u64::from(self.partitions),
            TaskSet::Single(_) => 1,
        }
    }

    /// The logs that a task must write to, each exactly once, even if it has no rows for them: the id itself is news.
    pub fn destinations(&self, source: Source) -> Vec<Log> {
        let stages: Vec<StageId> = match source {
            Source::Chunk { table, .. } => self.leaves(table).collect(),
            Source::Task { stage, .. } => vec![stage],
        };
        let arrives = |partition: &Partition| stages.iter().any(|&stage| self.arrives_in(stage, *partition));
        let mut logs: Vec<Log> = (0..self.partitions).map(Partition).filter(arrives).map(Log::Partition).collect();
        let any = |wanted: fn(&Route) -> bool| stages.iter().any(|&stage| wanted(&self.stage(stage).route));
        if any(|route| matches!(route, Route::Broadcast)) {
            logs.push(Log::Broadcast);
        }
        // Every chunk is accounted for in the results.
        if matches!(source, Source::Chunk { .. }) || any(|route| matches!(route, Route::Results(_))) {
            logs.push(Log::Results);
        }
        logs
    }

    /// The waves of the job, each after those it waits for. A table that no stage scans is in none.
    pub fn waves(&self) -> Vec<Wave> {
        // How many broadcasts lie behind a stage. All leaf stages of a table run together, so the deepest decides for all of
        // them; that can make others deeper, until nothing changes. (Nothing waits for itself: the planner sees to that,
        // and the bound on rounds makes sure of an end.)
        let mut depth = vec![0; self.stages.len()];
        let mut tables: BTreeMap<TableId, usize> = BTreeMap::new();
        for _round in 0..=self.stages.len() {
            let before = depth.clone();
            for (id, shape) in self.stages() {
                let behind = shape.reads.iter().map(|read| depth[usize::from(read.0)]);
                let sent = shape.broadcasts.iter().map(|edge| depth[usize::from(edge.0)] + 1);
                let mut own = behind.chain(sent).max().unwrap_or(0);
                if let TaskSet::PerChunk(table) = shape.tasks {
                    let deepest = tables.entry(table).or_insert(0);
                    *deepest = own.max(*deepest);
                    own = *deepest;
                }
                depth[usize::from(id.0)] = own;
            }
            if depth == before {
                break;
            }
        }
        let mut levels: BTreeMap<usize, Wave> = BTreeMap::new();
        for (&table, &level) in &tables {
            let wave = levels.entry(level).or_default();
            wave.tables.insert(table);
            wave.needs.extend(self.broadcasts_of(table));
        }
        levels.into_values().collect()
    }

    /// The wave of a table, by its place in [`Topology::waves`].
    pub fn wave_of(&self, table: TableId) -> Option<usize> {
        self.waves().iter().position(|wave| wave.tables.contains(&table))
    }

    /// The tables that must be complete before a chunk of `table` can be worked on: those behind the broadcasts that its
    /// wave needs, and those that these wait for in turn.
    pub fn waits_for(&self, table: TableId) -> BTreeSet<TableId> {
        let waves = self.waves();
        let needs = |table: TableId| {
            let wave = waves.iter().find(move |wave| wave.tables.contains(&table));
            wave.into_iter().flat_map(|wave| wave.needs.iter().copied())
        };
        let mut behind: Vec<StageId> = needs(table).collect();
        let (mut stages, mut tables) = (BTreeSet::new(), BTreeSet::new());
        while let Some(stage) = behind.pop() {
            if !stages.insert(stage) {
                continue;
            }
            let shape = self.stage(stage);
            behind.extend(shape.reads.iter().chain(&shape.broadcasts));
            if let TaskSet::PerChunk(scanned) = shape.tasks
                && tables.insert(scanned)
            {
                behind.extend(needs(scanned));
            }
        }
        tables
    }

    /// The tables that must be complete before the answer to `query` is: those behind its stages, and those that these wait for.
    pub fn tables_of(&self, query: QueryId) -> BTreeSet<TableId> {
        let answers = self.stages().filter(|(_, stage)| stage.route == Route::Results(query));
        let mut behind: Vec<StageId> = answers.map(|(id, _)| id).collect();
        let (mut stages, mut tables) = (BTreeSet::new(), BTreeSet::new());
        while let Some(stage) = behind.pop() {
            if !stages.insert(stage) {
                continue;
            }
            let shape = self.stage(stage);
            behind.extend(shape.reads.iter().chain(&shape.broadcasts));
            if let TaskSet::PerChunk(table) = shape.tasks
                && tables.insert(table)
            {
                tables.extend(self.waits_for(table));
            }
        }
        tables
    }

    /// The partition that runs the `n`-th thing which only one partition may run: a fixed choice that shares the work.
    pub fn single_home(n: usize, partitions: u16) -> Partition {
        Partition((n % usize::from(partitions.max(1))) as u16)
    }
}

fn check(what: &'static str, found: u64, limit: u64) -> Result<(), Error> {
    if found > limit { Err(Error::Limit { what, found, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(tasks: TaskSet, reads: &[u16], broadcasts: &[u16], route: Route) -> StageShape {
        let ids = |ids: &[u16]| ids.iter().map(|&id| StageId(id)).collect();
        StageShape { tasks, reads: ids(reads), broadcasts: ids(broadcasts), route }
    }

    #[test]
    fn a_table_is_in_a_later_wave_than_all_whose_rows_it_waits_for() {
        let leaf = |table| TaskSet::PerChunk(TableId(table));
        let stages = vec![
            stage(leaf(1), &[], &[], Route::Hash),
            stage(leaf(0), &[], &[], Route::Broadcast),
            stage(leaf(1), &[], &[1], Route::Broadcast),
            stage(TaskSet::PerPartition, &[0], &[], Route::Broadcast),
            stage(leaf(2), &[], &[3], Route::Hash),
        ];
        let topology = Topology::new(2, 4, stages).expect("a valid topology");
        let waves = topology.waves();
        let tables = |wave: &Wave| wave.tables.iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(waves.iter().map(tables).collect::<Vec<_>>(), vec![vec![0], vec![1], vec![2]]);
        assert!(waves[0].needs.is_empty());
        assert_eq!(waves[1].needs, BTreeSet::from([StageId(1)]));
        assert_eq!(waves[2].needs, BTreeSet::from([StageId(3)]));
        let waits_for = |table| topology.waits_for(TableId(table)).iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(waits_for(0), [0; 0]);
        assert_eq!(waits_for(1), [0]);
        assert_eq!(waits_for(2), [0, 1], "by the inner stage that reads table 1, which waits for table 0 itself");
        assert_eq!(waits_for(3), [0; 0], "no stage scans it");
    }

    #[test]
    fn a_query_needs_the_tables_behind_its_stages_and_those_that_they_wait_for() {
        let leaf = |table| TaskSet::PerChunk(TableId(table));
        let stages = vec![
            stage(leaf(0), &[], &[], Route::Broadcast),
            stage(leaf(1), &[], &[0], Route::Results(QueryId(0))),
            stage(leaf(2), &[], &[], Route::Hash),
            stage(TaskSet::PerPartition, &[2], &[], Route::Results(QueryId(1))),
        ];
        let topology = Topology::new(2, 3, stages).expect("a valid topology");
        let tables = |query| topology.tables_of(QueryId(query)).iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(tables(0), [0, 1]);
        assert_eq!(tables(1), [2], "table 2 waits for nothing, whatever the first query reads");
        assert_eq!(tables(2), [0; 0]);
    }
}
