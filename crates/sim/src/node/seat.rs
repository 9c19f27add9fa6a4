//! What a worker owns of a job, and what it makes of a silence.

use tenaz_core::limits::IDLE_MS;
use tenaz_core::{Input, StallSigns, StallVerdict};

use super::{Part, Presence};
use crate::mutation::Mutation;
use crate::process::Surroundings;

impl Part {
    /// Something has arrived for the job.
    pub(super) fn heard(&mut self, at: &Surroundings<'_>) {
        self.seat.heard(at.now_ms);
        self.stale_seat = None;
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, at: &mut Surroundings<'_>) {
        self.assign(at);
        self.judge_by_stale_seat(at);
        if at.base.connection.is_some() && self.is_working() && self.seat.is_due(at.now_ms) {
            self.judge_silence(at);
        }
    }

    /// A seat that takes what was just acquired for read, because nothing has arrived for long.
    fn judge_by_stale_seat(&mut self, at: &mut Surroundings<'_>) {
        if !self.stale_seat.as_ref().is_some_and(|stale| stale.is_due(at.now_ms)) {
            return;
        }
        let signs = self.stall_signs(at);
        let verdict = self.stale_seat.as_mut().map(|stale| stale.judge(&signs, at.now_ms));
        if verdict == Some(StallVerdict::SearchLost) {
            self.stale_seat = None;
            at.checks.searched(self.job, at.now_ms.saturating_sub(self.acquired_ms));
            self.stalled(at);
        }
    }

    /// Who owns what, given who is alive.
    pub(super) fn assign(&mut self, at: &mut Surroundings<'_>) {
        // A process that has just come listens first.
        if self.presence != Presence::Working || at.now < self.born + at.setup.silence / 3 {
            return;
        }
        let before = self.seat.clone();
        if let Some(claim) = self.seat.assign(at.base.roster.workers(), at.now_ms) {
            at.trace.note(format_args!("  owns {claim:?} of job {}", self.job));
            self.acquired_ms = at.now_ms;
            self.stale_seat = (at.mutation == Mutation::SearchAtTakeover).then_some(before);
            self.handle(Input::Owns { partitions: claim.partitions, results: claim.results }, at);
        }
    }

    fn judge_silence(&mut self, at: &mut Surroundings<'_>) {
        let signs = self.stall_signs(at);
        let mut verdict = self.seat.judge(&signs, at.now_ms);
        if at.mutation == Mutation::IdleForAMoment && verdict == StallVerdict::Wait {
            verdict = self.seat.judge(&signs, at.now_ms + IDLE_MS);
        }
        at.trace.note(format_args!("  {signs:?}: {verdict:?}"));
        match verdict {
            StallVerdict::Wait => {}
            StallVerdict::Reconnect { .. } => {
                at.base.gives_session_up |= at.mutation != Mutation::NoReconnect;
                at.checks.given_up += 1;
            }
            StallVerdict::SearchLost => {
                if at.mutation != Mutation::NoSearch {
                    at.checks.searched(self.job, at.now_ms.saturating_sub(self.acquired_ms));
                    self.stalled(at);
                }
            }
        }
    }

    fn stall_signs(&self, at: &Surroundings<'_>) -> StallSigns {
        let card = &at.job(self.job).card;
        let elsewhere = match at.mutation {
            Mutation::SearchWhileOthersWork => 0,
            _ => at.base.roster.under_way(&card.id),
        };
        if let Some(signs) = StallSigns::of_work(self.under_way(), elsewhere) {
            return signs;
        }
        let mut waves = Vec::new();
        for wave in 0..self.scenario.waves.len() {
            match at.broker.waiting(self.job, wave) {
                Some(waiting) => waves.push((self.driver.consumer(wave).is_some(), waiting)),
                None => return StallSigns::Unknown("a work queue is not there".to_owned()),
            }
        }
        match self.facts(at) {
            Some(facts) => StallSigns::idle(&self.scenario.waves, waves, facts),
            None => StallSigns::Unknown("the job is gone".to_owned()),
        }
    }

    /// Nothing moves, or so it seems.
    pub(crate) fn stalled(&mut self, at: &mut Surroundings<'_>) {
        self.conclude_again(at);
        self.handle(Input::Stalled, at);
        self.report_findings(at);
    }
}
