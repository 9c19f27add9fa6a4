//! Jobs: to make, to list, to look at.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenaz_core::{Classified, End, FailedQuery, FaultClass, FileEntry, ProblemCode, WorkloadText};

use crate::schema;
use crate::stage::{PartitionOwner, Stage};

/// A workload by name, or as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Workload")]
pub enum WorkloadChoice {
    /// The name of a bundled workload.
    Name(String),
    /// A workload's text.
    Text {
        /// The name of its file, for error messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The workload file.
        toml: String,
        /// The SQL files that it names, by the names it uses.
        #[serde(default)]
        sql: BTreeMap<String, String>,
        /// What now() is, RFC 3339. A question that asks for the time needs it: the same request must mean the same job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        now: Option<String>,
    },
}

impl From<WorkloadText> for WorkloadChoice {
    fn from(text: WorkloadText) -> Self {
        let WorkloadText { file, toml, sql, now } = text;
        Self::Text { file: Some(file), toml, sql, now }
    }
}

/// A job to be made.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJob {
    /// What is asked, and of which tables.
    pub workload: WorkloadChoice,
    /// The questions asked, in this order; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<String>,
    /// Whether the first bad record fails the job.
    #[serde(default)]
    pub strict: bool,
    /// Bytes of all files: decides how many partitions there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// Slices of the keys; without: by the size of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub partitions: Option<u16>,
    /// Bytes of a chunk; without: 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = 8388608))]
    pub chunk_bytes: Option<u64>,
    /// The files that the client means to send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::file_entries")]
    pub files: Vec<FileEntry>,
}

/// A job that was made, or was there already.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CreatedJob {
    /// Its id: 16 hexadecimal digits.
    pub job: String,
    /// The workload's name.
    #[serde(default)]
    pub workload: String,
    /// Its state.
    #[serde(default)]
    pub state: JobState,
    /// How many partitions it has.
    #[serde(default)]
    pub partitions: u16,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// The tables to send, those that others wait for first.
    pub tables: Vec<String>,
    /// The questions.
    #[serde(default)]
    pub queries: Vec<PlannedQuestion>,
}

/// A question as it was planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedQuestion {
    /// Its name.
    pub name: String,
    /// What it asks, for people.
    pub title: String,
    /// Whether the order of rows is part of the answer.
    pub ordered: bool,
    /// The columns of its answer.
    pub columns: Vec<Column>,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type: text, bool, int, float, decimal(p,s), date, timestamp, or DataFusion's name.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Chunks are still missing.
    #[default]
    Uploading,
    /// All chunks are there.
    Processing,
    /// The answers are there.
    Done,
    /// It failed.
    Failed,
    /// A client cancelled it.
    Cancelled,
    /// No client went on with its upload.
    Expired,
    /// A state that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl JobState {
    /// Its name in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uploading => "uploading",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        }
    }
}

/// What `POST …/cancel` and `DELETE` answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ended")]
pub struct EndedJob {
    /// The job.
    pub job: String,
    /// How it has ended.
    pub state: JobState,
}

/// How far a job is. Numbers that only grow, but after a lost connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobProgress {
    /// Chunks worked on.
    pub chunks: u64,
    /// Chunks that the cluster knows of.
    pub chunks_known: u64,
    /// Bytes worked on.
    pub bytes: u64,
    /// Records worked on.
    pub records: u64,
    /// Records rejected.
    pub rejected: u64,
    /// Final tasks done whose rows are answers.
    pub answers: u64,
}

/// A line of the list of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobLine {
    /// Its id.
    pub job: String,
    /// The workload's name.
    pub workload: String,
    /// Its state.
    pub state: JobState,
    /// When it was made, RFC 3339.
    #[serde(default)]
    pub created: String,
    /// How far it is.
    #[serde(default)]
    pub progress: JobProgress,
    /// Questions of a done job that could not be answered: the first few.
    #[serde(default)]
    #[schemars(schema_with = "schema::failed_queries")]
    pub failed: Vec<FailedQuery>,
    /// The tenant that owns it; operators are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// The list of jobs, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<JobLine>,
}

