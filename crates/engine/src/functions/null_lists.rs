//! `array_has_all(list, NULL)` and `array_has_any(list, NULL)` are null.
//!
//! DataFusion takes a null that is a constant for a list without elements, all of which any list has.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

const COMPARED: [&str; 2] = ["array_has_all", "array_has_any"];

/// Puts such functions into the place of those that DataFusion has.
pub(super) fn register(context: &SessionContext) {
    for name in COMPARED {
        let known = context.state().scalar_functions().get(name).map(Arc::clone);
        if let Some(function) = known {
            context.register_udf(ScalarUDF::from(NullOfNull { function }));
        }
    }
}

/// A test of lists that is null where one of them is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NullOfNull {
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for NullOfNull {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.function.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.function.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function.return_field_from_args(args)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arg_types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_null = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(value) if value.is_null());
        if args.args.iter().any(is_null) {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        }
        let mut nulls = None;
        for arg in &args.args {
            if let ColumnarValue::Array(lists) = arg {
                nulls = NullBuffer::union(nulls.as_ref(), lists.logical_nulls().as_ref());
            }
        }
        match self.function.invoke_with_args(args)? {
            ColumnarValue::Array(found) if nulls.is_some() => {
                let (found, known) = found.as_boolean().clone().into_parts();
                let nulls = NullBuffer::union(nulls.as_ref(), known.as_ref());
                Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(found, nulls))))
            }
            found => Ok(found),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}
