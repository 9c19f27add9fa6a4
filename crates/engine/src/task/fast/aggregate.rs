//! Aggregations by keys that are numbers, dates or times.
//!
//! DataFusion's own finds the group of a row column by column through several general steps; for keys of a few words one
//! loop does. What is computed per group stays with DataFusion's accumulators.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
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

use super::{Expr, Plan, faster_expr};
use crate::limits::{BATCH_ROWS, PROBE_ROWS, PROBE_SHARE};
use crate::machine_words::groups::{self, Groups};
use crate::machine_words::keys;

/// Groups rows.
#[derive(Debug, Clone)]
pub(super) struct WordGroups {
    keys: Arc<[Expr]>,
    aggregates: Arc<[Aggregate]>,
    mode: Mode,
    input: Plan,
    properties: Arc<PlanProperties>,
}

#[derive(Debug, Clone)]
struct Aggregate {
    function: Arc<AggregateFunctionExpr>,
    /// The columns of the input that are its state, if the input has states.
    states: Range<usize>,
}

/// What comes in and what goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Rows in, states out.
    First,
    /// States in, fewer states out.
    Between,
    /// States in, values out.
    Last,
}

impl Mode {
    fn of(mode: &AggregateMode) -> Option<Self> {
        match mode {
            AggregateMode::Partial => Some(Self::First),
            AggregateMode::PartialReduce => Some(Self::Between),
            AggregateMode::Final | AggregateMode::FinalPartitioned => Some(Self::Last),
            _ => None,
        }
    }
}

impl WordGroups {
    /// The same as `aggregate`, if it is one that is known here.
    pub(super) fn instead_of(aggregate: &AggregateExec) -> Result<Option<Self>> {
        let Some(mode) = Mode::of(aggregate.mode()) else { return Ok(None) };
        let keys = aggregate.group_expr();
        let schema = aggregate.input().schema();
        let plain = *aggregate.input_order_mode() == InputOrderMode::Linear
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
        let mut next = keys.expr().len();
        let aggregates = aggregate.aggr_expr().iter().map(|function| {
            let states = next..next + function.state_fields()?.len();
            next = states.end;
            Ok(Aggregate { function: Arc::clone(function), states })
        });
        let aggregates = aggregates.collect::<Result<_>>()?;
        let keys = keys.expr().iter().map(|(key, _)| Ok(faster_expr(Arc::clone(key))?.data));
        Ok(Some(Self {
            keys: keys.collect::<Result<_>>()?,
            aggregates,
            mode,
            input: Arc::clone(aggregate.input()),
            properties: Arc::clone(aggregate.properties()),
        }))
    }
}

/// What the rows so far have come to.
struct State {
    plan: WordGroups,
    groups: Box<dyn Groups>,
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    rows: usize,
    /// Where each row of a batch belongs; only its memory is kept.
    places: Vec<usize>,
    memory: MemoryReservation,
}

impl State {
    fn new(plan: WordGroups, context: &TaskContext) -> Result<Self> {
        let groups = groups::groups(plan.keys.len()).expect("checked when the plan was made");
        let accumulators = plan.aggregates.iter().map(|a| a.function.create_groups_accumulator());
        let accumulators = accumulators.collect::<Result<_>>()?;
        let memory = MemoryConsumer::new("WordGroups").register(context.memory_pool());
        Ok(Self { plan, groups, accumulators, rows: 0, places: Vec::new(), memory })
    }

    fn keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.plan.keys.iter().map(|key| key.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    /// What each accumulator gets: arguments, or states.
    fn arguments(&self, batch: &RecordBatch) -> Result<Vec<Vec<ArrayRef>>> {
        let evaluate = |expr: Expr| expr.evaluate(batch)?.into_array(batch.num_rows());
        let of = |aggregate: &Aggregate| match self.plan.mode {
            Mode::First => aggregate.function.expressions().into_iter().map(evaluate).collect(),
            Mode::Between | Mode::Last => Ok(batch.columns()[aggregate.states.clone()].to_vec()),
        };
        self.plan.aggregates.iter().map(of).collect()
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
            match self.plan.mode {
                Mode::First => accumulator.update_batch(arguments, &self.places, None, groups)?,
                Mode::Between | Mode::Last => accumulator.merge_batch(arguments, &self.places, groups)?,
            }
        }
        self.rows += batch.num_rows();
        let held = self.groups.size() + self.accumulators.iter().map(|a| a.size()).sum::<usize>();
        // Whoever chose this plan knows that there is room.
        self.memory.resize(held);
        Ok(())
    }

