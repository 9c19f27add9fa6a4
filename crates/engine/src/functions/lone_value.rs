//! The value of a subquery that gives one row for each row of the query around it.
//!
//! Such a subquery becomes an aggregation by the columns that tie it to the query around it, joined with that query. More than
//! one row is a mistake only where a row of the query asks for them, so the aggregation keeps two values, and who asks finds
//! out that there are two.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

static TWO_VALUES: LazyLock<Arc<AggregateUDF>> =
    LazyLock::new(|| Arc::new(AggregateUDF::from(TwoValues { signature: Signature::any(1, Volatility::Immutable) })));

static ONLY_VALUE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(OnlyValue { signature: Signature::any(1, Volatility::Immutable) })));

/// `two_values(expr)`: any two of the values, or all if there are fewer.
pub(crate) fn two_values(expr: Expr) -> Expr {
    TWO_VALUES.call(vec![expr])
}

/// `only_value(list)`: null for none, and an error for more than one.
pub(crate) fn only_value(list: Expr) -> Expr {
    ONLY_VALUE.call(vec![list])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TwoValues {
    signature: Signature,
}

impl AggregateUDFImpl for TwoValues {
    fn name(&self) -> &str {
        "two_values"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(args[0].clone(), true))))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), args.return_field.data_type().clone(), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Two { data_type: args.expr_fields[0].data_type().clone(), values: Vec::new() }))
    }
}

#[derive(Debug)]
struct Two {
    data_type: DataType,
    values: Vec<ScalarValue>,
}

impl Two {
    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let missing = 2_usize.saturating_sub(self.values.len());
        for row in 0..values.len().min(missing) {
            self.values.push(ScalarValue::try_from_array(values, row)?);
        }
        Ok(())
    }

    fn list(&self) -> Result<ScalarValue> {
        if self.values.is_empty() {
            return ScalarValue::try_from(DataType::List(Arc::new(Field::new_list_field(
                self.data_type.clone(),
                true,
            ))));
        }
        let values = ScalarValue::iter_to_array(self.values.iter().cloned())?;
        Ok(SingleRowListArrayBuilder::new(values).build_list_scalar())
    }
}

impl Accumulator for Two {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        lists.iter().flatten().try_for_each(|values| self.add(&values))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.list()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.list()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.iter().map(ScalarValue::size).sum::<usize>()
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyValue {
    signature: Signature,
}

impl ScalarUDFImpl for OnlyValue {
    fn name(&self) -> &str {
        "only_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        match &args[0] {
            DataType::List(field) => Ok(field.data_type().clone()),
            other => internal_err!("a list is expected, not {other}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = args.args[0].clone().into_array(args.number_rows)?;
        let lists = lists.as_list::<i32>();
        let place = |row: usize| match lists.is_valid(row).then(|| lists.value_length(row)) {
            None | Some(0) => Ok(None),
            Some(1) => Ok(Some(lists.value_offsets()[row] as u32)),
            Some(_) => {
                exec_err!("a subquery that stands for one value gave more than one row; add LIMIT 1 or an aggregate")
            }
        };
        let places = (0..lists.len()).map(place).collect::<Result<UInt32Array>>()?;
        Ok(ColumnarValue::Array(take(lists.values(), &places, None)?))
    }
}
