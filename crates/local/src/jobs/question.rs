//! From what was asked to a plan.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use serde::Deserialize;
use serde_json::{Value, json};
use tenaz_core::ProblemCode;
use tenaz_engine::{JobPlan, JobTime, PlannedQuery, Purpose, Workload, describe, split_statements};

use crate::problem::Problem;
use crate::server::Local;
use crate::statements::{StatementError, in_plain_sql};

/// What is asked: SQL over the tables that were found, or questions of a bundled workload.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Asked {
    /// SQL; several statements are answered in one pass.
    Sql {
        /// The text.
        sql: String,
    },
    /// A bundled workload.
    Workload {
        /// Its name.
        workload: String,
        /// Its questions; none: all.
        #[serde(default)]
        queries: Vec<String>,
    },
}

/// Questions with their plan.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) workload: Workload,
    pub(crate) plan: JobPlan,
    /// The directory that files are relative to.
    pub(crate) dir: PathBuf,
    /// What was asked, as it was written.
    pub(crate) text: String,
}

impl Question {
    /// Plans what was asked.
    pub(crate) fn plan(local: &Local, asked: &Asked) -> Result<Self, Problem> {
        let (mut workload, dir, text) = match asked {
            Asked::Sql { sql } => of_sql(local, sql)?,
            Asked::Workload { workload, queries } => of_workload(local, workload, queries)?,
        };
        workload.time = Some(workload.time.unwrap_or_else(JobTime::of_clock));
        let plan = JobPlan::new(&workload).map_err(|error| mistake(&error))?;
        Ok(Self { workload, plan, dir, text })
    }

    /// The questions as a client sees them.
    pub(crate) fn queries(&self) -> Vec<Value> {
        self.plan.queries.iter().map(describe_query).collect()
    }

    /// The stages as data.
    pub(crate) fn stages(&self) -> Result<Value, Problem> {
        let mut stages = serde_json::to_value(describe::stages(&self.plan)).map_err(Problem::internal)?;
        for stage in stages.as_array_mut().into_iter().flatten() {
            stage["label"] = label(stage).into();
        }
        Ok(stages)
    }

    /// The tables that are read, by their place in the workload.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (usize, &str)> {
        let places = self.plan.scans.iter().map(|scan| usize::from(scan.table.0));
        places.map(|place| (place, self.workload.tables[place].name.as_str()))
    }
}

fn of_sql(local: &Local, sql: &str) -> Result<(Workload, PathBuf, String), Problem> {
    let found = local.tables.found();
    let mut statements = split_statements("query", sql).map_err(|error| mistake(&error))?;
    if statements.is_empty() {
        return Err(Problem::new(ProblemCode::Unprocessable, "there is no question yet: write SELECT … FROM a table"));
    }
    if statements.iter().any(|statement| matches!(statement.purpose, Purpose::Copy { .. })) {
        let text = "COPY writes files where the program runs: ask the SELECT alone, and download its answer";
        return Err(Problem::new(ProblemCode::Unprocessable, text));
    }
    in_plain_sql(&mut statements, &found.inferred).map_err(|error| match error {
        StatementError::Wrong(text) => Problem::new(ProblemCode::Unprocessable, text),
        StatementError::Plan(error) => mistake(&error),
    })?;
    let mut workload = found.inferred.workload.clone();
    workload.queries = statements.into_iter().map(|statement| statement.query).collect();
    Ok((workload, found.inferred.dir.clone(), sql.to_owned()))
}

fn of_workload(local: &Local, name: &str, queries: &[String]) -> Result<(Workload, PathBuf, String), Problem> {
    let known = tenaz_engine::bundled_names();
    if !known.contains(&name) {
        let text = format!("there is no workload {name:?}: write one of {}", known.join(", "));
        return Err(Problem::new(ProblemCode::Unprocessable, text));
    }
    let workload =
        Workload::load(name).and_then(|workload| workload.select(queries)).map_err(|error| mistake(&error))?;
    let Some(dir) = local.tables.dir_of(&workload) else {
        let files: Vec<String> = workload.tables.iter().flat_map(|table| table.files.iter().cloned()).collect();
        let text = format!("the files of {name} are not here: {}", files.join(", "));
        return Err(Problem::new(ProblemCode::Unprocessable, text));
    };
    Ok((
        workload,
        dir,
        format!("{name}: {}", if queries.is_empty() { "all questions".to_owned() } else { queries.join(", ") }),
    ))
}

/// A mistake, with its place where the engine knows it.
fn mistake(error: &tenaz_engine::Error) -> Problem {
    let problem = Problem::of_question(error);
    let tenaz_engine::Error::Sql { place, .. } = error else { return problem };
    let mut numbers = place.trim_start_matches(':').split(':').filter_map(|number| number.parse::<u64>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(line), Some(column)) => problem.with("line", line).with("column", column),
        _ => problem,
    }
}

fn describe_query(query: &PlannedQuery) -> Value {
    let columns = describe_columns(&query.schema);
    json!({"name": query.name, "title": query.title, "ordered": query.ordered, "columns": columns})
}

/// Names and types of columns.
pub(crate) fn describe_columns(schema: &Schema) -> Value {
    let describe = |field: &Arc<Field>| json!({"name": field.name(), "type": type_name(field.data_type())});
    schema.fields().iter().map(describe).collect()
}

/// A type in the words of workload files, where they have one.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        kind if kind.is_integer() => "int".to_owned(),
        kind if kind.is_floating() => "float".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Timestamp(_, _) => "timestamp".to_owned(),
        kind => kind.to_string(),
    }
}

/// A stage in a few words: its outermost operators that say something.
fn label(stage: &Value) -> String {
    let lines = stage["plan"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut names: Vec<&str> = Vec::new();
    for line in lines {
        let name = line.trim().split([':', ' ']).next().unwrap_or_default().trim_end_matches("Exec");
        let says_little =
            matches!(name, "Projection" | "CooperativeExec" | "Cooperative" | "Coalesce" | "CoalesceBatches");
        if !name.is_empty() && !says_little && names.last() != Some(&name) {
            names.push(name);
        }
    }
    names.truncate(3);
    names.join(" · ")
}
