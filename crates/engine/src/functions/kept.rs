//! A value as it is, behind which the optimizer does not look.

use std::sync::LazyLock;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

#[derive(Debug, PartialEq, Eq, Hash)]
struct Kept {
    signature: Signature,
}

static KEPT: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::from(Kept { signature: Signature::any(1, Volatility::Immutable) }));

/// `kept(expr)`
pub(crate) fn kept(expr: Expr) -> Expr {
    KEPT.call(vec![expr])
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &str {
        "kept"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
