//! The first k rows of each key, by sorting.
//!
//! DataFusion's operator holds a heap for each key, and each heap holds whole batches: what it counts, and for `rank` what it
//! keeps, grows with keys times batches (a gigabyte for 100,000 keys of which 97 MB are rows), and it cannot spill. Here rows
//! are sorted by key and order, which spills where it must, and the first rows of each key are let pass.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::sorts::partitioned_topk::{PartitionedTopKExec, WindowFnKind};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;

use super::{Expr, Plan};
use crate::task::tight;

/// What does the same as a top k of each key.
pub(super) fn sorted_instead_of(top: &PartitionedTopKExec) -> Plan {
    let input: Plan = Arc::new(TightExec { input: Arc::clone(top.input()) });
    let sort: Plan = Arc::new(SortExec::new(top.expr().clone(), input).with_preserve_partitioning(true));
    let (keys, order) = top.expr().split_at(top.partition_prefix_len());
    let exprs = |by: &[PhysicalSortExpr]| by.iter().map(|by| Arc::clone(&by.expr)).collect();
    let ranked_by = match top.fn_kind() {
        WindowFnKind::RowNumber => None,
        WindowFnKind::Rank => Some(exprs(order)),
    };
    Arc::new(FirstRowsExec { keys: exprs(keys), ranked_by, rows: top.fetch(), input: sort })
}

/// Lets the first rows of each key pass. The rows of a key come one after the other.
#[derive(Debug, Clone)]
struct FirstRowsExec {
    keys: Arc<[Expr]>,
    /// By what rows have the same rank; without, each has its own.
    ranked_by: Option<Arc<[Expr]>>,
    rows: usize,
    input: Plan,
}

/// What was seen of the rows so far.
struct Counter {
    keys: Encoder,
    ranks: Option<Encoder>,
    limit: usize,
    /// Rows of the present key before the present row.
    before: usize,
    /// The same, before all rows that have the present rank.
    before_rank: usize,
}

/// Tells whether a row has the same values as the row before.
struct Encoder {
    exprs: Arc<[Expr]>,
    converter: RowConverter,
    last: Option<OwnedRow>,
}

impl Encoder {
    fn new(exprs: &Arc<[Expr]>, plan: &Plan) -> Result<Self> {
        let schema = plan.schema();
        let fields = exprs.iter().map(|expr| Ok(SortField::new(expr.data_type(&schema)?)));
        let converter = RowConverter::new(fields.collect::<Result<_>>()?)?;
        Ok(Self { exprs: Arc::clone(exprs), converter, last: None })
    }

    fn encode(&self, batch: &RecordBatch) -> Result<Rows> {
        let columns = self.exprs.iter().map(|expr| expr.evaluate(batch)?.into_array(batch.num_rows()));
        Ok(self.converter.convert_columns(&columns.collect::<Result<Vec<ArrayRef>>>()?)?)
    }

    /// Whether a row of a batch differs from the one before it.
    fn changes(&self, rows: &Rows, row: usize) -> bool {
        match row.checked_sub(1) {
            Some(before) => rows.row(row) != rows.row(before),
            None => self.last.as_ref().is_none_or(|last| last.row() != rows.row(row)),
        }
    }

    fn remember(&mut self, rows: &Rows) {
        self.last = rows.num_rows().checked_sub(1).map(|last| rows.row(last).owned());
    }
}

impl Counter {
    fn new(exec: &FirstRowsExec) -> Result<Self> {
        let ranks = exec.ranked_by.as_ref().map(|exprs| Encoder::new(exprs, &exec.input)).transpose()?;
        let keys = Encoder::new(&exec.keys, &exec.input)?;
        Ok(Self { keys, ranks, limit: exec.rows, before: 0, before_rank: 0 })
    }

    fn pass(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_rows() == 0 {
            return Ok(batch.clone());
        }
        let keys = self.keys.encode(batch)?;
        let ranks = self.ranks.as_ref().map(|ranks| ranks.encode(batch)).transpose()?;
        let passes: BooleanArray = (0..batch.num_rows())
            .map(|row| {
                let is_new_key = self.keys.changes(&keys, row);
                let is_new_rank = match (&self.ranks, &ranks) {
                    (Some(encoder), Some(ranks)) => encoder.changes(ranks, row),
                    _ => true,
                };
                if is_new_key {
                    self.before = 0;
                }
                if is_new_key || is_new_rank {
                    self.before_rank = self.before;
                }
                self.before += 1;
                Some(self.before_rank < self.limit)
            })
            .collect();
        self.keys.remember(&keys);
        if let (Some(encoder), Some(ranks)) = (&mut self.ranks, &ranks) {
            encoder.remember(ranks);
        }
        Ok(filter_record_batch(batch, &passes)?)
    }
}

