//! A small world of processes, records and a leader, in simulated time. Whatever a keeper must never do fails at once.

use std::collections::VecDeque;

use tenaz_core::{
    Ending, Incarnation, Keeper, KeeperAction, KeeperEvent, KeeperPolicy, OrderFailure, OutsideCause, Past,
    ProcessName, ProcessRole, ProcessState, Streak,
};

pub(crate) const TICK_MS: u64 = 100;
const HEARTBEAT_MS: u64 = 500;
/// The last progress before it stood still was seen so long before, at most: by a heartbeat or a probe.
const UNSEEN_MS: u64 = 1_700;
/// How long a process takes from its start until it is ready.
const READY_MS: u64 = 300;

/// How lives of a process fare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    Good,
    /// Every life ends with this code before it is ready.
    EndsAtStart(i32),
    /// Every life ends so long after it got ready.
    EndsAfter(u64),
    /// Never ends, and never gets ready.
    NeverReady,
}

/// What a life does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// Sends heartbeats, answers probes, and stands still.
    Frozen,
    /// Works and answers probes; its heartbeats get lost.
    Unheard,
    /// Stopped as a whole.
    Stopped,
}

#[derive(Debug, Clone)]
pub(crate) struct Life {
    started_ms: u64,
    pub(crate) mood: Mood,
    mood_since_ms: u64,
    pub(crate) draining: bool,
    pulse: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) name: ProcessName,
    pub(crate) role: ProcessRole,
    pub(crate) nature: Nature,
    pub(crate) incarnation: Incarnation,
    pub(crate) life: Option<Life>,
    pub(crate) ended: Option<(Incarnation, Ending)>,
    pub(crate) starts_ms: Vec<u64>,
    streak: Streak,
    lived_ms: Option<u64>,
    ended_ms: u64,
    pub(crate) given_up: Option<String>,
    pub(crate) kills: usize,
}

impl Process {
    fn view(&self) -> KeeperEvent {
        let past = Past {
            restarts_ms: self.starts_ms.iter().skip(1).copied().collect(),
            streak: self.streak,
            lived_ms: self.lived_ms,
            given_up: self.given_up.clone(),
        };
        let running = self.life.is_some().then_some(self.incarnation);
        KeeperEvent::Seen {
            name: self.name.clone(),
            role: self.role,
            running,
            ended: self.ended.filter(|_| running.is_none()),
            past,
        }
    }

    fn end(&mut self, ending: Ending, now_ms: u64) {
        if let Some(life) = self.life.take() {
            self.ended = Some((self.incarnation, ending));
            self.ended_ms = now_ms;
            self.lived_ms = Some(now_ms - life.started_ms);
        }
    }

    pub(crate) fn is_ready(&self, now_ms: u64) -> bool {
        let fit = matches!(self.nature, Nature::Good | Nature::EndsAfter(_));
        fit && self.life.as_ref().is_some_and(|life| now_ms >= life.started_ms + READY_MS)
    }
}

pub(crate) struct World {
    pub(crate) policy: KeeperPolicy,
    pub(crate) keeper: Keeper,
    pub(crate) now_ms: u64,
    pub(crate) processes: Vec<Process>,
    /// Views that are on their way.
    late: VecDeque<KeeperEvent>,
    /// So many orders get lost on their way.
    pub(crate) lose_orders: usize,
    /// Starts are tried, and this is in the way.
    pub(crate) obstacle: Option<OutsideCause>,
    leaders: u64,
    /// The leader gives and hears nothing until then.
    pub(crate) asleep_until_ms: u64,
    pub(crate) actions: Vec<(u64, KeeperAction)>,
}

impl World {
    pub(crate) fn new(policy: KeeperPolicy, natures: &[(ProcessRole, Nature)]) -> Self {
        let process = |(number, &(role, nature)): (usize, &(ProcessRole, Nature))| Process {
            name: ProcessName::numbered(role, u32::try_from(number).expect("few")),
            role,
            nature,
            incarnation: Incarnation(0),
            life: None,
            ended: None,
            starts_ms: vec![],
            streak: Streak::default(),
            lived_ms: None,
            ended_ms: 0,
            given_up: None,
            kills: 0,
        };
        let processes: Vec<_> = natures.iter().enumerate().map(process).collect();
        let now_ms = 1_000_000;
        let keeper = Self::keeper(policy, 0, &processes, now_ms);
        let late = VecDeque::new();
        Self {
            policy,
            keeper,
            now_ms,
            processes,
            late,
            lose_orders: 0,
            obstacle: None,
            leaders: 0,
            asleep_until_ms: 0,
            actions: vec![],
        }
    }

