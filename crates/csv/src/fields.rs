//! The fields of a window of records, as positions.

use std::borrow::Cow;

use memchr::memchr;

use crate::parse::lanes::{Lanes, Spans};

/// Records whose fields lie between consecutive positions: field `c` of row `r` is after position `r * stride + c` and before
/// the next one. While nothing is left out, a record's last position (its newline) is also the one before the next record's
/// first field, so the stride is the number of columns; otherwise it is one more.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    /// Positions; the first byte of the data has -1, wrapped, before it.
    pub(crate) seps: &'a [u32],
    pub(crate) stride: usize,
    pub(crate) rows: usize,
    /// Whether there may be doubled quotes inside quotes.
    pub(crate) doubled: bool,
}

impl Fields<'_> {
    /// Where the fields of a column start and end, row by row.
    #[inline(always)]
    pub(crate) fn column(self, column: usize) -> impl ExactSizeIterator<Item = (usize, usize)> {
        (0..self.rows).map(move |row| self.one(column, row))
    }

    /// Where a field starts and ends.
    #[inline(always)]
    pub(crate) fn one(self, column: usize, row: usize) -> (usize, usize) {
        let at = row * self.stride + column;
        let pair: [u32; 2] = self.seps[at..at + 2].try_into().expect("two positions");
        (pair[0].wrapping_add(1) as usize, pair[1] as usize)
    }

    /// Where the fields of several rows from `row` start and end.
    #[inline(always)]
    pub(crate) fn several<L: Lanes>(self, lanes: L, column: usize, row: usize) -> Spans<L> {
        let at = row * self.stride + column;
        let before = lanes.positions(&self.seps[at..], self.stride);
        // The position before the first byte is wrapped, in 32 bits.
        let starts = before.plus(lanes.splat(1)).and(lanes.splat(u64::from(u32::MAX)));
        Spans { starts, ends: lanes.positions(&self.seps[at + 1..], self.stride) }
    }

    /// Where a record starts and where its last field ends.
    pub(crate) fn record(self, row: usize, columns: usize) -> (usize, usize) {
        let at = row * self.stride;
        (self.seps[at].wrapping_add(1) as usize, self.seps[at + columns] as usize)
    }

    /// Copies a record's positions, to leave others out.
    pub(crate) fn copy(self, row: usize, columns: usize, to: &mut Vec<u32>) {
        let at = row * self.stride;
        to.extend_from_slice(&self.seps[at..=at + columns]);
    }
}

/// The text of a well-formed field, without quotes.
pub(crate) fn unquote(field: &[u8]) -> Cow<'_, [u8]> {
    let [b'"', inner @ .., b'"'] = field else {
        return Cow::Borrowed(field);
    };
    match memchr(b'"', inner) {
        None => Cow::Borrowed(inner),
        Some(_) => {
            let mut text = Vec::with_capacity(inner.len());
            unescape(inner, &mut text);
            Cow::Owned(text)
        }
    }
}

/// Appends the inside of a quoted field with doubled quotes made single.
pub(crate) fn unescape(mut inner: &[u8], to: &mut Vec<u8>) {
    while let Some(quote) = memchr(b'"', inner) {
        to.extend_from_slice(&inner[..=quote]);
        inner = inner.get(quote + 2..).unwrap_or_default();
    }
    to.extend_from_slice(inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_taken_off_and_doubled_ones_made_single() {
        for (field, text) in [
            ("abc", "abc"),
            ("a\"b", "a\"b"),
            ("\"\"", ""),
            ("\"a,b\"", "a,b"),
            ("\"a\"\"b\"", "a\"b"),
            ("\"\"\"\"", "\""),
            ("\"\"\"a\"\"\"", "\"a\""),
        ] {
            assert_eq!(unquote(field.as_bytes()), text.as_bytes(), "{field}");
        }
    }
}
