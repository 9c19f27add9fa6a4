//! From a workload's SQL to stages.
//!
//! ```text
//!  SQL ──DataFusion──▶ physical plan ──cut──▶ stages and edges ──share──▶ JobPlan
//! ```
//!
//! The plan is made as if there were several partitions, so that it says where rows must move; there it is cut (see
//! [`cut`]). Planning is deterministic: every process makes the same stages with the same numbers from the same text.

mod alike;
mod barrier;
mod chains;
mod cut;
mod dear;
pub mod describe;
mod dialect;
mod distinct_on;
mod early;
mod exact;
mod fallible;
mod file_order;
mod forget;
mod grouping;
mod guard;
mod header_names;
mod hoist;
mod key;
mod labels;
mod lazy;
mod microseconds;
mod mistake;
mod multisets;
mod needs;
mod number;
mod offered;
mod order;
mod overflow;
mod provider;
mod pure;
mod required_orders;
mod row_order;
mod script;
mod session;
mod similar;
mod single_distinct;
mod size_limits;
pub(crate) mod source;
mod sql;
mod statement;
mod subquery;
mod subquery_names;
mod subquery_value;
mod text;
mod timed_rules;
mod top;
mod window_keys;
mod window_order;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use tenaz_core::{QueryId, Route, StageId, StageShape, TableId, TaskSet, Topology};
use tenaz_csv::{Decoder, Layout, Within};

use crate::workload::Workload;
use crate::{Error, limits, stop};

use needs::{Need, needs};

pub(crate) use cut::merges_in_any_order;
pub(crate) use fallible::can_fail;
pub use file_order::FileOrder;
pub use labels::TRIM_ZEROS;
pub use script::{Purpose, Statement, split_statements};
pub(crate) use session::config as session_config;
pub use session::function_names;
pub use text::needs_quotes;

/// Where the rows of a stage go, with the columns that decide.
#[derive(Debug, Clone)]
pub enum Edge {
    /// By the hash of these expressions.
    Hash(Vec<Arc<dyn PhysicalExpr>>),
    /// Each task's rows to one partition of its own.
    Spread,
    /// All to one partition.
    One,
    /// All to everybody who scans.
    Broadcast,
    /// Rows of an answer.
    Results(QueryId),
}

/// One stage: a plan whose leaves are chunks of a table or rows from earlier stages.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The plan that each task runs.
    pub plan: Arc<dyn ExecutionPlan>,
    /// What the tasks are.
    pub tasks: TaskSet,
    /// Stages whose rows arrive in the task's partition.
    pub reads: Vec<StageId>,
    /// Stages whose rows arrive by broadcast.
    pub broadcasts: Vec<StageId>,
    /// Where the rows go.
    pub edge: Edge,
    /// For an edge that ends in an aggregation: the plan that merges what has arrived so far into less of the same.
    pub compaction: Option<Arc<dyn ExecutionPlan>>,
    /// Whether rows that this stage makes of incomplete input are certain to be in its final output, too.
    pub early: bool,
}

/// What one shared pass over a table must decode.
#[derive(Debug, Clone)]
pub struct ScanPlan {
    /// The table.
    pub table: TableId,
    /// The union of the columns that the queries need, in the layout's order.
    pub columns: Vec<usize>,
    /// Those of them that are only asked whether they are null.
    pub presence: Vec<usize>,
    /// Those that are texts and needed only of records that lie in all ranges of one of these.
    pub texts_where: Vec<(usize, Vec<Vec<Within>>)>,
    /// The stages that read each chunk.
    pub leaves: Vec<StageId>,
    /// Broadcast edges that must be complete before the first chunk is worked on.
    pub needs: BTreeSet<StageId>,
    /// Whether the order of its records matters to an answer, and how many are enough.
    pub order: FileOrder,
}

impl ScanPlan {
    /// A decoder for chunks of the table, whose layout this is.
    pub fn decoder(&self, layout: Arc<Layout>) -> Result<Decoder, Error> {
        let decoder = Decoder::new(layout, self.columns.clone())?.with_presence_of(&self.presence);
        let wanted = self.texts_where.iter().cloned();
        Ok(wanted.fold(decoder, |decoder, (column, any_of)| decoder.with_texts_where(column, any_of)))
    }
}

/// A query of the job and the shape of its answer.
#[derive(Debug, Clone)]
pub struct PlannedQuery {
    /// The query's name.
    pub name: String,
    /// What it asks.
    pub title: String,
    /// The answer's columns.
    pub schema: SchemaRef,
    /// Whether the order of rows is part of the answer.
    pub ordered: bool,
    /// The stages whose rows are the answer.
    pub answers: BTreeSet<StageId>,
}

/// All stages of all queries of a job.
#[derive(Debug, Clone)]
pub struct JobPlan {
    /// The stages; each comes after all it reads.
    pub stages: Vec<Stage>,
    /// The queries, in the order asked.
    pub queries: Vec<PlannedQuery>,
    /// The tables to be read, in an order in which every broadcast is complete before it is needed.
    pub scans: Vec<ScanPlan>,
    /// All tables of the workload, by name.
    pub tables: Vec<String>,
}

impl JobPlan {
    /// Plans every query of the workload, for [`limits::PLANNING_TIME`] at most.
    pub fn new(workload: &Workload) -> Result<Self, Error> {
        Self::within(workload, limits::PLANNING_TIME)
    }

