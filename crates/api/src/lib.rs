//! The HTTP contract of a gateway: requests, answers, problem documents and events, as types that gateway and client share.
//!
//! `openapi.json` is generated from these types ([`openapi::document`]) and kept as a golden file. A gateway answers with them,
//! a client reads them, and `tenaz ui` serves the same shapes without a cluster. This crate opens nothing and decides nothing.
//!
//! | module | what |
//! |---|---|
//! | `job` | jobs: to make, to list, to look at; their questions and tables |
//! | `stage` | what a job does: stages, partitions, skew |
//! | `upload` | chunks and files on their way |
//! | `cluster` | members, partitions, tenants |
//! | `event` | server-sent events of a job and of the cluster |
//! | `problem` | refused requests |
//! | `openapi` | all of it as OpenAPI 3.1 |

mod cluster;
mod event;
mod job;
mod limit;
pub mod openapi;
mod problem;
mod schema;
mod stage;
mod upload;

pub use cluster::{
    Broker, BrokerState, Cluster, Leader, Member, MemberClaim, MemberState, Supervision, TaskUnderWay, TenantUse,
};
pub use event::{ClusterEvent, ClusterEventKind, JobEnd, StateEvent, WaitingEvent};
pub use job::{
    Column, CreatedJob, EndedJob, ErrorRecord, Job, JobLine, JobList, JobProgress, JobSpecView, JobState, NewJob,
    PlannedQuestion, Question, QuestionEnd, QuestionState, Results, TableEnd, TableState, Waiting, WorkloadChoice,
};
pub use limit::{NamedLimit, TenantLimits};
pub use problem::Problem;
pub use stage::{PartitionOwner, Skew, Stage, StageEdge, StageTasks};
pub use tenaz_core::{FailedQuery, FaultClass, FileEntry, ProblemCode, WorkloadText};
pub use upload::{
    ChunkReceipt, ChunkStatus, Digests, FileReceipt, Finish, FinishAnswer, Missing, Ranges, TableMissing,
};
