//! Kills and pauses twice a second for as long as a job takes, and two kills of the broker. `scripts/nightly storm` runs these.

use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{
    Broker, Cluster, Process, Task, Upped, Wanted, assert_same_results, coffee, free_port, steam, wait_for,
};

const STRIKE_EVERY: Duration = Duration::from_millis(500);
const SLOW: &str = "slow=100";
/// One of them is killed at nearly every beat: each lives for six seconds or so, of which it needs some to find its place.
const WORKERS: usize = 12;
const GATEWAYS: usize = 2;
/// The exit code of a process that should be started again.
const TEMPORARY: i32 = 75;
/// Longer than any storm takes that the job survives.
const STORM_DEADLINE: Duration = Duration::from_secs(400);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strike {
    KillWorker,
    PauseWorker,
    KillGateway,
    PauseGateway,
    /// Everything that was paused goes on.
    Resume,
    KillBroker,
}

/// What a storm does at each beat, again and again: every beat kills something.
type Rhythm = &'static [&'static [Strike]];

/// Each gateway lives for 24 s.
const GATEWAYS_LIVE_LONG: Rhythm = {
    use Strike::{KillGateway as G, KillWorker as K, PauseGateway as Q, PauseWorker as P, Resume as R};
    let quarter: [&[Strike]; 6] = [&[K], &[K, P], &[K], &[K, R], &[K, Q], &[K]];
    let [a, b, c, d, e, f] = quarter;
    &[a, b, c, d, e, f, &[K, R], b, c, d, e, f, &[K, R], b, c, d, e, f, &[K, R], b, c, d, a, &[G]]
};
/// Each gateway lives for 6 s, most of which it needs to find its place.
const GATEWAYS_LIVE_SHORT: Rhythm = {
    use Strike::{KillGateway as G, KillWorker as K, PauseWorker as P, Resume as R};
    &[&[K], &[K, P], &[K], &[K, R], &[K], &[G]]
};

/// A cluster under a storm.
struct Storm {
    cluster: Cluster,
    broker: Broker,
    restarting: Option<JoinHandle<()>>,
    /// Where gateways listen, life after life.
    addresses: Vec<String>,
    paused: Vec<Member>,
    strikes: BTreeMap<Strike, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Worker(usize),
    Gateway(usize),
}

impl Storm {
    fn new(broker: Broker) -> Self {
        let mut cluster = Cluster::on(&broker.url());
        let addresses: Vec<String> = (0..GATEWAYS).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        for address in &addresses {
            cluster.add_gateway_with(&["--listen", address]);
        }
        let cluster = cluster.start(WORKERS, 0, SLOW);
        Self { cluster, broker, restarting: None, addresses, paused: Vec::new(), strikes: BTreeMap::new() }
    }

    /// Strikes in this rhythm until the job has ended. The broker is killed when `kills_broker` says so, given the number of
    /// strikes and of earlier kills.
    fn rage(&mut self, client: &Process, rhythm: Rhythm, kills_broker: impl Fn(&Storm, usize) -> bool) {
        let deadline = Instant::now() + STORM_DEADLINE;
        let mut next = Instant::now() + STRIKE_EVERY;
        let mut beats = 0;
        while client.is_alive() {
            assert!(Instant::now() < deadline, "the job is not done after {:?}:\n{}", self.strikes, client.log_tail());
            std::thread::sleep(next.saturating_duration_since(Instant::now()).min(Duration::from_millis(20)));
            if Instant::now() < next {
                continue;
            }
            next += STRIKE_EVERY;
            self.revive();
            rhythm[beats % rhythm.len()].iter().for_each(|&strike| self.strike(strike));
            beats += 1;
            if self.is_broker_up() && kills_broker(self, beats) {
                self.strike(Strike::KillBroker);
            }
        }
        self.strike(Strike::Resume);
        if let Some(restarting) = self.restarting.take() {
            restarting.join().expect("the broker comes back");
        }
        eprintln!("a storm of {beats} beats: {:?}", self.strikes);
    }

