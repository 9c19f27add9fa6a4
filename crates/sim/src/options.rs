//! What a run is made of: all of it follows from the seed, unless a test asks for something in particular.

use tenaz_core::{Error, Partition, Source, TableId};

use crate::faults::{Plan, random_plan};
use crate::mutation::Mutation;
use crate::rng::Rng;
use crate::scenario::{SHAPES, Scenario, Shape, Size};

/// What is asked of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Decides everything that is not decided here.
    pub seed: u64,
    /// The kind of job.
    pub shape: Option<Shape>,
    /// The faults. With a plan there is no poison, and the job is small.
    pub plan: Option<Plan>,
    /// A mistake on purpose.
    pub mutation: Mutation,
    /// Whether the text of the trace is kept.
    pub keep_lines: bool,
}

/// A run, ready to start.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The seed.
    pub(crate) seed: u64,
    /// The job.
    pub(crate) scenario: Scenario,
    /// How many workers there are.
    pub(crate) workers: usize,
    /// How many chunks a worker holds at once.
    pub(crate) prefetch: usize,
    /// In how many of a hundred cases a chunk is sent twice.
    pub(crate) twice_percent: u64,
    /// How many steps a member may be silent.
    pub(crate) silence: u64,
    /// What goes wrong.
    pub(crate) plan: Plan,
    /// A task that kills whoever runs it.
    pub(crate) poison: Option<Source>,
    /// A mistake on purpose.
    pub(crate) mutation: Mutation,
    /// Whether the text of the trace is kept.
    pub(crate) keep_lines: bool,
}

/// Faults happen within so many steps: most jobs take fewer.
const HORIZON: u64 = 600;

impl Setup {
    /// The run that these options describe.
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let mut rng = Rng::new(options.seed);
        let shape = options.shape.unwrap_or(SHAPES[rng.index(SHAPES.len())]);
        let is_small = options.plan.is_some();
        let size = if is_small {
            Size { partitions: 2, chunks: 2, rows: 3 }
        } else {
            Size { partitions: 3, chunks: 5, rows: 6 }
        };
        let scenario = Scenario::new(shape, size, &mut rng)?;
        let workers = if is_small { 2 } else { rng.between(1, 4) as usize };
        let prefetch = rng.between(1, 3) as usize;
        let twice_percent = if rng.chance(30) { 20 } else { 0 };
        let silence = rng.between(150, 600);
        let plan = options.plan.clone().unwrap_or_else(|| random_plan(workers, HORIZON, &mut rng));
        let poison = if !is_small && rng.chance(8) { poison(&scenario, &mut rng) } else { None };
        let (seed, mutation, keep_lines) = (options.seed, options.mutation, options.keep_lines);
        Ok(Self { seed, scenario, workers, prefetch, twice_percent, silence, plan, poison, mutation, keep_lines })
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
