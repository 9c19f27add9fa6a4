//! Several processes over one log that forgets its beginning and loses its end: they come to agree, and stop writing.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tenaz_core::{Change, DoneSummary, End, JobCard, JobId, Registry, RegistryEvent};

const PROCESSES: usize = 3;
const KEPT_BYTES: u64 = 40 * EVENT_BYTES;
const EVENT_BYTES: u64 = 1000;

#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Prepare(u8),
    End(u8, bool),
    Remove(u8),
    /// A process reads so many events.
    Read(usize, usize),
    /// A process writes what is due, as far as it knows.
    Mention(usize),
    /// A process loses its connection and reads the log from its start.
    Reconnect(usize),
    /// A process is replaced by one that knows nothing.
    Replace(usize),
    /// The broker loses the last events; all connections with it.
    PowerCut(usize),
}

fn card(n: u8) -> JobCard {
    JobCard {
        id: JobId::from_bytes([n; 8]),
        tenant: "public".to_owned(),
        workload: "coffee".to_owned(),
        partitions: 1,
        waves: 1,
        tables: BTreeSet::new(),
        spec_digest: String::new(),
        build: Default::default(),
        plan_digest: String::new(),
        created_ms: 0,
    }
}

#[derive(Default)]
struct Process {
    registry: Registry,
    at: usize,
    /// What the driver was told: it must be what the registry says.
    told: BTreeSet<JobId>,
}

#[derive(Default)]
struct World {
    log: Vec<RegistryEvent>,
    processes: Vec<Process>,
    next_mark: u64,
}

impl World {
    fn new() -> Self {
        let mut world = Self { processes: (0..PROCESSES).map(|_| Process::default()).collect(), ..Self::default() };
        (0..PROCESSES).for_each(|index| world.begin(index));
        world
    }

    /// The oldest event that the log still holds.
    fn first(&self) -> usize {
        self.log.len().saturating_sub((KEPT_BYTES / EVENT_BYTES) as usize)
    }

    fn begin(&mut self, index: usize) {
        self.next_mark += 1;
        self.log.push(RegistryEvent::Mark { number: self.next_mark });
        self.processes[index].registry.begin_reading(self.next_mark);
        self.processes[index].at = self.first();
    }

    fn read(&mut self, index: usize, count: usize) {
        for _ in 0..count {
            // A process that has stood still for so long has lost its connection.
            if self.processes[index].at < self.first() {
                self.begin(index);
                continue;
            }
            let process = &mut self.processes[index];
            let Some(event) = self.log.get(process.at).cloned() else { break };
            process.at += 1;
            for change in process.registry.apply(EVENT_BYTES, event) {
                let fits = match &change {
                    Change::Opened(id) => process.told.insert(id.clone()),
                    Change::Removed(id) => process.told.remove(id),
                    Change::Prepared(id) | Change::Ended(id) => process.told.contains(id),
                };
                assert!(fits, "{change:?} makes no sense");
            }
        }
        let process = &self.processes[index];
        let known: BTreeSet<JobId> = process.registry.jobs().map(|entry| entry.card.id.clone()).collect();
        assert_eq!(known, process.told);
    }

    fn mention(&mut self, index: usize) -> usize {
        let registry = &self.processes[index].registry;
        let due: Vec<RegistryEvent> = registry.due(KEPT_BYTES).keys().filter_map(|id| registry.mention(id)).collect();
        let count = due.len();
        self.log.extend(due);
        count
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Create(n) => self.log.push(RegistryEvent::Created { card: card(n) }),
            Step::Prepare(n) => self.log.push(RegistryEvent::Prepared { id: card(n).id }),
            Step::End(n, done) => {
                let end = if done { End::Done(DoneSummary::default()) } else { End::Cancelled };
                self.log.push(RegistryEvent::Ended { id: card(n).id, end });
            }
            Step::Remove(n) => self.log.push(RegistryEvent::Removed { id: card(n).id }),
            Step::Read(index, count) => self.read(index, count),
            Step::Mention(index) => drop(self.mention(index)),
            Step::Reconnect(index) => self.begin(index),
            Step::Replace(index) => {
                self.processes[index] = Process::default();
                self.begin(index);
            }
            Step::PowerCut(lost) => {
                self.log.truncate(self.log.len().saturating_sub(lost));
                (0..PROCESSES).for_each(|index| self.begin(index));
            }
        }
    }

    /// Everybody reads everything and writes what is due, until nothing is.
    fn settle(&mut self) {
        for round in 0.. {
            (0..PROCESSES).for_each(|index| self.read(index, usize::MAX >> 1));
            // Of a job that one has written, the others see that before it is their turn.
            let mut written = 0;
            for index in 0..PROCESSES {
                written += self.mention(index);
                (0..PROCESSES).for_each(|index| self.read(index, usize::MAX >> 1));
            }
            if written == 0 {
                return;
            }
            assert!(round < 10, "they do not stop writing");
        }
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let job = || 0..6_u8;
    let process = || 0..PROCESSES;
    prop_oneof![
        3 => job().prop_map(Step::Create),
        2 => job().prop_map(Step::Prepare),
        2 => (job(), any::<bool>()).prop_map(|(n, done)| Step::End(n, done)),
        1 => job().prop_map(Step::Remove),
        6 => (process(), 0..12_usize).prop_map(|(p, count)| Step::Read(p, count)),
        2 => process().prop_map(Step::Mention),
        1 => process().prop_map(Step::Reconnect),
        1 => process().prop_map(Step::Replace),
        1 => (0..15_usize).prop_map(Step::PowerCut),
    ]
}

proptest! {
    #[test]
    fn processes_agree_in_the_end_whatever_the_log_has_lost(steps in prop::collection::vec(steps(), 1..120)) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.step(step));
        world.settle();
        let jobs = |process: &Process| process.registry.jobs().cloned().collect::<Vec<_>>();
        let first = jobs(&world.processes[0]);
        for process in &world.processes {
            prop_assert_eq!(&jobs(process), &first);
        }
        // A process that has just started reads the same from the log.
        world.step(&Step::Replace(0));
        world.read(0, usize::MAX >> 1);
        prop_assert_eq!(jobs(&world.processes[0]), first);
    }

    /// What was created and read by one process that stays is known to all in the end, though the log has lost it.
    #[test]
    fn a_job_that_one_living_process_has_read_survives_power_cuts(
        cuts in prop::collection::vec(1..30_usize, 1..4),
        noise in 0..20_u8,
    ) {
        let mut world = World::new();
        (0..noise).for_each(|_| world.step(&Step::Prepare(5)));
        world.step(&Step::Create(1));
        world.step(&Step::Prepare(1));
        world.read(0, usize::MAX >> 1);
        cuts.iter().for_each(|&lost| {
            world.step(&Step::PowerCut(lost));
            world.read(0, 3);
        });
        world.step(&Step::End(1, true));
        world.settle();
        for process in &world.processes {
            let entry = process.registry.get(&card(1).id).cloned();
            let entry = entry.ok_or_else(|| TestCaseError::fail("the job is gone"))?;
            prop_assert_eq!((entry.prepared, entry.end.is_some()), (true, true));
        }
    }
}
