//! When what is struck, on purpose: a plan that a seed names.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::ProcessRole;

/// What is done to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChaosAction {
    /// Ended at once, as by a crash.
    Kill,
    /// Stopped for a while, as by a machine that swaps or a network that is away.
    Pause {
        /// For how long.
        ms: u64,
    },
    /// Asked to end in good order, as by an upgrade.
    Restart,
}

impl ChaosAction {
    /// Its name in options and accounts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause { .. } => "pause",
            Self::Restart => "restart",
        }
    }
}

/// How often each action is chosen, compared with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChaosWeights {
    /// [`ChaosAction::Kill`]
    pub kill: u32,
    /// [`ChaosAction::Pause`]
    pub pause: u32,
    /// [`ChaosAction::Restart`]
    pub restart: u32,
}

impl Default for ChaosWeights {
    /// Mostly what is worst.
    fn default() -> Self {
        Self { kill: 3, pause: 1, restart: 1 }
    }
}

/// What a plan is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChaosSettings {
    /// The time between two strikes, give or take a quarter.
    pub every_ms: u64,
    /// Who is struck.
    pub roles: Vec<ProcessRole>,
    /// With what.
    pub weights: ChaosWeights,
    /// How long a pause takes.
    pub pause_ms: RangeInclusive<u64>,
    /// No strike after this; `None`: it never ends.
    pub duration_ms: Option<u64>,
}

impl Default for ChaosSettings {
    /// Everybody, every two seconds, for ever; some pauses are shorter than what counts as hanging, some are longer.
    fn default() -> Self {
        Self {
            every_ms: 2000,
            roles: ProcessRole::ALL.to_vec(),
            weights: ChaosWeights::default(),
            pause_ms: 500..=5000,
            duration_ms: None,
        }
    }
}

/// Why settings make no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChaosError {
    /// Strikes without time between them.
    #[error("the time between two strikes must be at least 1 ms")]
    NoTime,
    /// Nobody to strike.
    #[error("name at least one role to strike: supervisor, broker, worker or gateway")]
    NoRole,
    /// Nothing to strike with.
    #[error("allow at least one of kill, pause and restart")]
    NoAction,
    /// A range from more to less.
    #[error("the shortest pause ({shortest} ms) is longer than the longest ({longest} ms)")]
    NoPause {
        /// From.
        shortest: u64,
        /// To.
        longest: u64,
    },
}

/// One blow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strike {
    /// Counted from 1.
    pub number: u64,
    /// When, since the beginning.
    pub at_ms: u64,
    /// Who.
    pub role: ProcessRole,
    /// Which of them: of `n` in the order of their names, the one with index `pick % n`.
    pub pick: u64,
    /// What.
    pub action: ChaosAction,
}

/// The strikes of a seed, in the order of their times. The same seed and settings give the same plan, everywhere.
///
/// Roles come in rounds, each role once per round in an order of chance: so that even a short run strikes them all.
///
/// ```
/// use tenaz_core::{ChaosPlan, ChaosSettings, ProcessRole};
///
/// let settings = ChaosSettings {
///     every_ms: 1000,
///     roles: vec![ProcessRole::Worker, ProcessRole::Gateway],
///     duration_ms: Some(10_000),
///     ..ChaosSettings::default()
/// };
/// let plan: Vec<_> = ChaosPlan::new(7, settings.clone())?.collect();
/// assert!((9..=10).contains(&plan.len()));
/// assert_eq!(plan, ChaosPlan::new(7, settings)?.collect::<Vec<_>>());
/// # Ok::<(), tenaz_core::ChaosError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChaosPlan {
    settings: ChaosSettings,
    dice: Dice,
    round: Vec<ProcessRole>,
    number: u64,
}

impl ChaosPlan {
    /// The plan of a seed.
    pub fn new(seed: u64, mut settings: ChaosSettings) -> Result<Self, ChaosError> {
        // What was named twice, or in another order, means the same.
        settings.roles.sort();
        settings.roles.dedup();
        let ChaosWeights { kill, pause, restart } = settings.weights;
        let (shortest, longest) = (*settings.pause_ms.start(), *settings.pause_ms.end());
        if settings.every_ms == 0 {
            return Err(ChaosError::NoTime);
        }
        if settings.roles.is_empty() {
            return Err(ChaosError::NoRole);
        }
        if kill == 0 && pause == 0 && restart == 0 {
            return Err(ChaosError::NoAction);
        }
        if shortest > longest {
            return Err(ChaosError::NoPause { shortest, longest });
        }
        Ok(Self { settings, dice: Dice(seed), round: Vec::new(), number: 0 })
    }

