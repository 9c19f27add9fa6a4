//! Windows into an answer of any length, in its own order or by a column.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::compute::{SortOptions, concat, interleave_record_batch, sort_to_indices};
use datafusion::arrow::record_batch::RecordBatch;
use tenaz_core::ProblemCode;
use tenaz_runtime::Answer;

use crate::limits::MAX_SORTED_ROWS;
use crate::problem::Problem;

/// An answer with an index of its pieces.
#[derive(Debug)]
pub(crate) struct KeptAnswer {
    pub(crate) answer: Answer,
    /// The number of the first row of each piece.
    starts: OnceLock<Vec<u64>>,
    /// The last order that was asked for.
    order: Mutex<Option<(Order, Arc<UInt32Array>)>>,
}

/// By which column, and in which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) column: usize,
    pub(crate) descending: bool,
}

impl KeptAnswer {
    pub(crate) fn new(answer: Answer) -> Self {
        Self { answer, starts: OnceLock::new(), order: Mutex::default() }
    }

    /// So many rows from this one on.
    pub(crate) fn window(&self, from: u64, count: u64, order: Option<Order>) -> Result<Vec<RecordBatch>, Problem> {
        let end = from.saturating_add(count).min(self.answer.rows);
        if from >= end {
            return Ok(Vec::new());
        }
        match order {
            None => self.slice(from, end),
            Some(order) => self.sorted(from, end, order).map(|rows| vec![rows]),
        }
    }

    fn slice(&self, from: u64, end: u64) -> Result<Vec<RecordBatch>, Problem> {
        let starts = self.starts()?;
        let first = starts.partition_point(|start| *start <= from).saturating_sub(1);
        let mut rows = Vec::new();
        for (piece, start) in starts.iter().enumerate().skip(first).take_while(|(_, start)| **start < end) {
            let batch = self.piece(piece)?;
            let skipped = from.saturating_sub(*start);
            let taken = (end - start).min(batch.num_rows() as u64).saturating_sub(skipped);
            rows.push(batch.slice(skipped as usize, taken as usize));
        }
        Ok(rows)
    }

    fn sorted(&self, from: u64, end: u64, order: Order) -> Result<RecordBatch, Problem> {
        let places = self.places(order)?;
        let starts = self.starts()?;
        let mut pieces: Vec<usize> = Vec::new();
        let mut batches: Vec<RecordBatch> = Vec::new();
        let mut taken = Vec::new();
        for place in &places.values()[from as usize..end as usize] {
            let piece = starts.partition_point(|start| *start <= u64::from(*place)).saturating_sub(1);
            let known = pieces.iter().position(|known| *known == piece);
            let batch = match known {
                Some(batch) => batch,
                None => {
                    pieces.push(piece);
                    batches.push(self.piece(piece)?);
                    batches.len() - 1
                }
            };
            taken.push((batch, (u64::from(*place) - starts[piece]) as usize));
        }
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        interleave_record_batch(&batches, &taken).map_err(Problem::internal)
    }

    /// The numbers of all rows in this order. Rows that tie stay as they were.
    fn places(&self, order: Order) -> Result<Arc<UInt32Array>, Problem> {
        if let Some((known, places)) = &*self.order.lock().unwrap_or_else(PoisonError::into_inner)
            && *known == order
        {
            return Ok(Arc::clone(places));
        }
        if self.answer.rows > MAX_SORTED_ROWS {
            let text = format!("the answer has more than {MAX_SORTED_ROWS} rows: put ORDER BY into the question");
            return Err(Problem::new(ProblemCode::TooLarge, text));
        }
        let mut values: Vec<ArrayRef> = Vec::new();
        for piece in 0..self.starts()?.len() {
            let batch = self.piece(piece)?;
            let column = batch.columns().get(order.column).ok_or_else(|| Problem::not_found("such column"))?;
            values.push(Arc::clone(column));
        }
        let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
        let column = concat(&values).map_err(Problem::internal)?;
        let options = SortOptions { descending: order.descending, nulls_first: false };
        let places = sort_to_indices(&column, Some(options), None)
            .map_err(|error| Problem::new(ProblemCode::Unprocessable, format!("this column has no order: {error}")))?;
        let places = Arc::new(places);
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) = Some((order, Arc::clone(&places)));
        Ok(places)
    }

    fn starts(&self) -> Result<&[u64], Problem> {
        if let Some(starts) = self.starts.get() {
            return Ok(starts);
        }
        let mut starts = Vec::with_capacity(self.answer.pieces());
        let mut next = 0;
        for batch in self.answer.batches() {
            starts.push(next);
            next += batch.map_err(Problem::internal)?.num_rows() as u64;
        }
        Ok(self.starts.get_or_init(|| starts))
    }

    fn piece(&self, piece: usize) -> Result<RecordBatch, Problem> {
        let found =
            self.answer.piece(piece).ok_or_else(|| Problem::internal("an answer has fewer pieces than before"))?;
        found.map_err(Problem::internal)
    }
}
