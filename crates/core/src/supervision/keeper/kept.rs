//! One process that is kept alive.

use super::super::restarts::{Restarts, dice, room_at};
use super::super::{Ending, Incarnation, KeeperPolicy, ProcessName, ProcessRole};
use super::vital::Vital;
use super::{KeeperAction, OrderFailure, Past, Streak, Trouble};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) name: ProcessName,
    pub(super) role: ProcessRole,
    pub(super) phase: Phase,
    /// The highest life that anything was heard of.
    highest: Incarnation,
    /// When the back-end last looked at it.
    pub(super) seen_ms: Option<u64>,
    /// Since when what the back-end sees is older than what is known.
    outdated_since_ms: Option<u64>,
    pub(super) restarts: Restarts,
    streak: Streak,
    pub(super) vital: Vital,
}

/// ```text
/// Unknown ──▶ Down ──▶ Starting ──▶ Running ──▶ Down ──▶ … ──▶ GivenUp
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nobody has looked yet.
    Unknown,
    /// It has ended, or was never started.
    Down { life: Incarnation, due_ms: u64, gentle: bool, why: String },
    /// A start is ordered and nothing was seen of it yet.
    Starting { life: Incarnation, ordered_ms: u64 },
    /// It runs.
    Running { life: Incarnation, since_ms: u64, killed: Option<(u64, Trouble)> },
    /// It is not started any more. `due_ms`: when to say so (again), until the records say it.
    GivenUp { life: Incarnation, reason: String, due_ms: Option<u64> },
}

impl Kept {
    pub(super) fn new(name: ProcessName, role: ProcessRole) -> Self {
        Self {
            name,
            role,
            phase: Phase::Unknown,
            highest: Incarnation(0),
            seen_ms: None,
            outdated_since_ms: None,
            restarts: Restarts::default(),
            streak: Streak::default(),
            vital: Vital::default(),
        }
    }

    /// The latest life that is known to have been, or is to be.
    fn life(&self) -> Incarnation {
        match self.phase {
            Phase::Unknown => Incarnation(0),
            Phase::Down { life, .. }
            | Phase::Starting { life, .. }
            | Phase::Running { life, .. }
            | Phase::GivenUp { life, .. } => life,
        }
    }

    /// Whether what is known of it is recent enough to act on.
    pub(super) fn in_view(&self, policy: &KeeperPolicy, now_ms: u64) -> bool {
        self.seen_ms.is_some_and(|seen| now_ms - seen < policy.hang_after_ms)
    }

    /// Whether no life of it was ever heard of. Its start is then not a restart.
    pub(super) fn is_first_start(&self) -> bool {
        self.highest == Incarnation(0)
    }

