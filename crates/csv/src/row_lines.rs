//! On which line of its file a row was: asked only when something is wrong with it, so nothing of it is kept while rows are read.

use arrow_buffer::Buffer;

use crate::index::scalar::{Exact, Scan};
use crate::limits::MAX_RECORD_BYTES;
use crate::{Decoder, Error, Layout, line_starts};

/// The line of the file on which the record begins that is row `row` of these whole records. `line` is the line on which they begin
/// themselves. The records are decoded once more; `decoder` must not be in the middle of a batch.
///
/// `None`: they have fewer rows.
///
/// # Errors
/// As [`Decoder::decode`].
pub fn line_of_row(
    decoder: &mut Decoder,
    layout: &Layout,
    data: &Buffer,
    line: u64,
    row: u64,
) -> Result<Option<u64>, Error> {
    let rejects = decoder.decode(data, 0, line)?.rejects;
    let mut rejected = rejects.iter().map(|reject| reject.record).peekable();
    let starts = record_starts(data, layout.delimiter).zip(0_u64..);
    let mut accepted = starts.filter(|(_, record)| rejected.next_if_eq(record).is_none());
    let Some((start, _)) = accepted.nth(usize::try_from(row).unwrap_or(usize::MAX)) else { return Ok(None) };
    Ok(Some(line + line_starts(&data[..start]).count() as u64))
}

/// Where each record of `data` starts, bad ones included.
fn record_starts(data: &[u8], delimiter: u8) -> impl Iterator<Item = usize> {
    let mut exact = Exact::new(delimiter, MAX_RECORD_BYTES);
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < data.len() {
            let start = at;
            match exact.scan(data, start, true, |_| ()) {
                Scan::NeedMore => return None,
                Scan::Blank { next, .. } => at = next,
                Scan::Record { next, .. } => {
                    at = next;
                    return Some(start);
                }
                Scan::Faulty { next, .. } => {
                    at = next.unwrap_or(data.len());
                    return Some(start);
                }
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Column, Kind};

    /// The lines of all rows of records that begin on line 10.
    fn lines(text: &str) -> Vec<u64> {
        let layout =
            Layout::new(vec![Column::new("n", Kind::Int { float_text: false }), Column::new("text", Kind::Text)]);
        let mut decoder = Decoder::new(Arc::new(layout.clone()), vec![0]).expect("columns of the layout");
        let data = Buffer::from_vec(text.as_bytes().to_vec());
        let rows = 0..;
        let lines = rows.map(|row| line_of_row(&mut decoder, &layout, &data, 10, row).expect("a small chunk"));
        lines.map_while(|line| line).collect()
    }

    #[test]
    fn a_row_has_the_line_on_which_its_record_begins() {
        assert_eq!(lines("1,a\n2,b\n3,c"), [10, 11, 12]);
        assert_eq!(lines("1,\"a\n\nb\"\n2,b\n"), [10, 13], "line ends in quotes");
        assert_eq!(lines("\n1,a\r\n\r\n2,b\r\n"), [11, 13], "blank lines");
        assert_eq!(lines(""), [0_u64; 0]);
    }

    #[test]
    fn rejected_records_are_no_rows() {
        assert_eq!(lines("x,a\n2,b\n3\n4,\"d\"e\n5,f\n"), [11, 14]);
        assert_eq!(lines("1,a\n2,\"never closed\n3,c\n"), [10, 12]);
    }
}
