//! Rows that somebody has seen already.

use std::collections::HashSet;

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
