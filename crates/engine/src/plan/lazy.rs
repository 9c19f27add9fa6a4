//! AND and OR that look at their right side only where the left side leaves it open.
//!
//! `b = 0 OR a / b > 2` must not divide by zero. DataFusion evaluates both sides for all rows, unless the left side decides for
//! every single one.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::compute::{and_kleene, or_kleene};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::cast::as_boolean_array;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

/// Which of the two it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Junction {
    And,
    Or,
}

/// `left AND right` or `left OR right`, the right side evaluated for the rows that the left side does not decide.
#[derive(Debug, Eq)]
pub(super) struct Lazy {
    junction: Junction,
    left: Arc<dyn PhysicalExpr>,
    right: Arc<dyn PhysicalExpr>,
}

impl Lazy {
    pub(super) fn new(junction: Junction, left: Arc<dyn PhysicalExpr>, right: Arc<dyn PhysicalExpr>) -> Self {
        Self { junction, left, right }
    }

    /// The rows for which the right side makes a difference.
    fn open(&self, left: &BooleanArray) -> BooleanArray {
        let decided = self.junction == Junction::Or;
        left.iter().map(|value| Some(value != Some(decided))).collect()
    }
}

// Not derived: the derivation cannot compare what is behind a pointer without moving it.
impl PartialEq for Lazy {
    fn eq(&self, other: &Self) -> bool {
        self.junction == other.junction && self.left.eq(&other.left) && self.right.eq(&other.right)
    }
}

impl Hash for Lazy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.junction.hash(state);
        self.left.hash(state);
        self.right.hash(state);
    }
}

impl PhysicalExpr for Lazy {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        Ok(self.left.nullable(schema)? || self.right.nullable(schema)?)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let left = self.left.evaluate(batch)?.into_array(batch.num_rows())?;
        let left = as_boolean_array(&left)?;
        let open = self.open(left);
        if !open.has_true() {
            return Ok(ColumnarValue::Array(Arc::new(left.clone())));
        }
        let right = self.right.evaluate_selection(batch, &open)?.into_array(batch.num_rows())?;
        let right = as_boolean_array(&right)?;
        let result = match self.junction {
            Junction::And => and_kleene(left, right)?,
            Junction::Or => or_kleene(left, right)?,
        };
        Ok(ColumnarValue::Array(Arc::new(result)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let [left, right] = <[_; 2]>::try_from(children).unwrap_or([Arc::clone(&self.left), Arc::clone(&self.right)]);
        Ok(Arc::new(Self::new(self.junction, left, right)))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.junction {
            Junction::And => "AND THEN",
            Junction::Or => "OR ELSE",
        };
        write!(f, "({} {word} {})", self.left, self.right)
    }
}
