//! The guard of a scalar subquery: at most one row, or an error.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Expr, Signature, Volatility};

/// The only value of a column; null for no rows.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SingleValue {
    signature: Signature,
}

impl SingleValue {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

/// `single_value(expr)`
pub(crate) fn single_value(expr: Expr) -> Expr {
    super::single_value_udaf().call(vec![expr])
}

impl AggregateUDFImpl for SingleValue {
    fn name(&self) -> &str {
        "single_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let value = Field::new(format!("{}[value]", args.name), args.input_fields[0].data_type().clone(), true);
        let found = Field::new(format!("{}[found]", args.name), DataType::Boolean, true);
        Ok(vec![Arc::new(value), Arc::new(found)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Single { value: ScalarValue::try_from(args.expr_fields[0].data_type())?, found: false }))
    }
}

#[derive(Debug)]
struct Single {
    value: ScalarValue,
    found: bool,
}

impl Single {
    fn take(&mut self, values: &ArrayRef, row: usize) -> Result<()> {
        if self.found {
            return exec_err!(
                "a subquery that stands for one value gave more than one row; add LIMIT 1 or an aggregate"
            );
        }
        self.found = true;
        self.value = ScalarValue::try_from_array(values, row)?;
        Ok(())
    }
}

impl Accumulator for Single {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        (0..values[0].len()).try_for_each(|row| self.take(&values[0], row))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let found = datafusion::common::downcast_value!(states[1], BooleanArray);
        for row in 0..found.len() {
            if found.is_valid(row) && found.value(row) {
                self.take(&states[0], row)?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Boolean(Some(self.found))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }
}