/// What a job waits for: a code for programs and a text for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// The stable code: broker, workers, upload.
    pub code: String,
    /// The text.
    pub text: String,
}

/// Why a job failed, or why a stream of rows has no end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRecord {
    /// The stable code.
    pub code: String,
    /// The text.
    pub text: String,
    /// The party that has to change something.
    #[serde(default = "class_of_old_records")]
    #[schemars(schema_with = "schema::fault_class")]
    pub class: FaultClass,
    /// How the job ended, if that is the reason. Without it the gateway could not do it, and another one may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<JobState>,
}

/// Gateways that do not say are older than classes; they told of jobs that failed for good.
fn class_of_old_records() -> FaultClass {
    FaultClass::Data
}

/// The end of a question: its rows are complete, and will not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QueryEnd")]
pub struct QuestionEnd {
    /// Its name.
    pub name: String,
    /// Rows of the answer.
    pub rows: u64,
    /// SHA-256 of the answer's CSV form.
    pub fingerprint: String,
    /// Whether the order of rows is part of the answer.
    #[serde(default)]
    pub ordered: bool,
    /// When it became final, RFC 3339; gateways of older jobs do not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_at: Option<String>,
}

/// The account of a table: records = accepted + rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TableEnd {
    /// Its name.
    pub name: String,
    /// Records read.
    pub records: u64,
    /// Records that became rows.
    pub accepted: u64,
    /// Records that did not.
    pub rejected: u64,
    /// Rejected records by reason.
    #[serde(default)]
    pub reasons: BTreeMap<String, u64>,
    /// Bytes of its files.
    #[serde(default)]
    pub bytes: u64,
    /// Chunks that they were cut into.
    #[serde(default)]
    pub chunks: u64,
}

/// The results of a job that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// The questions that were answered, in the order asked.
    pub queries: Vec<QuestionEnd>,
    /// Those that could not be answered.
    #[serde(default)]
    #[schemars(schema_with = "schema::failed_queries")]
    pub failed: Vec<FailedQuery>,
    /// The tables read, in the workload's order.
    pub tables: Vec<TableEnd>,
}

/// What a job asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Spec")]
pub struct JobSpecView {
    /// The workload.
    #[schemars(schema_with = "schema::workload_text")]
    pub workload: WorkloadText,
    /// The questions asked; empty: all.
    #[serde(default)]
    pub queries: Vec<String>,
    /// Whether the first bad record fails the job.
    #[serde(default)]
    pub strict: bool,
    /// The files, where the client told.
    #[serde(default)]
    #[schemars(schema_with = "schema::file_entries")]
    pub files: Vec<FileEntry>,
}

/// How far a table is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TableState {
    /// Its name.
    pub name: String,
    /// Chunks that were received.
    #[serde(default)]
    pub chunks_received: u64,
    /// Whether it is known how many chunks it has.
    #[serde(default)]
    pub closed: bool,
    /// How many, once that is known.
    #[serde(default)]
    pub chunks: Option<u64>,
    /// How many records, once that is known.
    #[serde(default)]
    pub records: Option<u64>,
    /// How many bytes, once that is known.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    /// Its input is not complete.
    Open,
    /// Its answer is complete and will not change, though other questions of the job may go on.
    Final,
    /// It could not be answered.
    Failed,
}

/// A question of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Its name.
    pub name: String,
    /// What it asks, for people.
    #[serde(default)]
    pub title: String,
    /// Its state. `final` and `failed` are never taken back.
    pub state: QuestionState,
    /// Whether the order of rows is part of the answer.
    #[serde(default)]
    pub ordered: bool,
    /// The columns of its answer.
    #[serde(default)]
    pub columns: Vec<Column>,
    /// Tables whose records its answer is made of.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Rows of the answer, once it is final.
    #[serde(default)]
    pub rows: Option<u64>,
    /// SHA-256 of the answer's CSV form, once it is final.
    #[serde(default)]
    pub fingerprint: Option<String>,
    /// When it became final, RFC 3339.
    #[serde(default)]
    pub final_at: Option<String>,
    /// Why it could not be answered.
    #[serde(default)]
    pub error: Option<ErrorRecord>,
}

