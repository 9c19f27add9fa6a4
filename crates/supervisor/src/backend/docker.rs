//! Containers, through the API of Docker's engine (or Podman's, which speaks the same).
//!
//! A process is a container that carries the cluster's label, running or not. Containers are made by others (compose,
//! `docker run`): this back-end only starts, ends and looks. A life is told by the time of its start, because nothing can be
//! written into a container's environment once it has been made: the incarnation is `StartedAt` in milliseconds, whatever
//! number the order to start had.

mod answers;
mod events;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use bollard::Docker as Engine;
use bollard::models::{ContainerInspectResponse, ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{
    InspectContainerOptions, KillContainerOptions, ListContainersOptions, LogsOptions, StartContainerOptions,
};
use futures::StreamExt as _;
use tenaz_core::{Incarnation, ProcessName, ProcessRole};

use self::answers::{id_of, is_not_found, name_of, seen, text_of};
use self::events::Events;
use super::limits::{
    ENGINE_PATIENCE, INSPECTED_AT_ONCE, LOOK_ANYWAY, MAX_QUOTED_BYTES, READ_PAUSE, READ_TRIES, START_SLACK_MS,
};
use super::time::unix_ms;
use super::{Backend, BackendError, Found, last_of};

/// The label that says what a container does: `worker`, `gateway`, `broker`, `supervisor`.
pub const ROLE_LABEL: &str = "tenaz.role";
/// The label that names a process; without it, the container's name does.
pub const PROCESS_LABEL: &str = "tenaz.process";

/// The containers of one engine that carry one label.
#[derive(Debug)]
pub struct Docker {
    socket: PathBuf,
    label: String,
    events: Events,
    /// Containers that were already complained about: once is enough.
    unusable: Mutex<BTreeSet<String>>,
}

/// A container of the cluster.
#[derive(Debug)]
struct Container {
    id: String,
    found: Found,
}

impl Docker {
    /// The engine behind this socket, and its containers with this label, such as `tenaz.cluster=demo`.
    ///
    /// The engine need not be there yet.
    pub fn new(socket: &Path, label: &str) -> Result<Self, BackendError> {
        let refused = |detail: String| BackendError::Refused { what: "using Docker's engine".to_owned(), detail };
        if socket.to_str().is_none() {
            return Err(refused(format!("the path of the socket, {}, is not valid UTF-8", socket.display())));
        }
        // A label without a value would match containers of every cluster.
        match label.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => {}
            _ => return Err(refused(format!("{label:?} is no label; write KEY=VALUE, such as tenaz.cluster=demo"))),
        }
        Ok(Self {
            socket: socket.to_owned(),
            label: label.to_owned(),
            events: Events::since_now(label),
            unusable: Mutex::default(),
        })
    }

    /// A client. It is cheap: connections are made for each request.
    fn engine(&self, what: &str) -> Result<Engine, BackendError> {
        let socket = self.socket.to_str().unwrap_or_default();
        let made = Engine::connect_with_unix(socket, ENGINE_PATIENCE.as_secs(), bollard::API_DEFAULT_VERSION);
        made.map_err(|error| self.refused(what, &error))
    }

    fn refused(&self, what: &str, error: &bollard::errors::Error) -> BackendError {
        BackendError::Refused { what: what.to_owned(), detail: answers::cure(error, &self.socket) }
    }

    /// All containers of the cluster, by process name.
    async fn containers(&self) -> Result<BTreeMap<ProcessName, Container>, BackendError> {
        let what = "listing the cluster's containers";
        let engine = self.engine(what)?;
        let filters = [("label".to_owned(), vec![self.label.clone()])].into();
        let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
        let listed = patiently(|| engine.list_containers(Some(options.clone()))).await;
        let listed = listed.map_err(|error| self.refused(what, &error))?;
        let named = self.named(&listed);
        let inspected = futures::stream::iter(named.into_iter().map(|(name, (id, role))| {
            let engine = &engine;
            async move {
                let answer = patiently(|| engine.inspect_container(&id, None::<InspectContainerOptions>)).await;
                (name, id, role, answer)
            }
        }))
        .buffer_unordered(INSPECTED_AT_ONCE)
        .collect::<Vec<_>>()
        .await;
        let mut all = BTreeMap::new();
        for (name, id, role, answer) in inspected {
            match answer {
                Ok(answer) => {
                    let found = self.found(&name, role, &answer);
                    all.insert(name, Container { id, found });
                }
                // Removed since it was listed.
                Err(error) if is_not_found(&error) => {}
                Err(error) => return Err(self.refused(&format!("inspecting {name}"), &error)),
            }
        }
        Ok(all)
    }

    /// Names for containers. A name that two of them claim by label goes to neither: they are called as the engine calls them.
    fn named(&self, listed: &[ContainerSummary]) -> BTreeMap<ProcessName, (String, ProcessRole)> {
        let usable = |c: &&ContainerSummary| {
            !matches!(c.state, Some(ContainerSummaryStateEnum::REMOVING | ContainerSummaryStateEnum::DEAD))
        };
        let label = |c: &ContainerSummary, key: &str| c.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
        let mut claims: BTreeMap<String, usize> = BTreeMap::new();
        for claimed in listed.iter().filter(usable).filter_map(|c| label(c, PROCESS_LABEL)) {
            *claims.entry(claimed).or_default() += 1;
        }
        let mut named = BTreeMap::new();
        for container in listed.iter().filter(usable) {
            let Some(id) = id_of(container) else { continue };
            let role = label(container, ROLE_LABEL).unwrap_or_default();
            let role = match role.parse::<ProcessRole>() {
                Ok(role) => role,
                Err(reason) => {
                    self.complain(&id, &format!("its label {ROLE_LABEL} is wrong or missing: {reason}"));
                    continue;
                }
            };
            let claimed = label(container, PROCESS_LABEL);
            if let Some(claimed) = claimed.as_ref().filter(|claimed| claims.get(*claimed).is_some_and(|n| *n > 1)) {
                self.complain(&id, &format!("another container has the label {PROCESS_LABEL}={claimed}, too"));
            }
            let unique = claimed.filter(|claimed| claims.get(claimed) == Some(&1));
            let own = unique.and_then(|claimed| claimed.parse().ok()).filter(|name| !named.contains_key(name));
            if let Some(name) = own.or_else(|| name_of(container, &id)) {
                named.insert(name, (id, role));
            }
        }
        named
    }

    fn complain(&self, id: &str, reason: &str) {
        let mut unusable = self.unusable.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if unusable.insert(id.to_owned()) {
            tracing::warn!(container = id, "a container of the cluster cannot be used as it is: {reason}");
        }
    }

    fn found(&self, name: &ProcessName, role: ProcessRole, answer: &ContainerInspectResponse) -> Found {
        let seen = seen(answer);
        let hostname = answer.config.as_ref().and_then(|config| config.hostname.clone());
        let called = answer.name.as_deref().unwrap_or(name.as_str()).trim_start_matches('/').to_owned();
        Found {
            name: name.clone(),
            role,
            incarnation: seen.incarnation,
            pid: seen.pid,
            ended: seen.ended,
            alias: hostname.filter(|hostname| !hostname.is_empty() && hostname != name.as_str()),
            log: Some(format!("docker logs {called}")),
        }
    }

    async fn container(&self, name: &ProcessName) -> Result<Container, BackendError> {
        self.containers().await?.remove(name).ok_or_else(|| BackendError::NoSuchProcess(name.clone()))
    }

    /// Sends a signal to one life.
    ///
    /// Between the look and the signal the container could be started anew; the engine has no way to say "only if". The
    /// executor gives the orders of a machine one after the other, so nobody of ours does that.
    async fn signal(&self, name: &ProcessName, incarnation: Incarnation, signal: &str) -> Result<(), BackendError> {
        let container = self.container(name).await?;
        if !container.found.must_be(incarnation)? {
            return Ok(());
        }
        let what = format!("sending {signal} to {name}");
        let options = KillContainerOptions { signal: signal.to_owned() };
        let sent = self.engine(&what)?.kill_container(&container.id, Some(options)).await;
        let Err(error) = sent else { return Ok(()) };
        // It may have ended in between: engines say so in different words (409, 500, 404).
        match self.containers().await?.get(name) {
            Some(now) if now.found.is_running() && now.found.incarnation == incarnation => {
                Err(self.refused(&what, &error))
            }
            _ => Ok(()),
        }
    }

    async fn log(&self, name: &ProcessName, lines: usize) -> Result<Vec<String>, BackendError> {
        let container = self.container(name).await?;
        let what = format!("reading the log of {name}");
        let started_ms = container.found.incarnation.0;
        let options = LogsOptions {
            stdout: true,
            stderr: true,
            since: i32::try_from(started_ms / 1000).unwrap_or(0),
            timestamps: true,
            tail: lines.to_string(),
            ..Default::default()
        };
        let mut output = self.engine(&what)?.logs(&container.id, Some(options));
        let mut text = Vec::new();
        while let Some(piece) = output.next().await {
            text.extend_from_slice(&piece.map_err(|error| self.refused(&what, &error))?.into_bytes());
            if text.len() > MAX_QUOTED_BYTES {
                break;
            }
        }
        let text = String::from_utf8_lossy(&text);
        let own = text.lines().filter(|line| may_be_of(line, started_ms)).map(text_of);
        Ok(last_of(own, lines))
    }
}

