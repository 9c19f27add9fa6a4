//! The records of a window: where their fields are, and which of them are left out.

use crate::Reason;
use crate::fields::Fields;
use crate::index::Marks;

/// Working memory for a window.
#[derive(Default)]
pub(crate) struct Window {
    /// The byte before the window, wrapped, then every separator.
    pub(crate) seps: Vec<u32>,
    /// Positions of the records that are left, when some are left out: one more than columns each.
    pub(crate) kept: Vec<u32>,
    /// The ordinal in the chunk of each record that is left.
    pub(crate) ordinals: Vec<u64>,
    pub(crate) faults: Vec<Found>,
    /// Whether there may be doubled quotes inside quotes.
    pub(crate) doubled: bool,
}

/// A record to reject.
pub(crate) struct Found {
    pub(crate) record: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) column: Option<usize>,
    pub(crate) reason: Reason,
}

/// Whether the separators are those of `rows` records with the right number of fields and nothing else.
/// `next`: where the next window starts.
pub(crate) fn is_regular(data: &[u8], marks: &Marks, next: usize, seps: &[u32], rows: usize, columns: usize) -> bool {
    // As many newlines as rows are there. If they are the last separator of every row, they are nowhere else.
    let is_newline = |sep: u32| data.get(sep as usize).is_none_or(|byte| *byte == b'\n');
    let ends_rows = || match next <= marks.end {
        // The data itself need not be touched.
        true => (1..=rows).all(|row| marks.is_end(seps[row * columns] as usize)),
        false => (1..=rows).all(|row| is_newline(seps[row * columns])),
    };
    // Only a single column can be mistaken for a blank line.
    let no_blanks = || {
        let unended = seps.last().is_some_and(|last| *last as usize >= data.len());
        columns > 1 || (!unended && seps.windows(2).all(|pair| pair[0].wrapping_add(1) != pair[1]))
    };
    seps.len() == rows * columns + 1 && ends_rows() && no_blanks()
}

impl Window {
    pub(crate) fn fields(&self, regular: bool, rows: usize, columns: usize) -> Fields<'_> {
        if regular {
            Fields { seps: &self.seps, stride: columns, rows, doubled: self.doubled }
        } else {
            Fields { seps: &self.kept, stride: columns + 1, rows: self.ordinals.len(), doubled: self.doubled }
        }
    }

    /// Drops the given rows from the index and notes their faults.
    pub(crate) fn leave_out(
        &mut self,
        regular: bool,
        rows: usize,
        columns: usize,
        first_record: u64,
        bad: Vec<(usize, Option<usize>, Reason)>,
    ) {
        let (mut kept, mut ordinals) = (Vec::new(), Vec::new());
        let fields = self.fields(regular, rows, columns);
        let mut faults = Vec::with_capacity(bad.len());
        let mut bad = bad.into_iter().peekable();
        for row in 0..fields.rows {
            let record = if regular { first_record + row as u64 } else { self.ordinals[row] };
            if let Some((_, column, reason)) = bad.next_if(|(bad, ..)| *bad == row) {
                let (start, end) = fields.record(row, columns);
                faults.push(Found { record, start, end, column, reason });
            } else {
                fields.copy(row, columns, &mut kept);
                ordinals.push(record);
            }
        }
        self.faults.append(&mut faults);
        self.kept = kept;
        self.ordinals = ordinals;
    }
}
