//! Looking at machines: this one always, the others while this supervisor leads.

use std::collections::BTreeMap;
use std::time::Instant;

use tenaz_core::{Ending, Incarnation, KeeperEvent, Past, ProcessName};
use tenaz_vitals::Heard;

use super::{Done, Driver};
use crate::config::Config;
use crate::executor::MachineProcess;
use crate::limits::{LOOK_DEADLINE, LOOK_EVERY};
use crate::peers::{Answer, Request};

/// What was seen of each machine.
pub(super) struct Looks {
    machines: BTreeMap<String, Look>,
    here: String,
}

#[derive(Default)]
struct Look {
    under_way: bool,
    /// Not to wait for the next time.
    now: bool,
    at: Option<Instant>,
    found: Vec<MachineProcess>,
}

impl Looks {
    pub(super) fn of(config: &Config, here: &str) -> Self {
        let machines = config.machines.iter().map(|machine| (machine.name.clone(), Look::default())).collect();
        Self { machines, here: here.to_owned() }
    }

    /// Something may have happened there.
    pub(super) fn now(&mut self, machine: &str) {
        if let Some(look) = self.machines.get_mut(machine) {
            look.now = true;
        }
    }

    pub(super) fn all_now(&mut self) {
        self.machines.values_mut().for_each(|look| look.now = true);
    }

    /// The machines to be looked at, which are noted as being looked at.
    fn due(&mut self, leading: bool) -> Vec<String> {
        let here = &self.here;
        let due = self.machines.iter_mut().filter(|(name, look)| {
            let rested = look.at.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
            (leading || *name == here) && !look.under_way && (look.now || rested)
        });
        due.map(|(name, look)| {
            (look.under_way, look.now, look.at) = (true, false, Some(Instant::now()));
            name.clone()
        })
        .collect()
    }

    pub(super) fn here(&self) -> &[MachineProcess] {
        self.machines.get(&self.here).map_or(&[], |look| &look.found)
    }

    /// A process as it was seen last, and where.
    pub(super) fn find(&self, name: &ProcessName) -> Option<(&str, &MachineProcess)> {
        self.all().find(|(_, process)| process.found.name == *name)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &MachineProcess)> {
        self.machines.iter().flat_map(|(name, look)| look.found.iter().map(move |process| (name.as_str(), process)))
    }

    /// Containers and units send heartbeats under names of their own.
    pub(super) fn name_of(&self, heard: &ProcessName) -> ProcessName {
        let alias = |process: &MachineProcess| process.found.alias.as_deref() == Some(heard.as_str());
        self.all().find(|(_, process)| alias(process)).map_or_else(|| heard.clone(), |(_, p)| p.found.name.clone())
    }

    /// Which life a heartbeat is of. Containers do not know their own incarnation, nor does a supervisor that was started
    /// by hand: it is the one that runs.
    pub(super) fn life_of(&self, name: &ProcessName, heard: &Heard) -> Incarnation {
        let same =
            |process: &MachineProcess| process.found.alias.is_some() || process.found.pid == Some(heard.heartbeat.pid);
        let found = self.find(name).filter(|(_, process)| same(process));
        found.map_or(heard.heartbeat.identity.incarnation, |(_, process)| process.found.incarnation)
    }

    /// A heartbeat for the keeper.
    pub(super) fn heard(&self, name: &ProcessName, heard: &Heard) -> KeeperEvent {
        let heartbeat = &heard.heartbeat;
        KeeperEvent::Heard {
            name: name.clone(),
            incarnation: self.life_of(name, heard),
            ready: heartbeat.ready,
            draining: heartbeat.draining,
            pulse: heartbeat.pulse,
        }
    }
}

/// What a look says to a keeper.
pub(super) fn seen(process: &MachineProcess) -> KeeperEvent {
    let MachineProcess { found, history } = process;
    let running = found.is_running().then_some(found.incarnation);
    let ended = (running.is_none() && found.incarnation.0 > 0)
        .then(|| (found.incarnation, found.ended.unwrap_or(Ending::Unknown)));
    let starts = &history.starts_unix_ms;
    let restarts = usize::try_from(history.restarts).unwrap_or(usize::MAX);
    let ending = history.endings.iter().find(|past| past.incarnation == found.incarnation);
    let lived_ms = ending.zip(starts.last()).map(|(past, start)| past.at_unix_ms.saturating_sub(*start));
    let past = Past {
        // The first start of all is no restart.
        restarts_ms: starts.iter().skip(starts.len().saturating_sub(restarts)).copied().collect(),
        streak: history.streak,
        lived_ms,
        given_up: history.given_up.as_ref().map(|given_up| given_up.reason.clone()),
    };
    KeeperEvent::Seen { name: found.name.clone(), role: found.role, running, ended, past }
}

impl Driver {
    /// Notices at once when a process of this machine ends.
    pub(super) fn watch_this_machine(&mut self) {
        let (executor, done) = (self.executor.clone(), self.done.clone());
        self.tasks.spawn(async move {
            loop {
                executor.changed().await;
                if done.send(Done::Changed).is_err() {
                    return;
                }
                // A back-end that returns early all the time must not keep the machine busy.
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        });
    }

    pub(super) fn on_changed(&mut self) {
        let here = self.me.machine.clone();
        self.looks.now(&here);
        self.look_where_due();
        if let Some(leader) = self.election.leader().map(|term| term.leader).filter(|leader| *leader != self.me.id) {
            self.peers.tell_changed(leader);
        }
    }

    pub(super) fn look_where_due(&mut self) {
        for machine in self.looks.due(self.reign.is_some()) {
            let done = self.done.clone();
            if machine == self.me.machine {
                let executor = self.executor.clone();
                self.tasks.spawn(async move {
                    let found = executor.inspect().await.map_err(|error| error.to_string());
                    let _ = done.send(Done::Looked { machine, found });
                });
                continue;
            }
            let asked = self.reachable(&machine).map(|peer| self.peers.ask(peer, Request::Inspect, LOOK_DEADLINE));
            self.tasks.spawn(async move {
                let found = match asked {
                    None => Err("none of its supervisors can be reached".to_owned()),
                    Some(asked) => match asked.await {
                        Ok(Answer::Inspected(found)) => Ok(found),
                        Ok(answer) => Err(format!("it answered {answer:?}")),
                        Err(error) => Err(error),
                    },
                };
                let _ = done.send(Done::Looked { machine, found });
            });
        }
    }

    pub(super) fn on_looked(&mut self, machine: &str, found: Result<Vec<MachineProcess>, String>) {
        let Some(look) = self.looks.machines.get_mut(machine) else { return };
        look.under_way = false;
        match found {
            Ok(found) => look.found = found,
            Err(error) => return tracing::debug!(machine, error, "a machine cannot be looked at"),
        }
        let events: Vec<_> = look.found.iter().map(seen).collect();
        if machine == self.me.machine {
            self.revive_seen(&events);
        }
        for event in events {
            self.note_end(&event);
            self.keep(event);
        }
        self.look_where_due();
    }
}
