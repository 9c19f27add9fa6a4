//! The first half of an aggregation, over the rows of one chunk, for keys that are numbers, dates or times.
//!
//! DataFusion's own finds the group of a row column by column through several general steps; for keys of a few words one
//! loop does. What is computed per group stays with DataFusion's accumulators.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};

use super::groups::{self, Groups};
use super::{Expr, Plan, faster_expr, keys};

/// Groups the rows of a chunk.
#[derive(Debug, Clone)]
pub(super) struct PartialGroups {
    keys: Arc<[Expr]>,
    aggregates: Arc<[Arc<AggregateFunctionExpr>]>,
    input: Plan,
    properties: Arc<PlanProperties>,
}

impl PartialGroups {
    /// The same as `aggregate`, if it is one that is known here.
    pub(super) fn instead_of(aggregate: &AggregateExec) -> Result<Option<Self>> {
        let keys = aggregate.group_expr();
        let schema = aggregate.input_schema();
        let plain = *aggregate.mode() == AggregateMode::Partial
            && *aggregate.input_order_mode() == InputOrderMode::Linear
            && aggregate.limit_options().is_none()
            && keys.is_single()
            && (1..=groups::MAX_COLUMNS).contains(&keys.expr().len())
            && aggregate.filter_expr().iter().all(Option::is_none)
            && aggregate.aggr_expr().iter().all(|a| a.groups_accumulator_supported() && a.order_bys().is_empty());
        if !plain {
            return Ok(None);
        }
        for (key, _) in keys.expr() {
            if !keys::are_words(&key.data_type(&schema)?) {
                return Ok(None);
            }
        }
        let keys = keys.expr().iter().map(|(key, _)| Ok(faster_expr(Arc::clone(key))?.data));
        Ok(Some(Self {
            keys: keys.collect::<Result<_>>()?,
            aggregates: aggregate.aggr_expr().into(),
            input: Arc::clone(aggregate.input()),
            properties: Arc::clone(aggregate.properties()),
        }))
    }
}

/// What the rows so far have come to.
struct State {
    plan: PartialGroups,
    groups: Box<dyn Groups>,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    rows: usize,
    /// Where each row of a batch belongs; only its memory is kept.
    places: Vec<usize>,
}

impl State {
    fn new(plan: PartialGroups) -> Result<Self> {
        let groups = groups::groups(plan.keys.len()).expect("checked when the plan was made");
        let accumulators = plan.aggregates.iter().map(|a| a.create_groups_accumulator());
        let accumulators = accumulators.collect::<Result<_>>()?;
        Ok(Self { plan, groups, accumulators, rows: 0, places: Vec::new() })
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.plan.keys.iter().map(|key| key.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    fn arguments(&self, batch: &RecordBatch) -> Result<Vec<Vec<ArrayRef>>> {
        let evaluate = |expr: Expr| expr.evaluate(batch)?.into_array(batch.num_rows());
        let aggregates = self.plan.aggregates.iter();
        aggregates.map(|a| a.expressions().into_iter().map(evaluate).collect()).collect()
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let arguments = self.arguments(batch)?;
        let columns: Vec<keys::Words> = self.keys(batch)?.iter().map(keys::words).collect();
        let words: Vec<_> = columns.iter().map(keys::Words::values).collect();
        let words: Vec<&[u64]> = words.iter().map(AsRef::as_ref).collect();
        let nulls: Vec<_> = columns.iter().map(|column| column.nulls.clone()).collect();
        self.places.clear();
        self.groups.find(&words, &nulls, &mut self.places);
        let groups = self.groups.len();
        for (accumulator, arguments) in self.accumulators.iter_mut().zip(&arguments) {
            accumulator.update_batch(arguments, &self.places, None, groups)?;
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// Whether grouping hardly makes the rows fewer, so that the rest is better sent as it is.
    fn is_in_vain(&self, context: &TaskContext) -> bool {
        let options = &context.session_config().options().execution;
        self.rows >= options.skip_partial_aggregation_probe_rows_threshold
            && self.groups.len() as f64 >= self.rows as f64 * options.skip_partial_aggregation_probe_ratio_threshold
    }

    fn batch(&self, mut columns: Vec<ArrayRef>, states: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        columns.extend(states);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.plan.schema(), columns, &options)?)
    }

    /// Rows as they are, in the form of groups.
    fn ungrouped(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let arguments = self.arguments(batch)?;
        let states = self.accumulators.iter().zip(&arguments).map(|(a, arguments)| a.convert_to_state(arguments, None));
        let states = states.collect::<Result<Vec<_>>>()?.concat();
        self.batch(self.keys(batch)?, states, batch.num_rows())
    }

    /// All groups.
    fn grouped(&mut self) -> Result<RecordBatch> {
        let schema = self.plan.schema();
        let keys = (0..self.plan.keys.len())
            .map(|column| keys::column(schema.field(column).data_type(), self.groups.keys(column)));
        let keys = keys.collect::<Result<_>>()?;
        let states = self.accumulators.iter_mut().map(|accumulator| accumulator.state(EmitTo::All));
        let states = states.collect::<Result<Vec<_>>>()?.concat();
        self.batch(keys, states, self.groups.len())
    }
}

/// Reads all of a chunk: its groups are few or fit where its rows did.
async fn run(
    plan: PartialGroups,
    mut rows: SendableRecordBatchStream,
    context: Arc<TaskContext>,
) -> Result<Vec<RecordBatch>> {
    let mut state = State::new(plan)?;
    let mut output = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        if !output.is_empty() {
            output.push(state.ungrouped(&batch)?);
            continue;
        }
        state.add(&batch)?;
        if state.is_in_vain(&context) {
            output.push(state.grouped()?);
        }
    }
    if output.is_empty() && state.groups.len() > 0 {
        output.push(state.grouped()?);
    }
    Ok(output)
}

impl DisplayAs for PartialGroups {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let aggregates: Vec<&str> = self.aggregates.iter().map(|a| a.name()).collect();
        write!(f, "PartialGroups: by [{}], [{}]", keys.join(", "), aggregates.join(", "))
    }
}

impl ExecutionPlan for PartialGroups {
    fn name(&self) -> &str {
        "PartialGroups"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in self.keys.iter().cloned().chain(self.aggregates.iter().flat_map(|a| a.expressions())) {
            if f(&expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input, ..Self::clone(&self) }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, Arc::clone(&context))?;
        let output = run(self.clone(), rows, context);
        let batches =
            futures::stream::once(output).map_ok(|b| futures::stream::iter(b.into_iter().map(Ok))).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
