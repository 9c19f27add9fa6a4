//! What a step does.

use super::{MAX_ABSENCE, World};
use crate::broker::{Condition, Job};
use crate::mutation::Mutation;
use crate::process::News;
use crate::step::Step;

impl World {
    pub(super) fn condition(&self) -> Condition {
        let is_full = self.now < self.full_until;
        Condition { now: self.now, is_full, is_stalled: self.now < self.stalled_until }
    }

    /// A slow broker takes one message of each connection.
    pub(super) fn accept_slowly(&mut self) {
        if self.now < self.alarm_until {
            return;
        }
        let connections: Vec<u64> = self.broker.connections().collect();
        for connection in connections {
            let accepted = self.broker.accept(connection, self.condition(), &mut self.rng);
            self.accepted(accepted);
        }
    }

    pub(super) fn perform(&mut self, step: Step) {
        match step {
            Step::Accept(connection) => {
                let accepted = self.broker.accept(connection, self.condition(), &mut self.rng);
                self.accepted(accepted);
            }
            Step::AcceptGhost => {
                let accepted = self.broker.accept_ghost(&mut self.rng);
                self.accepted(accepted);
            }
            Step::ClientAsk(job) => self.client_asks(job),
            Step::ClientHear(job) => {
                let every = self.setup.silence;
                let now = (self.now, self.setup.ms_of(self.now));
                self.clients[job].hear(&self.setup.jobs[job], now, every, self.setup.mutation);
            }
            Step::Start(slot) => self.start(slot),
            Step::Heartbeat(slot) => self.heartbeat(slot),
            Step::Hear(slot) => {
                let pick = self.rng.next_u64() as usize;
                let Some(base) = self.process_mut(slot) else { return };
                let news = base.news.remove(pick % base.news.len());
                self.hear(slot, news);
            }
            step => match slot_of(step).and_then(|slot| slot.checked_sub(self.workers.len())) {
                Some(gateway) => self.gateway_step(gateway, step),
                None => self.worker_step(step),
            },
        }
    }

    fn client_asks(&mut self, job: Job) {
        let (now, setup) = (self.now, &self.setup);
        let (gateways, twice) = (setup.gateways, setup.twice_percent);
        let asked = self.clients[job].ask(&setup.jobs[job], now, gateways, twice, setup.mutation, &mut self.rng);
        for (gateway, id, ask) in asked {
            self.trace.note(format_args!("  asks gateway {gateway}: {ask:?}"));
            match &mut self.gateways[gateway] {
                Some(gateway) => gateway.desk.ask(id, ask),
                None => self.clients[job].answered(id, crate::gateway::Answer::Lost),
            }
        }
    }

    pub(super) fn heartbeat(&mut self, slot: usize) {
        let sign = match slot.checked_sub(self.workers.len()) {
            None => self.workers[slot].as_ref().map(|worker| worker.life_sign(&self.setup, self.setup.mutation)),
            Some(gateway) => self.gateways[gateway].as_ref().map(|gateway| gateway.life_sign()),
        };
        if let Some(sign) = sign {
            self.tell_others(slot, &News::Sign(sign));
        }
    }

    fn gateway_step(&mut self, gateway: usize, step: Step) {
        let pick = self.rng.next_u64() as usize;
        let slot = self.workers.len() + gateway;
        match step {
            Step::Serve(_) => self.with_gateway(gateway, |desk, at| desk.serve(pick, at)),
            Step::GoOn(_) => self.with_gateway(gateway, |desk, at| desk.go_on(pick, at)),
            Step::Connect(_) => self.with_gateway(gateway, |desk, at| desk.connect(at)),
            Step::Notice(_) => {
                let connection = self.connection_of(slot);
                self.broker.cut(connection, &mut self.rng);
                self.with_gateway(gateway, |desk, at| desk.disconnected(at));
            }
            Step::Confirm(_) => {
                let connection = self.connection_of(slot);
                if let Some((id, is_accepted)) = self.broker.take_confirm(connection, &mut self.rng) {
                    self.with_gateway(gateway, |desk, at| desk.confirmed(id, is_accepted, at));
                }
            }
            Step::ReadRegistry(_) => self.with_gateway(gateway, |_, at| at.read_registry()),
            Step::ReadControl(_, job) => self.with_gateway(gateway, |_, at| at.read_control(job)),
            Step::Tick(_) => self.with_gateway(gateway, |desk, at| desk.tick(at)),
            _ => {}
        }
    }

