//! `tenaz chaos`: strikes processes of a running cluster, by a plan, and tells what it did.
//!
//! A process is struck only if it carries this cluster's mark at that very moment, through a handle that cannot come to mean
//! another one. Nothing is struck by name or by pid.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::Signal;
use serde::Serialize;
use serde_json::json;
use tenaz_core::{ChaosAction, ChaosPlan, ChaosSettings, Incarnation, ProcessName, ProcessRole, ProcessState, Strike};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::census::{self, Member, Target};
use crate::error::Error;
use crate::home::Home;
use crate::status;
use tenaz_words::{rfc3339, unix_ms};

/// How long a supervisor may take to say who is ready.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// A run of chaos.
#[derive(Debug, Clone, Default)]
pub struct Chaos {
    /// Names the plan.
    pub seed: u64,
    /// What the plan is made of.
    pub settings: ChaosSettings,
    /// Processes that have not been up for so long are spared.
    pub settle: Duration,
}

/// What was done: a line of the account.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrikeRecord {
    /// When, for people.
    pub at: String,
    /// When, since the beginning of the run.
    pub elapsed_seconds: f64,
    /// The plan.
    pub seed: u64,
    /// The strike of the plan, counted from 1.
    pub number: u64,
    /// `kill`, `pause`, `restart`; `resume` when a pause ends.
    pub action: &'static str,
    /// Whom it was meant for.
    pub role: ProcessRole,
    /// Whom it hit.
    pub name: Option<ProcessName>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Its life.
    pub incarnation: Option<Incarnation>,
    /// `killed`, `paused for 800 ms`, `asked to end`, `resumed`, `nobody there`, …
    pub outcome: String,
    /// Whether a process was hit.
    pub hit: bool,
}

/// What a run came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChaosSummary {
    /// Strikes of the plan that came due.
    pub strikes: u64,
    /// Processes killed.
    pub killed: u64,
    /// Processes paused.
    pub paused: u64,
    /// Processes asked to end.
    pub restarted: u64,
    /// Strikes that found nobody.
    pub missed: u64,
}

/// Strikes by plan until the plan ends or `stop` is cancelled. Whoever was paused goes on when this returns, however it does.
///
/// # Errors
/// The settings make no plan.
pub async fn run(
    home: &Home,
    chaos: &Chaos,
    mut sink: impl FnMut(&StrikeRecord),
    stop: CancellationToken,
) -> Result<ChaosSummary, Error> {
    let plan = ChaosPlan::new(chaos.seed, chaos.settings.clone())?;
    // The cluster's own account tells strikes from other deaths.
    let mut sink = |record: &StrikeRecord| {
        if record.hit {
            let because = format!("tenaz chaos, seed {}, strike {}: {}", record.seed, record.number, record.outcome);
            let StrikeRecord { action, name, incarnation, pid, .. } = record;
            let fields =
                json!({"action": action, "name": name, "incarnation": incarnation, "pid": pid, "because": because});
            home.event("struck", fields);
        }
        sink(record);
    };
    let mut run = Run {
        home,
        chaos,
        began: Instant::now(),
        paused: Vec::new(),
        killed: HashSet::new(),
        summary: ChaosSummary::default(),
        ready: None,
    };
    let mut plan = plan.peekable();
    while let Some(strike) = plan.peek().copied() {
        let due = run.began + Duration::from_millis(strike.at_ms);
        let resume = run.paused.iter().map(|paused| paused.until).min();
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = tokio::time::sleep_until(resume.unwrap_or(due)), if resume.is_some_and(|at| at <= due) => {
                run.resume(Instant::now(), &mut sink);
            }
            () = tokio::time::sleep_until(due) => {
                plan.next();
                let record = run.strike(strike).await;
                sink(&record);
            }
        }
    }
    while let Some(until) = run.paused.iter().map(|paused| paused.until).min() {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = tokio::time::sleep_until(until) => run.resume(Instant::now(), &mut sink),
        }
    }
    run.resume_all(&mut sink);
    Ok(run.summary)
}

struct Run<'a> {
    home: &'a Home,
    chaos: &'a Chaos,
    began: Instant,
    paused: Vec<Paused>,
    /// Killed, though perhaps not gone yet: nobody dies twice.
    killed: HashSet<(u32, u64)>,
    summary: ChaosSummary,
    /// Who was ready when a supervisor was last asked; `None`: none has ever answered.
    ready: Option<HashSet<(ProcessName, Incarnation)>>,
}

/// A family that was stopped. Dropping it lets it go on.
struct Paused {
    until: Instant,
    strike: Strike,
    head: Member,
    family: Vec<Target>,
}

impl Drop for Paused {
    fn drop(&mut self) {
        for target in &self.family {
            // An error means that it is gone.
            let _ = target.signal(Signal::CONT);
        }
    }
}