impl DisplayAs for FirstRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FirstRows: {} of each key", self.rows)
    }
}

impl ExecutionPlan for FirstRowsExec {
    fn name(&self) -> &str {
        "FirstRowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expr in self.keys.iter().chain(self.ranked_by.iter().flat_map(|by| by.iter())) {
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
        let mut counter = Counter::new(self)?;
        let passed = rows.map(move |batch| counter.pass(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), passed)))
    }
}

/// Hands batches on that keep no more texts alive than they show: a sort counts all that a batch keeps alive, batch by batch.
#[derive(Debug, Clone)]
struct TightExec {
    input: Plan,
}

impl DisplayAs for TightExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tight")
    }
}

impl ExecutionPlan for TightExec {
    fn name(&self) -> &str {
        "TightExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
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
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows.map(|batch| Ok(tight(batch?))))))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringViewArray};
    use datafusion::arrow::compute::{SortOptions, concat_batches};
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_expr::LexOrdering;
    use datafusion::physical_expr::expressions::col;

    use super::*;
    use crate::task::run::run_plan;

    fn rows() -> Vec<RecordBatch> {
        let mut state = 7u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let batch = |size: usize| {
            let texts: StringViewArray =
                (0..size).map(|_| (random(9) > 0).then(|| format!("a key of some length {}", random(5)))).collect();
            let by: Int64Array = (0..size).map(|_| (random(12) > 0).then(|| random(6) as i64)).collect();
            let then: Int64Array = (0..size).map(|_| Some(random(1 << 40) as i64)).collect();
            let columns: [(&str, ArrayRef); 3] =
                [("key", Arc::new(texts)), ("by", Arc::new(by)), ("then", Arc::new(then))];
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true))).unwrap()
        };
        [100, 1, 300, 0, 57].map(batch).to_vec()
    }

    fn answer(plan: Plan) -> RecordBatch {
        let mut batches = Vec::new();
        run_plan(&plan, &Arc::new(TaskContext::default()), |batch| {
            batches.push(batch);
            Ok(())
        })
        .unwrap();
        concat_batches(&plan.schema(), &batches).unwrap()
    }

    #[test]
    fn the_first_rows_of_each_key_are_those_of_the_operator_that_is_replaced() {
        let schema = rows()[0].schema();
        let source = || MemorySourceConfig::try_new_exec(&[rows()], Arc::clone(&schema), None).unwrap();
        let by = |name: &str, options| PhysicalSortExpr::new(col(name, &schema).unwrap(), options);
        for (descending, nulls_first, fetch) in
            [(true, false, 3), (true, true, 1), (false, false, 2), (false, true, 70)]
        {
            let options = SortOptions { descending, nulls_first };
            let key = by("key", SortOptions::default());
            let total = [key.clone(), by("by", options), by("then", SortOptions::default())];
            let top = PartitionedTopKExec::try_new(
                source(),
                LexOrdering::new(total).unwrap(),
                1,
                fetch,
                WindowFnKind::RowNumber,
            )
            .unwrap();
            let ours = answer(sorted_instead_of(&top));
            assert!(ours.num_rows() > 0);
            assert_eq!(ours, answer(Arc::new(top)), "{options:?} {fetch}");

            let ranked = LexOrdering::new([key, by("by", options)]).unwrap();
            let top = PartitionedTopKExec::try_new(source(), ranked, 1, fetch, WindowFnKind::Rank).unwrap();
            // Rows of the same rank may come in any order.
            let sorted = |plan: Plan| {
                let all = ["key", "by", "then"].map(|name| by(name, SortOptions::default()));
                answer(Arc::new(SortExec::new(LexOrdering::new(all).unwrap(), plan)))
            };
            assert_eq!(sorted(sorted_instead_of(&top)), sorted(Arc::new(top)), "{options:?} {fetch}");
        }
    }
}
