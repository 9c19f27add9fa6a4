//! Plans that end soon after they are told to.
//!
//! DataFusion's operators run until they have their rows. Those that can work for long between two batches of a task's own rows (joins,
//! recursions, table functions, lists that are taken apart) get a [`StopExec`] above them and a [`StopExpr`] around the condition of a join, which
//! both ask [`stop::check`]; the task's own rows ask it as they are read (`plan/source.rs`).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;

use crate::plan::source::{EdgeExec, ScanExec};
use crate::stop;

type Plan = Arc<dyn ExecutionPlan>;
type Expr = Arc<dyn PhysicalExpr>;

/// The same plan, which ends soon after its thread is told to.
pub(super) fn stoppable(plan: Plan) -> Result<Plan> {
    plan.transform_up(|node| {
        let node = with_stoppable_condition(node)?;
        match may_run_long(&node) {
            true => Ok(Transformed::yes(Arc::new(StopExec { input: node }) as Plan)),
            false => Ok(Transformed::yes(node)),
        }
    })
    .data()
}

fn may_run_long(node: &Plan) -> bool {
    let is_foreign_leaf = node.children().is_empty() && !node.is::<ScanExec>() && !node.is::<EdgeExec>();
    is_foreign_leaf
        || node.is::<HashJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<CrossJoinExec>()
        || node.is::<RecursiveQueryExec>()
        || node.is::<UnnestExec>()
}

/// A join may try millions of pairs of rows for each batch that it reads, and find none.
fn with_stoppable_condition(node: Plan) -> Result<Plan> {
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        return join.builder().with_filter(Some(stoppable_filter(filter))).build_exec();
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
        let made = NestedLoopJoinExecBuilder::new(left, right, *join.join_type())
            .with_filter(Some(stoppable_filter(filter)))
            .with_projection(join.projection().as_ref().map(|columns| columns.to_vec()));
        return Ok(Arc::new(made.build()?));
    }
    Ok(node)
}

fn stoppable_filter(filter: &JoinFilter) -> JoinFilter {
    let expression = Arc::new(StopExpr(Arc::clone(filter.expression())));
    JoinFilter::new(expression, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
}

/// Passes rows on until the work shall end.
#[derive(Debug)]
struct StopExec {
    input: Plan,
}

impl DisplayAs for StopExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StopExec")
    }
}

impl ExecutionPlan for StopExec {
    fn name(&self) -> &str {
        "StopExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let checked = rows.map(|batch| stop::check().and(batch));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), checked)))
    }
}

/// A condition as it is, until the work shall end.
#[derive(Debug, Eq)]
struct StopExpr(Expr);

impl PartialEq for StopExpr {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Hash for StopExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PhysicalExpr for StopExpr {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.0.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.0.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        stop::check()?;
        self.0.evaluate(batch)
    }

    fn children(&self) -> Vec<&Expr> {
        vec![&self.0]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Expr>) -> Result<Expr> {
        Ok(Arc::new(Self(children.pop().unwrap_or_else(|| Arc::clone(&self.0)))))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}

impl fmt::Display for StopExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
