//! What a run is made of: all of it follows from the seed, unless a test asks for something in particular.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use tenaz_core::limits::STALL_MS;
use tenaz_core::{BuildId, Error, JobCard, JobId, Partition, Source, TableId, UpkeepPatience};

use crate::engine::RealJob;
use crate::faults::{Fault, Plan, random_plan};
use crate::mutation::Mutation;
use crate::rng::Rng;
use crate::scenario::{SHAPES, Scenario, Shape, Size};

/// What is asked of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Decides everything that is not decided here.
    pub seed: u64,
    /// The kind of the first job.
    pub shape: Option<Shape>,
    /// The faults. With a plan there is no poison, and there is one small job.
    pub plan: Option<Plan>,
    /// Faults instead of those that the seed chooses; the jobs and everything else stay as the seed wants them.
    pub faults: Option<Plan>,
    /// A job of a real engine, which is the only one.
    pub real: Option<Arc<dyn RealJob>>,
    /// Two jobs, the first of which has a task that kills whoever runs it.
    pub beside_poison: bool,
    /// A mistake on purpose.
    pub mutation: Mutation,
    /// Whether the text of the trace is kept.
    pub keep_lines: bool,
    /// Whether it is noted who takes part in each step.
    pub keep_parties: bool,
    /// Whether the run ends with a fault that strikes nobody.
    pub until_miss: bool,
}

/// A job of a run.
#[derive(Debug, Clone)]
pub(crate) struct JobSetup {
    /// Its entry in the registry.
    pub(crate) card: JobCard,
    /// What it asks, and its data.
    pub(crate) scenario: Rc<Scenario>,
    /// A task that kills whoever runs it.
    pub(crate) poison: Option<Source>,
    /// Tables that its client sends as whole files.
    pub(crate) files: BTreeSet<TableId>,
    /// The step at which its client begins.
    pub(crate) begins_at: u64,
}

/// What a worker is able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerKind {
    /// It runs the build of the jobs.
    Right,
    /// It runs another build.
    OtherBuild,
    /// It runs the same build and makes another plan.
    OtherPlan,
}

/// A run, ready to start.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The seed.
    pub(crate) seed: u64,
    /// The jobs.
    pub(crate) jobs: Vec<JobSetup>,
    /// The workers.
    pub(crate) workers: Vec<WorkerKind>,
    /// How many gateways there are.
    pub(crate) gateways: usize,
    /// For each worker the step from which on it may be started.
    pub(crate) joins_at: Vec<u64>,
    /// How many chunks of a job a worker holds at once.
    pub(crate) prefetch: usize,
    /// How many chunks a work queue takes.
    pub(crate) queue_chunks: usize,
    /// How many files a gateway receives at once.
    pub(crate) file_places: usize,
    /// In how many of a hundred cases a chunk is sent twice.
    pub(crate) twice_percent: u64,
    /// How many steps a member may be silent.
    pub(crate) silence: u64,
    /// How many bytes the registry keeps.
    pub(crate) registry_bytes: u64,
    /// Every so many steps another job is written into the registry; 0: never.
    pub(crate) registry_noise: u64,
    /// How long jobs may stay.
    pub(crate) patience: UpkeepPatience,
    /// Whether the run goes on until what only running jobs need is deleted.
    pub(crate) until_trimmed: bool,
    /// Whether the run goes on until all jobs are removed.
    pub(crate) until_removed: bool,
    /// What goes wrong.
    pub(crate) plan: Plan,
    /// A mistake on purpose.
    pub(crate) mutation: Mutation,
    /// Whether the text of the trace is kept.
    pub(crate) keep_lines: bool,
    /// Whether it is noted who takes part in each step.
    pub(crate) keep_parties: bool,
}

/// Faults happen within so many steps: most jobs take fewer.
const HORIZON: u64 = 900;
/// A quiet time of so many silences is long enough to be looked into: that is how long a step takes.
const STALL_SILENCES: u64 = 4;
/// What a registry keeps that is never full.
const ROOMY_REGISTRY: u64 = 10_000_000;
/// What a registry keeps that is soon full.
const TIGHT_REGISTRY: u64 = 14_000;
/// For ever, for jobs that are to stay.
const FOR_EVER_MS: u64 = 1_000_000_000;

