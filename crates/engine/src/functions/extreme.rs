//! `min(value)` and `max(value)`: DataFusion's own, except for floats in groups.
//!
//! There DataFusion starts from the largest finite float, so that the smallest of infinite ones is wrong, and NaN and -0.0
//! come out as the order of rows has it. Here floats have one order: -0.0 before 0.0, and NaN last, as in PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};

use super::one_group::passes;

/// The smallest or the largest value.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Extreme {
    plain: Arc<AggregateUDF>,
}

impl Extreme {
    pub(super) fn min() -> Self {
        Self { plain: min_udaf() }
    }

    pub(super) fn max() -> Self {
        Self { plain: max_udaf() }
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.plain.return_type(args)
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        self.plain.coerce_types(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.plain.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.plain.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        if args.return_field.data_type() == &DataType::Float64 {
            let largest = self.is_descending() == Some(true);
            return Ok(Box::new(FloatExtremes { largest, best: Vec::new() }));
        }
        self.plain.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.plain.create_sliding_accumulator(args)
    }

    fn is_descending(&self) -> Option<bool> {
        self.plain.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.plain.value_from_stats(statistics)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.plain.inner().set_monotonicity(data_type)
    }
}

/// The best float of each group.
struct FloatExtremes {
    largest: bool,
    best: Vec<Option<f64>>,
}

impl GroupsAccumulator for FloatExtremes {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.best.resize(total_num_groups.max(self.best.len()), None);
        for (row, value) in values[0].as_primitive::<Float64Type>().iter().enumerate() {
            let Some(value) = value.filter(|_| passes(filter, row)) else { continue };
            // The sign of NaN is the processor's whim.
            let value = if value.is_nan() { f64::NAN } else { value };
            let best = &mut self.best[groups[row]];
            let is_better = best.is_none_or(|best| match self.largest {
                true => value.total_cmp(&best).is_gt(),
                false => value.total_cmp(&best).is_lt(),
            });
            if is_better {
                *best = Some(value);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> Result<()> {
        self.update_batch(states, groups, None, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(Arc::new(Float64Array::from(emit_to.take_needed(&mut self.best))))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<Float64Type>();
        let kept = |row: usize| (values.is_valid(row) && passes(filter, row)).then(|| values.value(row));
        Ok(vec![Arc::new((0..values.len()).map(kept).collect::<Float64Array>())])
    }

    fn size(&self) -> usize {
        self.best.capacity() * size_of::<Option<f64>>()
    }
}
