//! From what lapin reports to whose fault it is. The only place that reads the broker's texts.

use std::{io, sync::Arc};

use lapin::{ErrorKind, types::ShortString};

use crate::{
    error::{Error, Result},
    settings::BrokerUrl,
};

// Reply codes of AMQP 0-9-1.
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const RESOURCE_LOCKED: u16 = 405;
const PRECONDITION_FAILED: u16 = 406;
const NOT_ALLOWED: u16 = 530;
const NOT_IMPLEMENTED: u16 = 540;

/// An error while a connection was being opened.
pub(crate) fn while_opening(url: &BrokerUrl, error: &lapin::Error) -> Error {
    let address = url.address();
    match error.kind() {
        ErrorKind::ProtocolError(amqp) => match amqp.get_id() {
            ACCESS_REFUSED => Error::WrongPassword { address, user: url.user.clone() },
            NOT_ALLOWED if amqp.get_message().as_str().contains("not found") => {
                Error::NoSuchVhost { address, vhost: url.vhost.clone() }
            }
            NOT_ALLOWED => Error::MissingPermission { what: amqp.get_message().to_string() },
            _ => Error::Refused { address, detail: amqp.get_message().to_string() },
        },
        ErrorKind::IOError(source) => while_connecting(url, Arc::clone(source)),
        _ => Error::Refused { address, detail: error.to_string() },
    }
}

/// An error of the socket, before or during the handshake.
pub(crate) fn while_connecting(url: &BrokerUrl, source: Arc<io::Error>) -> Error {
    let address = url.address();
    match source.kind() {
        // What rustls and its certificate reader report.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other if url.tls => {
            Error::Tls { address, detail: source.to_string() }
        }
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Error::Refused { address, detail: source.to_string() },
        _ => Error::Unreachable { address, source },
    }
}

/// An error of an operation on the queue, stream or exchange `name`.
pub(crate) fn while_using(name: &str, error: &lapin::Error) -> Error {
    let name = name.to_owned();
    match error.kind() {
        ErrorKind::ProtocolError(amqp) => {
            let detail = amqp.get_message().to_string();
            match amqp.get_id() {
                ACCESS_REFUSED => Error::MissingPermission { what: detail },
                // The same code also says "home node … is down" and "process is stopped by supervisor": those pass.
                NOT_FOUND if detail.contains("no queue") || detail.contains("no exchange") => Error::NotFound { name },
                NOT_FOUND => Error::NotReady { name, detail },
                RESOURCE_LOCKED => Error::Locked { name },
                // A stream that is just being made, or whose node is coming back.
                PRECONDITION_FAILED if detail.contains("replica on the local node") => Error::NotReady { name, detail },
                PRECONDITION_FAILED => Error::Precondition { name, detail },
                NOT_ALLOWED | NOT_IMPLEMENTED => Error::Unsupported { name, detail },
                _ => Error::Lost(detail),
            }
        }
        _ => lost(error),
    }
}

/// An error after which channel or connection are gone, whatever it was.
pub(crate) fn lost(error: &lapin::Error) -> Error {
    Error::Lost(match error.kind() {
        ErrorKind::ProtocolError(amqp) => amqp.get_message().to_string(),
        ErrorKind::IOError(source) => source.to_string(),
        ErrorKind::MissingHeartbeatError => "no heartbeat from the broker".to_owned(),
        ErrorKind::InvalidConnectionState(_) | ErrorKind::InvalidChannelState(..) | ErrorKind::InvalidChannel(_) => {
            "it is closed".to_owned()
        }
        _ => error.to_string(),
    })
}

/// A name as AMQP wants it. lapin's own conversion panics above 255 bytes.
pub(crate) fn short(name: &str) -> Result<ShortString> {
    ShortString::try_new(name)
        .map_err(|_| Error::NameTooLong { start: name.chars().take(40).collect(), bytes: name.len() })
}
