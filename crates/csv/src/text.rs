//! Text columns: views into the chunk, made by hand.
//!
//! A view is 16 bytes: the length, then the text itself if it has at most 12 bytes; otherwise its first four bytes, a buffer
//! number and an offset. Buffer 0 is the chunk; buffer 1 holds the texts that had doubled quotes.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringViewArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use memchr::memchr;

use crate::bits::Bits;
use crate::column::{Bad, Keep, Nulls, take_back};
use crate::fields::{Fields, unescape};
use crate::{Column, Reason};

const INLINE: usize = 12;

/// Values of a text column.
pub(crate) struct Texts {
    nulls: Nulls,
    keep: Keep,
    views: Vec<u128>,
    valid: Bits,
    unescaped: Vec<u8>,
    /// How many bytes of unescaped texts the last chunk had: the next will have about as many.
    last_unescaped: usize,
}

impl Texts {
    pub(crate) fn new(column: &Column, keep: Keep) -> Self {
        let (views, valid, unescaped) = (Vec::new(), Bits::default(), Vec::new());
        Self { nulls: Nulls::new(column), keep, views, valid, unescaped, last_unescaped: 0 }
    }

    pub(crate) fn read(&mut self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        match self.keep {
            Keep::Values => {
                let mut unescaped = std::mem::take(&mut self.unescaped);
                unescaped.reserve(self.last_unescaped.saturating_sub(unescaped.len()));
                let view = |texts: &Self, start, end| texts.view(data, start, end, fields.doubled, &mut unescaped);
                self.read_kept(fields, column, bad, view);
                self.unescaped = unescaped;
            }
            Keep::Presence => {
                let mut scratch = Vec::new();
                let view = |texts: &Self, start, end| texts.is_there(data, start, end, &mut scratch).then_some(0);
                self.read_kept(fields, column, bad, view);
            }
            // Any text is good, so only a null could reject a record.
            Keep::Nothing if self.nulls.required() => {
                let mut scratch = Vec::new();
                for (row, (start, end)) in fields.column(column).enumerate() {
                    if !self.is_there(data, start, end, &mut scratch) {
                        bad.push((row, Reason::Missing));
                    }
                }
            }
            Keep::Nothing => {}
        }
    }

    /// The same: texts are not parsed.
    pub(crate) fn read_several<L>(&mut self, _: L, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        self.read(data, fields, column, bad);
    }

    /// Keeps the `view` of every field; none: it is null.
    #[inline(always)]
    fn read_kept(
        &mut self,
        fields: Fields<'_>,
        column: usize,
        bad: &mut Vec<Bad>,
        mut view: impl FnMut(&Self, usize, usize) -> Option<u128>,
    ) {
        let bounds = fields.column(column);
        let rows = bounds.len();
        self.views.reserve(rows);
        let mut word = 0;
        for (row, (start, end)) in bounds.enumerate() {
            let view = view(self, start, end);
            if view.is_none() && self.nulls.required() {
                bad.push((row, Reason::Missing));
            }
            self.views.push(view.unwrap_or(0));
            word |= u64::from(view.is_some()) << (row % 64);
            if row % 64 == 63 {
                self.valid.push(word, 64);
                word = 0;
            }
        }
        self.valid.push(word, rows % 64);
    }

    /// Whether a field is not null.
    #[inline(always)]
    fn is_there(&self, data: &[u8], start: usize, end: usize, scratch: &mut Vec<u8>) -> bool {
        if self.nulls.has_spellings() {
            scratch.clear();
            return self.view(data, start, end, true, scratch).is_some();
        }
        start < end && data[start..end] != *b"\"\""
    }

    /// The view of a field; none if it is null.
    #[inline(always)]
    fn view(&self, data: &[u8], start: usize, end: usize, doubled: bool, unescaped: &mut Vec<u8>) -> Option<u128> {
        if start == end {
            return None;
        }
        if data[start] != b'"' && !self.nulls.has_spellings() {
            return Some(view(data, start, end, 0));
        }
        self.general_view(data, start, end, doubled, unescaped)
    }

