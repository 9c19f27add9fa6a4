//! Errors to exit codes: each error says once what it means for the program's end ([`Ends`]), mostly by its class.

use std::error::Error as StdError;
use std::io;
use std::process::ExitCode;

use tenaz_core::{Classified, FailedQuery, FaultClass};

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

/// Some questions could not be answered. The others were.
#[derive(Debug)]
pub(crate) struct QuestionsFailed(pub(crate) Vec<FailedQuery>);

impl QuestionsFailed {
    /// An error, if there are any.
    pub(crate) fn check(failed: Vec<FailedQuery>) -> Result<(), Self> {
        if failed.is_empty() { Ok(()) } else { Err(Self(failed)) }
    }
}

impl std::fmt::Display for QuestionsFailed {
    /// One line for each.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.0.iter().map(|failed| format!("{}: {}", failed.name, failed.text)).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for QuestionsFailed {}

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

/// Standard output cannot be written, not even if it is a full disk: where it goes is the user's choice.
#[derive(Debug)]
struct StdoutFailed(io::Error);

impl std::fmt::Display for StdoutFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write to standard output: {}", self.0)
    }
}

impl std::error::Error for StdoutFailed {}

/// Why standard output could not be written, in the user's words.
pub(crate) fn stdout_failed(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => StdoutFailed(error).into(),
    }
}

/// How the program ends without having done what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// Nobody wants the rest.
    Success,
    /// Data, query or program have to change.
    Failed,
    /// The command has to change.
    Usage,
    /// The same command may succeed later, or elsewhere.
    TryLater,
    /// The user stopped it.
    Stopped,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::TryLater => 75,
            Self::Stopped => 130,
        }
    }
}

impl From<FaultClass> for Exit {
    fn from(class: FaultClass) -> Self {
        if class.is_temporary() { Self::TryLater } else { Self::Failed }
    }
}

/// An error that says how the program ends with it.
trait Ends: StdError + 'static {
    fn exit(&self) -> Exit;
}

impl Ends for Usage {
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl Ends for ReaderGone {
    fn exit(&self) -> Exit {
        Exit::Success
    }
}

impl Ends for NotWell {
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// Whatever the class: what could be answered was, and the same command would fail in the same way.
impl Ends for QuestionsFailed {
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

impl Ends for StdoutFailed {
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

impl Ends for JobLeft {
    fn exit(&self) -> Exit {
        exit_of(&self.error)
    }
}

impl Ends for tenaz_engine::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::UnknownWorkload { .. } | Self::UnknownQuery { .. } => Exit::Usage,
            error => error.class().into(),
        }
    }
}

impl Ends for tenaz_runtime::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Stopped => Exit::Stopped,
            Self::Engine(error) => error.exit(),
            error => error.class().into(),
        }
    }
}

impl Ends for tenaz_client::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Stopped => Exit::Stopped,
            Self::Address { .. } => Exit::Usage,
            error => error.class().into(),
        }
    }
}

impl Ends for tenaz_supervisor::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::NoCluster { .. } => Exit::Usage,
            error => error.class().into(),
        }
    }
}

impl Ends for tenaz_generate::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Scale { .. } => Exit::Usage,
            error => error.class().into(),
        }
    }
}

impl Ends for tenaz_infer::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Types { .. } => Exit::Usage,
            error => error.class().into(),
        }
    }
}

impl Ends for tenaz_gateway::Error {
    fn exit(&self) -> Exit {
        self.class().into()
    }
}

impl Ends for tenaz_cluster::Error {
    fn exit(&self) -> Exit {
        self.class().into()
    }
}

impl Ends for tenaz_rabbit::Error {
    fn exit(&self) -> Exit {
        self.class().into()
    }
}

impl Ends for tenaz_vitals::Error {
    fn exit(&self) -> Exit {
        self.class().into()
    }
}

/// A file that the program itself reads or writes.
impl Ends for io::Error {
    fn exit(&self) -> Exit {
        FaultClass::of_system_error(self, FaultClass::Query).into()
    }
}