    fn count(&self, strike: Strike) -> usize {
        self.strikes.get(&strike).copied().unwrap_or(0)
    }

    fn is_broker_up(&self) -> bool {
        self.restarting.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn strike(&mut self, strike: Strike) {
        let turn = self.count(strike);
        *self.strikes.entry(strike).or_default() += 1;
        match strike {
            Strike::KillWorker => self.kill(Member::Worker(turn % WORKERS)),
            Strike::KillGateway => self.kill(Member::Gateway(turn % GATEWAYS)),
            // Not the one that is killed next.
            Strike::PauseWorker => self.pause(Member::Worker((self.count(Strike::KillWorker) + 1) % WORKERS)),
            Strike::PauseGateway => self.pause(Member::Gateway((self.count(Strike::KillGateway) + 1) % GATEWAYS)),
            Strike::Resume => {
                for paused in std::mem::take(&mut self.paused) {
                    self.process(paused).thaw();
                }
            }
            Strike::KillBroker => {
                self.broker.kill();
                self.restart_broker();
            }
        }
    }

    fn restart_broker(&mut self) {
        let broker = self.broker.clone();
        self.restarting = Some(std::thread::spawn(move || broker.restart()));
    }

    fn kill(&mut self, member: Member) {
        if self.process(member).is_alive() {
            self.process(member).kill();
        }
        self.replace(member);
    }

    fn pause(&mut self, member: Member) {
        if self.process(member).is_alive() && !self.paused.contains(&member) {
            self.process(member).freeze();
            self.paused.push(member);
        }
    }

    /// Starts processes again that have found no broker at their start, as a supervisor would. None ends for another reason.
    fn revive(&mut self) {
        let workers = (0..WORKERS).map(Member::Worker);
        for member in workers.chain((0..GATEWAYS).map(Member::Gateway)) {
            let process = self.process(member);
            if !process.is_alive() {
                let (name, log) = (&process.name, process.log_tail());
                assert_eq!(process.wait().code(), Some(TEMPORARY), "{name} has ended by itself:\n{log}");
                self.replace(member);
            }
        }
    }

    fn replace(&mut self, member: Member) {
        self.paused.retain(|paused| *paused != member);
        match member {
            Member::Worker(index) => self.cluster.replace_worker(index, SLOW),
            Member::Gateway(index) => self.cluster.replace_gateway(index, &self.addresses[index]),
        }
    }

    fn process(&self, member: Member) -> &Process {
        match member {
            Member::Worker(index) => &self.cluster.workers[index],
            Member::Gateway(index) => &self.cluster.gateways[index],
        }
    }
}

/// A job under a storm of this rhythm, in which the broker is killed twice.
fn survive(rhythm: Rhythm) {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(broker) = Broker::start(dir.path(), "stormy") else { return };
    let mut storm = Storm::new(broker);
    let out = storm.cluster.out("out");
    let client = storm.cluster.submit(coffee(), &out, &[]);
    let job = storm.cluster.only_job();
    let queue = format!("{}.job.{job}.chunks.0", storm.cluster.prefix);
    storm.broker.wait_until_recorded(&[&queue]);
    wait_for("chunks are being worked on", || {
        storm.cluster.workers.iter().all(|worker| worker.counts(Task::Chunk).1 > 0).then_some(())
    });
    storm.rage(&client, rhythm, |storm, beats| match storm.count(Strike::KillBroker) {
        0 => beats >= 5,
        // A job lasts for 13 s on a quiet machine.
        1 => beats >= 12,
        _ => false,
    });
    client.succeeds();
    assert_same_results(coffee(), &out);
    assert_eq!(storm.count(Strike::KillBroker), 2, "the job was done too early: {:?}", storm.strikes);
    for strike in rhythm.iter().copied().flatten() {
        assert!(storm.count(*strike) > 0, "{strike:?} fired");
    }
}

#[test]
#[ignore = "takes minutes: scripts/nightly storm"]
fn a_job_outlasts_kills_and_pauses_twice_a_second_and_two_kills_of_the_broker() {
    survive(GATEWAYS_LIVE_LONG);
}

#[test]
#[ignore = "takes minutes: scripts/nightly storm"]
fn a_job_outlasts_the_storm_when_no_gateway_lives_for_ten_seconds() {
    survive(GATEWAYS_LIVE_SHORT);
}

/// The broker is one that nobody tells to write the names of its queues down, and dies before it has done so by itself. A 3.10 then
/// mostly comes back with a work queue that is empty or never confirms anything, and gateways have to find that out in their short
/// lives. What they found is shown.
#[test]
#[ignore = "takes minutes: scripts/nightly storm"]
fn a_silent_work_queue_is_made_anew_though_no_gateway_lives_for_ten_seconds() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(broker) = Broker::start_forgetful(dir.path(), "forgetful") else { return };
    let mut storm = Storm::new(broker);
    let out = storm.cluster.out("out");
    // Uploads begin when the broker is back: nothing is confirmed before.
    let client = storm.cluster.submit(coffee(), &out, &[]);
    storm.cluster.only_job();
    storm.strike(Strike::KillBroker);
    storm.rage(&client, GATEWAYS_LIVE_SHORT, |_, _| false);
    if !client.wait().success() {
        eprintln!("{}", storm.broker.queue_states());
        eprintln!("{}", storm.cluster.gateway_logs());
    }
    client.succeeds();
    assert_same_results(coffee(), &out);
    for text in ["a work queue confirms nothing", "is made anew"] {
        eprintln!("{text:?}: {}", storm.cluster.logs_mention(text));
    }
}

