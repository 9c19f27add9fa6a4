//! How faults happen.

use super::World;
use crate::broker::{ConnectionId, Job};
use crate::faults::Fault;
use crate::node::Channel;
use crate::process::{News, Process};

/// After so many silences at the latest the broker closes a connection over which nothing comes (a minute).
const SILENT_CONNECTION: u64 = 24;

impl World {
    /// Lets a fault happen. False if all is as it was before.
    pub(crate) fn strike(&mut self, fault: Fault) -> bool {
        let hit = match fault {
            fault if !self.has_place_of(fault) => false,
            Fault::KillWorker(slot) => self.kill_worker(slot),
            Fault::CutWorker(slot) => {
                let connection = self.connection_of(slot);
                self.cut(connection)
            }
            Fault::RestartBroker => self.restart_broker(),
            Fault::PowerCut => {
                let lost = self.broker.lose_tails(&mut self.rng);
                self.trace.note(format_args!("  {lost} messages are lost"));
                self.restart_broker()
            }
            Fault::Pause(slot, steps) => self.pause(slot, steps),
            Fault::Suspect(slot) => self.suspect(slot),
            Fault::Flap(slot, steps) => self.set_time(slot, steps, |base| &mut base.flaps_until),
            Fault::Stall(slot) => self.stall(slot),
            Fault::KillClient => {
                let hits = (0..self.clients.len()).filter(|&job| self.leave_client(job, 0)).count();
                hits > 0
            }
            Fault::CutClient => {
                let hits = (0..self.clients.len()).filter(|&job| self.cut_client(job)).count();
                hits > 0
            }
            // A job that nobody has made yet, or that nobody knows any more, would never be made.
            Fault::LeaveClient(job, steps) => self.is_known(job) && self.leave_client(job, steps),
            Fault::Cancel(job) => self.clients.get_mut(job).is_some_and(|client| client.cancel()),
            Fault::FullDisk(slot, steps) => {
                self.full_disks[slot] = self.now + steps;
                self.workers[slot].is_some()
            }
            Fault::Drain(slot) => self.is_free(slot) && self.with_worker(slot, |parts, at| parts.drain(at)),
            Fault::FullQueues(steps) => {
                self.full_until = self.now + steps;
                true
            }
            Fault::Alarm(steps) => {
                self.alarm_until = self.now + steps;
                true
            }
            Fault::SilentStreams(slot, steps) => self.set_time(slot, steps, |base| &mut base.silent_until),
            Fault::LoseChannel(slot) => self.lose_channel(slot),
            Fault::ForgetConsumer(slot) => self.forget_consumer(slot),
            Fault::KillGateway(gateway) => self.kill_gateway(gateway),
            Fault::CutGateway(gateway) => {
                let connection = self.connection_of(self.workers.len() + gateway);
                self.cut(connection)
            }
            Fault::RefusingChannel(gateway) => {
                let connection = self.connection_of(self.workers.len() + gateway);
                self.broker.refuse_chunks(connection)
            }
            Fault::DeadQueue(job) => job < self.setup.jobs.len() && self.kill_queue(job),
            Fault::StalledDisk(steps) => {
                self.stalled_until = self.now + steps;
                true
            }
            Fault::SlowBroker(steps) => {
                self.slow_until = self.now + steps;
                true
            }
            Fault::LongTask(slot, steps) => {
                let worker = self.workers[slot].as_mut();
                worker.map(|worker| worker.parts.busy_until = self.now + steps).is_some()
            }
        };
        self.trace.note(format_args!("{} FAULT {fault:?}{}", self.now, if hit { "" } else { " (hits nobody)" }));
        if hit {
            self.checks.fired.push(fault);
        }
        // The disk is the machine's: whoever is started there next finds it full.
        hit || matches!(fault, Fault::FullDisk(..))
    }

    /// Whether there is a process whose place the fault names.
    fn has_place_of(&self, fault: Fault) -> bool {
        match fault {
            Fault::KillGateway(gateway) | Fault::CutGateway(gateway) | Fault::RefusingChannel(gateway) => {
                gateway < self.gateways.len()
            }
            Fault::KillWorker(slot)
            | Fault::CutWorker(slot)
            | Fault::Pause(slot, _)
            | Fault::Suspect(slot)
            | Fault::Flap(slot, _)
            | Fault::Stall(slot)
            | Fault::FullDisk(slot, _)
            | Fault::Drain(slot)
            | Fault::SilentStreams(slot, _)
            | Fault::LoseChannel(slot)
            | Fault::ForgetConsumer(slot)
            | Fault::LongTask(slot, _) => slot < self.workers.len(),
            _ => true,
        }
    }