/// Asks again while the answer cannot be read: for a moment after its end Podman calls a container "stopped", which is no state
/// of Docker's API.
async fn patiently<T, F>(ask: impl Fn() -> F) -> Result<T, bollard::errors::Error>
where
    F: Future<Output = Result<T, bollard::errors::Error>>,
{
    for _ in 1..READ_TRIES {
        match ask().await {
            Err(bollard::errors::Error::JsonDataError { .. }) => tokio::time::sleep(READ_PAUSE).await,
            answer => return answer,
        }
    }
    ask().await
}

/// Whether a line of the log is of the life that began then, not of the one before: `since` only counts whole seconds.
///
/// The engine notes the start a moment after the program has begun to write. Podman's lines have whole seconds; where it is not
/// clear whose line it is, one too many is better than a missing last word.
fn may_be_of(line: &str, started_ms: u64) -> bool {
    let Some((time, _)) = line.split_once(' ') else { return true };
    match unix_ms(time) {
        Some(at) if time.contains('.') => at + START_SLACK_MS >= started_ms,
        Some(at) => at / 1000 >= started_ms / 1000,
        None => true,
    }
}

#[async_trait]
impl Backend for Docker {
    fn kind(&self) -> &'static str {
        "docker"
    }

    async fn inspect(&self) -> Result<Vec<Found>, BackendError> {
        Ok(self.containers().await?.into_values().map(|container| container.found).collect())
    }

    /// Starts it. The life gets the time of its start for a number, which is higher than all before and at least as high as
    /// one that was counted up from them.
    async fn start(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        let container = self.container(name).await?;
        container.found.may_start(incarnation)?;
        let what = format!("starting {name}");
        let started = self.engine(&what)?.start_container(&container.id, None::<StartContainerOptions>).await;
        started.map_err(|error| match error {
            error if is_not_found(&error) => BackendError::NoSuchProcess(name.clone()),
            // The engine is there and knows the container: its program, mounts or network are not as they should be.
            bollard::errors::Error::DockerResponseServerError { message, .. } => BackendError::CannotStart {
                program: PathBuf::from(format!("the container of {name}")),
                detail: message,
            },
            error => self.refused(&what, &error),
        })
    }

    async fn kill(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        self.signal(name, incarnation, "SIGKILL").await
    }

    /// A signal rather than the engine's own "stop", which kills after a time that the engine chooses, and waits so long.
    async fn stop(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        self.signal(name, incarnation, "SIGTERM").await
    }

    async fn changed(&self) {
        let engine = self.engine("listening to the engine's events");
        let _ = tokio::time::timeout(LOOK_ANYWAY, self.events.next(engine.ok())).await;
    }

    async fn last_lines(&self, name: &ProcessName, lines: usize) -> Vec<String> {
        match tokio::time::timeout(ENGINE_PATIENCE, self.log(name, lines)).await {
            Ok(Ok(lines)) => lines,
            Ok(Err(error)) => vec![format!("({error})")],
            Err(_) => vec![format!("(the log did not come within {} s)", ENGINE_PATIENCE.as_secs())],
        }
    }
}