    fn role(&mut self) -> ProcessRole {
        if self.round.is_empty() {
            self.round = self.settings.roles.clone();
        }
        let index = self.dice.below(self.round.len() as u64) as usize;
        self.round.swap_remove(index)
    }

    fn action(&mut self) -> ChaosAction {
        let ChaosWeights { kill, pause, restart } = self.settings.weights;
        let (kill, pause, restart) = (u64::from(kill), u64::from(pause), u64::from(restart));
        let chosen = self.dice.below(kill + pause + restart);
        // Thrown in any case, so that other weights do not change which processes are struck.
        let span = self.settings.pause_ms.end() - self.settings.pause_ms.start();
        let ms = self.settings.pause_ms.start() + self.dice.below(span.saturating_add(1));
        match chosen {
            chosen if chosen < kill => ChaosAction::Kill,
            chosen if chosen < kill + pause => ChaosAction::Pause { ms },
            _ => ChaosAction::Restart,
        }
    }
}

impl Iterator for ChaosPlan {
    type Item = Strike;

    fn next(&mut self) -> Option<Strike> {
        let every = self.settings.every_ms;
        let jitter = every / 4;
        let number = self.number + 1;
        let at_ms = number.checked_mul(every)?.checked_sub(jitter)?.checked_add(self.dice.below(2 * jitter + 1))?;
        if self.settings.duration_ms.is_some_and(|end| at_ms > end) {
            return None;
        }
        self.number = number;
        let (role, pick, action) = (self.role(), self.dice.throw(), self.action());
        Some(Strike { number, at_ms, role, pick, action })
    }
}

/// splitmix64.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.throw()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings() -> ChaosSettings {
        ChaosSettings {
            every_ms: 1000,
            roles: ProcessRole::ALL.to_vec(),
            weights: ChaosWeights::default(),
            pause_ms: 200..=900,
            duration_ms: Some(60_000),
        }
    }

    #[test]
    fn a_seed_is_a_plan_and_another_seed_another() {
        let plan = |seed| ChaosPlan::new(seed, settings()).unwrap().collect::<Vec<_>>();
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
        // Golden: a run that is repeated years later strikes the same.
        let first = plan(7)[0];
        assert_eq!((first.number, first.at_ms, first.role.as_str()), (1, 945, "supervisor"));
    }

    #[test]
    fn impossible_settings_are_refused() {
        let refused = |change: &dyn Fn(&mut ChaosSettings)| {
            let mut settings = settings();
            change(&mut settings);
            ChaosPlan::new(1, settings).unwrap_err()
        };
        assert_eq!(refused(&|s| s.every_ms = 0), ChaosError::NoTime);
        assert_eq!(refused(&|s| s.roles.clear()), ChaosError::NoRole);
        assert_eq!(refused(&|s| s.weights = ChaosWeights { kill: 0, pause: 0, restart: 0 }), ChaosError::NoAction);
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = 9..=1;
        assert_eq!(refused(&|s| s.pause_ms = reversed.clone()), ChaosError::NoPause { shortest: 9, longest: 1 });
    }

    proptest! {
        #[test]
        fn strikes_come_in_time_and_reach_every_role(seed: u64, every in 1u64..5000, roles in 1usize..=4) {
            let roles = ProcessRole::ALL[..roles].to_vec();
            let settings = ChaosSettings { every_ms: every, roles: roles.clone(), duration_ms: None, ..settings() };
            let plan: Vec<Strike> = ChaosPlan::new(seed, settings).unwrap().take(40).collect();
            for (index, strike) in plan.iter().enumerate() {
                let middle = every * (index as u64 + 1);
                prop_assert!(strike.at_ms.abs_diff(middle) <= every / 4);
                if let ChaosAction::Pause { ms } = strike.action {
                    prop_assert!((200..=900).contains(&ms));
                }
            }
            for round in plan.chunks_exact(roles.len()) {
                let mut struck: Vec<ProcessRole> = round.iter().map(|strike| strike.role).collect();
                struck.sort();
                prop_assert_eq!(&struck, &roles);
            }
            prop_assert!(plan.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
        }
    }
}