    fn cut(&mut self, connection: ConnectionId) -> bool {
        let is_open = self.broker.is_open(connection);
        self.broker.cut(connection, &mut self.rng);
        is_open
    }

    fn restart_broker(&mut self) -> bool {
        let connections: Vec<ConnectionId> = self.broker.connections().collect();
        for connection in connections {
            self.broker.cut(connection, &mut self.rng);
        }
        self.broker_down_until = self.now + self.rng.below(30);
        true
    }

    fn set_time(&mut self, slot: usize, steps: u64, time: impl FnOnce(&mut Process) -> &mut u64) -> bool {
        let until = self.now + steps;
        self.process_mut(slot).map(|base| *time(base) = until).is_some()
    }

    fn pause(&mut self, slot: usize, steps: u64) -> bool {
        if !self.set_time(slot, steps, |base| &mut base.paused_until) {
            return false;
        }
        // The broker gives a silent connection up some time; this one may wake up before that.
        if self.rng.chance(50) || steps > SILENT_CONNECTION * self.setup.silence {
            let connection = self.connection_of(slot);
            self.cut(connection);
        }
        true
    }

    fn suspect(&mut self, slot: usize) -> bool {
        let Some(worker) = &self.workers[slot] else { return false };
        // They find its queue gone. Nobody but a member itself says that it has left for good.
        let news = News::Lost(worker.base.member);
        self.tell_others(slot, &news);
        true
    }

    /// Whether there is a worker that can do something now.
    fn is_free(&self, slot: usize) -> bool {
        self.workers[slot].as_ref().is_some_and(|worker| self.now >= worker.base.paused_until)
    }

    fn stall(&mut self, slot: usize) -> bool {
        if !self.is_free(slot) {
            return false;
        }
        self.checks.fired.push(Fault::Stall(slot));
        let hit = self.with_worker(slot, |parts, at| {
            parts.jobs.values_mut().for_each(|part| part.stalled(at));
            !parts.jobs.is_empty()
        });
        self.checks.fired.pop();
        hit
    }

    /// Whether a process that is there knows of the job.
    fn is_known(&self, job: Job) -> bool {
        let Some(setup) = self.setup.jobs.get(job) else { return false };
        self.processes().any(|(_, base)| base.registry.get(&setup.card.id).is_some())
    }

    fn leave_client(&mut self, job: Job, steps: u64) -> bool {
        let hit = !self.clients[job].is_over();
        self.cut_client(job);
        let until = (self.now + steps).max(self.setup.jobs[job].begins_at);
        self.clients[job].kill(until);
        hit
    }

    fn cut_client(&mut self, job: Job) -> bool {
        self.gateways.iter_mut().flatten().for_each(|gateway| gateway.desk.forget_client(job));
        let is_busy = self.clients[job].is_busy();
        self.clients[job].cut();
        is_busy
    }

    fn kill_queue(&mut self, job: Job) -> bool {
        let wave = self.rng.index(self.setup.jobs[job].scenario.waves.len());
        self.broker.kill_queue(job, wave)
    }

    fn lose_channel(&mut self, slot: usize) -> bool {
        let connection = self.connection_of(slot);
        if !self.broker.is_open(connection) {
            return false;
        }
        let Some(worker) = &mut self.workers[slot] else { return false };
        let channels = worker.channels();
        let channel = channels[self.rng.index(channels.len())];
        self.trace.note(format_args!("  {channel:?} is lost"));
        worker.parts.lost_channel = Some(channel);
        match channel {
            Channel::Reader(..) => {}
            Channel::Consumer(job, wave) => self.broker.lose_consumer(connection, job, wave),
            Channel::Publisher => self.broker.lose_publisher(connection, &mut self.rng),
        }
        true
    }

    fn forget_consumer(&mut self, slot: usize) -> bool {
        let connection = self.connection_of(slot);
        let is_open = self.broker.is_open(connection);
        let worker = self.workers[slot].as_mut();
        let Some(worker) = worker.filter(|worker| is_open && worker.parts.takes().count() > 0) else { return false };
        worker.parts.is_forgotten = true;
        true
    }
}
