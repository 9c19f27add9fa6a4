//! Drives a supervisor: time, messages, heartbeats and sightings go into the election and, while it leads, into the keeper;
//! what they decide is done here.
//!
//! One loop owns all state. Whatever takes time is done beside it, and comes back as a [`Done`].

mod actions;
mod looks;
pub(crate) mod reign;
mod report;
mod revive;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tenaz_core::{
    Election, ElectionAction, ElectionEvent, Incarnation, KeeperEvent, KeeperPolicy, MemberId, Pace, ProcessName, Term,
};
use tenaz_vitals::{Heard, HeartbeatListener, Pulse, Refused, SupervisorMetrics, Vitals};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Supervisor};
use crate::error::Error;
use crate::executor::{Executor, MachineProcess, Order, OrderResult};
use crate::home::Home;
use crate::limits::{ASLEEP, HEARD_QUEUE, LOGS_LOOK_EVERY, SILENCE_TICKS, TICK};
use crate::log_file;
use crate::peers::{Answer, PeerEvent, PeerRefusals, Peers, Request};
use looks::Looks;
use reign::Reign;
use revive::Reviver;
use tenaz_words::unix_ms;

/// What a driver is made of.
pub(crate) struct Parts {
    pub(crate) me: Supervisor,
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) executor: Executor,
    pub(crate) vitals: Option<Arc<Vitals>>,
    pub(crate) metrics: SupervisorMetrics,
    pub(crate) listener: HeartbeatListener,
    pub(crate) refusals: Arc<PeerRefusals>,
    pub(crate) peers: Peers,
    pub(crate) peer_events: mpsc::Receiver<PeerEvent>,
}

/// What was done beside the loop.
#[derive(Debug)]
enum Done {
    /// Something may have happened on this machine.
    Changed,
    /// A machine was looked at.
    Looked { machine: String, found: Result<Vec<MachineProcess>, String> },
    /// An order has come to something, or to nothing.
    Ordered { term: Term, order: Order, incarnation: Incarnation, result: Result<OrderResult, String> },
    /// A process was asked how it is.
    Probed { name: ProcessName, incarnation: Incarnation, pulse: Option<u64> },
    /// A supervisor of this machine was revived, or not.
    Revived { name: ProcessName, incarnation: Incarnation, result: OrderResult },
}

pub(crate) struct Driver {
    me: Supervisor,
    home: Home,
    config: Config,
    policy: KeeperPolicy,
    executor: Executor,
    vitals: Option<Arc<Vitals>>,
    metrics: SupervisorMetrics,
    heartbeats_refused: Arc<Refused>,
    refusals: Arc<PeerRefusals>,
    peers: Peers,
    election: Election,
    /// While it leads.
    reign: Option<Reign>,
    /// While nobody does.
    reviver: Option<Reviver>,
    leaderless_since: Option<Instant>,
    looks: Looks,
    /// The latest heartbeat of each process.
    heard: BTreeMap<ProcessName, Heard>,
    clock: Clock,
    done: mpsc::UnboundedSender<Done>,
    inputs: Option<Inputs>,
    /// Everything that is done beside the loop: it ends with it.
    tasks: JoinSet<()>,
}

/// What the loop waits for.
struct Inputs {
    listener: HeartbeatListener,
    peer_events: mpsc::Receiver<PeerEvent>,
    done: mpsc::UnboundedReceiver<Done>,
}

/// Unix time that never goes back while the supervisor lives.
struct Clock {
    started: Instant,
    started_unix_ms: u64,
}

