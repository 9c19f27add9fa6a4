//! What a leader wants done, and who does it.

use tenaz_core::{Incarnation, KeeperAction, ProcessName, ProcessRole, SupervisorId};
use tenaz_vitals::probe;

use super::{Done, Driver};
use crate::executor::{Executor, Order};
use crate::limits::ORDER_DEADLINE;
use crate::peers::{Answer, Request};

/// Does for a peer what it asks.
pub(super) async fn serve(executor: &Executor, request: Request) -> Answer {
    match request {
        Request::Order { term, order } => Answer::Order(executor.execute(term, &order).await),
        Request::Inspect => match executor.inspect().await {
            Ok(found) => Answer::Inspected(found),
            Err(error) => Answer::Failed(error.to_string()),
        },
        Request::Status => Answer::Failed("only the supervisor itself knows".to_owned()),
    }
}

impl Driver {
    /// All processes, with role and machine: those of cluster.toml, and those that back-ends know by themselves.
    pub(super) fn processes(&self) -> Vec<(ProcessName, ProcessRole, String)> {
        let configured = self.config.processes().into_iter().map(|spec| (spec.name, spec.role, spec.machine));
        let mut all: Vec<_> = configured.collect();
        for (machine, process) in self.looks.all() {
            if all.iter().all(|(name, ..)| *name != process.found.name) {
                all.push((process.found.name.clone(), process.found.role, machine.to_owned()));
            }
        }
        all.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        all
    }

    pub(super) fn machine_of(&self, name: &ProcessName) -> Option<String> {
        let seen = self.looks.find(name).map(|(machine, _)| machine.to_owned());
        seen.or_else(|| self.processes().into_iter().find(|(known, ..)| known == name).map(|(.., machine)| machine))
    }

    /// A supervisor of a machine that can be reached.
    pub(super) fn reachable(&self, machine: &str) -> Option<SupervisorId> {
        let there = self.config.supervisors.iter().filter(|supervisor| supervisor.machine == machine);
        there.map(|supervisor| supervisor.id).find(|id| self.peers.is_up(*id))
    }

    pub(super) fn act(&mut self, action: KeeperAction) {
        match action {
            KeeperAction::Start { name, incarnation, streak, why } => {
                self.order(Order::Start { name, incarnation, because: why, streak }, incarnation);
            }
            KeeperAction::Kill { name, incarnation, why } => {
                tracing::warn!(process = %name, %incarnation, %why, "a process is to be killed");
                self.note_trouble(&name, "hung");
                self.order(Order::Kill { name, incarnation, because: why.to_string() }, incarnation);
            }
            KeeperAction::GiveUp { name, reason } => {
                tracing::error!(process = %name, reason, "a process is given up");
                self.order(Order::GiveUp { name, reason }, Incarnation::default());
            }
            KeeperAction::Probe { name, incarnation } => self.probe(name, incarnation),
        }
    }

    /// Gives an order to whoever can execute it. Always ends as a [`Done::Ordered`].
    fn order(&mut self, order: Order, incarnation: Incarnation) {
        let Some(term) = self.reign.as_ref().map(|reign| reign.term) else { return };
        let done = self.done.clone();
        let machine = self.machine_of(order.name()).unwrap_or_default();
        if machine == self.me.machine {
            let executor = self.executor.clone();
            self.tasks.spawn(async move {
                let result = tokio::time::timeout(ORDER_DEADLINE, executor.execute(term, &order)).await;
                let result = result.map_err(|_| "the order takes too long".to_owned());
                let _ = done.send(Done::Ordered { term, order, incarnation, result });
            });
            return;
        }
        let asked = self.reachable(&machine).map(|peer| {
            let request = Request::Order { term, order: order.clone() };
            self.peers.ask(peer, request, ORDER_DEADLINE)
        });
        self.tasks.spawn(async move {
            let result = match asked {
                None => Err(format!("no supervisor of machine {machine:?} can be reached")),
                Some(asked) => match asked.await {
                    Ok(Answer::Order(result)) => Ok(result),
                    Ok(answer) => Err(format!("machine {machine:?} answered {answer:?}")),
                    Err(error) => Err(format!("machine {machine:?}: {error}")),
                },
            };
            let _ = done.send(Done::Ordered { term, order, incarnation, result });
        });
    }

    /// Asks a process how it is. Always ends as a [`Done::Probed`].
    fn probe(&mut self, name: ProcessName, incarnation: Incarnation) {
        let addr = self.heard.get(&name).and_then(tenaz_vitals::Heard::http);
        let said = self.heard.get(&name).map(|heard| heard.heartbeat.identity.clone());
        let (deadline, done) = (self.config.supervision.hang_after / 4, self.done.clone());
        self.tasks.spawn(async move {
            let answer = match addr {
                Some(addr) => probe(addr, deadline).await.ok(),
                None => None,
            };
            // Another process may have got its port; under an alias, it answers with that name and its own count.
            let ours = answer.filter(|answer| {
                said.is_some_and(|said| answer.name == said.name && answer.incarnation == said.incarnation)
            });
            let pulse = ours.map(|answer| answer.pulse);
            let _ = done.send(Done::Probed { name, incarnation, pulse });
        });
    }
}
