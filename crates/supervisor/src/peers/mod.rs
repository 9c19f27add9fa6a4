//! Supervisors among themselves: authenticated TCP.
//!
//! Every supervisor dials every other one and speaks over the connection that it has dialled; over one that it has accepted it
//! only answers. `tenaz status` dials as a reader, who may ask for nothing but the status.

mod accept;
mod dial;
mod frame;
mod hello;
mod message;
mod refusal;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenaz_core::{ElectionMessage, SupervisorId};
use tenaz_vitals::{ClusterId, Key};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::error::Error;
use crate::limits::PEER_EVENTS;
use dial::Link;
pub(crate) use dial::ask_once;
use hello::Credentials;
pub(crate) use hello::Party;
pub(crate) use message::{Answer, Request};
pub use refusal::{PeerRefusal, PeerRefusals};

/// What happened among the supervisors.
#[derive(Debug)]
pub(crate) enum PeerEvent {
    /// A peer can be reached.
    Up(SupervisorId),
    /// The connection to a peer is gone.
    Down(SupervisorId),
    /// A peer says something about the election.
    Election {
        /// Who.
        from: SupervisorId,
        /// What.
        message: ElectionMessage,
    },
    /// Something may have happened on a peer's machine.
    Changed {
        /// Whose.
        from: SupervisorId,
    },
    /// Somebody wants an answer.
    Asked {
        /// What was asked. Readers only get as far as the status.
        request: Request,
        /// Where the answer goes.
        answer: oneshot::Sender<Answer>,
    },
}

/// Who takes part.
#[derive(Debug, Clone)]
pub(crate) struct PeerSettings {
    /// This supervisor.
    pub(crate) me: SupervisorId,
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// The others.
    pub(crate) peers: BTreeMap<SupervisorId, SocketAddr>,
    /// The cluster's key.
    pub(crate) key: Key,
    /// The cluster.
    pub(crate) cluster: ClusterId,
}

/// The connections of a supervisor. All end when this is dropped.
#[derive(Debug)]
pub(crate) struct Peers {
    links: BTreeMap<SupervisorId, Link>,
    _tasks: JoinSet<()>,
}

impl Peers {
    /// Listens, and dials the others for as long as this lives.
    pub(crate) async fn open(
        settings: PeerSettings,
        refusals: Arc<PeerRefusals>,
    ) -> Result<(Self, mpsc::Receiver<PeerEvent>), Error> {
        let PeerSettings { me, listen, peers, key, cluster } = settings;
        let listener = TcpListener::bind(listen).await.map_err(|source| Error::Listen { addr: listen, source })?;
        let (events, received) = mpsc::channel(PEER_EVENTS);
        let credentials = Credentials { party: Party::Supervisor(me), key, cluster };
        let mut tasks = JoinSet::new();
        let known = peers.keys().copied().collect();
        tasks.spawn(accept::accept_all(listener, credentials.clone(), known, events.clone(), Arc::clone(&refusals)));
        let mut links = BTreeMap::new();
        for (id, addr) in peers {
            let (link, dialling) = Link::new(id, addr, credentials.clone(), events.clone(), Arc::clone(&refusals));
            tasks.spawn(dialling);
            links.insert(id, link);
        }
        Ok((Self { links, _tasks: tasks }, received))
    }

    /// Sends a message of the election, once; nobody knows whether it arrives.
    pub(crate) fn send(&self, to: SupervisorId, message: ElectionMessage) {
        if let Some(link) = self.links.get(&to) {
            link.send(message);
        }
    }

    /// Tells a peer that something may have happened on this machine.
    pub(crate) fn tell_changed(&self, to: SupervisorId) {
        if let Some(link) = self.links.get(&to) {
            link.tell_changed();
        }
    }

    /// Whether there is a connection to a peer now.
    pub(crate) fn is_up(&self, peer: SupervisorId) -> bool {
        self.links.get(&peer).is_some_and(Link::is_up)
    }

    /// Asks a peer, in the background. The error is for people.
    pub(crate) fn ask(
        &self,
        to: SupervisorId,
        request: Request,
        deadline: Duration,
    ) -> impl Future<Output = Result<Answer, String>> + Send + 'static {
        let link = self.links.get(&to).cloned();
        async move {
            match link {
                Some(link) => link.ask(request, deadline).await,
                None => Err(format!("there is no supervisor {to}")),
            }
        }
    }
}
