//! `sum(value)`: DataFusion's own, except that floating-point numbers are added without loss.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
};

use super::float_sum::FloatSum;

/// The exact sum.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ExactSum {
    plain: Arc<AggregateUDF>,
}

impl ExactSum {
    pub(super) fn new() -> Self {
        Self { plain: sum_udaf() }
    }
}

fn adds_floats(args: &AccumulatorArgs<'_>) -> bool {
    args.return_field.data_type() == &DataType::Float64 && !args.is_distinct
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.plain.return_type(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if args.return_field.data_type() == &DataType::Float64 && !args.is_distinct {
            return Ok(vec![float_state(args.name)]);
        }
        self.plain.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if adds_floats(&args) {
            return Ok(Box::new(FloatSumAccumulator::default()));
        }
        self.plain.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !adds_floats(&args) && self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.plain.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.plain.create_sliding_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.plain.inner().set_monotonicity(data_type)
    }
}

/// The partial result of a sum of floats: the numbers that stand for it.
pub(super) fn float_state(name: &str) -> FieldRef {
    let item = Field::new_list_field(DataType::Float64, true);
    Arc::new(Field::new(format!("{name}[parts]"), DataType::List(Arc::new(item)), true))
}

pub(super) fn float_state_value(sum: &FloatSum) -> ScalarValue {
    let parts: ArrayRef = Arc::new(sum.parts().collect::<Float64Array>());
    SingleRowListArrayBuilder::new(parts).build_list_scalar()
}

/// Adds partial results to `sum`; returns how many there were.
pub(super) fn merge_float_states(sum: &mut FloatSum, states: &ArrayRef) -> Result<()> {
    let Some(lists) = states.as_list_opt::<i32>() else {
        return exec_err!("a sum got a partial result of another shape");
    };
    for list in lists.iter().flatten() {
        list.as_primitive::<Float64Type>().iter().flatten().for_each(|part| sum.add(part));
    }
    Ok(())
}

#[derive(Debug, Default)]
struct FloatSumAccumulator {
    sum: FloatSum,
    any: bool,
}

impl Accumulator for FloatSumAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Float64Type>();
        self.any |= values.len() > values.null_count();
        values.iter().flatten().for_each(|value| self.sum.add(value));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.any |= states[0].len() > states[0].null_count();
        merge_float_states(&mut self.sum, &states[0])
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        if self.any {
            return Ok(vec![float_state_value(&self.sum)]);
        }
        Ok(vec![ScalarValue::try_from(float_state("").data_type())?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.any.then(|| self.sum.value())))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.size()
    }
}
