//! How the cluster is, as far as this supervisor knows.

use tenaz_core::{ProcessName, ProcessRole, ProcessState, Standing};
use tenaz_vitals::Heard;

use super::Driver;
use crate::executor::MachineProcess;
use crate::peers::PeerRefusal;
use crate::status::{
    GatewayStatus, GivenUpStatus, LastEnding, ProcessStatus, Status, StatusCounters, SupervisorStatus,
};

impl Driver {
    pub(super) fn report(&self) -> Status {
        let term = self.election.leader();
        let processes: Vec<_> = self.processes().into_iter().map(|process| self.process_report(process)).collect();
        let gateway = |process: &ProcessStatus| {
            let url = process.url.clone().filter(|_| process.role == ProcessRole::Gateway && process.ready)?;
            let usable = matches!(process.state, ProcessState::Ready | ProcessState::Quiet);
            usable.then(|| GatewayStatus { name: process.name.clone(), url })
        };
        Status {
            cluster: self.config.name.clone(),
            leader: term.map(|term| term.leader),
            term,
            seen_by: Some(self.me.id),
            closed: self.home.is_closed(),
            supervisors: self.supervisor_reports(),
            gateways: processes.iter().filter_map(gateway).collect(),
            processes,
            counters: self.counters(),
        }
    }

    fn supervisor_reports(&self) -> Vec<SupervisorStatus> {
        let report = |supervisor: &crate::config::Supervisor| SupervisorStatus {
            id: supervisor.id,
            machine: supervisor.machine.clone(),
            listen: supervisor.listen,
            connected: supervisor.id == self.me.id || self.peers.is_up(supervisor.id),
        };
        self.config.supervisors.iter().map(report).collect()
    }

    fn counters(&self) -> StatusCounters {
        let heartbeats = tenaz_vitals::Refusal::ALL
            .map(|refusal| (refusal.as_str().to_owned(), self.heartbeats_refused.of(refusal).get()));
        let peers = PeerRefusal::ALL.map(|refusal| (refusal.as_str().to_owned(), self.refusals.of(refusal)));
        StatusCounters {
            heartbeats: self.metrics.heartbeats.get(),
            heartbeats_refused: heartbeats.into(),
            peer_messages_refused: peers.into(),
        }
    }

    fn process_report(&self, (name, role, machine): (ProcessName, ProcessRole, String)) -> ProcessStatus {
        let seen = self.looks.find(&name).map(|(_, process)| process);
        let heard = self.heard.get(&name).filter(|heard| self.is_current(&name, heard, seen));
        let standing = match &self.reign {
            Some(reign) => reign.keeper.standing(&name, self.clock.now_ms()),
            None => self.guess(seen, heard),
        };
        let history = seen.map(|process| &process.history);
        let last_ending = history.and_then(|history| history.endings.last());
        let given_up = history.and_then(|history| history.given_up.as_ref());
        let heartbeat = heard.map(|heard| &heard.heartbeat);
        let incarnation = seen.map(|process| process.found.incarnation);
        ProcessStatus {
            pid: seen.and_then(|process| process.found.pid).or(heartbeat.filter(|_| seen.is_none()).map(|h| h.pid)),
            state: standing.state,
            detail: standing.detail,
            wait_seconds: standing.wait_ms.map(|ms| ms as f64 / 1_000.0),
            incarnation: incarnation.or(heartbeat.map(|h| h.identity.incarnation)).unwrap_or_default(),
            restarts: history.map_or(0, |history| history.restarts),
            heartbeat_age_seconds: heard.map(|heard| heard.at.elapsed().as_secs_f64()),
            ready: heartbeat.is_some_and(|heartbeat| heartbeat.ready),
            up_seconds: heartbeat.map(|heartbeat| heartbeat.up_ms as f64 / 1_000.0),
            counters: heartbeat.map(|heartbeat| heartbeat.counters),
            http: heard.and_then(Heard::http),
            url: heartbeat.and_then(|heartbeat| heartbeat.url.clone()),
            last_ending: last_ending.map(|past| LastEnding {
                incarnation: past.incarnation,
                ending: past.ending,
                how: past.ending.to_string(),
                at_unix_ms: past.at_unix_ms,
            }),
            given_up: given_up.map(|given_up| GivenUpStatus {
                reason: given_up.reason.clone(),
                at_unix_ms: given_up.at_unix_ms,
                last_lines: given_up.last_lines.clone(),
            }),
            log: seen.and_then(|process| process.found.log.clone()),
            name,
            role,
            machine,
        }
    }

    /// Whether a heartbeat is of the life that runs, and not of one that has ended.
    fn is_current(&self, name: &ProcessName, heard: &Heard, seen: Option<&MachineProcess>) -> bool {
        let life = self.looks.life_of(name, heard);
        seen.is_none_or(|process| process.found.is_running() && life >= process.found.incarnation)
    }

    /// Who does not lead knows what it hears, and what runs on its own machine.
    fn guess(&self, seen: Option<&MachineProcess>, heard: Option<&Heard>) -> Standing {
        let quiet_after = self.config.supervision.hang_after / 2;
        let given_up = seen.and_then(|process| process.history.given_up.as_ref());
        let state = match (seen, heard) {
            (Some(_), _) if given_up.is_some() => ProcessState::GivenUp,
            (Some(process), _) if !process.found.is_running() && self.home.is_closed() => ProcessState::Stopped,
            (Some(process), _) if !process.found.is_running() => ProcessState::Waiting,
            (_, Some(heard)) if heard.heartbeat.draining => ProcessState::Draining,
            (_, Some(heard)) if heard.at.elapsed() >= quiet_after => ProcessState::Quiet,
            (_, Some(heard)) if heard.heartbeat.ready => ProcessState::Ready,
            (_, Some(_)) | (Some(_), None) => ProcessState::Starting,
            (None, None) => ProcessState::Unknown,
        };
        Standing { state, wait_ms: None, detail: given_up.map(|given_up| given_up.reason.clone()) }
    }
}
