//! `exact_percentile(value, p)`: the value at floor(p·n) of n values in ascending order.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{SortOptions, concat, sort};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;

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
        let item = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), DataType::List(Arc::new(item)), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let share = args.exprs.get(1).and_then(|e| e.downcast_ref::<Literal>());
        let Some(share) = share else {
            return plan_err!(
                "the second argument of exact_percentile must be a plain number from 0 to 1, such as 0.9"
            );
        };
        let share = Share::new(share.value())?;
        let data_type = args.expr_fields[0].data_type().clone();
        Ok(Box::new(Values { share, data_type, arrays: Vec::new() }))
    }
}

/// A share as a fraction of whole numbers: 0.9 is 9/10, not the nearest binary number.
#[derive(Debug, Clone, Copy)]
struct Share {
    over: u128,
    under: u128,
}

impl Share {
    fn new(value: &ScalarValue) -> Result<Self> {
        let text = match value {
            ScalarValue::Float64(Some(p)) => p.to_string(),
            ScalarValue::Float32(Some(p)) => p.to_string(),
            value if !value.is_null() => {
                let text = value.cast_to(&DataType::Utf8)?;
                match text {
                    ScalarValue::Utf8(Some(text)) => text,
                    _ => String::new(),
                }
            }
            _ => String::new(),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = format!("{whole}{fraction}");
        match digits.parse::<u128>() {
            Ok(over) if fraction.len() <= 18 && over <= 10u128.pow(fraction.len() as u32) => {
                Ok(Self { over, under: 10u128.pow(fraction.len() as u32) })
            }
            _ => plan_err!("the share of exact_percentile must be from 0 to 1, such as 0.9; found {value}"),
        }
    }

    /// floor(share · n), and at most the last place.
    fn place(self, n: usize) -> usize {
        let place = self.over * n as u128 / self.under;
        (place as usize).min(n - 1)
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
