//! An expression with a faster form for the columns that it is usually asked about.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use super::Expr;

/// What makes the faster form.
pub(super) trait Form: fmt::Debug + Send + Sync + Sized + 'static {
    /// The form that does the same as `expr`, and what it is asked about.
    fn of(expr: &Expr) -> Option<(Self, Expr)>;

    /// The result for all values; none if that is for DataFusion to say.
    fn of_all(&self, values: &dyn Array) -> Option<ArrayRef>;
}

/// Stands for an expression of DataFusion in all but its evaluation.
#[derive(Debug)]
pub(super) struct Instead<F> {
    pub(super) form: F,
    pub(super) argument: Expr,
    /// DataFusion's own expression, for what the form does not know.
    plain: Expr,
}

impl<F: Form> Instead<F> {
    /// The same as `expr`, if it has this form.
    pub(super) fn of(expr: &Expr) -> Option<Self> {
        let (form, argument) = F::of(expr)?;
        Some(Self { form, argument, plain: Arc::clone(expr) })
    }
}

impl<F: Form> PhysicalExpr for Instead<F> {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.plain.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.plain.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if let ColumnarValue::Array(values) = self.argument.evaluate(batch)?
            && let Some(results) = self.form.of_all(&values)
        {
            return Ok(ColumnarValue::Array(results));
        }
        self.plain.evaluate(batch)
    }

    fn children(&self) -> Vec<&Expr> {
        self.plain.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Expr>) -> Result<Expr> {
        let plain = Arc::clone(&self.plain).with_new_children(children)?;
        Ok(match Self::of(&plain) {
            Some(instead) => Arc::new(instead),
            None => plain,
        })
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt_sql(f)
    }
}

impl<F> fmt::Display for Instead<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt(f)
    }
}

impl<F> PartialEq for Instead<F> {
    fn eq(&self, other: &Self) -> bool {
        self.plain.eq(&other.plain)
    }
}

impl<F> Eq for Instead<F> {}

impl<F> Hash for Instead<F> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plain.hash(state);
    }
}
