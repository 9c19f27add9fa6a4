use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tenaz_core::{Classified, FaultClass, OutsideCause, ProcessName, SupervisorId};

use crate::backend::BackendError;
use crate::config::ConfigError;

/// What can go wrong with a cluster's directory and its processes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `cluster.toml` is wrong or unreadable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A back-end says no.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The key or the id cannot be made or read.
    #[error(transparent)]
    Vitals(#[from] tenaz_vitals::Error),
    /// Chaos without a plan.
    #[error(transparent)]
    Chaos(#[from] tenaz_core::ChaosError),
    /// A file of the cluster's directory cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried: `read`, `write`, `create`, …
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no cluster here.
    #[error("there is no cluster in {}: `tenaz up` starts one, --cluster DIR names the directory of another", dir.display())]
    NoCluster {
        /// Where was looked.
        dir: PathBuf,
    },
    /// Nothing of the cluster runs on this machine.
    #[error("the cluster in {} is down: `tenaz up` starts it", dir.display())]
    NotUp {
        /// Its directory.
        dir: PathBuf,
    },
    /// A description for several machines comes without the key that they must share.
    #[error("{} is missing, and all machines must have the same: make it once with `openssl rand -hex 32 > key; chmod 600 key`, and copy it", path.display())]
    NoKey {
        /// Where it should be.
        path: PathBuf,
    },
    /// A file of the cluster's directory has content that nobody wrote on purpose.
    #[error("{} is damaged ({detail}): copy it from another machine of the cluster, or remove the directory after `tenaz down`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Someone holds the lock for far longer than an order takes.
    #[error("{} has been locked for {seconds} s {holder}; the order was not executed", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
        /// `by worker-1 (pid 12, stopped)`, as far as it is known.
        holder: String,
    },
    /// `cluster.toml` has no such machine.
    #[error("cluster.toml has no machine {name:?}: it has {known}")]
    NoSuchMachine {
        /// What was asked for.
        name: String,
        /// The machines there are.
        known: String,
    },
    /// Processes of the cluster that would not go.
    #[error(
        "these processes of the cluster cannot be ended: {names}; look at them with ps, and try `tenaz down` again"
    )]
    StillThere {
        /// `worker-1 (pid 12)`, with commas.
        names: String,
    },
    /// An address cannot be listened on.
    #[error(
        "cannot listen on {addr}: {source}; another program has that port, or cluster.toml names the wrong machine"
    )]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// `cluster.toml` has no such supervisor.
    #[error("cluster.toml has no supervisor {id}: it has {known}")]
    NoSuchSupervisor {
        /// What was asked for.
        id: SupervisorId,
        /// The supervisors there are.
        known: String,
    },
    /// Another process is this supervisor.
    #[error("{name} runs already; there can be one of each")]
    RunsAlready {
        /// Its name.
        name: ProcessName,
    },
    /// No supervisor answers.
    #[error("no supervisor answers ({detail}): `tenaz up` starts the cluster")]
    NoAnswer {
        /// What each of them did instead.
        detail: String,
    },
    /// The thread that did the work is gone.
    #[error("the work was interrupted: {0}")]
    Interrupted(String),
}

impl Error {
    /// The reason outside of the cluster's processes that is in the way, if there is one.
    pub fn outside_cause(&self) -> Option<OutsideCause> {
        match self {
            Self::File { source, .. } | Self::Listen { source, .. } => OutsideCause::of_error(source),
            Self::Backend(BackendError::Obstructed { cause, .. }) => Some(*cause),
            _ => None,
        }
    }

    pub(crate) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Config(error) => error.class(),
            Self::Backend(error) => error.class(),
            Self::Vitals(error) => error.class(),
            Self::Chaos(error) => error.class(),
            // The directory and the addresses are chosen by whoever describes the cluster.
            Self::File { source, .. } | Self::Listen { source, .. } => {
                FaultClass::of_system_error(source, FaultClass::Query)
            }
            Self::NoCluster { .. }
            | Self::NoKey { .. }
            | Self::NoSuchMachine { .. }
            | Self::NoSuchSupervisor { .. }
            | Self::RunsAlready { .. } => FaultClass::Query,
            Self::Damaged { .. } => FaultClass::Data,
            // Later there may be somebody who answers, and nobody who holds the lock.
            Self::NotUp { .. } | Self::Locked { .. } | Self::StillThere { .. } => FaultClass::Process,
            Self::NoAnswer { .. } => FaultClass::Broker,
            Self::Interrupted(_) => FaultClass::Bug,
        }
    }
}

impl Classified for ConfigError {
    fn class(&self) -> FaultClass {
        match self {
            Self::Unreadable { source, .. } => FaultClass::of_system_error(source, FaultClass::Query),
            Self::Wrong { .. } => FaultClass::Query,
        }
    }
}

impl Classified for BackendError {
    fn class(&self) -> FaultClass {
        match self {
            Self::Obstructed { .. } => FaultClass::Process,
            // An engine that says no cannot be told from one that does not answer: somebody has to look.
            Self::NoSuchProcess(_) | Self::OutOfDate { .. } | Self::CannotStart { .. } | Self::Refused { .. } => {
                FaultClass::Query
            }
        }
    }
}
