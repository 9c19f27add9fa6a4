//! `count(value)`: DataFusion's own, except that DISTINCT takes several arguments and knows one zero.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};

use super::distinct_rows::DistinctRows;
use super::ordered::rows_field;

/// Counts rows without nulls.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Count {
    plain: Arc<AggregateUDF>,
}

impl Count {
    pub(super) fn new() -> Self {
        Self { plain: count_udaf() }
    }
}

/// Whether different rows are counted here: DataFusion takes -0.0 and 0.0 for two values, though groups take them for one.
fn is_ours(is_distinct: bool, fields: &[FieldRef]) -> bool {
    is_distinct && (fields.len() > 1 || fields.iter().any(|field| field.data_type().is_floating()))
}

/// Counts whole rows, of which there is each only once.
#[derive(Debug, Default)]
struct Rows(i64);

impl Accumulator for Rows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0 += values.first().map_or(0, |column| column.len() as i64);
        Ok(())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        exec_err!("rows are counted at the end")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(self.0)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

fn of_rows(fields: &[FieldRef]) -> Result<Box<dyn Accumulator>> {
    Ok(Box::new(DistinctRows::new(fields, || Ok(Box::<Rows>::default()))?))
}

impl AggregateUDFImpl for Count {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.plain.return_type(args)
    }

    fn is_nullable(&self) -> bool {
        self.plain.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.plain.default_value(data_type)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if is_ours(args.is_distinct, args.input_fields) {
            return Ok(vec![rows_field(args.name)]);
        }
        self.plain.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_ours(args.is_distinct, args.expr_fields) {
            return of_rows(args.expr_fields);
        }
        self.plain.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_ours(args.is_distinct, args.expr_fields) {
            return of_rows(args.expr_fields);
        }
        self.plain.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !is_ours(args.is_distinct, args.expr_fields) && self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.plain.create_groups_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.plain.value_from_stats(statistics)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.plain.inner().set_monotonicity(data_type)
    }
}
