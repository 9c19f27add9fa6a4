//! The one error of this crate. Its class tells whose fault it is; [`Error::is_temporary`] whether to try again.

use std::{io, path::PathBuf, sync::Arc};

use tenaz_core::{Classified, FaultClass};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, and what to do about it.
///
/// It can be cloned, because one lost connection fails many publishes at once.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The settings cannot be used as they are. The text never contains a password.
    #[error("the broker settings are wrong: {0}")]
    Settings(String),
    /// A file named in the settings cannot be read.
    #[error("cannot read '{}' ({source}): check the path and its permissions", path.display())]
    SettingsFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// No TCP connection.
    #[error("no broker answers at {address} ({source}): start RabbitMQ there, or correct the address")]
    Unreachable {
        /// Host and port.
        address: String,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
    /// Something answers, but it ended the conversation before the connection was open.
    #[error(
        "{address} closed the connection while it was being opened ({detail}): check that this is RabbitMQ's AMQP port, and its log"
    )]
    Refused {
        /// Host and port.
        address: String,
        /// What happened.
        detail: String,
    },
    /// User or password are wrong, or the user may not connect from here.
    #[error(
        "the broker at {address} rejected user '{user}': check user and password ('guest' may only connect from the broker's own machine)"
    )]
    WrongPassword {
        /// Host and port.
        address: String,
        /// The user that was tried.
        user: String,
    },
    /// The user exists but may not do this.
    #[error(
        "permission missing: {what}; grant it with 'rabbitmqctl set_permissions -p VHOST USER \".*\" \".*\" \".*\"'"
    )]
    MissingPermission {
        /// What the broker said.
        what: String,
    },
    /// The virtual host does not exist.
    #[error(
        "the broker at {address} has no virtual host '{vhost}': create it with 'rabbitmqctl add_vhost', or correct the end of the URL"
    )]
    NoSuchVhost {
        /// Host and port.
        address: String,
        /// The virtual host that was asked for.
        vhost: String,
    },
    /// The broker is too old.
    #[error("the broker at {address} is version {found}, but {needed} or later is needed: upgrade RabbitMQ")]
    WrongVersion {
        /// Host and port.
        address: String,
        /// Its version.
        found: String,
        /// The oldest version that works.
        needed: &'static str,
    },
    /// The encrypted connection could not be set up.
    #[error(
        "no TLS connection to {address} ({detail}): check the certificate, the CA file, and that the port speaks TLS"
    )]
    Tls {
        /// Host and port.
        address: String,
        /// What rustls said.
        detail: String,
    },
    /// The queue, stream or exchange does not exist.
    #[error("'{name}' does not exist on the broker: it was deleted or never declared; declare it first")]
    NotFound {
        /// The queue, stream or exchange.
        name: String,
    },
    /// It exists, but its node is down or still starting.
    #[error("'{name}' is not available right now ({detail}): try again in a moment")]
    NotReady {
        /// The queue or stream.
        name: String,
        /// What the broker said.
        detail: String,
    },
    /// Someone else holds it exclusively.
    #[error("'{name}' belongs to another connection: wait until that one is closed, or use another name")]
    Locked {
        /// The queue.
        name: String,
    },
    /// It exists with other arguments.
    #[error("'{name}' exists with other settings ({detail}): delete it, or use the version of tenaz that created it")]
    Precondition {
        /// The queue, stream or exchange.
        name: String,
        /// What the broker said.
        detail: String,
    },
    /// The queue would drop messages after a few redeliveries.
    #[error(
        "queue '{name}' {detail}, so the broker may drop messages: delete the queue and any policy that sets 'delivery-limit', then start again"
    )]
    DeliveryLimit {
        /// The queue.
        name: String,
        /// What was found.
        detail: String,
    },
    /// The broker does not support what was asked.
    #[error("the broker refuses '{name}' ({detail}): check its version, plugins and policies")]
    Unsupported {
        /// The queue, stream or exchange.
        name: String,
        /// What the broker said.
        detail: String,
    },
    /// The connection, channel or consumer is gone. What was under way may or may not have happened.
    #[error("the broker connection was lost ({0}): connect again")]
    Lost(String),
    /// The broker does not answer a question, though it is there. The connection counts as lost.
    #[error("the broker has not answered about '{what}' for {seconds} s: connect again")]
    Unanswered {
        /// Queue, stream or exchange.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The broker took a message, and has not confirmed it for long. It may or may not be there.
    #[error("the broker has not confirmed a message for '{target}' within {seconds} s: connect again")]
    Unconfirmed {
        /// Queue or exchange.
        target: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The message has no queue to go to.
    #[error("no queue takes messages for '{target}': it was deleted or never declared; declare it first")]
    Unroutable {
        /// Queue or exchange.
        target: String,
    },
    /// The broker did not take the message: the queue is at its limit, or changing its leader.
    #[error("the broker does not take messages for '{target}' right now, because it is full: try again in a moment")]
    Full {
        /// Queue or exchange.
        target: String,
    },
    /// The message is larger than any broker version is known to take.
    #[error("a message of {bytes} bytes is above the limit of {limit}: send smaller pieces")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// AMQP names are at most 255 bytes.
    #[error("the name '{start}…' has {bytes} bytes, but RabbitMQ takes at most 255: use a shorter one")]
    NameTooLong {
        /// How it begins.
        start: String,
        /// Its length.
        bytes: usize,
    },
    /// As many channels as there may be are in use.
    #[error(
        "all {channels} channels to the broker are in use: wait until jobs have ended, use fewer partitions, or raise 'channel_max' in rabbitmq.conf"
    )]
    TooManyChannels {
        /// How many there may be.
        channels: usize,
    },
    /// RabbitMQ or Erlang are not on this machine.
    #[error(
        "RabbitMQ is not installed on this machine ({missing} is missing): install it with 'apt-get install rabbitmq-server'"
    )]
    NotInstalled {
        /// What was looked for.
        missing: String,
    },
    /// A private node cannot run for a reason outside of it. It can when the reason has passed.
    #[error("the private RabbitMQ node '{name}' cannot run now, because {obstacle}: {detail}")]
    NodeObstructed {
        /// The node.
        name: String,
        /// What is in its way.
        obstacle: NodeObstacle,
        /// What happened, with the last lines of its log where that helps.
        detail: String,
    },
    /// A private node did not start, or did not do what it was told.
    #[error("the private RabbitMQ node '{name}' failed: {detail}")]
    Node {
        /// The node.
        name: String,
        /// What happened, with the last lines of its log where that helps.
        detail: String,
    },
}