    fn keeper(policy: KeeperPolicy, seed: u64, processes: &[Process], now_ms: u64) -> Keeper {
        Keeper::new(policy, seed, processes.iter().map(|p| (p.name.clone(), p.role)), now_ms)
    }

    /// Another supervisor leads: it knows what it has heard, and what is written down.
    pub(crate) fn takeover(&mut self) {
        self.leaders += 1;
        self.late.clear();
        self.asleep_until_ms = 0;
        self.keeper = Self::keeper(self.policy, self.leaders, &self.processes, self.now_ms);
    }

    pub(crate) fn run(&mut self, for_ms: u64) {
        let until = self.now_ms + for_ms;
        while self.now_ms < until {
            self.step();
        }
    }

    pub(crate) fn step(&mut self) {
        self.now_ms += TICK_MS;
        self.live();
        if self.now_ms < self.asleep_until_ms {
            return;
        }
        self.hear();
        self.look();
        self.tell(KeeperEvent::Ticked);
    }

    /// Processes go their way.
    fn live(&mut self) {
        let now_ms = self.now_ms;
        for process in &mut self.processes {
            let (ready, nature) = (process.is_ready(now_ms), process.nature);
            let Some(life) = &mut process.life else { continue };
            if matches!(life.mood, Mood::Well | Mood::Unheard) {
                life.pulse += 1;
            }
            let age = now_ms - life.started_ms;
            match nature {
                Nature::EndsAtStart(code) => process.end(Ending::Exited(code), now_ms),
                Nature::EndsAfter(ms) if ready && age >= READY_MS + ms => process.end(Ending::Signalled(11), now_ms),
                _ => {}
            }
        }
    }

    fn hear(&mut self) {
        let due = self.now_ms.is_multiple_of(HEARTBEAT_MS);
        for index in 0..self.processes.len() {
            let process = &self.processes[index];
            let Some(life) = &process.life else { continue };
            let speaks = matches!(life.mood, Mood::Well | Mood::Frozen) && process.nature != Nature::NeverReady;
            if due && speaks {
                self.tell(KeeperEvent::Heard {
                    name: process.name.clone(),
                    incarnation: process.incarnation,
                    ready: process.is_ready(self.now_ms),
                    draining: life.draining,
                    pulse: life.pulse,
                });
            }
        }
    }

    /// What the back-ends see arrives a tick late, now and then after an order that was carried out meanwhile.
    fn look(&mut self) {
        let arriving = self.late.len();
        self.late.extend(self.processes.iter().map(Process::view));
        for event in self.late.drain(..arriving).collect::<Vec<_>>() {
            self.tell(event);
        }
    }

    pub(crate) fn tell(&mut self, event: KeeperEvent) {
        let actions = self.keeper.handle(event, self.now_ms);
        for action in actions {
            self.actions.push((self.now_ms, action.clone()));
            self.execute(action);
        }
    }

    fn execute(&mut self, action: KeeperAction) {
        let (name, incarnation) = match &action {
            KeeperAction::Start { name, incarnation, .. }
            | KeeperAction::Kill { name, incarnation, .. }
            | KeeperAction::Probe { name, incarnation } => (name.clone(), *incarnation),
            KeeperAction::GiveUp { name, .. } => (name.clone(), Incarnation(0)),
        };
        if self.lose_orders > 0 && !matches!(action, KeeperAction::Probe { .. }) {
            self.lose_orders -= 1;
            let reason = "lost".to_owned();
            let failure = OrderFailure::NotTried;
            return self.tell(KeeperEvent::OrderFailed { name, incarnation, failure, reason });
        }
        if let (Some(cause), KeeperAction::Start { .. }) = (self.obstacle, &action) {
            let (failure, reason) = (OrderFailure::Obstructed(cause), cause.to_string());
            return self.tell(KeeperEvent::OrderFailed { name, incarnation, failure, reason });
        }
        let index = self.processes.iter().position(|p| p.name == name).expect("a known process");
        match action {
            KeeperAction::Start { streak, .. } => self.start(index, incarnation, streak),
            KeeperAction::Kill { .. } => self.kill(index, incarnation),
            KeeperAction::Probe { .. } => self.probe(index, incarnation),
            KeeperAction::GiveUp { reason, .. } => {
                assert!(self.processes[index].life.is_none(), "what runs is not given up");
                self.processes[index].given_up = Some(reason);
            }
        }
    }

