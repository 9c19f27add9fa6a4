//! Before a top k of each key: rows that cannot be among them are left out.
//!
//! DataFusion's operator sorts rows by key into heaps through general steps. Of many rows few are candidates: once k rows of a
//! key are better by the first thing that rows are ordered by, no row that is worse can get in. What is left goes to
//! DataFusion's operator, which decides.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::sorts::partitioned_topk::PartitionedTopKExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;

use super::{Expr, Plan};
use crate::machine_words::groups::{self, Groups};
use crate::machine_words::keys;

/// More rows per key than this are not sieved.
const MAX_ROWS: usize = 64;

/// Lets pass what may be among the first rows of its key.
#[derive(Debug, Clone)]
pub(super) struct Sieve {
    keys: Arc<[Expr]>,
    by: Expr,
    descending: bool,
    rows: usize,
    input: Plan,
}

impl Sieve {
    /// What may stand before `top`, if that is of use.
    pub(super) fn before(top: &PartitionedTopKExec) -> Result<Option<Self>> {
        let schema = top.input().schema();
        let (keys, order) = top.expr().split_at(top.partition_prefix_len());
        let Some(first) = order.first() else { return Ok(None) };
        let usable = (1..=groups::MAX_COLUMNS).contains(&keys.len())
            && (1..=MAX_ROWS).contains(&top.fetch())
            && is_ordered(&first.expr.data_type(&schema)?);
        for key in keys {
            if !usable || !keys::are_words(&key.expr.data_type(&schema)?) {
                return Ok(None);
            }
        }
        Ok(Some(Self {
            keys: keys.iter().map(|key| Arc::clone(&key.expr)).collect(),
            by: Arc::clone(&first.expr),
            descending: first.options.descending,
            rows: top.fetch(),
            input: Arc::clone(top.input()),
        }))
    }
}

fn is_ordered(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int64 | DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Microsecond, None)
    )
}

fn values(array: &ArrayRef) -> &[i64] {
    match array.as_primitive_opt::<Int64Type>() {
        Some(numbers) => numbers.values(),
        None => array.as_primitive::<TimestampMicrosecondType>().values(),
    }
}

/// The best rows so far.
struct State {
    sieve: Sieve,
    groups: Box<dyn Groups>,
    /// For each key, what its best rows are ordered by, from the best on; larger is better.
    best: Vec<Vec<i64>>,
    places: Vec<usize>,
}

impl State {
    fn new(sieve: Sieve) -> Self {
        let groups = groups::groups(sieve.keys.len()).expect("checked when the plan was made");
        Self { sieve, groups, best: Vec::new(), places: Vec::new() }
    }

    fn pass(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let evaluate = |expr: &Expr| expr.evaluate(batch)?.into_array(batch.num_rows());
        let columns = self.sieve.keys.iter().map(|key| Ok(keys::words(&evaluate(key)?)));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let words: Vec<_> = columns.iter().map(keys::Words::values).collect();
        let words: Vec<&[u64]> = words.iter().map(AsRef::as_ref).collect();
        let nulls: Vec<_> = columns.iter().map(|column| column.nulls.clone()).collect();
        self.places.clear();
        self.groups.find(&words, &nulls, &mut self.places);
        self.best.resize(self.groups.len(), Vec::new());
        let by = evaluate(&self.sieve.by)?;
        let (values, nulls) = (values(&by), by.nulls());
        let passes: BooleanArray = self
            .places
            .iter()
            .zip(values)
            .enumerate()
            // Where nulls stand is DataFusion's to say.
            .map(|(row, (&place, &value))| {
                let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
                Some(is_null || may_enter(&mut self.best[place], self.sieve.rows, value, self.sieve.descending))
            })
            .collect();
        Ok(filter_record_batch(batch, &passes)?)
    }
}

/// Whether a value is not worse than the worst of the best, among which it then is.
#[inline]
fn may_enter(best: &mut Vec<i64>, rows: usize, value: i64, descending: bool) -> bool {
    // The order of all numbers, turned round without overflow.
    let value = if descending { value } else { !value };
    if best.len() == rows {
        let worst = best[rows - 1];
        if value <= worst {
            return value == worst;
        }
        best.pop();
    }
    let place = best.partition_point(|better| *better >= value);
    best.insert(place, value);
    true
}

impl DisplayAs for Sieve {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sieve: {} rows by {}", self.rows, self.by)
    }
}

impl ExecutionPlan for Sieve {
    fn name(&self) -> &str {
        "Sieve"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in self.keys.iter().chain([&self.by]) {
            if f(expr)? == TreeNodeRecursion::Stop {
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
        let rows = self.input.execute(partition, context)?;
        let mut state = State::new(self.clone());
        let passed = rows.map(move |batch| state.pass(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), passed)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::compute::SortOptions;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
    use datafusion::physical_plan::sorts::partitioned_topk::WindowFnKind;

    use super::*;
    use crate::task::run::run_plan;

    fn rows() -> Vec<RecordBatch> {
        let mut state = 5u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let batch = |_| {
            let mut numbers = |bound: u64| -> Int64Array {
                (0..500).map(|_| (random(12) > 0).then(|| random(bound) as i64 - 20)).collect()
            };
            let columns = [("key", numbers(9)), ("by", numbers(60)), ("then", numbers(1 << 40))];
            let columns = columns.map(|(name, values)| (name, Arc::new(values) as ArrayRef, true));
            RecordBatch::try_from_iter_with_nullable(columns).unwrap()
        };
        (0..6).map(batch).collect()
    }

    fn answer(plan: Plan) -> (usize, Vec<RecordBatch>) {
        let mut batches = Vec::new();
        run_plan(&plan, &Arc::new(TaskContext::default()), |batch| {
            batches.push(batch);
            Ok(())
        })
        .unwrap();
        (batches.iter().map(RecordBatch::num_rows).sum(), batches)
    }

    #[test]
    fn nothing_that_is_among_the_first_is_left_out_and_most_else_is() {
        let schema = rows()[0].schema();
        let source = || MemorySourceConfig::try_new_exec(&[rows()], Arc::clone(&schema), None).unwrap();
        for (descending, nulls_first, fetch) in
            [(true, false, 3), (true, true, 1), (false, false, 2), (false, true, 7), (true, false, 64)]
        {
            let by = |name: &str, options| PhysicalSortExpr::new(col(name, &schema).unwrap(), options);
            let order = LexOrdering::new([
                by("key", SortOptions::default()),
                by("by", SortOptions { descending, nulls_first }),
                by("then", SortOptions::default()),
            ])
            .unwrap();
            let top =
                |input| PartitionedTopKExec::try_new(input, order.clone(), 1, fetch, WindowFnKind::RowNumber).unwrap();
            let plain = top(source());
            let sieve: Plan = Arc::new(Sieve::before(&plain).unwrap().unwrap());
            let (passed, _) = answer(Arc::clone(&sieve));
            assert!(passed < 3000 * 3 / 4, "{passed}");
            assert_eq!(answer(Arc::new(top(sieve))), answer(Arc::new(plain)));
        }
    }
}
