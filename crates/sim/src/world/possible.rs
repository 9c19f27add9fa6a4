//! Who can do something now.

use super::World;
use crate::gateway::Gateway;
use crate::mutation::Mutation;
use crate::node::Worker;
use crate::process::Process;
use crate::step::Step;

impl World {
    pub(super) fn possible(&self) -> Vec<Step> {
        let mut steps = Vec::with_capacity(48);
        let is_up = self.now >= self.broker_down_until;
        let is_stalled = self.now < self.stalled_until;
        if self.now >= self.alarm_until && self.now >= self.slow_until {
            let sending = self.broker.connections().filter(|&at| self.broker.has_outgoing(at, is_stalled));
            steps.extend(sending.map(Step::Accept));
            steps.extend((self.broker.has_ghosts() && is_up).then_some(Step::AcceptGhost));
        }
        for (job, client) in self.clients.iter().enumerate() {
            steps.extend(client.can_hear().then_some(Step::ClientHear(job)));
            let can_ask = client.can_ask(&self.setup.jobs[job], self.now, self.setup.mutation);
            steps.extend(can_ask.then_some(Step::ClientAsk(job)));
        }
        for (slot, worker) in self.workers.iter().enumerate() {
            match worker {
                None => steps.extend((self.now >= self.absent_until[slot]).then_some(Step::Start(slot))),
                Some(worker) if self.now < worker.base.paused_until => {}
                Some(worker) => self.worker_steps(slot, worker, is_up, &mut steps),
            }
        }
        for (at, gateway) in self.gateways.iter().enumerate() {
            let slot = self.workers.len() + at;
            match gateway {
                None => steps.extend((self.now >= self.absent_until[slot]).then_some(Step::Start(slot))),
                Some(gateway) => self.gateway_steps(slot, gateway, is_up, &mut steps),
            }
        }
        steps
    }

    /// What every process can do. False if it cannot do more.
    fn process_steps(&self, slot: usize, base: &Process, is_up: bool, lost: bool, steps: &mut Vec<Step>) -> bool {
        steps.extend((!base.news.is_empty()).then_some(Step::Hear(slot)));
        steps.push(Step::Tick(slot));
        let Some(connection) = base.connection else {
            steps.extend(is_up.then_some(Step::Connect(slot)));
            return false;
        };
        steps.extend(lost.then_some(Step::Notice(slot)));
        if !self.broker.is_open(connection) {
            return false;
        }
        let is_in_line = self.setup.mutation == Mutation::BeatsInLine && self.broker.has_outgoing(connection, false);
        steps.extend((!is_in_line).then_some(Step::Heartbeat(slot)));
        if self.now >= base.silent_until {
            steps.extend(base.readable_controls(&self.broker).map(|job| Step::ReadControl(slot, job)));
            steps.extend(base.can_read_registry(&self.broker).then_some(Step::ReadRegistry(slot)));
        }
        steps.extend(self.broker.has_confirms(connection).then_some(Step::Confirm(slot)));
        true
    }

    fn worker_steps(&self, slot: usize, worker: &Worker, is_up: bool, steps: &mut Vec<Step>) {
        let mutation = self.setup.mutation;
        let parts = &worker.parts;
        for (&job, part) in &parts.jobs {
            let is_free = self.now >= parts.busy_until;
            steps.extend((part.queued() > 0 && is_free).then_some(Step::Work(slot, job)));
            steps.extend((part.finished() > 0).then_some(Step::HandInFinished(slot, job)));
            steps.extend(part.has_incoming().then_some(Step::HandIn(slot, job)));
            let can_rejoin =
                part.has_stood_back() && self.now >= self.full_disks[slot] && mutation != Mutation::NoRejoin;
            steps.extend(can_rejoin.then_some(Step::Rejoin(slot, job)));
        }
        steps.extend(worker.base.has_cleared().then_some(Step::HearClearance(slot)));
        steps.extend(worker.can_leave().then_some(Step::Leave(slot)));
        let lost = worker.has_lost_session(&self.broker, mutation);
        if !self.process_steps(slot, &worker.base, is_up, lost, steps) {
            return;
        }
        let connection = worker.base.connection.unwrap_or_default();
        let can_take =
            |&(job, wave): &(usize, usize)| self.broker.can_deliver(connection, (job, wave), self.setup.prefetch);
        steps.extend(parts.takes().filter(can_take).map(|(job, wave)| Step::Deliver(slot, job, wave)));
        if self.now >= worker.base.silent_until {
            steps.extend(parts.readable(&self.broker).map(|(job, log)| Step::Read(slot, job, log)));
        }
    }

    fn gateway_steps(&self, slot: usize, gateway: &Gateway, is_up: bool, steps: &mut Vec<Step>) {
        let lost = gateway.has_lost_session(&self.broker);
        if !self.process_steps(slot, &gateway.base, is_up, lost, steps) {
            return;
        }
        steps.extend(gateway.can_serve(&self.broker).then_some(Step::Serve(slot)));
        let can_go_on = gateway.desk.can_go_on(&gateway.base, self.setup.ms_of(self.now));
        steps.extend(can_go_on.then_some(Step::GoOn(slot)));
    }
}
