//! `nvl(a, b)`: as `coalesce` of two values, whatever their type.
//!
//! DataFusion's makes texts of dates and times and floats of decimals, because it knows only some types.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function, with the name `ifnull` besides.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Nvl {
    signature: Signature,
    aliases: Vec<String>,
    coalesce: Arc<ScalarUDF>,
}

impl Nvl {
    pub(super) fn new() -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Self { signature, aliases: vec!["ifnull".to_owned()], coalesce: coalesce() }
    }
}

impl ScalarUDFImpl for Nvl {
    fn name(&self) -> &str {
        "nvl"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.coalesce.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.coalesce.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.len() != 2 {
            return plan_err!("the function nvl expects 2 arguments, not {}", types.len());
        }
        self.coalesce.coerce_types(types)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.coalesce.simplify(args, context)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("nvl becomes a CASE before it is run")
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.coalesce.inner().conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        true
    }
}
