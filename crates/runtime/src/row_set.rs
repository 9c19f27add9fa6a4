//! Rows that somebody has seen already.

use std::collections::{HashMap, HashSet};

use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};

use crate::Error;

/// A set of rows.
#[derive(Debug)]
pub(crate) struct RowSet {
    converter: RowConverter,
    rows: HashSet<OwnedRow>,
}

impl RowSet {
    pub(crate) fn new(schema: &Schema) -> Result<Self, Error> {
        let fields = schema.fields().iter().map(|f| SortField::new(f.data_type().clone())).collect();
        Ok(Self { converter: RowConverter::new(fields)?, rows: HashSet::new() })
    }

    /// The rows of the batch that were not in the set; now they are.
    pub(crate) fn news(&mut self, batch: &RecordBatch) -> Result<RecordBatch, Error> {
        let rows = self.converter.convert_columns(batch.columns())?;
        let new: BooleanArray = rows.iter().map(|row| Some(self.rows.insert(row.owned()))).collect();
        Ok(filter_record_batch(batch, &new)?)
    }
}

/// How often each row is there. Rows that are read again, in whatever order, can be told from new ones.
#[derive(Debug)]
pub struct RowCounts {
    converter: RowConverter,
    rows: HashMap<OwnedRow, u64>,
}

impl RowCounts {
    /// No rows, with the columns of `schema`.
    pub fn new(schema: &Schema) -> Result<Self, Error> {
        let fields = schema.fields().iter().map(|f| SortField::new(f.data_type().clone())).collect();
        Ok(Self { converter: RowConverter::new(fields)?, rows: HashMap::new() })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Counts these rows.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        for row in &self.converter.convert_columns(batch.columns())? {
            *self.rows.entry(row.owned()).or_insert(0) += 1;
        }
        Ok(())
    }

    /// Takes these rows away, and gives those of them that were not there.
    pub fn take(&mut self, batch: &RecordBatch) -> Result<RecordBatch, Error> {
        if self.rows.is_empty() {
            return Ok(batch.clone());
        }
        let rows = self.converter.convert_columns(batch.columns())?;
        let mut is_new = |row: OwnedRow| match self.rows.get_mut(&row) {
            None => true,
            Some(1) => self.rows.remove(&row).is_none(),
            Some(count) => {
                *count -= 1;
                false
            }
        };
        let new: BooleanArray = rows.iter().map(|row| Some(is_new(row.owned()))).collect();
        Ok(filter_record_batch(batch, &new)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    fn rows(values: &[i64]) -> RecordBatch {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(values.to_vec())) as ArrayRef)]).unwrap()
    }

    #[test]
    fn a_row_that_was_there_twice_is_known_twice() {
        let mut counts = RowCounts::new(&rows(&[]).schema()).unwrap();
        counts.add(&rows(&[1, 2, 1])).unwrap();
        let mut news = |values| {
            let news = counts.take(&rows(values)).unwrap();
            news.column(0).as_primitive::<Int64Type>().values().to_vec()
        };
        assert_eq!(news(&[3, 1]), [3]);
        assert_eq!(news(&[1, 1]), [1]);
        assert!(!counts.is_empty());
        assert!(counts.take(&rows(&[2])).unwrap().num_rows() == 0 && counts.is_empty());
    }
}
