//! File and line of the record that a question fails at.
//!
//! Decoded rows do not know where they are from, and need not: only when a stage fails, the record is looked for
//! ([`LeafRunner::failing_record`]) and its place found out, by those who know where the rows of a chunk were read.

use datafusion::arrow::buffer::Buffer;
use tenaz_core::{Classified, Source, StageFailure, StageId};
use tenaz_engine::{LeafInput, LeafRunner};

use super::JobRows;

/// Where the rows of a chunk are from.
pub(crate) trait RecordPlaces {
    /// The chunk, by its place among the data: of failures in several chunks the first in the data is told.
    fn source(&self) -> Source;

    /// Whether a record of this chunk that the stage fails at could be the first one.
    fn are_wanted(&self, stage: StageId) -> bool;

    /// The place of a row that the stage fails at. `None` if it cannot be found out any more.
    fn place_of(&self, stage: StageId, row: usize) -> Option<RecordPlace>;
}

/// The place of a record.
pub(crate) struct RecordPlace {
    /// Its chunk, by its place among the data.
    pub(crate) source: Source,
    /// The name of the file.
    pub(crate) file: String,
    /// 1-based.
    pub(crate) line: u64,
}

/// The failure of a stage at a record of the chunk, if it is one record's doing.
pub(super) fn located_failure(
    runner: &LeafRunner,
    stage: StageId,
    input: &LeafInput,
    places: &dyn RecordPlaces,
) -> Option<StageFailure> {
    let failing = runner.failing_record(stage, input)?;
    let place = places.place_of(stage, failing.row)?;
    let text = format!("{}, line {}: {}", place.file, place.line, failing.error.reason());
    Some(StageFailure::new(stage, place.source, failing.error.class(), text))
}

impl JobRows<'_> {
    /// The line of the file on which the record begins that is row `row` of these records of the scan's table. They begin on line
    /// `line`.
    pub(crate) fn line_of_row(&self, scan: usize, data: &Buffer, line: u64, row: u64) -> Option<u64> {
        let table = self.plan.scans[scan].table;
        let layout = &self.workload.tables[usize::from(table.0)].layout;
        let found = self.with_decoder(scan, None, |decoder| {
            Ok(tenaz_csv::line_of_row(decoder, layout, data, line, row).map_err(tenaz_engine::Error::from)?)
        });
        found.ok().flatten()
    }
}
