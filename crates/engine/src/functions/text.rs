//! Functions of a text.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array, ListBuilder, StringArray, StringBuilder,
    StringViewArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::common::cast::as_string_view_array;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// Decimals of a polarity: sums of it are exact.
const POLARITY: DataType = DataType::Decimal128(10, 9);

/// A function from a text to something.
#[derive(Debug)]
pub(super) struct TextFunction {
    name: &'static str,
    signature: Signature,
    returns: DataType,
    apply: fn(&StringViewArray) -> Result<ArrayRef>,
}

impl PartialEq for TextFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TextFunction {}

impl std::hash::Hash for TextFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

fn list_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
}

pub(super) fn all() -> Vec<Arc<dyn ScalarUDFImpl>> {
    let function = |name, returns, apply| -> Arc<dyn ScalarUDFImpl> {
        let signature = Signature::string(1, Volatility::Immutable);
        Arc::new(TextFunction { name, signature, returns, apply })
    };
    vec![
        function("is_english", DataType::Boolean, |texts| {
            Ok(Arc::new(texts.iter().map(|t| t.map(tenaz_text::is_english)).collect::<BooleanArray>()))
        }),
        function("language", DataType::Utf8, |texts| {
            Ok(Arc::new(texts.iter().map(|t| t.and_then(tenaz_text::language)).collect::<StringArray>()))
        }),
        function("sentiment", POLARITY, |texts| {
            let scores = texts.iter().map(|t| t.map(|t| i128::from(tenaz_text::sentiment_nano(t))));
            Ok(Arc::new(scores.collect::<Decimal128Array>().with_data_type(POLARITY)))
        }),
        function("python_list", list_type(), python_lists),
        function("year_of", DataType::Int64, |texts| {
            Ok(Arc::new(texts.iter().map(|t| t.and_then(tenaz_text::year).map(i64::from)).collect::<Int64Array>()))
        }),
    ]
}

fn python_lists(texts: &StringViewArray) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for text in texts {
        match text.and_then(tenaz_text::python_list) {
            None => lists.append_null(),
            Some(elements) => lists.append_value(elements.iter().map(Some)),
        }
    }
    Ok(Arc::new(lists.finish()))
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = matches!(args.args[0], ColumnarValue::Scalar(_));
        let texts = args.args[0].to_array(if constant { 1 } else { args.number_rows })?;
        let texts = cast(&texts, &DataType::Utf8View)?;
        let texts = as_string_view_array(&texts)?;
        super::count_dear_calls(self.name, (texts.len() - texts.null_count()) as u64);
        let results = (self.apply)(texts)?;
        if constant {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&results, 0)?));
        }
        Ok(ColumnarValue::Array(results))
    }
}