    fn worker_step(&mut self, step: Step) {
        match step {
            Step::Deliver(slot, job, wave) => self.deliver(slot, job, wave),
            Step::Confirm(slot) => {
                let connection = self.connection_of(slot);
                if let Some((id, is_accepted)) = self.broker.take_confirm(connection, &mut self.rng) {
                    self.with_worker(slot, |parts, at| parts.confirmed(id, is_accepted, at));
                }
            }
            Step::HandIn(slot, job) => self.with_part(slot, job, |part, at| part.hand_in(at)),
            Step::Work(slot, job) => self.run_step(slot, job),
            Step::HandInFinished(slot, job) => {
                let pick = self.rng.next_u64() as usize;
                self.with_part(slot, job, |part, at| part.hand_in_finished(pick % part.finished(), at));
            }
            Step::HearClearance(slot) => self.with_worker(slot, |parts, at| parts.hear_clearance(at)),
            Step::Rejoin(slot, job) => self.with_part(slot, job, |part, at| part.rejoin(at)),
            Step::Leave(slot) => self.leave(slot),
            Step::Connect(slot) => self.with_worker(slot, |parts, at| parts.connect(at)),
            Step::Notice(slot) => {
                let connection = self.connection_of(slot);
                self.broker.cut(connection, &mut self.rng);
                self.with_worker(slot, |parts, at| parts.disconnected(at));
            }
            Step::Read(slot, job, log) => self.with_part(slot, job, |part, at| part.read(log, at)),
            Step::ReadControl(slot, job) => self.with_worker(slot, |parts, at| parts.read_control(job, at)),
            Step::ReadRegistry(slot) => self.with_worker(slot, |parts, at| parts.read_registry(at)),
            Step::Tick(slot) => self.with_worker(slot, |parts, at| parts.tick(at)),
            _ => {}
        }
    }

    /// Lets a worker's part in a job act.
    pub(super) fn with_part<T: Default>(
        &mut self,
        slot: usize,
        job: Job,
        act: impl FnOnce(&mut crate::node::Part, &mut crate::process::Surroundings<'_>) -> T,
    ) -> T {
        self.with_worker(slot, |parts, at| parts.jobs.get_mut(&job).map(|part| act(part, at)).unwrap_or_default())
    }

    fn deliver(&mut self, slot: usize, job: Job, wave: usize) {
        let connection = self.connection_of(slot);
        let Some(delivery) = self.broker.deliver(connection, (job, wave), self.now) else { return };
        self.trace.note(format_args!("  {delivery:?}"));
        let taker = match self.setup.mutation {
            Mutation::JobsMixed => (job + 1) % self.setup.jobs.len(),
            _ => job,
        };
        self.with_part(slot, taker, |part, at| part.delivered(wave, delivery, at));
    }

    fn run_step(&mut self, slot: usize, job: Job) {
        let pick = self.rng.next_u64() as usize;
        let died = self.with_part(slot, job, |part, at| !part.run_step(pick % part.queued(), at));
        if died {
            self.trace.note(format_args!("  worker {slot} dies of it"));
            self.kill_worker(slot);
        }
    }

    /// A worker that was asked to leave does so in good order.
    fn leave(&mut self, slot: usize) {
        let Some(worker) = self.workers[slot].take() else { return };
        self.broker.close(worker.base.connection.unwrap_or_default());
        self.tell_others(slot, &News::left(worker.base.member));
        self.absent_until[slot] = self.now + self.rng.below(MAX_ABSENCE);
    }
}

fn slot_of(step: Step) -> Option<usize> {
    step.slot()
}
