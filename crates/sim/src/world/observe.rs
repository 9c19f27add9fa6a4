//! What an onlooker sees who misses nothing: the state of jobs as it is, for the checks.

use tenaz_core::RegistryEvent;

use super::World;
use crate::broker::Job;
use crate::faults::Fault;

/// Bytes of an event of another job.
const NOISE_BYTES: u64 = 560;
/// What is looked at only now and then is looked at in every so many steps.
const LOOK_EVERY: u64 = 8;

impl World {
    pub(super) fn observe(&mut self) {
        let noise = self.setup.registry_noise;
        let is_well = self.now >= self.broker_down_until.max(self.alarm_until).max(self.slow_until);
        if noise > 0 && self.now.is_multiple_of(noise) && is_well {
            self.broker.write_registry(RegistryEvent::Mark { number: 0 }, NOISE_BYTES);
        }
        self.read_registry();
        if self.now.is_multiple_of(LOOK_EVERY) {
            (0..self.setup.jobs.len()).for_each(|job| self.look_at(job));
        }
    }

    fn read_registry(&mut self) {
        let log = self.broker.registry();
        self.registry_at = self.registry_at.min(log.end()).max(log.first());
        while let Some((event, bytes)) = self.broker.registry().get(self.registry_at).cloned() {
            self.registry_at += 1;
            self.registry.apply(bytes, event);
            for (job, of) in self.setup.jobs.iter().enumerate() {
                let end = self.registry.get(&of.card.id).and_then(|entry| entry.end.clone());
                if let (Some(end), None) = (end, &self.checks.ended[job]) {
                    self.trace.note(format_args!("job {job} has ended: {end:?}"));
                    self.checks.ended[job] = Some(end);
                }
            }
            if self.registry_at >= self.broker.registry().end() {
                break;
            }
        }
        self.check_retention();
    }

    /// The log is bounded, and must not forget a job because of that.
    fn check_retention(&mut self) {
        let first = self.broker.registry().first();
        if std::mem::replace(&mut self.registry_first, first) == first {
            return;
        }
        let has_failed = self.checks.fired.contains(&Fault::PowerCut);
        for (job, of) in self.setup.jobs.iter().enumerate() {
            let id = &of.card.id;
            let says = |event: &RegistryEvent| match event {
                RegistryEvent::Created { card } | RegistryEvent::Still { card, .. } => card.id == *id,
                _ => false,
            };
            if self.registry.get(id).is_some() && !has_failed && !self.broker.registry().events().any(says) {
                self.checks.broken(format!("the registry has forgotten job {job}"));
            }
        }
    }

    fn look_at(&mut self, job: Job) {
        let now = self.now;
        let is_served = self.workers.iter().flatten().any(|worker| worker.serves(job, now, &self.broker));
        let since = &mut self.checks.served_since[job];
        *since = if is_served { since.or(Some(now)) } else { None };
        let client = &self.clients[job];
        let is_away = now < client.away_until || client.is_over();
        let since = &mut self.checks.client_away_since[job];
        *since = if is_away { since.or(Some(now)) } else { None };
        let awake = self.workers.iter().flatten().filter(|worker| now >= worker.base.paused_until);
        let awake: Vec<u64> = awake.filter_map(|worker| worker.base.connection).collect();
        self.checks.delivered_since[job] = self.broker.delivered_since(job, &awake);
    }
}