/// A reason outside of a private node for which it cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NodeObstacle {
    /// Nothing can be written where it keeps its data.
    #[error("its disk is full")]
    NoDiskSpace,
    /// Another program listens on one of its ports.
    #[error("another program has its port")]
    PortTaken,
}

impl Error {
    /// Whether the same call can succeed later without anyone changing anything.
    ///
    /// `Lost`, `Unanswered`, `Unconfirmed`, `Unreachable` and `Refused` ask for a new connection, `NotReady`, `Full`, `TooManyChannels` and `NodeObstructed`
    /// for patience.
    pub fn is_temporary(&self) -> bool {
        self.class().is_temporary()
    }

    /// Whether the connection or channel behind the call is gone, so that it has to be opened again.
    pub fn is_lost(&self) -> bool {
        matches!(self, Error::Lost(_) | Error::Unanswered { .. } | Error::Unconfirmed { .. })
    }
}

impl Classified for Error {
    /// Temporary classes are for what passes without anyone changing anything: a broker that rejects the password is there
    /// and well, so the settings are to blame.
    fn class(&self) -> FaultClass {
        match self {
            Error::Unreachable { .. }
            | Error::Refused { .. }
            | Error::NotReady { .. }
            | Error::Lost(_)
            | Error::Unanswered { .. }
            | Error::Unconfirmed { .. }
            | Error::Full { .. } => FaultClass::Broker,
            // Another process has channels left, or another machine room on its disk.
            Error::TooManyChannels { .. } | Error::NodeObstructed { .. } => FaultClass::Process,
            Error::Settings(_)
            | Error::SettingsFile { .. }
            | Error::WrongPassword { .. }
            | Error::MissingPermission { .. }
            | Error::NoSuchVhost { .. }
            | Error::WrongVersion { .. }
            | Error::Tls { .. }
            | Error::Locked { .. }
            | Error::Precondition { .. }
            | Error::DeliveryLimit { .. }
            | Error::Unsupported { .. }
            | Error::NotInstalled { .. } => FaultClass::Query,
            // What stood there is gone: it has to be sent again.
            Error::NotFound { .. } | Error::Unroutable { .. } => FaultClass::Data,
            // Callers bound sizes and names. A node that fails for no reason that is known counts as ours, so that it is
            // given up after a while.
            Error::TooLarge { .. } | Error::NameTooLong { .. } | Error::Node { .. } => FaultClass::Bug,
        }
    }
}