    fn start(&mut self, index: usize, incarnation: Incarnation, streak: Streak) {
        let (policy, now_ms) = (self.policy, self.now_ms);
        self.check_broker(index);
        let process = &mut self.processes[index];
        assert!(process.life.is_none(), "{} runs", process.name);
        assert!(process.given_up.is_none(), "{} is given up", process.name);
        assert!(incarnation > process.incarnation, "lives are counted up");
        process.incarnation = incarnation;
        process.starts_ms.push(now_ms);
        process.streak = streak;
        process.ended = None;
        process.life =
            Some(Life { started_ms: now_ms, mood: Mood::Well, mood_since_ms: now_ms, draining: false, pulse: 0 });
        let within = |restarts: &[u64]| restarts.iter().filter(|at| **at + policy.window_ms > now_ms).count();
        let restarts = |process: &Process| within(process.starts_ms.get(1..).unwrap_or_default());
        assert!(restarts(&self.processes[index]) <= policy.per_process, "the budget of a process");
        assert!(self.processes.iter().map(restarts).sum::<usize>() <= policy.per_cluster, "the budget of the cluster");
    }

    fn check_broker(&self, index: usize) {
        if matches!(self.processes[index].role, ProcessRole::Worker | ProcessRole::Gateway) {
            let brokers = self.processes.iter().filter(|p| p.role == ProcessRole::Broker);
            for broker in brokers {
                // The leader cannot know of an end within the last moment.
                let gone = broker.ended_ms.max(self.asleep_until_ms) + 3 * TICK_MS >= self.now_ms;
                assert!(!broker.starts_ms.is_empty() && (broker.is_ready(self.now_ms) || gone), "{}", broker.name);
            }
        }
    }

    fn kill(&mut self, index: usize, incarnation: Incarnation) {
        let (now_ms, policy) = (self.now_ms, self.policy);
        let process = &mut self.processes[index];
        if process.incarnation != incarnation {
            return;
        }
        let Some(life) = &process.life else { return };
        let still = now_ms - life.mood_since_ms;
        let deserved = match life.mood {
            // Whatever it does meanwhile.
            _ if process.nature == Nature::NeverReady && now_ms - life.started_ms >= policy.start_within_ms => true,
            Mood::Frozen | Mood::Stopped => still + UNSEEN_MS >= policy.hang_after_ms,
            // Nobody can know that it has just come to itself.
            _ => still < policy.hang_after_ms / 2 && life.mood_since_ms > life.started_ms,
        };
        assert!(deserved, "{} works: {:?}, {:?}", process.name, life, process.nature);
        process.kills += 1;
        process.end(Ending::Signalled(9), now_ms);
    }

    fn probe(&mut self, index: usize, incarnation: Incarnation) {
        let process = &self.processes[index];
        let fit = process.nature != Nature::NeverReady;
        let answers = process.life.as_ref().filter(|life| fit && life.mood != Mood::Stopped);
        let pulse = answers.filter(|_| process.incarnation == incarnation).map(|life| life.pulse);
        self.tell(KeeperEvent::Probed { name: process.name.clone(), incarnation, pulse });
    }

    pub(crate) fn crash(&mut self, index: usize, ending: Ending) {
        let now_ms = self.now_ms;
        self.processes[index].end(ending, now_ms);
    }

    pub(crate) fn set_mood(&mut self, index: usize, mood: Mood) {
        let now_ms = self.now_ms;
        if let Some(life) = &mut self.processes[index].life {
            let still = |mood| matches!(mood, Mood::Frozen | Mood::Stopped);
            if !(still(life.mood) && still(mood)) {
                life.mood_since_ms = now_ms;
            }
            life.mood = mood;
        }
    }

    pub(crate) fn state(&self, index: usize) -> ProcessState {
        self.keeper.standing(&self.processes[index].name, self.now_ms).state
    }

    /// Whether nothing is left to be done.
    pub(crate) fn is_settled(&self) -> bool {
        (0..self.processes.len()).all(|i| matches!(self.state(i), ProcessState::Ready | ProcessState::GivenUp))
    }

    pub(crate) fn starts(&self, index: usize) -> usize {
        self.processes[index].starts_ms.len()
    }
}
