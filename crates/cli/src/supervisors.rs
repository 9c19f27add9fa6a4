//! What a gateway is told of its cluster's supervisors: their status when it is asked for, and the events of this machine.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tenaz_api::{ClusterEvent, ClusterEventKind as Kind, Leader, Member, MemberState};
use tenaz_core::{ProcessName, ProcessRole, ProcessState};
use tenaz_gateway::{Asked, Supervised, Supervisors};
use tenaz_supervisor::status::{self, ProcessStatus, Status};
use tenaz_supervisor::{Config, Home};
use tenaz_vitals::Key;

use crate::commands::up::happenings::Happenings;

/// How long supervisors may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The supervisors of the cluster whose directory holds a gateway's key.
#[derive(Debug)]
pub(crate) struct KnownSupervisors {
    home: Home,
    config: Config,
    key: Key,
    happenings: Mutex<Happenings>,
}

impl KnownSupervisors {
    /// Those of the cluster whose key this is, if its description stands beside it.
    pub(crate) fn beside(key_file: &std::path::Path) -> Option<Self> {
        let home = Home::open(key_file.parent()?).ok()?;
        let config = home.config().ok()?;
        let key = home.key(&config).ok()?;
        let happenings = Mutex::new(Happenings::from_start(home.events_path()));
        Some(Self { home, config, key, happenings })
    }
}

impl Supervisors for KnownSupervisors {
    fn ask(&self) -> Asked<'_, Option<Supervised>> {
        Box::pin(async {
            let status = status::ask(&self.config, &self.key, self.home.id(), ANSWER_WITHIN).await;
            status.ok().map(|status| supervised(&status))
        })
    }

    fn news(&self) -> Vec<(String, ClusterEvent)> {
        let news = self.happenings.lock().unwrap_or_else(PoisonError::into_inner).news();
        news.iter().filter_map(|line| Some((format!("supervised {line}"), happened(line)?))).collect()
    }
}

fn supervised(status: &Status) -> Supervised {
    let leader = status.leader.zip(status.term).map(|(id, term)| Leader {
        name: ProcessName::numbered(ProcessRole::Supervisor, u32::from(id.0)).to_string(),
        term: term.round,
    });
    Supervised { leader, members: status.processes.iter().map(member).collect() }
}

fn member(process: &ProcessStatus) -> Member {
    let given_up = process.given_up.as_ref().map(|given_up| given_up.reason.clone());
    Member {
        name: process.name.to_string(),
        role: process.role.to_string(),
        life: Some(process.incarnation.0),
        state: state_of(process),
        text: given_up.or_else(|| process.detail.clone()),
        host: Some(process.machine.clone()),
        pid: process.pid,
        url: process.url.clone(),
        build: None,
        silent_seconds: process.heartbeat_age_seconds,
        up_seconds: process.up_seconds,
        pulse: None,
        memory_bytes: None,
        threads: None,
        cpu_seconds: None,
        restarts: Some(process.restarts),
        last_ending: process.last_ending.as_ref().map(|last| last.how.clone()),
        claims: Vec::new(),
        doing: Vec::new(),
    }
}

fn state_of(process: &ProcessStatus) -> MemberState {
    match process.state {
        ProcessState::Ready => MemberState::Up,
        ProcessState::Starting | ProcessState::Held => MemberState::Starting,
        ProcessState::Draining => MemberState::Leaving,
        ProcessState::Quiet | ProcessState::Hung => MemberState::Silent,
        ProcessState::Waiting | ProcessState::Stopped => MemberState::Dead,
        ProcessState::GivenUp => MemberState::GivenUp,
        ProcessState::Unknown => MemberState::Unknown,
    }
}

/// A line of a cluster's `events.ndjson`, if it is one for the time axis.
fn happened(line: &Value) -> Option<ClusterEvent> {
    let text = |field: &str| line[field].as_str().map(str::to_owned);
    let kind = match line["event"].as_str()? {
        "started" => Kind::Started,
        "ended" => Kind::Ended,
        "killed" => Kind::Killed,
        "struck" => match line["action"].as_str()? {
            "pause" => Kind::Paused,
            "resume" => Kind::Resumed,
            _ => Kind::Killed,
        },
        "given_up" => Kind::GivenUp,
        "elected" => Kind::Elected,
        "stepped_down" => Kind::SteppedDown,
        _ => return None,
    };
    let leader = line["supervisor"].as_u64().map(|id| format!("supervisor-{id}"));
    let name = text("name").or(leader)?;
    Some(ClusterEvent {
        at: text("at")?,
        role: name.rsplit_once('-').map(|(role, _)| role.to_owned()),
        name: Some(name),
        life: line["incarnation"].as_u64(),
        cause: text("because").or_else(|| text("ending")).or_else(|| text("reason")),
        term: line["term"]["round"].as_u64(),
        ..ClusterEvent::new(kind, 0)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kill_has_its_time_its_life_and_its_cause() {
        let line = json!({"at": "2026-01-01T00:00:00.000Z", "event": "killed", "name": "worker-2", "incarnation": 3,
            "because": "chaos"});
        let event = happened(&line).expect("an event");
        assert_eq!((event.kind, event.at.as_str()), (Kind::Killed, "2026-01-01T00:00:00.000Z"));
        assert_eq!((event.name.as_deref(), event.role.as_deref()), (Some("worker-2"), Some("worker")));
        assert_eq!((event.life, event.cause.as_deref()), (Some(3), Some("chaos")));
        let struck = json!({"at": "t", "event": "struck", "action": "pause", "name": "worker-1", "incarnation": 1,
            "because": "tenaz chaos"});
        assert_eq!(happened(&struck).map(|event| event.kind), Some(Kind::Paused));
        let elected = happened(&json!({"at": "t", "event": "elected", "supervisor": 2, "term": {"round": 7}}));
        let elected = elected.expect("an event");
        assert_eq!((elected.name.as_deref(), elected.term), (Some("supervisor-2"), Some(7)));
        assert_eq!(happened(&json!({"at": "t", "event": "fence_lost"})), None);
    }
}
