//! Which scans must be read in the order of the files, and when enough has been read.
//!
//! A LIMIT without an order, straight over a table, takes the first rows of its files (`order.rs`): that is one answer for any
//! number of threads, chunks or workers, and the only rule by which reading can stop early. So the chunks of such a table must
//! be numbered as their records stand in the files, and once the chunks from the first on have given enough rows to every
//! stage that reads the table, no other row can be in an answer.
//!
//! It is only stopped early where nothing can fail: whether a row behind the last one that is needed is looked at depends on
//! the size of chunks, and an answer must not.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use tenaz_core::{StageId, TableId, TaskSet};

use super::fallible::can_fail;
use super::source::{EdgeExec, ScanExec};
use super::{Edge, ScanPlan, Stage, tables_behind};

/// How the order of a table's records matters to the answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOrder {
    /// Chunks must be numbered as their records stand in the files.
    pub matters: bool,
    /// For each leaf stage, the rows that it has to give; when all have given them, nothing more needs to be read. None: all has to be.
    pub enough: Option<Vec<(StageId, u64)>>,
}

/// Finds out for every scan of a job.
pub(super) fn mark(scans: &mut [ScanPlan], stages: &[Stage]) {
    let mut tables: BTreeSet<TableId> = BTreeSet::new();
    for stage in stages.iter().filter(|stage| takes_first_rows(&stage.plan)) {
        if let TaskSet::PerChunk(table) = stage.tasks {
            tables.insert(table);
        }
        let edges = stage.reads.iter().chain(&stage.broadcasts).copied().collect();
        tables.extend(tables_behind(stages, &edges));
    }
    for scan in scans.iter_mut().filter(|scan| tables.contains(&scan.table)) {
        let enough = scan.leaves.iter().map(|&leaf| Some((leaf, rows_needed(leaf, stages)?)));
        scan.order = FileOrder { matters: true, enough: enough.collect() };
    }
}

/// Whether a plan takes the first rows of something that has no order.
fn takes_first_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|node| {
        let has_limit = node.is::<GlobalLimitExec>() || node.is::<LocalLimitExec>() || node.is::<FilterExec>();
        let limited = has_limit && (node.fetch().is_some() || skip_of(node) > 0);
        Ok(limited && node.children().iter().any(|input| input.properties().output_ordering().is_none()))
    })
    .expect("the visitor never fails")
}

fn skip_of(node: &Arc<dyn ExecutionPlan>) -> usize {
    node.downcast_ref::<GlobalLimitExec>().map_or(0, GlobalLimitExec::skip)
}

/// The rows of a leaf stage that all its readers together want, if they want only the first ones.
fn rows_needed(leaf: StageId, stages: &[Stage]) -> Option<u64> {
    let stage = &stages[usize::from(leaf.0)];
    let is_sent_to_one = matches!(stage.edge, Edge::One);
    if !is_sent_to_one || !stage.broadcasts.is_empty() || !is_plain(&stage.plan) {
        return None;
    }
    let readers = stages.iter().filter(|reader| reader.reads.contains(&leaf) || reader.broadcasts.contains(&leaf));
    let wanted = readers.map(|reader| rows_read(&reader.plan, leaf));
    wanted.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

/// Whether a plan only filters, computes and limits the rows of a chunk, and cannot fail.
fn is_plain(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let has_other = plan.exists(|node| {
        let schema = || node.children().first().map(|input| input.schema());
        let fails = |expr| schema().is_none_or(|schema| can_fail(expr, &schema));
        Ok(if let Some(filter) = node.downcast_ref::<FilterExec>() {
            fails(filter.predicate())
        } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            projection.expr().iter().any(|column| fails(&column.expr))
        } else {
            !(node.is::<ScanExec>() || node.is::<LocalLimitExec>() || node.is::<GlobalLimitExec>())
        })
    });
    !has_other.expect("the visitor never fails")
}

/// The first rows of an edge that a plan takes. None: it may take all.
fn rows_read(plan: &Arc<dyn ExecutionPlan>, edge: StageId) -> Option<u64> {
    let (mut limited, mut places) = (Vec::new(), 0);
    plan.apply(|node| {
        if let Some(limit) = node.downcast_ref::<GlobalLimitExec>()
            && let Some(fetch) = limit.fetch()
            && limit.input().downcast_ref::<EdgeExec>().is_some_and(|input| input.edge == edge)
        {
            limited.push((limit.skip() + fetch) as u64);
        }
        places += usize::from(node.downcast_ref::<EdgeExec>().is_some_and(|input| input.edge == edge));
        Ok(TreeNodeRecursion::Continue)
    })
    .expect("the visitor never fails");
    if limited.len() == places { limited.into_iter().max() } else { None }
}
