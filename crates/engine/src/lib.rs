//! The engine: from a workload's text to stages, and from a stage's input to its output.
//!
//! [`Workload`] reads workload files; [`JobPlan`] turns their SQL into stages with Apache DataFusion and cuts the plan
//! where rows must move; [`LeafRunner`] and [`run_inner`] run one task. Everything here is a function of its
//! input: planning the same workload twice, anywhere, gives the same stages with the same numbers.
//!
//! This crate never reads data files, never talks to a network, never decides *when* a task may run: that is
//! `tenaz-core`'s and the runtime's part.

mod error;
pub mod functions;
mod job_time;
pub mod limits;
mod machine_words;
mod plan;
mod stop;
mod task;
mod task_fault;
mod workload;

pub use error::Error;
pub use job_time::{JobTime, NoTime};
pub use plan::{
    Edge, FileOrder, JobPlan, PlannedQuery, Purpose, ScanPlan, Stage, Statement, TRIM_ZEROS, describe, function_names,
    needs_quotes, split_statements,
};
pub use stop::StopFlag;
pub use task::{
    EdgeInput, FailingRecord, LeafInput, LeafRunner, MemoryEdge, TaskOutput, compact, run_inner, sort_rows, tight,
};
pub use workload::{KindError, Query, Role, Table, Workload, bundled_names, parse_kind};
