//! What an error means for the program's end: each error says it once ([`Ends`]), mostly by its class.

use std::error::Error as StdError;
use std::io;

use tenaz_core::{Classified, FaultClass};

use crate::messages::Place;
use crate::outcome::{JobLeft, NotWell, QuestionsFailed, ReaderGone, StdoutFailed, Usage};

/// How the program ends without having done what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
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
    /// The exit code.
    pub(crate) fn code(self) -> u8 {
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

    /// Whose fault it is, where that can be told.
    fn class(&self) -> Option<FaultClass> {
        None
    }

    /// Where something is wrong, as far as it is known.
    fn place(&self) -> Place {
        Place::default()
    }
}

impl Ends for Usage {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn class(&self) -> Option<FaultClass> {
        Some(FaultClass::Query)
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

    fn class(&self) -> Option<FaultClass> {
        end_of(&self.error).class
    }

    fn place(&self) -> Place {
        end_of(&self.error).place
    }
}

impl Ends for tenaz_engine::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::UnknownWorkload { .. } | Self::UnknownQuery { .. } => Exit::Usage,
            error => Classified::class(error).into(),
        }
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }

    fn place(&self) -> Place {
        match self {
            Self::Sql { query, place, .. } => Place::in_sql(query, place),
            Self::Workload { file, line, .. } => {
                Place { file: Some(file.clone()), line: u64::try_from(*line).ok(), ..Place::default() }
            }
            Self::Query { queries, .. } => Place { query: Some(queries.clone()), ..Place::default() },
            Self::Unreadable { path, .. } => Place { file: Some(path.clone()), ..Place::default() },
            _ => Place::default(),
        }
    }
}

impl Ends for tenaz_runtime::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Stopped => Exit::Stopped,
            Self::Engine(error) => error.exit(),
            error => Classified::class(error).into(),
        }
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }

    fn place(&self) -> Place {
        match self {
            Self::Strict(line) => Place::of_record(line),
            Self::Engine(error) => error.place(),
            Self::Unreadable { path, .. } => Place { file: Some(path.display().to_string()), ..Place::default() },
            _ => Place::default(),
        }
    }
}

impl Ends for tenaz_client::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Stopped => Exit::Stopped,
            Self::Address { .. } => Exit::Usage,
            error => Classified::class(error).into(),
        }
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }
}

impl Ends for tenaz_supervisor::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::NoCluster { .. } => Exit::Usage,
            error => Classified::class(error).into(),
        }
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }
}

impl Ends for tenaz_generate::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Scale { .. } => Exit::Usage,
            error => Classified::class(error).into(),
        }
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }
}

impl Ends for tenaz_infer::Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Types { .. } => Exit::Usage,
            error => Classified::class(error).into(),
        }
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }
}

impl Ends for tenaz_gateway::Error {
    fn exit(&self) -> Exit {
        Classified::class(self).into()
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }
}

impl Ends for tenaz_cluster::Error {
    fn exit(&self) -> Exit {
        Classified::class(self).into()
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }
}

impl Ends for tenaz_rabbit::Error {
    fn exit(&self) -> Exit {
        Classified::class(self).into()
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }
}

impl Ends for tenaz_vitals::Error {
    fn exit(&self) -> Exit {
        Classified::class(self).into()
    }

    fn class(&self) -> Option<FaultClass> {
        Some(Classified::class(self))
    }
}

/// A file that the program itself reads or writes.
impl Ends for io::Error {
    fn exit(&self) -> Exit {
        FaultClass::of_system_error(self, FaultClass::Query).into()
    }
}

/// What an error means for the program's end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) exit: Exit,
    pub(crate) class: Option<FaultClass>,
    pub(crate) place: Place,
}

/// What an error means: as the outermost of its causes says that can tell.
pub(crate) fn end_of(error: &anyhow::Error) -> End {
    type Asked = fn(&(dyn StdError + 'static)) -> Option<End>;
    fn asked<E: Ends>(cause: &(dyn StdError + 'static)) -> Option<End> {
        let cause = cause.downcast_ref::<E>()?;
        Some(End { exit: cause.exit(), class: cause.class(), place: cause.place() })
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
    let told = error.chain().find_map(|cause| ALL.iter().find_map(|asked| asked(cause)));
    told.unwrap_or(End { exit: Exit::Failed, class: None, place: Place::default() })
}

fn exit_of(error: &anyhow::Error) -> Exit {
    end_of(error).exit
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use tenaz_client::Error as Client;
    use tenaz_core::FailedQuery;
    use tenaz_engine::Error as Engine;
    use tenaz_runtime::Error as Runtime;

    use super::*;
    use crate::outcome::stdout_failed;

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