    /// Plans every query of the workload, for so long at most. It runs on a thread of its own: planning goes down every expression
    /// and every subquery, and needs a stack that other threads do not have.
    pub fn within(workload: &Workload, time: Duration) -> Result<Self, Error> {
        let planning = std::thread::Builder::new().name("planning".to_owned()).stack_size(limits::PLANNING_STACK_BYTES);
        std::thread::scope(|scope| {
            let thread = planning.spawn_scoped(scope, || stop::within(time, || Self::here(workload)));
            let thread = thread.map_err(|cause| Error::Task(DataFusionError::IoError(cause)))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Plans on this thread.
    fn here(workload: &Workload) -> Result<Self, Error> {
        let context = session::context(workload)?;
        let mut cutter = cut::Cutter::new(workload);
        let mut queries = Vec::new();
        for (index, query) in workload.queries.iter().enumerate() {
            let id = QueryId(index as u16);
            let planned = sql::plan(&context, workload, query)?;
            let answers =
                cutter.add(id, &planned.physical).map_err(|e| mistake::wrong(&context, workload, query, &e))?;
            queries.push(PlannedQuery {
                name: query.name.clone(),
                title: query.title.clone(),
                schema: planned.schema,
                ordered: planned.ordered,
                answers,
            });
        }
        let mut stages = cutter.finish()?;
        early::mark(&mut stages, &queries);
        let scans = shared_scans(&stages)?;
        let tables = workload.tables.iter().map(|t| t.name.clone()).collect();
        Ok(Self { stages, queries, scans, tables })
    }

    /// One stage.
    pub fn stage(&self, id: StageId) -> &Stage {
        &self.stages[usize::from(id.0)]
    }

    /// The names of the queries that need the rows of this stage.
    pub fn queries_behind(&self, stage: StageId) -> String {
        let mut needed = BTreeSet::from([stage]);
        for (index, later) in self.stages.iter().enumerate() {
            if later.reads.iter().chain(&later.broadcasts).any(|read| needed.contains(read)) {
                needed.insert(StageId(index as u16));
            }
        }
        let behind = self.queries.iter().filter(|query| !query.answers.is_disjoint(&needed));
        behind.map(|query| query.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The protocol's view of the job, run with `partitions` partitions.
    pub fn topology(&self, partitions: u16) -> Result<Topology, Error> {
        let shapes = self.stages.iter().map(|stage| StageShape {
            tasks: stage.tasks,
            reads: stage.reads.clone(),
            broadcasts: stage.broadcasts.clone(),
            route: match &stage.edge {
                Edge::Hash(_) => Route::Hash,
                Edge::Spread => Route::Spread,
                Edge::One => Route::One(cut::SINGLE_HOME),
                Edge::Broadcast => Route::Broadcast,
                Edge::Results(query) => Route::Results(*query),
            },
        });
        Ok(Topology::new(partitions, self.tables.len(), shapes.collect())?)
    }
}

/// One scan per table for all queries, dimension-like tables (those that feed a broadcast) first.
fn shared_scans(stages: &[Stage]) -> Result<Vec<ScanPlan>, Error> {
    let mut scans: Vec<ScanPlan> = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let TaskSet::PerChunk(table) = stage.tasks else { continue };
        let leaf = StageId(index as u16);
        let position = match scans.iter().position(|scan| scan.table == table) {
            Some(position) => position,
            None => {
                let scan = ScanPlan {
                    table,
                    columns: Vec::new(),
                    presence: Vec::new(),
                    texts_where: Vec::new(),
                    leaves: Vec::new(),
                    needs: BTreeSet::new(),
                    order: FileOrder::default(),
                };
                scans.push(scan);
                scans.len() - 1
            }
        };
        let scan = &mut scans[position];
        scan.leaves.push(leaf);
        scan.needs.extend(&stage.broadcasts);
    }
    for scan in &mut scans {
        for (column, need) in needs(scan.leaves.iter().map(|leaf| &stages[usize::from(leaf.0)].plan))? {
            scan.columns.push(column);
            match need {
                Need::Presence => scan.presence.push(column),
                Need::TextsWhere(any_of) => scan.texts_where.push((column, any_of)),
                Need::Values => {}
            }
        }
    }
    file_order::mark(&mut scans, stages);
    // Tables that others wait for come first; among equals the workload's order decides.
    let feeds: Vec<BTreeSet<TableId>> = scans.iter().map(|scan| tables_behind(stages, &scan.needs)).collect();
    let mut order: Vec<usize> = Vec::new();
    let mut rest: Vec<usize> = (0..scans.len()).collect();
    rest.sort_by_key(|&i| scans[i].table);
    while !rest.is_empty() {
        let done: BTreeSet<TableId> = order.iter().map(|&i: &usize| scans[i].table).collect();
        let is_free = |i: usize| feeds[i].iter().all(|t| done.contains(t));
        let needed = |i: usize| rest.iter().any(|&j| feeds[j].contains(&scans[i].table));
        let free: Vec<usize> = rest.iter().copied().filter(|&i| is_free(i)).collect();
        let next = free.iter().copied().find(|&i| needed(i)).or(free.first().copied());
        let next = next.expect("a leaf stage only waits for broadcasts of other tables, without cycles (see cut)");
        order.push(next);
        rest.retain(|&i| i != next);
    }
    let mut slots: Vec<Option<ScanPlan>> = scans.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|i| slots[i].take()).collect())
}

/// The tables whose complete reading these edges wait for.
fn tables_behind(stages: &[Stage], edges: &BTreeSet<StageId>) -> BTreeSet<TableId> {
    let mut tables = BTreeSet::new();
    let mut todo: Vec<StageId> = edges.iter().copied().collect();
    while let Some(edge) = todo.pop() {
        let stage = &stages[usize::from(edge.0)];
        if let TaskSet::PerChunk(table) = stage.tasks {
            tables.insert(table);
        }
        todo.extend(stage.reads.iter().chain(&stage.broadcasts));
    }
    tables
}