/// A job, as a gateway sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Its id.
    pub job: String,
    /// The workload's name.
    #[serde(default)]
    pub workload: String,
    /// Its state.
    pub state: JobState,
    /// When it was made, RFC 3339.
    #[serde(default)]
    pub created: String,
    /// How many partitions it has.
    #[serde(default)]
    pub partitions: u16,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// What it asks.
    pub spec: JobSpecView,
    /// Its tables.
    #[serde(default)]
    pub tables: Vec<TableState>,
    /// Its questions, in the order asked.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// How far it is.
    #[serde(default)]
    pub progress: JobProgress,
    /// Its stages, with what they have done so far.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Which member owns which partition.
    #[serde(default)]
    pub owners: Vec<PartitionOwner>,
    /// What is being done for it now, in words, longest first: "worker-2 joins reviews with games for q3 (partition 4, 12 s)".
    #[serde(default)]
    pub doing: Vec<String>,
    /// Why it cannot advance.
    #[serde(default)]
    pub waiting_for: Option<Waiting>,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<ErrorRecord>,
    /// When it is done.
    #[serde(default)]
    pub results: Option<Results>,
}

impl JobState {
    /// The state of a job that has ended.
    pub fn of_end(end: &End) -> Self {
        match end {
            End::Done(_) => Self::Done,
            End::Failed { .. } => Self::Failed,
            End::Cancelled => Self::Cancelled,
            End::Expired => Self::Expired,
        }
    }
}

impl ErrorRecord {
    /// An error that says nothing of how a job ended.
    pub fn new(code: impl Into<String>, class: FaultClass, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into(), class, state: None }
    }

    /// A fault of tenaz.
    pub fn internal(text: impl Into<String>) -> Self {
        Self::new("internal", FaultClass::Bug, text)
    }

    /// Something that a gateway could not do.
    pub fn of_error(error: &(impl Classified + std::error::Error)) -> Self {
        Self::new("internal", error.class(), error.to_string())
    }

    /// The job is no more.
    pub fn gone() -> Self {
        Self::new("gone", FaultClass::Query, "the job was removed")
    }

    /// Why a stream is cut short.
    pub fn shutting_down() -> Self {
        Self::new("shutting_down", FaultClass::Process, "this gateway is shutting down: ask another one")
    }

    /// Why a job that has ended has no answers.
    pub fn of_end(end: &End) -> Option<Self> {
        let record = match end {
            End::Done(_) => return None,
            End::Failed { code, reason, class } => Self::new(code, *class, reason.as_str()),
            // Somebody asked for it.
            End::Cancelled => Self::new("cancelled", FaultClass::Query, "the job was cancelled"),
            // The upload is not what was promised.
            End::Expired => {
                let text = "the job expired: no client went on with its upload";
                Self::new("expired", FaultClass::Data, text)
            }
        };
        Some(Self { state: Some(JobState::of_end(end)), ..record })
    }

    /// Why a question of a job that is done has no answer.
    pub fn of_question(failed: &FailedQuery) -> Self {
        let text = format!("{}: {}", failed.name, failed.text);
        Self { state: Some(JobState::Done), ..Self::new(ProblemCode::QueryFailed.name(), failed.class, text) }
    }

    /// As a JSON object.
    pub fn value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an error is plain data")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_job_can_be_told_from_the_trouble_of_a_gateway() {
        let end = End::Failed { code: "no_disk".to_owned(), reason: "full".into(), class: FaultClass::Process };
        let record = ErrorRecord::of_end(&end).expect("an error");
        assert_eq!(record.value(), json!({"code": "no_disk", "text": "full", "class": "process", "state": "failed"}));
        let own = ErrorRecord::shutting_down().value();
        assert_eq!((&own["class"], own.get("state")), (&json!("process"), None));
        assert_eq!(ErrorRecord::of_end(&End::Done(Default::default())), None);
    }
}
