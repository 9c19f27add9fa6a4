//! A job's stages and edges for people and programs: text, Graphviz dot and JSON.

use std::fmt::Write;

use datafusion::physical_plan::displayable;
use tenaz_core::{StageId, TaskSet};

use super::{Edge, JobPlan, Stage};

/// The stages, one below the other, as text.
pub fn text(plan: &JobPlan) -> String {
    let mut out = String::new();
    for scan in &plan.scans {
        let table = &plan.tables[usize::from(scan.table.0)];
        let stages: Vec<String> = scan.leaves.iter().map(|id| id.0.to_string()).collect();
        let plural = if stages.len() == 1 { "stage" } else { "stages" };
        line(&mut out, format_args!("read {table} once for {plural} {}", stages.join(", ")));
    }
    for (index, stage) in plan.stages.iter().enumerate() {
        line(&mut out, format_args!(""));
        line(&mut out, format_args!("stage {index}: {}", tasks(plan, stage)));
        for row in displayable(stage.plan.as_ref()).indent(false).to_string().lines() {
            line(&mut out, format_args!("  {row}"));
        }
        let remark = match (stage.compaction.is_some(), stage.early) {
            (true, _) => " (merged as it comes)",
            (_, true) => " (each as soon as it is certain)",
            _ => "",
        };
        line(&mut out, format_args!("  => {}{remark}", edge(plan, stage)));
    }
    out
}

/// The stages as a Graphviz graph.
pub fn dot(plan: &JobPlan) -> String {
    let mut out = String::from("digraph job {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n");
    for scan in &plan.scans {
        let table = &plan.tables[usize::from(scan.table.0)];
        line(&mut out, format_args!("  t{} [label={table:?}, shape=cylinder];", scan.table.0));
        for leaf in &scan.leaves {
            line(&mut out, format_args!("  t{} -> s{};", scan.table.0, leaf.0));
        }
    }
    for (index, stage) in plan.stages.iter().enumerate() {
        let rows = displayable(stage.plan.as_ref()).indent(false).to_string();
        let label = format!("stage {index}: {}\n{rows}", tasks(plan, stage));
        let label = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\l");
        line(&mut out, format_args!("  s{index} [label=\"{label}\"];"));
        for read in &stage.reads {
            let label = edge_kind(&plan.stages[usize::from(read.0)]);
            line(&mut out, format_args!("  s{} -> s{index} [label={label:?}];", read.0));
        }
        for read in &stage.broadcasts {
            line(&mut out, format_args!("  s{} -> s{index} [label=\"broadcast\", style=dashed];", read.0));
        }
        if let Edge::Results(query) = stage.edge {
            line(
                &mut out,
                format_args!("  q{} [label={:?}, shape=note];", query.0, plan.queries[usize::from(query.0)].name),
            );
            line(&mut out, format_args!("  s{index} -> q{};", query.0));
        }
    }
    out.push_str("}\n");
    out
}

/// One stage as data.
#[derive(Debug, serde::Serialize)]
pub struct StageDescription {
    /// The stage's number.
    pub stage: u16,
    /// `chunk`, `partition` or `single`.
    pub tasks: &'static str,
    /// The table of a leaf stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Stages it reads from its partition's log.
    pub reads: Vec<u16>,
    /// Stages it reads from the broadcast.
    pub broadcasts: Vec<u16>,
    /// `hash`, `spread`, `one`, `broadcast` or `results`.
    pub edge: &'static str,
    /// The expressions of a hash edge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// The query that a results edge answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Whether partial results are merged as they come.
    pub merged: bool,
    /// Whether rows are sent as soon as they are certain.
    pub early: bool,
    /// The operators, outermost first, indented by depth.
    pub plan: Vec<String>,
}

/// All stages as data, for `--format json`.
pub fn stages(plan: &JobPlan) -> Vec<StageDescription> {
    let describe = |(index, stage): (usize, &Stage)| StageDescription {
        stage: index as u16,
        tasks: match stage.tasks {
            TaskSet::PerChunk(_) => "chunk",
            TaskSet::PerPartition => "partition",
            TaskSet::Single(_) => "single",
        },
        table: match stage.tasks {
            TaskSet::PerChunk(table) => Some(plan.tables[usize::from(table.0)].clone()),
            _ => None,
        },
        reads: stage.reads.iter().map(|s| s.0).collect(),
        broadcasts: stage.broadcasts.iter().map(|s| s.0).collect(),
        edge: edge_kind(stage),
        keys: match &stage.edge {
            Edge::Hash(keys) => keys.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        },
        query: match stage.edge {
            Edge::Results(query) => Some(plan.queries[usize::from(query.0)].name.clone()),
            _ => None,
        },
        merged: stage.compaction.is_some(),
        early: stage.early,
        plan: displayable(stage.plan.as_ref()).indent(false).to_string().lines().map(str::to_owned).collect(),
    };
    plan.stages.iter().enumerate().map(describe).collect()
}

fn tasks(plan: &JobPlan, stage: &Stage) -> String {
    match stage.tasks {
        TaskSet::PerChunk(table) => format!("for each chunk of {}", plan.tables[usize::from(table.0)]),
        TaskSet::PerPartition => "for each partition".to_owned(),
        TaskSet::Single(_) => "once".to_owned(),
    }
}

fn edge_kind(stage: &Stage) -> &'static str {
    match stage.edge {
        Edge::Hash(_) => "hash",
        Edge::Spread => "spread",
        Edge::One => "one",
        Edge::Broadcast => "broadcast",
        Edge::Results(_) => "results",
    }
}

fn edge(plan: &JobPlan, stage: &Stage) -> String {
    let id = plan.stages.iter().position(|s| std::ptr::eq(s, stage)).map(|i| StageId(i as u16));
    let reads = |s: &Stage| id.is_some_and(|id| s.reads.contains(&id) || s.broadcasts.contains(&id));
    let readers: Vec<String> =
        plan.stages.iter().enumerate().filter(|(_, s)| reads(s)).map(|(i, _)| i.to_string()).collect();
    let readers = readers.join(", ");
    match &stage.edge {
        Edge::Hash(keys) => {
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            format!("by hash of {} to stage {readers}", keys.join(", "))
        }
        Edge::Spread => format!("spread to stage {readers}"),
        Edge::One => format!("all to stage {readers}"),
        Edge::Broadcast => format!("broadcast to stage {readers}"),
        Edge::Results(query) => format!("rows of {}", plan.queries[usize::from(query.0)].name),
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string never fails");
}
