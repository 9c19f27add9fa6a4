//! What a gateway is told of its cluster's supervisors, if there are any. Nothing depends on it.

use std::future::Future;
use std::pin::Pin;

use tenaz_api::{ClusterEvent, Leader, Member};

/// What supervisors say of their cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Supervised {
    /// The supervisor that leads.
    pub leader: Option<Leader>,
    /// All processes that they know.
    pub members: Vec<Member>,
}

/// An answer that takes a moment.
pub type Asked<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The way to the supervisors.
pub trait Supervisors: Send + Sync + std::fmt::Debug {
    /// What they say; none if no supervisor answers.
    fn ask(&self) -> Asked<'_, Option<Supervised>>;
    /// What they have done and seen on this machine since the last call, each with a key of its own. At first: all that is kept.
    fn news(&self) -> Vec<(String, ClusterEvent)>;
}
