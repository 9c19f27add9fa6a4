//! `summary.json` and the closing lines.

use std::collections::BTreeMap;

use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use tenaz_core::FaultClass;
use tenaz_engine::Workload;
use tenaz_runtime::{Answer, Outcome};

/// The counts and fingerprints of a job, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    job: String,
    workload: String,
    /// What `now()` was: `--now` with it gives the same answers again.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    queries: serde_json::Map<String, serde_json::Value>,
    /// Queries that could not be answered.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    failed: serde_json::Map<String, serde_json::Value>,
    tables: serde_json::Map<String, serde_json::Value>,
    /// When each answer became final.
    final_at: serde_json::Map<String, serde_json::Value>,
    elapsed_seconds: f64,
}

#[derive(Debug, Serialize)]
struct QuerySummary<'a> {
    rows: u64,
    fingerprint: &'a str,
    ordered: bool,
}

#[derive(Debug, Serialize)]
struct FailureSummary<'a> {
    class: FaultClass,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct TableSummary<'a> {
    records: u64,
    accepted: u64,
    rejected: u64,
    bytes: u64,
    /// The rest of the files was not needed, and not read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    rejected_by_reason: &'a BTreeMap<String, u64>,
}

impl Summary {
    pub(crate) fn new(job: &str, workload: &Workload, outcome: &Outcome) -> anyhow::Result<Self> {
        let mut queries = serde_json::Map::new();
        for answer in &outcome.answers {
            let summary = QuerySummary { rows: answer.rows, fingerprint: &answer.fingerprint, ordered: answer.ordered };
            queries.insert(answer.name.clone(), serde_json::to_value(summary)?);
        }
        let time = |answer: &Answer| tenaz_words::rfc3339(answer.final_at_ms).into();
        let final_at = outcome.answers.iter().map(|answer| (answer.name.clone(), time(answer))).collect();
        let mut failed = serde_json::Map::new();
        for query in &outcome.failed {
            let summary = FailureSummary { class: query.class, text: &query.text };
            failed.insert(query.name.clone(), serde_json::to_value(summary)?);
        }
        let mut tables = serde_json::Map::new();
        for table in &outcome.tables {
            let counts = table.counts;
            let summary = TableSummary {
                records: counts.records,
                accepted: counts.accepted,
                rejected: counts.rejected,
                bytes: table.bytes,
                partial: table.is_partial,
                rejected_by_reason: &table.reasons,
            };
            tables.insert(table.name.clone(), serde_json::to_value(summary)?);
        }
        Ok(Self {
            job: job.to_owned(),
            workload: workload.name.clone(),
            now: workload.time.map(|time| time.to_string()),
            queries,
            failed,
            tables,
            final_at,
            elapsed_seconds: outcome.elapsed.as_secs_f64(),
        })
    }
}

/// The closing lines: fingerprints and the ledger.
pub(crate) fn closing_lines(outcome: &Outcome) -> String {
    let mut lines = String::new();
    let width = outcome.answers.iter().map(|a| a.name.len()).max().unwrap_or(0);
    for answer in &outcome.answers {
        let rows = HumanCount(answer.rows).to_string();
        let plural = if answer.rows == 1 { "row " } else { "rows" };
        lines.push_str(&format!("{:width$}  {rows:>12} {plural}  sha256 {}\n", answer.name, answer.fingerprint));
    }
    let sum = |get: fn(&tenaz_core::TableLedger) -> u64| outcome.tables.iter().map(|t| get(&t.counts)).sum::<u64>();
    let seconds = outcome.elapsed.as_secs_f64();
    let bytes: u64 = outcome.tables.iter().map(|t| t.bytes).sum();
    lines.push_str(&format!(
        "{} {}, {} {} = {} accepted + {} rejected, {} in {seconds:.2} s ({}/s)",
        outcome.tables.len(),
        if outcome.tables.len() == 1 { "table" } else { "tables" },
        HumanCount(sum(|c| c.records)),
        if sum(|c| c.records) == 1 { "record" } else { "records" },
        HumanCount(sum(|c| c.accepted)),
        HumanCount(sum(|c| c.rejected)),
        HumanBytes(bytes),
        HumanBytes((bytes as f64 / seconds.max(1e-9)) as u64),
    ));
    let partial: Vec<&str> = outcome.tables.iter().filter(|t| t.is_partial).map(|t| t.name.as_str()).collect();
    if !partial.is_empty() {
        lines.push_str(&format!("\nof {} no more was read than the LIMIT needs", partial.join(", ")));
    }
    lines
}
