//! Rows above a ROLLUP or a UNION ALL are not what DataFusion takes them for.
//!
//! - Where `item = 'tea'` below, DataFusion believes that `item` is the same in all rows above a ROLLUP, too, and drops it from
//!   sorts and keys. But a grouping set without `item` makes it null. The same goes for where rows are: those of a grand total
//!   come from every partition. So behind every aggregation with grouping sets stands a node that knows nothing.
//! - `SELECT 'b' AS y … UNION ALL SELECT 'a' AS y …`: in each partition of the union `y` is the same in all rows, so that DataFusion
//!   drops it from the sort of each partition. But the top k of all partitions share what they have seen, and then rows are
//!   compared that differ in `y`. So while sorts are put where they must be, a node that has forgotten such columns stands
//!   above the union.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{AcrossPartitions, EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};

/// Puts a [`ForgetExec`] above every aggregation with grouping sets.
#[derive(Debug)]
pub(super) struct ForgetAboveGroupingSets;

impl PhysicalOptimizerRule for ForgetAboveGroupingSets {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref::<AggregateExec>() {
            Some(aggregate) if !aggregate.group_expr().is_single() => {
                Ok(Transformed::yes(Arc::new(ForgetExec::everything(node)) as Arc<dyn ExecutionPlan>))
            }
            _ => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "ForgetAboveGroupingSets"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Puts a [`ForgetExec`] above every union of which a column is known to be the same in all rows of each branch.
#[derive(Debug)]
pub(super) struct ForgetBranchConstants;

impl PhysicalOptimizerRule for ForgetBranchConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let has_branch_constants = |node: &Arc<dyn ExecutionPlan>| {
            let known = node.properties().equivalence_properties().constants();
            known.iter().any(|constant| constant.across_partitions == AcrossPartitions::Heterogeneous)
        };
        plan.transform_up(|node| match node.is::<UnionExec>() && has_branch_constants(&node) {
            true => Ok(Transformed::yes(Arc::new(ForgetExec::branch_constants(node)) as Arc<dyn ExecutionPlan>)),
            false => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "ForgetBranchConstants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Takes the nodes away that [`ForgetBranchConstants`] put in, when all sorts are in their places.
#[derive(Debug)]
pub(super) struct UnionsAsTheyAre;

impl PhysicalOptimizerRule for UnionsAsTheyAre {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref::<ForgetExec>() {
            Some(forget) if forget.what == Forgotten::BranchConstants => {
                Ok(Transformed::yes(Arc::clone(&forget.input)))
            }
            _ => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "UnionsAsTheyAre"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What a [`ForgetExec`] does not claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forgotten {
    Everything,
    /// Columns that are the same in all rows of a partition, and may differ between partitions.
    BranchConstants,
    /// Which columns are equal, and in which order rows come.
    Equalities,
}

/// Hands rows on, and claims less about them than is known below.
#[derive(Debug, Clone)]
pub(super) struct ForgetExec {
    what: Forgotten,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl ForgetExec {
    fn everything(input: Arc<dyn ExecutionPlan>) -> Self {
        let partitions = input.properties().output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { what: Forgotten::Everything, input, properties: Arc::new(properties) }
    }

    /// Nothing but where rows are.
    pub(super) fn equalities(input: Arc<dyn ExecutionPlan>) -> Self {
        let known = EquivalenceProperties::new(input.schema());
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(known);
        Self { what: Forgotten::Equalities, input, properties: Arc::new(properties) }
    }

    fn branch_constants(input: Arc<dyn ExecutionPlan>) -> Self {
        let mut known = input.properties().equivalence_properties().clone();
        known.clear_per_partition_constants();
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(known);
        Self { what: Forgotten::BranchConstants, input, properties: Arc::new(properties) }
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        match self.what {
            Forgotten::Everything => Self::everything(input),
            Forgotten::BranchConstants => Self::branch_constants(input),
            Forgotten::Equalities => Self::equalities(input),
        }
    }
}

impl DisplayAs for ForgetExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            Forgotten::Everything => "rows of several grouping sets",
            Forgotten::BranchConstants => "constants of each branch",
            Forgotten::Equalities => "columns that are equal",
        };
        write!(f, "Forget: {what}")
    }
}

impl ExecutionPlan for ForgetExec {
    fn name(&self) -> &str {
        "ForgetExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.what == Forgotten::BranchConstants]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(children.pop().map_or_else(|| Arc::clone(&self) as _, |input| Arc::new(self.over(input))))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