/// The supervisors start everything again, and are struck, too: less often, because nobody is left to start anything once all
/// three are dead at the same time. One job after the other is under way.
#[test]
#[ignore = "takes minutes: scripts/nightly storm"]
fn a_supervised_cluster_outlasts_strikes_twice_a_second_and_two_kills_of_the_broker() {
    let wanted = Wanted { workers: 3, gateways: 2, worker_options: &["--faults", "slow=20"], ..Wanted::default() };
    let Some(mut upped) = Upped::start(&wanted) else { return };
    let home = upped.home_text();
    let strike = |roles: &str, every: &str, actions: &str| {
        let line = ["chaos", "--cluster", &home, "--roles", roles, "--every", every, "--actions", actions];
        Process::start(
            upped.dir.path(),
            &format!("chaos-{roles}"),
            &[&line[..], &["--seed", "13", "--for", "90s"]].concat(),
        )
    };
    let chaos = [strike("worker,gateway", "500ms", "kill,pause"), strike("supervisor", "5s", "kill,pause,restart")];
    let mut jobs = 0;
    while chaos[0].is_alive() {
        let data = if jobs % 2 == 0 { coffee() } else { steam() };
        let (client, out) = upped.submit(data, &format!("job-{jobs}"));
        if jobs < 2 {
            upped.wait_for_work();
            upped.wait_until_recorded();
            upped.signal("broker-1", Signal::KILL);
        }
        client.succeeds();
        assert_same_results(data, &out);
        jobs += 1;
    }
    assert!(jobs >= 2, "{jobs} jobs");
    for chaos in &chaos {
        chaos.succeeds();
        let done = upped.dir.path().join(format!("{}.out", chaos.name));
        let done = std::fs::read_to_string(done).expect("what it did");
        let hits = done.lines().filter(|line| line.contains("\"hit\":true")).count();
        assert!(hits > 5, "{done}");
        eprintln!("{jobs} jobs under {hits} strikes of {}", chaos.name);
    }
    upped.wait_until_well();
    let down = upped.down(&["--drain", "2s"]);
    assert!(down.status.success(), "{}", crate::harness::text(&down));
    assert_eq!(upped.census(), Vec::<u32>::new());
}