/// How the program ends with an error: as the outermost of its causes says that can tell.
fn exit_of(error: &anyhow::Error) -> Exit {
    type Asked = fn(&(dyn StdError + 'static)) -> Option<Exit>;
    fn asked<E: Ends>(cause: &(dyn StdError + 'static)) -> Option<Exit> {
        cause.downcast_ref::<E>().map(E::exit)
    }
    const ALL: [Asked; 17] = [
        asked::<Usage>,
        asked::<ReaderGone>,
        asked::<NotWell>,
        asked::<QuestionsFailed>,
        asked::<StdoutFailed>,
        asked::<JobLeft>,
        asked::<tenaz_engine::Error>,
        asked::<tenaz_runtime::Error>,
        asked::<tenaz_client::Error>,
        asked::<tenaz_supervisor::Error>,
        asked::<tenaz_generate::Error>,
        asked::<tenaz_infer::Error>,
        asked::<tenaz_gateway::Error>,
        asked::<tenaz_cluster::Error>,
        asked::<tenaz_rabbit::Error>,
        asked::<tenaz_vitals::Error>,
        asked::<io::Error>,
    ];
    error.chain().find_map(|cause| ALL.iter().find_map(|asked| asked(cause))).unwrap_or(Exit::Failed)
}

/// Says what went wrong in one line and gives the exit code.
pub(crate) fn report(error: &anyhow::Error, screen: &Screen) -> ExitCode {
    let exit = exit_of(error);
    if exit == Exit::Success {
        return ExitCode::SUCCESS;
    }
    if let Some(QuestionsFailed(failed)) = error.downcast_ref() {
        failed.iter().for_each(|failed| screen.error(&printable(&format!("{}: {}", failed.name, failed.text))));
        return ExitCode::from(exit.code());
    }
    let text = sentence(error);
    let shown = match error.downcast_ref::<tenaz_engine::Error>() {
        // The line of SQL in question stands below, with a mark under the place.
        Some(tenaz_engine::Error::Sql { .. }) => text.lines().map(printable).collect::<Vec<_>>().join("\n"),
        _ => printable(&text),
    };
    screen.error(&shown);
    ExitCode::from(exit.code())
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

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use tenaz_client::Error as Client;
    use tenaz_engine::Error as Engine;
    use tenaz_runtime::Error as Runtime;

    use super::*;

    fn code(error: impl Into<anyhow::Error>) -> u8 {
        exit_of(&error.into()).code()
    }

    fn failed_job(class: FaultClass) -> Client {
        Client::Failed { job: "00ff".to_owned(), code: "x".to_owned(), class, text: "no".to_owned() }
    }

    #[test]
    fn the_exit_code_of_a_failed_job_follows_from_the_class_of_its_end() {
        for (class, expected) in [
            (FaultClass::Data, 1),
            (FaultClass::Query, 1),
            (FaultClass::Bug, 1),
            (FaultClass::Process, 75),
            (FaultClass::Broker, 75),
        ] {
            assert_eq!(code(failed_job(class)), expected, "{class}");
        }
    }

    #[test]
    fn an_embedded_job_ends_as_one_of_a_cluster_does() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(code(Runtime::Temporary { dir: "/tmp".into(), source: full() }), 75);
        assert_eq!(code(Runtime::Unreadable { path: "x".into(), source: io::ErrorKind::NotFound.into() }), 1);
        assert_eq!(code(Runtime::Crashed { task: "x".to_owned(), message: "y".to_owned() }), 1);
        assert_eq!(code(Runtime::Cluster(tenaz_rabbit::Error::Lost("gone".to_owned()).into())), 75);
        assert_eq!(code(Runtime::Stopped), 130);
    }

    #[test]
    fn a_command_that_cannot_be_meant_is_wrong_usage_through_every_wrapping() {
        let unknown = || Engine::UnknownWorkload { name: "x".to_owned(), known: "y".to_owned() };
        assert_eq!(code(unknown()), 2);
        assert_eq!(code(Runtime::Engine(unknown())), 2);
        assert_eq!(code(anyhow::Error::new(unknown()).context("while starting")), 2);
        assert_eq!(code(Client::Address { url: "x".to_owned(), why: "y".to_owned() }), 2);
        assert_eq!(code(tenaz_supervisor::Error::NoCluster { dir: "x".into() }), 2);
        assert_eq!(code(Usage("no".to_owned())), 2);
    }

    #[test]
    fn questions_that_failed_are_an_error_whatever_the_class() {
        let failed = |name: &str, class| FailedQuery { name: name.to_owned(), class, text: "no".into() };
        let both = vec![failed("q2", FaultClass::Query), failed("q3", FaultClass::Process)];
        let error = QuestionsFailed::check(both).expect_err("two of them");
        assert_eq!(error.to_string(), "q2: no\nq3: no");
        assert_eq!(code(error), 1);
        assert!(QuestionsFailed::check(Vec::new()).is_ok());
    }

    #[test]
    fn a_job_that_is_left_ends_as_its_reason_does() {
        let left = |error: Client| JobLeft { error: error.into(), hint: "go on".to_owned() };
        assert_eq!(code(left(Client::Stopped)), 130);
        assert_eq!(code(left(Client::Away { seconds: 1, reason: "x".to_owned() })), 75);
        assert_eq!(code(left(Client::Fault("x".to_owned()))), 1);
    }

    #[test]
    fn causes_outside_of_a_process_are_temporary_wherever_they_show() {
        let taken = || io::Error::from(io::ErrorKind::AddrInUse);
        let addr = "127.0.0.1:1".parse().expect("an address");
        let listen = || tenaz_vitals::Error::Listen { addr, protocol: "TCP", source: taken() };
        assert_eq!(code(listen()), 75);
        assert_eq!(code(tenaz_gateway::Error::Vitals(listen())), 75);
        assert_eq!(code(Runtime::Vitals(listen())), 75);
        assert_eq!(code(tenaz_gateway::Error::Listen { address: addr, source: taken() }), 75);
        let full: Result<(), io::Error> = Err(io::ErrorKind::StorageFull.into());
        assert_eq!(code(full.context("cannot write q1.csv").expect_err("full")), 75);
        assert_eq!(code(stdout_failed(io::ErrorKind::StorageFull.into())), 1);
        assert_eq!(code(stdout_failed(io::ErrorKind::BrokenPipe.into())), 0);
        assert_eq!(code(anyhow::anyhow!("something")), 1);
    }
}