impl Run<'_> {
    async fn strike(&mut self, strike: Strike) -> StrikeRecord {
        self.summary.strikes += 1;
        let id = self.home.id().clone();
        let members = tokio::task::spawn_blocking(move || census::scan(&id)).await.unwrap_or_default();
        self.ask_who_is_ready().await;
        let settled = |m: &&Member| {
            u128::from(m.age_ms) >= self.chaos.settle.as_millis()
                && !self.killed.contains(&(m.pid, m.start_ticks))
                && self.ready.as_ref().is_none_or(|ready| ready.contains(&(m.name.clone(), m.incarnation)))
        };
        let heads: Vec<&Member> =
            members.iter().filter(|m| m.is_head && m.role == strike.role).filter(settled).collect();
        if heads.is_empty() {
            self.summary.missed += 1;
            return self.record(strike, strike.action.as_str(), None, "nobody there".to_owned(), false);
        }
        let head = heads[(strike.pick % heads.len() as u64) as usize].clone();
        let (outcome, hit) = match self.hit(strike, &head, &members) {
            Ok(Some(outcome)) => (outcome, true),
            Ok(None) => ("had ended already".to_owned(), false),
            Err(error) => (format!("refused: {error}"), false),
        };
        if !hit {
            self.summary.missed += 1;
        }
        self.record(strike, strike.action.as_str(), Some(&head), outcome, hit)
    }

    /// Who is not ready is spared: to kill a broker again and again before it is up shows nothing, and ends with its being given
    /// up. Without any supervisor to ask, everybody counts as ready.
    async fn ask_who_is_ready(&mut self) {
        let Ok(config) = self.home.config() else { return };
        let Ok(key) = self.home.key(&config) else { return };
        if let Ok(status) = status::ask(&config, &key, self.home.id(), ANSWER_WITHIN).await {
            let ready = status.processes.iter().filter(|process| process.state == ProcessState::Ready);
            self.ready = Some(ready.map(|process| (process.name.clone(), process.incarnation)).collect());
        }
    }

    fn hit(&mut self, strike: Strike, head: &Member, members: &[Member]) -> std::io::Result<Option<String>> {
        let Some(target) = head.target() else { return Ok(None) };
        match strike.action {
            ChaosAction::Kill => {
                let hit = target.signal(Signal::KILL)?;
                self.summary.killed += u64::from(hit);
                self.killed.insert((head.pid, head.start_ticks));
                Ok(hit.then(|| "killed".to_owned()))
            }
            ChaosAction::Restart => {
                let hit = target.terminate()?;
                self.summary.restarted += u64::from(hit);
                Ok(hit.then(|| "asked to end".to_owned()))
            }
            ChaosAction::Pause { ms } => {
                // A broker is more than its wrapper: all that carry the same name and life stop.
                let same = |m: &&Member| m.name == head.name && m.incarnation == head.incarnation && m.pid != head.pid;
                let mut family = vec![target];
                family.extend(members.iter().filter(same).filter_map(Member::target));
                let until = Instant::now() + Duration::from_millis(ms);
                // From here on they go on when this is dropped, whatever happens.
                let paused = Paused { until, strike, head: head.clone(), family };
                let mut hit = false;
                for target in &paused.family {
                    hit |= target.signal(Signal::STOP)?;
                }
                self.summary.paused += u64::from(hit);
                self.paused.push(paused);
                Ok(hit.then(|| format!("paused for {ms} ms")))
            }
        }
    }

    fn resume(&mut self, now: Instant, sink: &mut impl FnMut(&StrikeRecord)) {
        let (due, later) = self.paused.drain(..).partition(|paused| paused.until <= now);
        self.paused = later;
        self.tell_resumed(due, sink);
    }

    fn resume_all(&mut self, sink: &mut impl FnMut(&StrikeRecord)) {
        let all = std::mem::take(&mut self.paused);
        self.tell_resumed(all, sink);
    }

    fn tell_resumed(&self, due: Vec<Paused>, sink: &mut impl FnMut(&StrikeRecord)) {
        for paused in due {
            let there = paused.head.target().is_some();
            let outcome = if there { "resumed" } else { "it was replaced meanwhile" };
            let record = self.record(paused.strike, "resume", Some(&paused.head), outcome.to_owned(), there);
            drop(paused);
            sink(&record);
        }
    }

    fn record(
        &self,
        strike: Strike,
        action: &'static str,
        head: Option<&Member>,
        outcome: String,
        hit: bool,
    ) -> StrikeRecord {
        StrikeRecord {
            at: rfc3339(unix_ms()),
            elapsed_seconds: (self.began.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
            seed: self.chaos.seed,
            number: strike.number,
            action,
            role: strike.role,
            name: head.map(|head| head.name.clone()),
            pid: head.map(|head| head.pid),
            incarnation: head.map(|head| head.incarnation),
            outcome,
            hit,
        }
    }
}

#[cfg(test)]
mod tests;