    /// What is shown by the life that runs, if any was heard of it.
    pub(super) fn vital_of(&self, life: Incarnation) -> Option<&Vital> {
        Some(&self.vital).filter(|vital| vital.incarnation == life)
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Running { life, .. } if self.vital_of(life).is_some_and(|vital| vital.ready))
    }

    /// What was heard of `life`, to be added to.
    pub(super) fn vital_mut(&mut self, life: Incarnation) -> Option<&mut Vital> {
        if life > self.vital.incarnation {
            self.vital = Vital::of(life);
            self.highest = self.highest.max(life);
        }
        Some(&mut self.vital).filter(|vital| vital.incarnation == life)
    }

    pub(super) fn see(
        &mut self,
        running: Option<Incarnation>,
        ended: Option<(Incarnation, Ending)>,
        past: &Past,
        rules: &Rules<'_>,
    ) {
        let now_ms = rules.now_ms;
        self.seen_ms = Some(now_ms);
        let latest = running.or(ended.map(|(life, _)| life)).unwrap_or_default();
        let known = self.life();
        if latest < known {
            // The look was taken before the latest order was carried out; unless it stays so, and the records are lost.
            // For a start there is a deadline of its own.
            let starting = matches!(self.phase, Phase::Starting { .. });
            let since = *self.outdated_since_ms.get_or_insert(now_ms);
            if starting || now_ms - since < rules.policy.hang_after_ms {
                return;
            }
        }
        self.outdated_since_ms = None;
        if latest > known || self.phase == Phase::Unknown {
            // Somebody else has started it: what was counted is written down.
            self.streak = past.streak;
        }
        self.highest = self.highest.max(latest);
        self.restarts = Restarts::recorded(&past.restarts_ms, now_ms);
        match (running, ended) {
            (Some(life), _) => self.runs(life, now_ms),
            (None, _) if past.given_up.is_some() => {
                let reason = past.given_up.clone().unwrap_or_default();
                self.phase = Phase::GivenUp { life: latest, reason, due_ms: None };
            }
            (None, ended) => self.does_not_run(latest, ended, past, rules),
        }
    }

    fn runs(&mut self, life: Incarnation, now_ms: u64) {
        if !matches!(self.phase, Phase::Running { life: known, .. } if known == life) {
            self.phase = Phase::Running { life, since_ms: now_ms, killed: None };
            if let Some(vital) = self.vital_mut(life) {
                vital.freshen(now_ms);
            }
        }
    }

    fn does_not_run(
        &mut self,
        latest: Incarnation,
        ended: Option<(Incarnation, Ending)>,
        past: &Past,
        rules: &Rules<'_>,
    ) {
        match &self.phase {
            // Known already.
            Phase::Down { life, .. } if *life >= latest => {}
            Phase::GivenUp { life, due_ms: Some(_), .. } if *life >= latest => {}
            // It was given up, and somebody has taken that back.
            Phase::GivenUp { due_ms: None, .. } => {
                self.streak = Streak::default();
                self.wait(latest, rules.now_ms, true, "no longer given up".to_owned());
            }
            Phase::Unknown if ended.is_none() => self.wait(latest, rules.now_ms, true, "first start".to_owned()),
            _ => {
                let life = self.life().max(latest);
                let ending = ended.filter(|(of, _)| *of == life).map_or(Ending::Unknown, |(_, ending)| ending);
                self.ended(life, ending, past.lived_ms, rules);
            }
        }
    }

    fn ended(&mut self, life: Incarnation, ending: Ending, lived_ms: Option<u64>, rules: &Rules<'_>) {
        let policy = rules.policy;
        let killed = match self.phase {
            Phase::Running { killed, .. } => killed.map(|(_, why)| why),
            _ => None,
        };
        let long = lived_ms.is_some_and(|lived| lived >= policy.healthy_after_ms);
        let (was_ready, healthy, draining) = match self.vital_of(life) {
            Some(vital) => (vital.was_ready, vital.healthy || (vital.was_ready && long), vital.is_draining()),
            None => (false, long, false),
        };
        let outside = ending.outside_cause();
        // Of a life that ended before this leader came, it is not known whether it was ready, nor who ended it.
        let unclear = self.phase == Phase::Unknown && self.vital_of(life).is_none() && !is_failure(ending);
        if was_ready {
            self.streak.failed_starts = 0;
        } else if outside.is_none() && !draining && !healthy && !unclear {
            self.streak.failed_starts += 1;
        }
        if healthy {
            (self.streak.restarts, self.streak.obstructed) = (0, 0);
        }
        let why = match (killed, outside) {
            (Some(why), _) => why.to_string(),
            (None, Some(cause)) => format!("{ending}: {cause}"),
            (None, None) => ending.to_string(),
        };
        if self.streak.failed_starts >= policy.failed_starts {
            let reason = format!("{} starts in a row failed, the last with: {why}", self.streak.failed_starts);
            return self.give_up(life, reason, rules.now_ms);
        }
        let gentle = draining || outside.is_some();
        // With the longest waits between them, restarts may be too far apart for the window.
        if !gentle && self.streak.restarts as usize >= policy.per_process {
            let reason = format!("{} restarts in a row did not make it healthy: {why}", self.streak.restarts);
            return self.give_up(life, reason, rules.now_ms);
        }
        let orderly = draining && was_ready;
        let delay_ms = if orderly { 0 } else { self.next_delay_ms(life, outside.is_some(), rules) };
        self.wait(life, rules.now_ms + delay_ms, gentle, why);
    }

    /// How long to wait before the next restart, which is counted with this.
    fn next_delay_ms(&mut self, life: Incarnation, is_obstructed: bool, rules: &Rules<'_>) -> u64 {
        let before = self.streak.restarts.saturating_add(self.streak.obstructed);
        let count = if is_obstructed { &mut self.streak.obstructed } else { &mut self.streak.restarts };
        *count = count.saturating_add(1);
        rules.policy.delay_ms(before, dice(rules.seed, self.name.as_str(), life.0))
    }

    fn wait(&mut self, life: Incarnation, due_ms: u64, gentle: bool, why: String) {
        self.phase = Phase::Down { life, due_ms, gentle, why };
    }

    pub(super) fn give_up(&mut self, life: Incarnation, reason: String, now_ms: u64) {
        self.phase = Phase::GivenUp { life, reason, due_ms: Some(now_ms) };
    }

    /// Nothing came of an order.
    pub(super) fn failed(&mut self, life: Incarnation, failure: OrderFailure, reason: &str, rules: &Rules<'_>) {
        match &mut self.phase {
            Phase::Starting { life: ordered, .. } if *ordered == life => self.not_started(life, failure, reason, rules),
            Phase::GivenUp { due_ms, .. } if due_ms.is_some() => {
                *due_ms = Some(rules.now_ms + rules.policy.backoff_ms.max(1));
            }
            // A kill is tried again when the process is judged again.
            _ => {}
        }
    }

    fn not_started(&mut self, life: Incarnation, failure: OrderFailure, reason: &str, rules: &Rules<'_>) {
        let soon = rules.policy.backoff_ms.max(1);
        let delay_ms = match failure {
            OrderFailure::Failed => return self.ended_unseen(life, reason, rules),
            OrderFailure::NotTried => soon,
            OrderFailure::Obstructed(_) => self.next_delay_ms(life, true, rules).max(soon),
        };
        if life > Incarnation(1) {
            self.restarts.pop();
        }
        self.wait(life, rules.now_ms + delay_ms, true, reason.to_owned());
    }

    /// A start that came to nothing.
    fn ended_unseen(&mut self, life: Incarnation, reason: &str, rules: &Rules<'_>) {
        self.ended(life, Ending::Unknown, None, rules);
        let text = match &mut self.phase {
            Phase::Down { why, .. } => why,
            Phase::GivenUp { reason, .. } => reason,
            _ => return,
        };
        *text = text.replace(&Ending::Unknown.to_string(), reason);
    }

    /// Whether something may have to be done about it now.
    pub(super) fn is_due(&self, policy: &KeeperPolicy, now_ms: u64) -> bool {
        match &self.phase {
            Phase::Unknown | Phase::Running { .. } => false,
            Phase::Starting { ordered_ms, .. } => now_ms - ordered_ms >= policy.start_within_ms,
            Phase::GivenUp { due_ms, .. } => due_ms.is_some_and(|due_ms| due_ms <= now_ms),
            Phase::Down { due_ms, .. } => *due_ms <= now_ms && self.in_view(policy, now_ms),
        }
    }

    /// What is due. `held`: what is in the way of a start.
    pub(super) fn act(&mut self, held: Option<&Hold>, rules: &Rules<'_>, actions: &mut Vec<KeeperAction>) {
        let (policy, now_ms) = (rules.policy, rules.now_ms);
        match &self.phase {
            Phase::Starting { life, .. } => {
                self.ended_unseen(*life, "nothing was seen of it after its start", rules);
            }
            Phase::GivenUp { reason, .. } => {
                actions.push(KeeperAction::GiveUp { name: self.name.clone(), reason: reason.clone() });
                let again = Some(now_ms + policy.start_within_ms.max(1));
                if let Phase::GivenUp { due_ms, .. } = &mut self.phase {
                    *due_ms = again;
                }
            }
            Phase::Down { life, gentle, why, .. } => {
                let (life, gentle, why) = (*life, *gentle, why.clone());
                if !self.is_first_start() && self.over_budget(policy, now_ms).is_some() {
                    if !gentle {
                        let window_s = policy.window_ms / 1_000;
                        let reason = format!(
                            "restarted {} times within {window_s} s, and ended again with: {why}",
                            policy.per_process
                        );
                        self.give_up(life, reason, now_ms);
                        self.act(held, rules, actions);
                    }
                } else if held.is_none() {
                    self.start(why, now_ms, actions);
                }
            }
            Phase::Unknown | Phase::Running { .. } => {}
        }
    }

    fn start(&mut self, why: String, now_ms: u64, actions: &mut Vec<KeeperAction>) {
        if !self.is_first_start() {
            self.restarts.push(now_ms);
        }
        self.highest = Incarnation(self.highest.0 + 1);
        self.phase = Phase::Starting { life: self.highest, ordered_ms: now_ms };
        actions.push(KeeperAction::Start {
            name: self.name.clone(),
            incarnation: self.highest,
            streak: self.streak,
            why,
        });
    }

    /// When it may be restarted again, if it was restarted too often.
    pub(super) fn over_budget(&self, policy: &KeeperPolicy, now_ms: u64) -> Option<u64> {
        room_at(self.restarts.within(policy.window_ms, now_ms), policy.per_process, policy.window_ms)
    }

    /// Whether the life that runs has stopped working.
    pub(super) fn judge(&mut self, rules: &Rules<'_>, actions: &mut Vec<KeeperAction>) {
        let (policy, now_ms) = (rules.policy, rules.now_ms);
        let in_view = self.in_view(policy, now_ms);
        let Phase::Running { life, since_ms, killed } = &mut self.phase else { return };
        if !in_view {
            return;
        }
        let for_ms = now_ms - *since_ms;
        let Some(vital) = Some(&mut self.vital).filter(|vital| vital.incarnation == *life) else { return };
        // Until it is ready, only the start's deadline counts. Before that is held against it, it is asked.
        let asked = vital.was_ready || for_ms + policy.hang_after_ms >= policy.start_within_ms;
        if asked && vital.ask(policy, now_ms) {
            actions.push(KeeperAction::Probe { name: self.name.clone(), incarnation: *life });
        }
        if killed.is_some_and(|(at, _)| now_ms - at < policy.hang_after_ms) {
            return;
        }
        let trouble = match vital.was_ready {
            true => vital.trouble(policy, now_ms),
            false => (for_ms >= policy.start_within_ms).then_some(Trouble::NotReady { for_ms }),
        };
        *killed = trouble.map(|why| (now_ms, why));
        if let Some(why) = trouble {
            actions.push(KeeperAction::Kill { name: self.name.clone(), incarnation: *life, why });
        }
    }

    /// Everything counts from now on.
    pub(super) fn freshen(&mut self, now_ms: u64) {
        self.vital.freshen(now_ms);
        if let Phase::Running { since_ms, .. } = &mut self.phase {
            *since_ms = now_ms;
        }
    }
}

/// Whether a process that ends in this way has ended by itself, and not well.
fn is_failure(ending: Ending) -> bool {
    match ending {
        Ending::Exited(code) => code != 0,
        // SIGINT, SIGKILL, SIGTERM: somebody wanted it.
        Ending::Signalled(signal) => !matches!(signal, 2 | 9 | 15),
        Ending::Unknown => false,
    }
}

/// What holds for all processes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) policy: &'a KeeperPolicy,
    pub(super) seed: u64,
    pub(super) now_ms: u64,
}

/// What is in the way of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hold {
    /// Not every process was looked at yet, so nobody knows how much the cluster has restarted.
    Unseen,
    /// This broker is not ready.
    Broker(ProcessName),
    /// The cluster has restarted too much; there is room again at this time.
    Budget(u64),
    /// The cluster is being stopped.
    Closed,
}
