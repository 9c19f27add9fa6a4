//! What the engine answers, in the words of the cluster.

use std::error::Error as _;
use std::io;
use std::path::Path;

use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerState, ContainerSummary};
use tenaz_core::{Ending, Incarnation, ProcessName};

use crate::backend::limits::ENGINE_PATIENCE;
use crate::backend::time::unix_ms;

/// Signals have numbers up to this.
const LAST_SIGNAL: i64 = 64;
const SIGKILL: i32 = 9;
/// Digits of a container's id that people see.
const SHORT_ID: usize = 12;

/// What a container's state says about its latest life.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) incarnation: Incarnation,
    pub(super) pid: Option<u32>,
    pub(super) ended: Option<Ending>,
}

pub(super) fn seen(answer: &ContainerInspectResponse) -> Seen {
    let Some(state) = &answer.state else { return Seen { incarnation: Incarnation(0), pid: None, ended: None } };
    // A container that is stopped with SIGSTOP or paused is still "running".
    let running = state.running.unwrap_or(false);
    let pid = state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| running && *pid > 0);
    let incarnation = Incarnation(started_ms(state).unwrap_or(0));
    let ended = if pid.is_some() { None } else { ending(state, incarnation) };
    Seen { incarnation, pid, ended }
}

pub(super) fn started_ms(state: &ContainerState) -> Option<u64> {
    state.started_at.as_deref().and_then(unix_ms)
}

fn ending(state: &ContainerState, incarnation: Incarnation) -> Option<Ending> {
    if state.oom_killed == Some(true) {
        return Some(Ending::Signalled(SIGKILL));
    }
    let code = state.exit_code.unwrap_or(0);
    if incarnation == Incarnation(0) && code == 0 {
        // Made, and never started.
        return None;
    }
    match code - 128 {
        signal @ 1..=LAST_SIGNAL => Some(Ending::Signalled(i32::try_from(signal).unwrap_or(SIGKILL))),
        _ => Some(i32::try_from(code).map_or(Ending::Unknown, Ending::Exited)),
    }
}

pub(super) fn id_of(container: &ContainerSummary) -> Option<String> {
    container.id.clone().filter(|id| !id.is_empty())
}

/// The container's own name, or its short id where that is no name for a process.
pub(super) fn name_of(container: &ContainerSummary, id: &str) -> Option<ProcessName> {
    let own = container.names.as_ref().and_then(|names| names.first());
    let own = own.and_then(|name| name.trim_start_matches('/').parse().ok());
    own.or_else(|| id.get(..SHORT_ID.min(id.len())).and_then(|short| short.parse().ok()))
}

/// A line of a log without the time in front.
pub(super) fn text_of(line: &str) -> String {
    let text = match line.split_once(' ') {
        Some((at, text)) if unix_ms(at).is_some() => text,
        _ => line,
    };
    text.trim_end_matches('\r').to_owned()
}

pub(super) fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// What is wrong, and what helps.
pub(super) fn cure(error: &Error, socket: &Path) -> String {
    let socket = socket.display();
    match error {
        Error::SocketNotFoundError(_) => no_socket(&socket.to_string()),
        Error::RequestTimeoutError => {
            format!("the engine behind {socket} did not answer within {} s", ENGINE_PATIENCE.as_secs())
        }
        Error::DockerResponseServerError { status_code, message } => {
            format!("the engine behind {socket} says no ({status_code}): {}", message.trim())
        }
        other => match io_kind(other) {
            Some(io::ErrorKind::PermissionDenied) => format!(
                "{socket} may not be used by this user: add the user to the group that owns it (in compose: group_add)"
            ),
            Some(io::ErrorKind::ConnectionRefused) => {
                format!("nobody listens at {socket}: start the engine (systemctl start docker)")
            }
            Some(io::ErrorKind::NotFound) => no_socket(&socket.to_string()),
            Some(_) => format!("the engine behind {socket} went away: {}", root(other)),
            None => format!("the engine behind {socket}: {}", root(other)),
        },
    }
}

fn no_socket(socket: &str) -> String {
    format!(
        "there is no socket {socket}: start the engine (systemctl start docker), or name its socket in cluster.toml (docker = {{ socket = \"…\" }})"
    )
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        source = error.source();
    }
    None
}

/// The innermost reason: the outer ones only say that something failed.
fn root(error: &Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match error.source() {
        Some(_) => innermost.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(running: bool, code: i64, started: &str) -> ContainerInspectResponse {
        let state = ContainerState {
            running: Some(running),
            pid: Some(if running { 77 } else { 0 }),
            exit_code: Some(code),
            started_at: Some(started.to_owned()),
            ..Default::default()
        };
        ContainerInspectResponse { state: Some(state), ..Default::default() }
    }

    const START: &str = "2026-11-16T03:49:33.828594413Z";
    const LIFE: Incarnation = Incarnation(1_794_800_973_828);

    #[test]
    fn endings_are_told_apart() {
        for (code, ending) in [
            (0, Ending::Exited(0)),
            (75, Ending::Exited(75)),
            (128, Ending::Exited(128)),
            (137, Ending::Signalled(9)),
            (143, Ending::Signalled(15)),
            (255, Ending::Exited(255)),
            (i64::MAX, Ending::Unknown),
        ] {
            let expected = Seen { incarnation: LIFE, pid: None, ended: Some(ending) };
            assert_eq!(seen(&state(false, code, START)), expected, "{code}");
        }
    }

    #[test]
    fn out_of_memory_is_a_kill_whatever_the_code() {
        let mut answer = state(false, 1, START);
        if let Some(state) = &mut answer.state {
            state.oom_killed = Some(true);
        }
        assert_eq!(seen(&answer).ended, Some(Ending::Signalled(9)));
    }

    #[test]
    fn a_container_that_never_ran_has_no_life_and_no_end() {
        let never = "0001-01-01T00:00:00Z";
        assert_eq!(seen(&state(false, 0, never)), Seen { incarnation: Incarnation(0), pid: None, ended: None });
        // Its program was not found: the engine says so in the code.
        assert_eq!(seen(&state(false, 127, never)).ended, Some(Ending::Exited(127)));
    }

    #[test]
    fn a_running_container_has_a_pid_and_no_end() {
        assert_eq!(seen(&state(true, 0, START)), Seen { incarnation: LIFE, pid: Some(77), ended: None });
    }
}
