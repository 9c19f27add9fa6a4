//! The answer to a query: its rows in their one right order, counted and fingerprinted.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use sha2::{Digest, Sha256};
use tenaz_core::{Partition, Source, StageId};
use tenaz_engine::{EdgeInput, PlannedQuery, TRIM_ZEROS, sort_rows};

use crate::format::csv::CsvWriter;
use crate::spool::{Budget, Spool, SpooledRows};
use crate::{Error, format::RowWriter};

/// A finished answer.
#[derive(Debug)]
pub struct Answer {
    /// The query's name.
    pub name: String,
    /// What it asks.
    pub title: String,
    /// Whether the order of rows is part of the answer.
    pub ordered: bool,
    /// The columns.
    pub schema: SchemaRef,
    /// How many rows there are.
    pub rows: u64,
    /// SHA-256 of the answer as CSV: what `sha256sum` says of the file that `--format csv` writes.
    pub fingerprint: String,
    /// When it became final, in milliseconds since 1970.
    pub final_at_ms: u64,
    data: SpooledRows,
}

impl Answer {
    /// Puts the rows in order (those of an unordered query by their columns, left to right) and takes the fingerprint.
    pub(crate) fn new(
        query: &PlannedQuery,
        rows: Spool,
        env: &Arc<RuntimeEnv>,
        budget: &Arc<Budget>,
    ) -> Result<Self, Error> {
        let schema = plain_schema(&query.schema);
        let count = rows.rows();
        let mut hash = CsvWriter::new(Hasher(Sha256::new()), b',');
        hash.begin(&schema).map_err(cannot_fail)?;
        let data = if query.ordered || count == 0 {
            let data = rows.into_input();
            for batch in data.batches() {
                hash.rows(&renamed(&schema, &batch?)?).map_err(cannot_fail)?;
            }
            data
        } else {
            let mut sorted = Spool::new(Arc::clone(budget));
            let mut sequence = 0;
            sort_rows(Arc::new(rows.into_input()), &query.schema, env, &mut |batch| {
                hash.rows(&renamed(&schema, &batch)?).map_err(cannot_fail_df)?;
                let source = Source::Task { stage: StageId(sequence), partition: Partition(0) };
                sequence = sequence.saturating_add(1);
                sorted.push(source, batch).map_err(|e| datafusion::error::DataFusionError::External(Box::new(e)))
            })?;
            sorted.into_input()
        };
        let fingerprint = hex(&hash.into_inner().0.finalize());
        Ok(Self {
            name: query.name.clone(),
            title: query.title.clone(),
            ordered: query.ordered,
            schema,
            rows: count,
            fingerprint,
            final_at_ms: now_ms(),
            data,
        })
    }

    /// The same answer without its rows, where only its fingerprint is wanted.
    pub(crate) fn without_rows(self, budget: &Arc<Budget>) -> Self {
        Self { data: Spool::new(Arc::clone(budget)).into_input(), ..self }
    }

    /// The rows, in order.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, Error>> + '_ {
        self.data.batches().map(|batch| Ok(renamed(&self.schema, &batch?)?))
    }

    /// How many batches the rows are kept in.
    pub fn pieces(&self) -> usize {
        self.data.pieces()
    }

    /// One of the batches, without reading those before it.
    pub fn piece(&self, piece: usize) -> Option<Result<RecordBatch, Error>> {
        let batch = self.data.piece(piece)?;
        Some(batch.and_then(|batch| renamed(&self.schema, &batch)).map_err(Error::from))
    }
}

/// The time, for people.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The answer's columns without what only the planner cares about.
pub fn plain_schema(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|f| {
            let kept = f.metadata().iter().filter(|(key, _)| *key == TRIM_ZEROS);
            let metadata = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
            datafusion::arrow::datatypes::Field::new(f.name(), f.data_type().clone(), true).with_metadata(metadata)
        })
        .collect();
    Arc::new(Schema::new(fields))
}

fn renamed(schema: &SchemaRef, batch: &RecordBatch) -> datafusion::error::Result<RecordBatch> {
    let options = datafusion::arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)?)
}

fn cannot_fail(error: std::io::Error) -> Error {
    Error::Crashed { task: "taking a fingerprint".to_owned(), message: error.to_string() }
}

fn cannot_fail_df(error: std::io::Error) -> datafusion::error::DataFusionError {
    datafusion::error::DataFusionError::IoError(error)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]);
    digits.map(char::from).collect()
}

/// A hash that can be written to.
struct Hasher(Sha256);

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
