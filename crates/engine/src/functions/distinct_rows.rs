//! `aggregate(DISTINCT …)`: every different row once.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use datafusion::arrow::datatypes::{FieldRef, Float64Type};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::Accumulator;

/// Floats of which equal ones have equal bits, as in groups: there is one zero, and one NaN.
pub(super) fn one_zero(column: &ArrayRef) -> ArrayRef {
    match column.as_primitive_opt::<Float64Type>() {
        Some(floats) => Arc::new(floats.unary::<_, Float64Type>(one_of_equals)),
        None => Arc::clone(column),
    }
}

/// The float that stands for all that are equal to it.
pub(super) fn one_of_equals(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// Makes the accumulator that gets the different rows. It must not depend on their order.
type Make = Box<dyn Fn() -> Result<Box<dyn Accumulator>> + Send + Sync>;

/// Keeps the different rows, each with how often it came, so that it can leave a window that slides.
pub(super) struct DistinctRows {
    converter: RowConverter,
    rows: HashMap<Box<[u8]>, u64>,
    /// Bytes of the rows.
    heap: usize,
    make: Make,
}

impl fmt::Debug for DistinctRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistinctRows of {}", self.rows.len())
    }
}

impl DistinctRows {
    /// Rows of these types. A row with a null counts for nothing.
    pub(super) fn new<'f>(
        fields: impl IntoIterator<Item = &'f FieldRef>,
        make: impl Fn() -> Result<Box<dyn Accumulator>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let fields = fields.into_iter().map(|field| SortField::new(field.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        Ok(Self { converter, rows: HashMap::new(), heap: 0, make: Box::new(make) })
    }

    fn add(&mut self, row: &[u8]) {
        match self.rows.get_mut(row) {
            Some(count) => *count += 1,
            None => {
                self.heap += row.len();
                self.rows.insert(row.into(), 1);
            }
        }
    }

    fn of_whole_rows(&mut self, values: &[ArrayRef], mut change: impl FnMut(&mut Self, &[u8])) -> Result<()> {
        let columns: Vec<ArrayRef> = values.iter().map(one_zero).collect();
        let rows = self.converter.convert_columns(&columns)?;
        let is_whole = |row: &usize| values.iter().all(|column| column.is_valid(*row));
        (0..rows.num_rows()).filter(is_whole).for_each(|row| change(self, rows.row(row).as_ref()));
        Ok(())
    }

    fn columns(&self) -> Result<Vec<ArrayRef>> {
        let parser = self.converter.parser();
        Ok(self.converter.convert_rows(self.rows.keys().map(|row| parser.parse(row)))?)
    }
}

impl Accumulator for DistinctRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.of_whole_rows(values, Self::add)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.of_whole_rows(values, |this, row| {
            if let Some(count) = this.rows.get_mut(row) {
                *count -= 1;
                if *count == 0 {
                    this.rows.remove(row);
                    this.heap -= row.len();
                }
            }
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states[0].as_list_opt::<i32>() else {
            return exec_err!("a partial result of DISTINCT has another shape");
        };
        for list in lists.iter().flatten() {
            list.as_binary::<i32>().iter().flatten().for_each(|row| self.add(row));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut rows: Vec<&[u8]> = self.rows.keys().map(AsRef::as_ref).collect();
        rows.sort_unstable();
        let rows: ArrayRef = Arc::new(BinaryArray::from_iter_values(rows));
        Ok(vec![SingleRowListArrayBuilder::new(rows).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut inner = (self.make)()?;
        inner.update_batch(&self.columns()?)?;
        inner.evaluate()
    }

    fn size(&self) -> usize {
        let entry = size_of::<(Box<[u8]>, u64)>() + 1;
        size_of_val(self) + self.converter.size() + self.heap + self.rows.capacity() * entry
    }
}
