//! The protocol of tenaz as plain values: event in, decision out.
//!
//! Everything that makes an answer independent of threads, order and deaths is decided here: what an id is
//! ([`Source`]), whether a message is new ([`Inbox::receive`]), when a task has all its input ([`Inbox`]), and whether
//! every record is accounted for ([`Ledger`]).
//!
//! This crate never does IO, never looks at a clock, never spawns or awaits, and never iterates in hash order.
//!
//! ```
//! use tenaz_core::{Inbox, Partition, Received, Route, Source, StageId, StageShape, TableId, TaskSet, Topology};
//!
//! // One table, scanned by stage 0, whose rows go by hash to stage 1.
//! let topology = Topology::new(
//!     2,
//!     1,
//!     vec![
//!         StageShape { tasks: TaskSet::PerChunk(TableId(0)), reads: vec![], broadcasts: vec![], route: Route::Hash },
//!         StageShape {
//!             tasks: TaskSet::PerPartition,
//!             reads: vec![StageId(0)],
//!             broadcasts: vec![],
//!             route: Route::One(Partition(0)),
//!         },
//!     ],
//! )?;
//! let mut inbox = Inbox::of_partition(&topology, Partition(0));
//! let chunk = Source::Chunk { table: TableId(0), number: 0 };
//! assert_eq!(inbox.receive(chunk), Received::New);
//! assert_eq!(inbox.receive(chunk), Received::Duplicate);
//! assert!(inbox.take_ready().is_empty(), "how many chunks there are is not known yet");
//! inbox.close_table(TableId(0), 1)?;
//! assert_eq!(inbox.take_ready(), vec![StageId(1)]);
//! # Ok::<(), tenaz_core::Error>(())
//! ```

mod election;
mod error;
mod facts;
mod ids;
mod inbox;
mod interval_set;
mod ledger;
pub mod limits;
mod mailbox;
mod members;
mod message;
mod promise;
mod registry;
mod request;
mod supervision;
mod topology;
mod worker;

pub use election::{
    Action as ElectionAction, Election, Event as ElectionEvent, Fence, Message as ElectionMessage, Pace, Term,
};
pub use error::Error;
pub use facts::{ClosedTable, FILE_SHIFT, Fact, JobFacts, UploadedFile};
pub use ids::{JobId, MemberId, Partition, QueryId, Source, StageId, SupervisorId, TableId};
pub use inbox::{Inbox, Received};
pub use interval_set::IntervalSet;
pub use ledger::{Imbalance, Ledger, TableLedger};
pub use mailbox::{Mailbox, Verdict};
pub use members::{Claim, Members};
pub use message::{Header, Log};
pub use promise::Promise;
pub use registry::{Change, End, Entry, JobCard, Registry, RegistryEvent};
pub use request::{FileEntry, WorkloadText};
pub use supervision::{ChaosAction, ChaosError, ChaosPlan, ChaosSettings, ChaosWeights, Strike};
pub use supervision::{
    Ending, Incarnation, Keeper, KeeperAction, KeeperEvent, KeeperPolicy, Past, ProcessName, ProcessRole, ProcessState,
    Standing, Streak, Trouble,
};
pub use topology::{Route, StageShape, TaskSet, Topology, Wave};
pub use worker::{Action, Attempt, Event, Failure, JobWorker, Tag, Work};