impl Setup {
    /// The run that these options describe.
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let mut rng = Rng::new(options.seed);
        let is_small = options.plan.is_some();
        let shape = options.shape.unwrap_or(SHAPES[rng.index(SHAPES.len())]);
        let jobs = match &options.real {
            Some(job) => vec![JobSetup::of_real(Arc::clone(job), &mut rng)],
            None => {
                let jobs = if (!is_small && rng.chance(25)) || options.beside_poison { 2 } else { 1 };
                let jobs = (0..jobs).map(|job| {
                    let shape = if job == 0 { shape } else { SHAPES[rng.index(SHAPES.len())] };
                    JobSetup::new(shape, is_small, job as u64, options.beside_poison, &mut rng)
                });
                jobs.collect::<Result<Vec<JobSetup>, Error>>()?
            }
        };
        let workers = if is_small { 2 } else { rng.between(1, 4) as usize };
        let gateways = if is_small { 2 } else { rng.between(1, 2) as usize };
        let (prefetch, twice_percent) = (rng.between(1, 3) as usize, if rng.chance(30) { 20 } else { 0 });
        // A registry that is soon full is one that keeps what is written in the time of some silences. Processes that die one after
        // the other, each before its turn to write jobs down again, need one that keeps more.
        let is_tight = !is_small && rng.chance(20) && !options.beside_poison;
        let silence = if is_tight { rng.between(150, 200) } else { rng.between(150, 600) };
        let chosen = if is_small { Plan::new() } else { random_plan(workers, gateways, HORIZON, &mut rng) };
        let plan = options.faults.clone().or(options.plan.clone()).unwrap_or(chosen);
        let joins_late = |rng: &mut Rng| if !is_small && rng.chance(15) { rng.below(HORIZON) } else { 0 };
        let joins_at = (0..workers).map(|_| joins_late(&mut rng)).collect();
        let leaves_clients = plan.iter().any(|(_, fault)| matches!(fault, Fault::LeaveClient(..)));
        let until_removed = !is_small && rng.chance(12);
        let until_trimmed = !is_small && rng.chance(20);
        let expires = leaves_clients || (!is_small && rng.chance(10));
        let Options { seed, mutation, keep_lines, keep_parties, .. } = *options;
        Ok(Self {
            seed,
            jobs,
            workers: kinds(workers, is_small, &mut rng),
            gateways,
            joins_at,
            prefetch,
            queue_chunks: if !is_small && rng.chance(40) { rng.between(1, 3) as usize } else { 1_000 },
            file_places: rng.between(1, 2) as usize,
            twice_percent,
            silence,
            registry_bytes: if is_tight { TIGHT_REGISTRY } else { ROOMY_REGISTRY },
            registry_noise: if is_tight { silence * 16 / 25 } else { 0 },
            patience: UpkeepPatience {
                idle_ms: if expires { 4 * STALL_MS } else { FOR_EVER_MS },
                results_ms: if until_removed { STALL_MS } else { FOR_EVER_MS },
            },
            until_trimmed,
            until_removed,
            plan,
            mutation,
            keep_lines,
            keep_parties,
        })
    }

    /// The time of a step.
    pub(crate) fn ms_of(&self, step: u64) -> u64 {
        step * STALL_MS / (STALL_SILENCES * self.silence)
    }

    /// How many steps so many milliseconds take.
    pub(crate) fn steps_of(&self, ms: u64) -> u64 {
        ms.saturating_mul(STALL_SILENCES * self.silence) / STALL_MS
    }
}

/// The builds of workers: now and then there are others than those that made the jobs.
fn kinds(workers: usize, is_small: bool, rng: &mut Rng) -> Vec<WorkerKind> {
    let is_mixed = !is_small && rng.chance(12);
    let kind = |rng: &mut Rng| match rng.below(if is_mixed { 4 } else { 1 }) {
        1 => WorkerKind::OtherBuild,
        2 => WorkerKind::OtherPlan,
        _ => WorkerKind::Right,
    };
    (0..workers).map(|_| kind(rng)).collect()
}

impl JobSetup {
    fn new(shape: Shape, is_small: bool, number: u64, beside_poison: bool, rng: &mut Rng) -> Result<Self, Error> {
        let size = if is_small {
            Size { partitions: 2, chunks: 2, rows: 3 }
        } else {
            Size { partitions: 3, chunks: 5, rows: 6 }
        };
        let mut scenario = Scenario::new(shape, size, rng)?;
        let has_poison = match beside_poison {
            true => number == 0,
            false => !is_small && rng.chance(8),
        };
        let poison = if has_poison { poison(&scenario, rng) } else { None };
        let is_changed = !is_small && poison.is_none() && rng.chance(10);
        if is_changed {
            scenario.change_a_chunk(rng);
        }
        let tables = (0..scenario.topology.tables() as u16).map(TableId);
        let is_file = |_: &TableId| !is_small && !is_changed && rng.chance(20);
        let files = tables.clone().filter(is_file).collect();
        let card = card(&scenario, rng.next_u64() ^ number);
        let begins_at = if number == 0 { 0 } else { rng.below(300) };
        Ok(Self { card, scenario: Rc::new(scenario), poison, files, begins_at })
    }

    fn of_real(job: Arc<dyn RealJob>, rng: &mut Rng) -> Self {
        let scenario = Scenario::of_real(job);
        let card = card(&scenario, rng.next_u64());
        let is_file = |_: &TableId| rng.chance(20);
        let files = card.tables.iter().copied().filter(is_file).collect();
        Self { card, scenario: Rc::new(scenario), poison: None, files, begins_at: 0 }
    }
}

/// The entry of a job in the registry.
fn card(scenario: &Scenario, id: u64) -> JobCard {
    JobCard {
        id: JobId::from_bytes(id.to_be_bytes()),
        tenant: "public".to_owned(),
        workload: "simulated".to_owned(),
        partitions: scenario.topology.partitions(),
        waves: scenario.waves.len() as u16,
        tables: (0..scenario.topology.tables() as u16).map(TableId).collect(),
        spec_digest: String::new(),
        build: BuildId::new("ours"),
        plan_digest: String::new(),
        created_ms: 0,
    }
}

fn poison(scenario: &Scenario, rng: &mut Rng) -> Option<Source> {
    let topology = &scenario.topology;
    let inner = topology.stages().flat_map(|(stage, _)| {
        let partitions = (0..topology.partitions()).map(Partition);
        let runs = partitions.filter(move |&partition| topology.runs_on(stage, partition));
        runs.map(move |partition| Source::Task { stage, partition })
    });
    let tables = (0..topology.tables() as u16).map(TableId);
    let chunks =
        tables.flat_map(|table| (0..scenario.chunks(table)).map(move |number| Source::Chunk { table, number }));
    // With empty tables nobody may need an inner task, and a job can be done without it.
    let all_have_rows = scenario.tables.iter().all(|chunks| !chunks.is_empty());
    let sources: Vec<Source> = inner.filter(|_| all_have_rows).chain(chunks).collect();
    sources.get(rng.index(sources.len())).copied()
}