    /// Whether grouping hardly makes the rows fewer, so that the rest is better sent as it is.
    fn is_in_vain(&self, context: &TaskContext) -> bool {
        let options = &context.session_config().options().execution;
        let known_better = self.rows >= options.skip_partial_aggregation_probe_rows_threshold;
        let share = if known_better { options.skip_partial_aggregation_probe_ratio_threshold } else { PROBE_SHARE };
        self.plan.mode == Mode::First && self.rows >= PROBE_ROWS && self.groups.len() as f64 >= self.rows as f64 * share
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
        let results = self.accumulators.iter_mut().map(|accumulator| match self.plan.mode {
            Mode::First | Mode::Between => accumulator.state(EmitTo::All),
            Mode::Last => Ok(vec![accumulator.evaluate(EmitTo::All)?]),
        });
        let results = results.collect::<Result<Vec<_>>>()?.concat();
        self.batch(keys, results, self.groups.len())
    }
}

/// Reads all rows: their groups fit where the rows did.
async fn run(
    plan: WordGroups,
    mut rows: SendableRecordBatchStream,
    context: Arc<TaskContext>,
) -> Result<Vec<RecordBatch>> {
    let mut state = State::new(plan, &context)?;
    let mut output = Vec::new();
    while let Some(batch) = rows.next().await {
        let mut batch = batch?;
        // A few rows tell whether it is worth while to group the others.
        if output.is_empty() && state.plan.mode == Mode::First && state.rows == 0 && batch.num_rows() > PROBE_ROWS {
            state.add(&batch.slice(0, PROBE_ROWS))?;
            batch = batch.slice(PROBE_ROWS, batch.num_rows() - PROBE_ROWS);
        }
        if output.is_empty() && state.is_in_vain(&context) {
            output.push(state.grouped()?);
        }
        if output.is_empty() {
            state.add(&batch)?;
        } else {
            output.push(state.ungrouped(&batch)?);
        }
    }
    if output.is_empty() && state.groups.len() > 0 {
        output.push(state.grouped()?);
    }
    if state.plan.mode == Mode::Last { Ok(output.iter().flat_map(in_slices).collect()) } else { Ok(output) }
}

/// The rows in pieces that stay in the cache while several operators work on them.
fn in_slices(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let starts = (0..batch.num_rows()).step_by(BATCH_ROWS);
    starts.map(|start| batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start)))
}

impl DisplayAs for WordGroups {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let aggregates: Vec<&str> = self.aggregates.iter().map(|a| a.function.name()).collect();
        write!(f, "WordGroups: {:?}, by [{}], [{}]", self.mode, keys.join(", "), aggregates.join(", "))
    }
}

