//! `exact_percentile(value, p)`: the value at floor(p·n) of n values in ascending order.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{SortOptions, concat, sort};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

use super::ordered::{percentile_of_rows, rows_field};
use super::share::Share;

/// An exact percentile: no interpolation, no approximation, ties decided by the values alone.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ExactPercentile {
    signature: Signature,
}

impl ExactPercentile {
    pub(super) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for ExactPercentile {
    fn name(&self) -> &str {
        "exact_percentile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        match args {
            [value, p] if p.is_numeric() => Ok(vec![value.clone(), p.clone()]),
            _ => plan_err!(
                "exact_percentile takes a value and a share from 0 to 1, such as exact_percentile(price, 0.9)"
            ),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            return Ok(vec![rows_field(args.name)]);
        }
        let item = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), DataType::List(Arc::new(item)), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let share = Share::of(self.name(), &args)?;
        if args.is_distinct {
            return percentile_of_rows(&args, share);
        }
        let data_type = args.expr_fields[0].data_type().clone();
        Ok(Box::new(Values { share, data_type, arrays: Vec::new() }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        percentile_of_rows(&args, Share::of(self.name(), &args)?)
    }
}

#[derive(Debug)]
struct Values {
    share: Share,
    data_type: DataType,
    arrays: Vec<ArrayRef>,
}

impl Values {
    fn all(&self) -> Result<ArrayRef> {
        if self.arrays.is_empty() {
            return Ok(datafusion::arrow::array::new_empty_array(&self.data_type));
        }
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        Ok(concat(&arrays)?)
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = &values[0];
        let kept = if values.null_count() > 0 {
            let present = datafusion::arrow::compute::is_not_null(values)?;
            datafusion::arrow::compute::filter(values, &present)?
        } else {
            Arc::clone(values)
        };
        if !kept.is_empty() {
            self.arrays.push(kept);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states[0].as_list_opt::<i32>() else {
            return exec_err!("exact_percentile got a partial result of another shape");
        };
        for list in lists.iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![SingleRowListArrayBuilder::new(self.all()?).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = self.all()?;
        if values.is_empty() {
            return ScalarValue::try_from(&self.data_type);
        }
        let sorted = sort(&values, Some(SortOptions { descending: false, nulls_first: true }))?;
        ScalarValue::try_from_array(&sorted, self.share.place(sorted.len()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.arrays.iter().map(|a| a.get_array_memory_size()).sum::<usize>()
    }
}
