//! The shape of a job: which stage reads what, and where its rows go. No plans, no columns, no data.

use crate::limits::{MAX_PARTITIONS, MAX_STAGES, MAX_TABLES};
use crate::{Error, Partition, QueryId, StageId, TableId};

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
    /// Where the rows go.
    pub route: Route,
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
            if let Some(&reads) = stage.reads.iter().find(|read| usize::from(read.0) >= index) {
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

    /// The partition that runs the `n`-th thing which only one partition may run: a fixed choice that shares the work.
    pub fn single_home(n: usize, partitions: u16) -> Partition {
        Partition((n % usize::from(partitions.max(1))) as u16)
    }
}

fn check(what: &'static str, found: u64, limit: u64) -> Result<(), Error> {
    if found > limit { Err(Error::Limit { what, found, limit }) } else { Ok(()) }
}