impl ExecutionPlan for WordGroups {
    fn name(&self) -> &str {
        "WordGroups"
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
        let arguments = self.aggregates.iter().flat_map(|a| a.function.expressions());
        for expr in self.keys.iter().cloned().chain(arguments) {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{Date32Array, Decimal128Array, Int64Array, StringViewArray};
    use datafusion::arrow::util::display::array_value_to_string;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::functions_aggregate::average::avg_udaf;
    use datafusion::functions_aggregate::count::count_udaf;
    use datafusion::functions_aggregate::min_max::max_udaf;
    use datafusion::functions_aggregate::sum::sum_udaf;
    use datafusion::physical_expr::aggregate::AggregateExprBuilder;
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_plan::aggregates::PhysicalGroupBy;
    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::task::run::run_plan;

    /// Batches of random rows; keys have about `values` values each, with nulls among them.
    fn rows(values: u64, batches: usize) -> Vec<RecordBatch> {
        let mut state = 11u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let batch = |_| {
            let count = 700;
            let mut numbers = |bound: u64| -> Vec<Option<i64>> {
                (0..count).map(|_| (random(9) > 0).then(|| random(bound) as i64 - 5)).collect()
            };
            let store: Int64Array = numbers(values).into();
            let day: Date32Array = numbers(values).into_iter().map(|n| n.map(|n| n as i32)).collect();
            let amount: Decimal128Array = numbers(1 << 40).into_iter().map(|n| n.map(i128::from)).collect();
            let name: StringViewArray = numbers(40).into_iter().map(|n| n.map(|n| format!("name {n}"))).collect();
            let columns: [(&str, ArrayRef); 4] = [
                ("store", Arc::new(store)),
                ("day", Arc::new(day)),
                ("amount", Arc::new(amount.with_precision_and_scale(15, 3).unwrap())),
                ("name", Arc::new(name)),
            ];
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true))).unwrap()
        };
        (0..batches).map(batch).collect()
    }

    /// The first half of an aggregation by DataFusion.
    fn partial(keys: &[&str], batches: Vec<RecordBatch>) -> AggregateExec {
        let schema = rows(1, 1)[0].schema();
        let input = MemorySourceConfig::try_new_exec(&[batches], Arc::clone(&schema), None).unwrap();
        let keys = keys.iter().map(|key| (col(key, &schema).unwrap(), (*key).to_owned())).collect();
        let of = |function, column: &str| {
            let expr = AggregateExprBuilder::new(function, vec![col(column, &schema).unwrap()]);
            Arc::new(expr.schema(Arc::clone(&schema)).alias("a").build().unwrap())
        };
        let aggregates = vec![
            of(count_udaf(), "name"),
            of(sum_udaf(), "amount"),
            of(max_udaf(), "name"),
            of(avg_udaf(), "amount"),
            of(max_udaf(), "day"),
        ];
        let filters = vec![None; aggregates.len()];
        let groups = PhysicalGroupBy::new_single(keys);
        AggregateExec::try_new(AggregateMode::Partial, groups, aggregates, filters, input, schema).unwrap()
    }

    /// A later step of the same aggregation.
    fn step(mode: AggregateMode, aggregate: &AggregateExec, before: Plan) -> AggregateExec {
        let groups = aggregate.group_expr().as_final();
        let (aggregates, filters) = (aggregate.aggr_expr().to_vec(), aggregate.filter_expr().to_vec());
        AggregateExec::try_new(mode, groups, aggregates, filters, before, aggregate.input_schema()).unwrap()
    }

    /// Rows as texts, sorted.
    fn answer(plan: &Plan) -> Vec<String> {
        let context = Arc::new(TaskContext::default().with_session_config(SessionConfig::new()));
        let mut lines = Vec::new();
        run_plan(plan, &context, |batch| {
            lines.extend((0..batch.num_rows()).map(|row| {
                let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
                cells.collect::<Vec<_>>().join(" | ")
            }));
            Ok(())
        })
        .unwrap();
        lines.sort();
        lines
    }

    fn ours(aggregate: &AggregateExec) -> Plan {
        Arc::new(WordGroups::instead_of(aggregate).unwrap().unwrap())
    }

    #[test]
    fn groups_and_what_is_computed_of_them_are_datafusions() {
        for values in [1, 7, 200, 1 << 30] {
            for (keys, batches) in
                [(&["store"][..], 9), (&["day", "store"], 9), (&["store", "day", "store"], 1), (&["day"], 0)]
            {
                let first = partial(keys, rows(values, batches));
                let theirs: Plan = Arc::new(partial(keys, rows(values, batches)));
                let theirs: Plan = Arc::new(step(AggregateMode::Final, &first, theirs));
                let expected = answer(&theirs);
                assert_eq!(expected.is_empty(), batches == 0);
                // Every step ours, then only some.
                let between = ours(&step(AggregateMode::PartialReduce, &first, ours(&first)));
                let last = ours(&step(AggregateMode::FinalPartitioned, &first, Arc::clone(&between)));
                assert_eq!(answer(&last), expected, "{keys:?} of {values}");
                let last: Plan = Arc::new(step(AggregateMode::Final, &first, between));
                assert_eq!(answer(&last), expected, "{keys:?} of {values}");
            }
        }
    }

    #[test]
    fn grouping_that_is_in_vain_is_given_up() {
        for (values, given_up) in [(3, false), (1 << 30, true)] {
            let first = partial(&["store"], rows(values, 9));
            let lines = answer(&ours(&first)).len();
            assert_eq!(lines > 9 * 700 / 2, given_up);
        }
    }

    #[test]
    fn what_is_not_known_here_stays_as_it_is() {
        let aggregate = partial(&["name"], rows(3, 1));
        assert!(WordGroups::instead_of(&aggregate).unwrap().is_none(), "keys are text");
        let five = partial(&["store", "day", "store", "day", "store"], rows(3, 1));
        assert!(WordGroups::instead_of(&five).unwrap().is_none(), "too many keys");
        let whole = partial(&["store"], rows(3, 1));
        let (aggregates, filters) = (whole.aggr_expr().to_vec(), whole.filter_expr().to_vec());
        let input = Arc::clone(whole.input());
        let keys = whole.group_expr().clone();
        let single =
            AggregateExec::try_new(AggregateMode::Single, keys, aggregates, filters, input, whole.input_schema());
        assert!(WordGroups::instead_of(&single.unwrap()).unwrap().is_none(), "not the first half");
    }
}