impl Clock {
    fn now_ms(&self) -> u64 {
        self.started_unix_ms.saturating_add(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

impl Driver {
    pub(crate) fn new(parts: Parts) -> Result<Self, Error> {
        let Parts { me, home, config, executor, vitals, metrics, listener, refusals, peers, peer_events } = parts;
        let configured = config.supervisors.iter().map(|supervisor| supervisor.id);
        let election = Election::new(me.id, MemberId(draw()?), configured, Pace::of_silence(SILENCE_TICKS));
        let (sender, done) = mpsc::unbounded_channel();
        Ok(Self {
            policy: reign::policy(&config),
            looks: Looks::of(&config, &me.machine),
            heartbeats_refused: listener.refused(),
            me,
            home,
            config,
            executor,
            vitals,
            metrics,
            refusals,
            peers,
            election,
            reign: None,
            reviver: None,
            leaderless_since: None,
            heard: BTreeMap::new(),
            clock: Clock { started: Instant::now(), started_unix_ms: unix_ms() },
            done: sender,
            inputs: Some(Inputs { listener, peer_events, done }),
            tasks: JoinSet::new(),
        })
    }

    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let Some(Inputs { mut listener, mut peer_events, mut done }) = self.inputs.take() else { return };
        let (heard_sender, mut heard) = mpsc::channel(HEARD_QUEUE);
        self.tasks.spawn(async move {
            // Ends with the loop.
            while heard_sender.send(listener.next().await).await.is_ok() {}
        });
        self.watch_this_machine();
        self.bound_logs();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let pulse = self.vitals.as_ref().map(|vitals| vitals.pulse());
        if let Some(vitals) = &self.vitals {
            vitals.set_ready(true);
        }
        let mut ticked = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = ticks.tick() => {
                    pulse.iter().for_each(Pulse::beat);
                    let asleep = ticked.elapsed() > ASLEEP;
                    ticked = Instant::now();
                    self.tick(asleep);
                }
                Some(event) = peer_events.recv() => self.on_peer(event),
                Some(done) = done.recv() => self.on_done(done),
                Some(heard) = heard.recv() => self.on_heard(heard),
                Some(_) = self.tasks.join_next() => {}
            }
        }
        if let Some(term) = self.election.leading() {
            self.home
                .event("stepped_down", json!({"supervisor": self.me.id, "term": term, "because": "it was stopped"}));
        }
        self.metrics.leader.set(0);
    }

    /// Puts the logs of this machine aside as they grow.
    fn bound_logs(&mut self) {
        let dir = self.home.logs_dir();
        self.tasks.spawn(async move {
            let mut look = tokio::time::interval(LOGS_LOOK_EVERY);
            loop {
                look.tick().await;
                let dir = dir.clone();
                let _ = tokio::task::spawn_blocking(move || log_file::rotate_all(&dir)).await;
            }
        });
    }

    fn tick(&mut self, asleep: bool) {
        if asleep {
            self.elect(ElectionEvent::Woken);
        }
        self.elect(ElectionEvent::Ticked);
        self.look_where_due();
        self.reign_tick();
        self.revive_tick();
    }

    fn elect(&mut self, event: ElectionEvent) {
        for action in self.election.handle(event) {
            match action {
                ElectionAction::Send { to, message } => self.peers.send(to, message),
                ElectionAction::BecomeLeader { term } => self.begin_reign(term),
                ElectionAction::StepDown { term } => self.end_reign(term),
                ElectionAction::Follow { term } => {
                    self.metrics.term_round.set(gauge(term.round));
                }
            }
        }
    }

    fn on_peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up(peer) => self.elect(ElectionEvent::PeerHeard(peer)),
            PeerEvent::Down(peer) => {
                self.elect(ElectionEvent::PeerSuspected(peer));
                // Perhaps it has ended: this machine would know.
                self.looks.now(&self.me.machine);
                self.look_where_due();
            }
            PeerEvent::Election { from, message } => self.elect(ElectionEvent::Arrived { from, message }),
            PeerEvent::Changed { from } => {
                if let Some(machine) = self.config.supervisor(from).map(|supervisor| supervisor.machine.clone()) {
                    self.looks.now(&machine);
                    self.look_where_due();
                }
            }
            PeerEvent::Asked { request: Request::Status, answer } => {
                // Whoever asked may be gone.
                let _ = answer.send(Answer::Status(Box::new(self.report())));
            }
            PeerEvent::Asked { request, answer } => {
                let executor = self.executor.clone();
                self.tasks.spawn(async move {
                    let _ = answer.send(actions::serve(&executor, request).await);
                });
            }
        }
    }

    fn on_heard(&mut self, heard: Heard) {
        let name = self.looks.name_of(&heard.heartbeat.identity.name);
        let event = self.looks.heard(&name, &heard);
        self.note_ready(&name, &heard);
        self.heard.insert(name, heard);
        self.keep(event);
    }

    fn on_done(&mut self, done: Done) {
        match done {
            Done::Changed => self.on_changed(),
            Done::Looked { machine, found } => self.on_looked(&machine, found),
            Done::Ordered { term, order, incarnation, result } => self.on_ordered(term, &order, incarnation, result),
            Done::Probed { name, incarnation, pulse } => {
                self.keep(KeeperEvent::Probed { name, incarnation, pulse });
            }
            Done::Revived { name, incarnation, result } => self.on_revived(name, incarnation, result),
        }
    }
}

fn gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that was never drawn before.
fn draw() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Error::Interrupted(format!("no random numbers: {error}")))?;
    Ok(u64::from_be_bytes(bytes))
}
