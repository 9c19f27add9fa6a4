//! The protocol of tenaz as plain values: event in, decision out.
//!
//! Everything that makes an answer independent of threads, order and deaths is decided here: what an id is
//! ([`Source`]), whether a message is new ([`Inbox::receive`]), when a task has all its input ([`Inbox`]), whether
//! every record is accounted for ([`Ledger`]), and whether all parties saw the same bytes ([`LineageCheck`]).
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

mod bounded_text;
mod chunk_intake;
mod control_log;
mod digest_store;
mod driver;
mod election;
mod error;
mod facts;
mod fault_class;
mod file_places;
mod ids;
mod inbox;
mod interval_set;
mod isolation;
mod job_creation;
mod job_seat;
mod ledger;
pub mod limits;
mod lineage;
mod mailbox;
mod members;
mod message;
mod offset_ranges;
mod problem_code;
mod promise;
mod query_end;
mod queue_silence;
mod queue_watch;
mod registry;
mod request;
mod roster;
mod stage_failure;
mod stall_watch;
mod stream_silence;
mod supervision;
mod system_error;
mod topology;
mod unserved;
mod upkeep;
mod worker;

pub use bounded_text::BoundedText;
pub use chunk_intake::{ChunkIntake, IntakeStep};
pub use control_log::{ControlLog, Note, NotePlace};
pub use driver::{
    Effect, Finished, Input, JobDriver, JobFailure, LogPart, Product, RowEngine, Step, StepOutcome, Ticket,
};
pub use election::{
    Action as ElectionAction, Election, Event as ElectionEvent, Fence, Message as ElectionMessage, Pace, Term,
};
pub use error::Error;
pub use facts::{ClosedTable, FILE_SHIFT, Fact, JobFacts, UploadedFile};
pub use fault_class::{Classified, FaultClass};
pub use file_places::{FilePlaces, FullQueue};
pub use ids::{BuildId, JobId, MemberId, Partition, QueryId, Source, StageId, SupervisorId, TableId};
pub use inbox::{Inbox, Received};
pub use interval_set::IntervalSet;
pub use isolation::{Clearance, Exposure, Isolation};
pub use job_creation::{CreationSigns, CreationStep, CreationWatch, SpecWatch};
pub use job_seat::JobSeat;
pub use ledger::{Imbalance, Ledger, TableLedger};
pub use lineage::{ChunkDigest, ChunkHasher, EdgeSums, Lineage, LineageCheck};
pub use mailbox::{Mailbox, Verdict};
pub use members::{Announcement, Claim, Members};
pub use message::{Header, Log};
pub use offset_ranges::OffsetRanges;
pub use problem_code::ProblemCode;
pub use promise::Promise;
pub use query_end::{QueryEnded, QueryOutcome};
pub use queue_silence::{QueueSilence, Witness};
pub use queue_watch::{Probe, QueueAction, QueueEvent, QueueWatch, Sighting};
pub use registry::{Change, DoneSummary, End, Entry, JobCard, MentionUrgency, Registry, RegistryEvent};
pub use request::{FileEntry, WorkloadText};
pub use roster::{LifeSign, Roster};
pub use stage_failure::{FailedQuery, FailedStages, StageFailure};
pub use stall_watch::{StallSigns, StallVerdict, StallWatch};
pub use stream_silence::StreamSilence;
pub use supervision::{ChaosAction, ChaosError, ChaosPlan, ChaosSettings, ChaosWeights, Strike};
pub use supervision::{
    Ending, Incarnation, Keeper, KeeperAction, KeeperEvent, KeeperPolicy, OrderFailure, OutsideCause, Past,
    ProcessName, ProcessRole, ProcessState, Standing, Streak, Trouble,
};
pub use topology::{Route, StageShape, TaskSet, Topology, Wave};
pub use unserved::{UnservedAction, UnservedJob};
pub use upkeep::{Chore, JobSigns, Upkeep, UpkeepPatience};
pub use worker::{Action, Attempt, Event, Failure, JobWorker, Tag, Work};
