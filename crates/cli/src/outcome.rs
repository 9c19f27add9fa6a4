//! Errors to exit codes.

use std::process::ExitCode;

use crate::screen::{Screen, printable};

/// The user's command cannot mean anything.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Whoever read our standard output has gone: nothing is wrong, and nothing is left to do.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for ReaderGone {}

/// The command has done what it should, and found that not all is well.
#[derive(Debug)]
pub(crate) struct NotWell(pub(crate) String);

impl std::fmt::Display for NotWell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotWell {}

/// The command ended before its job: the user must know how to go on with it, or how to end it.
#[derive(Debug)]
pub(crate) struct JobLeft {
    pub(crate) error: anyhow::Error,
    pub(crate) hint: String,
}

impl std::fmt::Display for JobLeft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", sentence(&self.error), self.hint)
    }
}

impl std::error::Error for JobLeft {}

/// Why standard output could not be written, in the user's words.
pub(crate) fn stdout_failed(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => anyhow::Error::new(error).context("cannot write to standard output"),
    }
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const TEMPORARY: u8 = 75;
const STOPPED: u8 = 130;

/// Says what went wrong in one line and gives the exit code.
pub(crate) fn report(error: &anyhow::Error, screen: &Screen) -> ExitCode {
    if error.is::<ReaderGone>() {
        return ExitCode::SUCCESS;
    }
    let text = sentence(error);
    let shown = match error.downcast_ref::<tenaz_engine::Error>() {
        // The line of SQL in question stands below, with a mark under the place.
        Some(tenaz_engine::Error::Sql { .. }) => text.lines().map(printable).collect::<Vec<_>>().join("\n"),
        _ => printable(&text),
    };
    screen.error(&shown);
    ExitCode::from(code(error))
}

/// The error and its causes in one line; a cause that is already part of the text is not said again.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) && !cause.contains(&text) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn code(error: &anyhow::Error) -> u8 {
    use tenaz_client::Error as Client;
    use tenaz_engine::Error as Engine;
    use tenaz_runtime::Error as Runtime;
    if error.is::<Usage>() {
        return USAGE;
    }
    if is_temporary(error) {
        return TEMPORARY;
    }
    match error.downcast_ref::<tenaz_supervisor::Error>() {
        Some(tenaz_supervisor::Error::NoAnswer { .. } | tenaz_supervisor::Error::NotUp { .. }) => return TEMPORARY,
        Some(tenaz_supervisor::Error::Config(_) | tenaz_supervisor::Error::NoCluster { .. }) => return USAGE,
        _ => {}
    }
    if let Some(left) = error.downcast_ref::<JobLeft>() {
        return code(&left.error);
    }
    if matches!(error.downcast_ref::<Runtime>(), Some(Runtime::Stopped)) {
        return STOPPED;
    }
    match error.downcast_ref::<Client>() {
        Some(Client::Stopped) => return STOPPED,
        Some(Client::Address { .. }) => return USAGE,
        Some(error) if error.is_temporary() => return TEMPORARY,
        _ => {}
    }
    if matches!(error.downcast_ref::<tenaz_generate::Error>(), Some(tenaz_generate::Error::Scale { .. })) {
        return USAGE;
    }
    if matches!(error.downcast_ref::<tenaz_infer::Error>(), Some(tenaz_infer::Error::Types { .. })) {
        return USAGE;
    }
    match error.downcast_ref::<Engine>() {
        Some(Engine::UnknownWorkload { .. } | Engine::UnknownQuery { .. }) => USAGE,
        _ => FAILED,
    }
}

/// Whether trying again later may help, because the broker is away.
fn is_temporary(error: &anyhow::Error) -> bool {
    let of_cluster = |error: &tenaz_cluster::Error| error.is_temporary();
    if let Some(error) = error.downcast_ref::<tenaz_gateway::Error>() {
        return error.is_temporary();
    }
    match error.downcast_ref::<tenaz_runtime::Error>() {
        Some(tenaz_runtime::Error::Cluster(error)) => of_cluster(error),
        _ => error.downcast_ref::<tenaz_cluster::Error>().is_some_and(of_cluster),
    }
}