    #[inline(never)]
    fn general_view(
        &self,
        data: &[u8],
        start: usize,
        end: usize,
        doubled: bool,
        unescaped: &mut Vec<u8>,
    ) -> Option<u128> {
        let (start, end) = match &data[start..end] {
            [b'"', inner @ .., b'"'] => {
                if doubled && memchr(b'"', inner).is_some() {
                    let from = unescaped.len();
                    unescape(inner, unescaped);
                    return self.not_null(unescaped, from, unescaped.len(), 1);
                }
                (start + 1, end - 1)
            }
            _ => (start, end),
        };
        self.not_null(data, start, end, 0)
    }

    fn not_null(&self, data: &[u8], start: usize, end: usize, buffer: u32) -> Option<u128> {
        (start < end && !self.nulls.is_spelling(&data[start..end])).then(|| view(data, start, end, buffer))
    }

    pub(crate) fn give_back(&mut self, array: ArrayRef) {
        take_back(&mut self.views, array);
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        if self.keep != Keep::Nothing {
            self.views.reserve(rows);
        }
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        // Unescaped texts of dropped rows stay behind unused: rejects are rare and their texts short.
        if self.keep != Keep::Nothing {
            self.views.truncate(rows);
            self.valid.truncate(rows);
        }
    }

    /// The texts as an array over `chunk`, which must be the data that was read. The cells start anew.
    pub(crate) fn take(&mut self, chunk: &Buffer) -> ArrayRef {
        let views = ScalarBuffer::from(std::mem::take(&mut self.views));
        self.last_unescaped = self.unescaped.len();
        let unescaped = Buffer::from_vec(std::mem::take(&mut self.unescaped));
        let buffers = vec![chunk.clone(), unescaped];
        let nulls = self.valid.take();
        // SAFETY: every view is 0, the empty text, or was made by `view` from a range of the chunk or of `unescaped`, which only grew since. The ranges
        // are UTF-8: records were checked as a whole, and fields are cut out at ASCII characters.
        Arc::new(unsafe { StringViewArray::new_unchecked(views, buffers, nulls) })
    }
}

/// The view of `data[start..end]`, not empty, where `data` is the buffer of this number.
#[inline(always)]
fn view(data: &[u8], start: usize, end: usize, buffer: u32) -> u128 {
    let len = end - start;
    if len > INLINE {
        let prefix: [u8; 4] = data[start..start + 4].try_into().expect("four bytes");
        let prefix = u32::from_le_bytes(prefix);
        return len as u128 | u128::from(prefix) << 32 | u128::from(buffer) << 64 | (start as u128) << 96;
    }
    let text = if let Some(bytes) = data.get(start..start + 16) {
        let unused = 128 - 8 * len as u32;
        u128::from_le_bytes(bytes.try_into().expect("16 bytes")) << unused >> unused
    } else {
        let mut bytes = [0; 16];
        bytes[..len].copy_from_slice(&data[start..end]);
        u128::from_le_bytes(bytes)
    };
    len as u128 | text << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    #[test]
    fn views_of_every_length_anywhere_in_the_chunk() {
        let data = Buffer::from(b"abcdefghijklmnopqrstuvwxyz0123456789".as_slice());
        for start in 0..data.len() {
            for end in start + 1..=data.len() {
                let mut texts = Texts::new(&Column::new("t", Kind::Text), Keep::Values);
                let seps = [(start as u32).wrapping_sub(1), end as u32];
                texts.read(&data, Fields { seps: &seps, stride: 1, rows: 1, doubled: true }, 0, &mut Vec::new());
                let array = texts.take(&data);
                array.to_data().validate_full().expect("a well-formed array");
                assert_eq!(array.as_string_view().value(0).as_bytes(), &data[start..end]);
            }
        }
    }
}
