//! A process of a cluster, by name.

use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The kinds of processes of a cluster, in the order in which they are started. They are stopped in the opposite order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessRole {
    /// Watches the others.
    Supervisor,
    /// A RabbitMQ node that the cluster runs itself.
    Broker,
    /// Runs tasks.
    Worker,
    /// Serves clients.
    Gateway,
}

impl ProcessRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Supervisor, Self::Broker, Self::Worker, Self::Gateway];

    /// Its name in files, options and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor",
            Self::Broker => "broker",
            Self::Worker => "worker",
            Self::Gateway => "gateway",
        }
    }
}

impl fmt::Display for ProcessRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ProcessRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is no role; write supervisor, broker, worker or gateway"))
    }
}

/// The name of a process, unique within its cluster, such as `worker-2`. It stays when the process is started again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProcessName(String);

impl ProcessName {
    /// The longest name.
    pub const MAX_BYTES: usize = 64;

    /// The name of the `number`th process of a role.
    pub fn numbered(role: ProcessRole, number: u32) -> Self {
        Self(format!("{role}-{number}"))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ProcessName {
    type Error = String;

    /// A name can be part of file names, labels and units: letters, digits, `-`, `_` and `.`, no dot first.
    fn try_from(text: String) -> Result<Self, String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let good =
            !text.is_empty() && text.len() <= Self::MAX_BYTES && !text.starts_with('.') && text.bytes().all(plain);
        if good {
            Ok(Self(text))
        } else {
            Err(format!("{text:?} is no name: use letters, digits, '-', '_' and '.', at most 64"))
        }
    }
}

impl FromStr for ProcessName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl From<ProcessName> for String {
    fn from(name: ProcessName) -> String {
        name.0
    }
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Counts the lives of a named process: each start has a higher one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With an exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// Nobody knows: whoever had started it was gone, too.
    Unknown,
}

impl Ending {
    /// The exit code of a process that could not work for a reason outside of it: the broker is away, the disk is full.
    pub const TRY_AGAIN_LATER: i32 = 75;

    /// The reason outside of the process for which it ended, if that was the reason.
    pub fn outside_cause(self) -> Option<OutsideCause> {
        (self == Self::Exited(Self::TRY_AGAIN_LATER)).then_some(OutsideCause::ReportedByProcess)
    }
}

/// A reason outside of a process for which it cannot run now. It can when the reason has passed, so it is started again for as
/// long as that takes, and never given up for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutsideCause {
    /// The disk is full, or the part of it that the user may fill.
    NoDiskSpace,
    /// The disk can only be read.
    ReadOnlyDisk,
    /// The machine has no memory, process ids or file handles left.
    NoResources,
    /// Another program listens where the process is to listen.
    PortTaken,
    /// The process itself said so, by its exit code.
    ReportedByProcess,
}

impl OutsideCause {
    /// The outside cause that an error of the operating system shows, if it shows one.
    pub fn of_error(error: &io::Error) -> Option<Self> {
        /// "Too many open files", in the process and in the system.
        const FILE_HANDLES: [i32; 2] = [24, 23];
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Self::NoDiskSpace),
            io::ErrorKind::ReadOnlyFilesystem => Some(Self::ReadOnlyDisk),
            // What a fork says when there are too many processes.
            io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => Some(Self::NoResources),
            io::ErrorKind::AddrInUse => Some(Self::PortTaken),
            _ if error.raw_os_error().is_some_and(|code| FILE_HANDLES.contains(&code)) => Some(Self::NoResources),
            _ => None,
        }
    }
}

impl fmt::Display for OutsideCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDiskSpace => "the disk is full",
            Self::ReadOnlyDisk => "the disk can only be read",
            Self::NoResources => "the machine has no memory, process ids or file handles left",
            Self::PortTaken => "another program has its port",
            Self::ReportedByProcess => "it cannot work for now, and its log says why",
        })
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("ended, nobody saw how"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_without_a_change_of_the_process_have_an_outside_cause() {
        let cause = |code| OutsideCause::of_error(&io::Error::from_raw_os_error(code));
        // ENOSPC, EDQUOT, EROFS, ENOMEM, EAGAIN, EMFILE, EADDRINUSE
        let passing = [28, 122, 30, 12, 11, 24, 98];
        assert!(passing.iter().all(|code| cause(*code).is_some()), "{:?}", passing.map(cause));
        // ENOENT, EACCES, ENOEXEC
        assert_eq!([2, 13, 8].map(cause), [None; 3]);
    }

    #[test]
    fn names_can_be_parts_of_other_names() {
        for good in ["worker-1", "a", "gw.2_x"] {
            assert_eq!(good.parse::<ProcessName>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "../x", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<ProcessName>().is_err(), "{bad}");
        }
    }
}
