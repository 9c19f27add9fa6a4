//! When a request is repeated, and when the client gives up.

use std::time::{Duration, Instant};

use crate::Error;
use crate::limits::{FIRST_WAIT, LONGEST_RETRY_AFTER, LONGEST_WAIT};

/// Why a request must be repeated.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The gateway cannot be reached, or is in trouble itself: another one may do. `wait` is for when all are.
    Elsewhere { why: String, wait: Option<Duration> },
    /// The cluster behind all gateways is in trouble: wait.
    Wait { why: String, wait: Option<Duration> },
    /// The job is still being created: if that lasts, it is created again.
    BeingCreated { why: String, wait: Option<Duration> },
    /// The job's work queue is full.
    Full { wait: Option<Duration> },
    /// It does not know the job.
    NotFound,
}

/// When a request is repeated.
#[derive(Debug)]
pub(crate) struct Waits {
    patience: Duration,
    gateways: usize,
    since: Option<Instant>,
    attempts: usize,
}

impl Waits {
    pub(crate) fn new(patience: Duration, gateways: usize) -> Self {
        Self { patience, gateways, since: None, attempts: 0 }
    }

    /// How long to wait after this trouble.
    pub(crate) fn next(&mut self, trouble: &Trouble) -> Result<Duration, Error> {
        let asked = match trouble {
            Trouble::Full { wait } => {
                self.since = None;
                return Ok(obeyed(wait.unwrap_or(LONGEST_WAIT / 10)));
            }
            Trouble::Wait { wait, .. } | Trouble::Elsewhere { wait, .. } | Trouble::BeingCreated { wait, .. } => *wait,
            Trouble::NotFound => None,
        };
        let chosen = self.after_failure(|| trouble.why())?;
        let has_untried = chosen.is_zero() && matches!(trouble, Trouble::Elsewhere { .. });
        match asked {
            Some(wait) if !has_untried => Ok(obeyed(wait).max(chosen).min(self.left())),
            _ => Ok(chosen),
        }
    }

    /// How long to wait after a failure: not at all before a gateway that has not been tried.
    pub(crate) fn after_failure(&mut self, why: impl FnOnce() -> String) -> Result<Duration, Error> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited >= self.patience {
            return Err(Error::Away { seconds: waited.as_secs(), reason: why() });
        }
        self.attempts += 1;
        if self.attempts < self.gateways {
            return Ok(Duration::ZERO);
        }
        let rounds = (self.attempts / self.gateways).saturating_sub(1).min(16) as u32;
        let wait = jittered((FIRST_WAIT * 2u32.pow(rounds)).min(LONGEST_WAIT));
        Ok(wait.min(self.left()))
    }

    /// What is left of patience: the last attempt is made when it ends, not earlier and not later.
    fn left(&self) -> Duration {
        self.patience.saturating_sub(self.since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    /// What went before was no failure.
    pub(crate) fn forget(&mut self) {
        (self.since, self.attempts) = (None, 0);
    }
}

impl Trouble {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Elsewhere { why, .. } | Self::Wait { why, .. } | Self::BeingCreated { why, .. } => why.clone(),
            Self::Full { .. } => "the job's queue is full; the workers have to catch up".to_owned(),
            Self::NotFound => "the gateway has not heard of the job yet".to_owned(),
        }
    }
}

/// As long as a gateway asks for, within reason.
fn obeyed(wait: Duration) -> Duration {
    jittered(wait.clamp(FIRST_WAIT, LONGEST_RETRY_AFTER))
}

/// Half to all of the time, so that clients do not come back together.
fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_is_made_at_once_and_later_ones_wait_longer() {
        let mut waits = Waits::new(Duration::from_secs(1000), 3);
        let mut next = || waits.after_failure(String::new).expect("patient").as_millis();
        assert_eq!([next(), next()], [0, 0]);
        let (first, later): (u128, Vec<u128>) = (next(), (0..40).map(|_| next()).collect());
        assert!((50..=100).contains(&first), "{first}");
        assert!(later.iter().all(|wait| *wait <= 5000) && later[39] >= 2500, "{later:?}");
    }

    #[test]
    fn a_gateway_in_trouble_is_left_at_once_and_asked_again_when_it_says() {
        let mut waits = Waits::new(Duration::from_secs(1000), 2);
        let wait = Some(Duration::from_secs(4));
        let mut next = |trouble: &Trouble| waits.next(trouble).expect("patient").as_millis();
        let busy = Trouble::Elsewhere { why: "busy".to_owned(), wait };
        assert_eq!(next(&busy), 0, "the other one has not been tried");
        assert!((2000..=4000).contains(&next(&busy)));
        // The cluster's trouble is the same everywhere.
        let mut waits = Waits::new(Duration::from_secs(1000), 2);
        let away = Trouble::Wait { why: "broker".to_owned(), wait };
        assert!((2000..=4000).contains(&waits.next(&away).expect("patient").as_millis()));
    }

    #[test]
    fn patience_ends_and_a_full_queue_costs_none() {
        let mut waits = Waits::new(Duration::ZERO, 1);
        for _ in 0..3 {
            waits.next(&Trouble::Full { wait: None }).expect("no failure");
        }
        let trouble = Trouble::Wait { why: "no workers".to_owned(), wait: Some(Duration::from_secs(1)) };
        assert!(matches!(waits.next(&trouble), Err(Error::Away { reason, .. }) if reason == "no workers"));
    }
}
