use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use tenaz_core::{Classified, FaultClass};

use crate::task_fault::{class_of_task_error, is_out_of_memory};

/// Everything that can go wrong in planning or running a task, by whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The workload file is wrong. The text names the place and what to write instead.
    #[error("{file}:{line}: {problem}; {cure}")]
    Workload {
        /// The workload file, as the user named it.
        file: String,
        /// 1-based line.
        line: usize,
        /// What is wrong.
        problem: String,
        /// What to write instead.
        cure: String,
    },
    /// The workload file or one of its SQL files cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The path.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Neither a bundled workload nor a file.
    #[error("there is no workload {name:?}: write one of {known}, or the path of a workload file")]
    UnknownWorkload {
        /// What the user wrote.
        name: String,
        /// The bundled names.
        known: String,
    },
    /// A query that the workload does not have.
    #[error("workload {workload} has no query {name:?}{hint}: write one of {known}")]
    UnknownQuery {
        /// The workload.
        workload: String,
        /// What the user wrote.
        name: String,
        /// `; did you mean …?`, or nothing.
        hint: String,
        /// The queries there are.
        known: String,
    },
    /// The SQL text of a query is wrong.
    #[error("{query}{place}: {message}")]
    Sql {
        /// The query's name or file.
        query: String,
        /// `:line:column`, where known.
        place: String,
        /// What is wrong, and what to write instead where we know.
        message: String,
    },
    /// The shape of the job is over a limit.
    #[error("the job cannot be planned: {0}")]
    Shape(#[from] tenaz_core::Error),
    /// A chunk cannot be decoded at all.
    #[error(transparent)]
    Csv(#[from] tenaz_csv::Error),
    /// A task failed while computing.
    #[error("{}", plain(.0))]
    Task(DataFusionError),
    /// A task of these queries failed while computing.
    #[error("{queries}: {}", plain(.cause))]
    Query {
        /// The names of the queries that need what it computes.
        queries: String,
        /// What went wrong. It is no `source`: whoever shows errors with their sources would say the same twice.
        cause: DataFusionError,
    },
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        Self::Task(error)
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        Self::Task(DataFusionError::from(error))
    }
}

impl Error {
    /// What went wrong, without the names of the queries that it concerns.
    pub fn reason(&self) -> String {
        match self {
            Self::Query { cause, .. } => plain(cause),
            other => other.to_string(),
        }
    }

    /// Whether a task needed more memory than it may have.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Task(error) | Self::Query { cause: error, .. } => is_out_of_memory(error),
            _ => false,
        }
    }
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Workload { .. } | Self::UnknownWorkload { .. } | Self::UnknownQuery { .. } | Self::Sql { .. } => {
                FaultClass::Query
            }
            Self::Unreadable { source, .. } => FaultClass::of_system_error(source, FaultClass::Query),
            Self::Shape(error) => error.class(),
            Self::Csv(error) => error.class(),
            Self::Task(error) | Self::Query { cause: error, .. } => class_of_task_error(error),
        }
    }
}

/// DataFusion's error without its own wrapping words, backtraces and requests to file a bug with that project.
pub(crate) fn plain(error: &DataFusionError) -> String {
    if let Some(text) = about_value(error, String::new) {
        return text;
    }
    let text = error.strip_backtrace();
    let text = text.split("\n\nbacktrace").next().unwrap_or(&text);
    let text = text.split("\nThis issue was likely caused by a bug").next().unwrap_or(text);
    // The names of optimizer rules come before the reason, and some reasons have several lines.
    let text = text.rsplit("\ncaused by\n").next().unwrap_or(text);
    const WRAPPINGS: [&str; 7] = [
        "Error during planning: ",
        "SQL error: ",
        "Schema error: ",
        "Execution error: ",
        "Arrow error: ",
        "This feature is not implemented: ",
        "External error: ",
    ];
    let mut text = text.trim();
    while let Some(rest) = WRAPPINGS.iter().find_map(|w| text.strip_prefix(w)) {
        text = rest;
    }
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// An error about a value, in our words, with the expression that cannot take it.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct ValueError {
    pub(crate) text: String,
    /// Whether the expression depends on the row: a constant fails at every one.
    pub(crate) is_of_row: bool,
}

/// The error, if it names its expression.
pub(crate) fn named_value_error(error: &DataFusionError) -> Option<&ValueError> {
    match error.find_root() {
        DataFusionError::External(error) => error.downcast_ref(),
        _ => None,
    }
}

/// An error about a value that an expression cannot take, in our words: what it is, its place, and what to write instead. `None` for any
/// other error.
pub(crate) fn about_value(error: &DataFusionError, place: impl FnOnce() -> String) -> Option<String> {
    const WIDER: &str = "; cast to a wider type, such as DECIMAL(38, 0) or DOUBLE";
    const TRY_CAST: &str = "; TRY_CAST gives null instead";
    if let Some(error) = named_value_error(error) {
        return Some(error.text.clone());
    }
    let (what, cure) = match error.find_root() {
        DataFusionError::Execution(text) => (text.clone(), ""),
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::DivideByZero => ("division by zero".to_owned(), "; divide by NULLIF(…, 0) to get null instead"),
            ArrowError::ArithmeticOverflow(text) => {
                let operation = text.strip_prefix("Overflow happened on: ").unwrap_or(text);
                (format!("the result of {operation} is too large"), WIDER)
            }
            ArrowError::CastError(text) => (in_sentence(text), TRY_CAST),
            ArrowError::ParseError(text) => (in_sentence(text), TRY_CAST),
            ArrowError::ComputeError(text) | ArrowError::InvalidArgumentError(text) => {
                match text.split_once(" overflow on ") {
                    Some((_, call)) => (format!("the result of {call} is too large"), WIDER),
                    None => (in_sentence(text), ""),
                }
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(format!("{what}{}{cure}", place()))
}

/// A text with a small first letter.
fn in_sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}
