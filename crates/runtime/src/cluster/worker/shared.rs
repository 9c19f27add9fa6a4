//! What the tasks of one job share on this worker.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use datafusion::execution::runtime_env::RuntimeEnv;
use tenaz_cluster::JobSpec;
use tenaz_core::{JobId, Partition, StageId, TableId, Topology};
use tenaz_csv::Decoder;
use tenaz_engine::{EdgeInput, JobPlan, LeafRunner, Workload};
use tenaz_vitals::WorkerMetrics;

use super::board::Board;
use super::fault::Faults;
use super::tasks::Results;
use crate::job::{lock, working_memory};
use crate::partition::PartitionRows;
use crate::spool::{Budget, Spool};
use crate::{Error, limits};

/// A job as its tasks see it.
pub(super) struct SharedJob {
    pub(super) id: JobId,
    pub(super) strict: bool,
    pub(super) workload: Workload,
    pub(super) plan: JobPlan,
    pub(super) topology: Topology,
    pub(super) budget: Arc<Budget>,
    pub(super) board: Arc<Board>,
    pub(super) faults: Faults,
    pub(super) metrics: WorkerMetrics,
    memory_bytes: usize,
    temp_dir: PathBuf,
    threads: usize,
    /// Memory of leaf tasks and of merging.
    pub(super) env: Arc<RuntimeEnv>,
    leaves: Vec<OnceLock<LeafRunner>>,
    decoders: Vec<Mutex<Vec<Decoder>>>,
    pub(super) arriving_broadcasts: Mutex<BTreeMap<StageId, Spool>>,
    pub(super) broadcasts: Mutex<BTreeMap<StageId, Arc<dyn EdgeInput>>>,
    pub(super) partitions: Mutex<BTreeMap<Partition, Arc<Mutex<PartitionRows>>>>,
    pub(super) results: Mutex<Results>,
    /// How many stages read each edge.
    readers: BTreeMap<StageId, usize>,
}

impl SharedJob {
    /// Plans the job from its text. Takes a while: not for an async thread.
    pub(super) fn plan(id: &JobId, spec: &JobSpec, shop: &super::Shop) -> Result<Self, Error> {
        let workload = Workload::from_text(&spec.workload)?.select(&spec.queries)?;
        let plan = JobPlan::new(&workload)?;
        let topology = plan.topology(spec.partitions)?;
        let mut readers = BTreeMap::new();
        for stage in &plan.stages {
            for &edge in stage.reads.iter().chain(&stage.broadcasts) {
                *readers.entry(edge).or_insert(0) += 1;
            }
        }
        let settings = &shop.settings;
        Ok(Self {
            id: id.clone(),
            strict: spec.strict,
            env: working_memory(settings.memory_bytes, &settings.temp_dir, 1)?,
            memory_bytes: settings.memory_bytes,
            temp_dir: settings.temp_dir.clone(),
            threads: settings.threads.clamp(1, limits::MAX_THREADS),
            leaves: plan.scans.iter().map(|_| OnceLock::new()).collect(),
            decoders: plan.scans.iter().map(|_| Mutex::default()).collect(),
            arriving_broadcasts: Mutex::default(),
            broadcasts: Mutex::default(),
            partitions: Mutex::default(),
            results: Mutex::new(Results::new(&plan, &workload, &shop.budget)),
            budget: Arc::clone(&shop.budget),
            board: Arc::clone(&shop.board),
            faults: settings.faults.clone(),
            metrics: shop.metrics.clone(),
            readers,
            workload,
            plan,
            topology,
        })
    }

    pub(super) fn table_name(&self, table: TableId) -> &str {
        self.workload.tables.get(usize::from(table.0)).map_or("?", |table| table.name.as_str())
    }

    /// The scan of a table, by its place in the plan.
    pub(super) fn scan_of(&self, table: TableId) -> Option<usize> {
        self.plan.scans.iter().position(|scan| scan.table == table)
    }

    pub(super) fn leaf_runner(&self, scan: usize) -> Result<&LeafRunner, Error> {
        if let Some(runner) = self.leaves[scan].get() {
            return Ok(runner);
        }
        let broadcasts = lock(&self.broadcasts).clone();
        let count = self.topology.partitions();
        let runner = LeafRunner::new(&self.plan, &self.plan.scans[scan], count, broadcasts, Arc::clone(&self.env))?;
        Ok(self.leaves[scan].get_or_init(|| runner))
    }

    /// Decoders keep their working memory, so they are passed on from task to task.
    pub(super) fn with_decoder<T>(
        &self,
        scan: usize,
        work: impl FnOnce(&mut Decoder) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let decoder = lock(&self.decoders[scan]).pop();
        let mut decoder = match decoder {
            Some(decoder) => decoder,
            None => {
                let plan = &self.plan.scans[scan];
                let layout = Arc::clone(&self.workload.tables[usize::from(plan.table.0)].layout);
                plan.decoder(layout)?
            }
        };
        let done = work(&mut decoder);
        lock(&self.decoders[scan]).push(decoder);
        done
    }

    /// Each inner task has memory of its own: what it may use does not depend on what others do.
    pub(super) fn task_memory(&self) -> Result<Arc<RuntimeEnv>, Error> {
        working_memory(self.memory_bytes, &self.temp_dir, self.threads)
    }

    pub(super) fn keeps(&self, edge: StageId) -> bool {
        self.readers.get(&edge).copied().unwrap_or(0) > 1
    }

    pub(super) fn partition(&self, partition: Partition) -> Arc<Mutex<PartitionRows>> {
        let mut partitions = lock(&self.partitions);
        let rows = partitions.entry(partition).or_insert_with(|| {
            Arc::new(Mutex::new(PartitionRows::new(&self.topology, partition, Arc::clone(&self.budget), true)))
        });
        Arc::clone(rows)
    }
}
