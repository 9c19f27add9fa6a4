//! Text columns: views into the chunk, made by hand.
//!
//! A view is 16 bytes: the length, then the text itself if it has at most 12 bytes; otherwise its first four bytes, a buffer
//! number and an offset. Buffer 0 holds the texts that had doubled quotes or were copied; the others are chunks of the batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StringViewArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use memchr::memchr;

use crate::bits::Bits;
use crate::column::{Bad, Keep, Nulls, reuse};
use crate::fields::{Fields, unescape};
use crate::{Column, Reason};

const INLINE: usize = 12;
/// Stands for a null: the view of no text, because the empty one is null.
const NULL: u128 = 0;
/// Bytes that are copied at once.
const SHORT: usize = 64;
/// Texts of a chunk that tell how long all are.
const SAMPLE: usize = 64;
/// The number of the buffer of texts that do not lie in a chunk as they are.
const UNESCAPED: u32 = 0;

/// Values of a text column.
pub(crate) struct Texts {
    nulls: Nulls,
    keep: Keep,
    views: Vec<u128>,
    valid: Bits,
    unescaped: Vec<u8>,
    /// How many bytes of unescaped texts the last batch had: the next will have about as many.
    last_unescaped: usize,
    /// The number of the chunk that is being read.
    chunk: u32,
}

impl Texts {
    pub(crate) fn new(column: &Column, keep: Keep) -> Self {
        let (views, valid, unescaped) = (Vec::new(), Bits::default(), Vec::new());
        Self { nulls: Nulls::new(column), keep, views, valid, unescaped, last_unescaped: 0, chunk: 0 }
    }

    pub(crate) fn keeps_values(&self) -> bool {
        self.keep == Keep::Values
    }

    /// What is read from now on lies in the next chunk. Returns whether views will point into it.
    pub(crate) fn begin_chunk(&mut self) -> bool {
        let points = self.keeps_values();
        self.chunk += u32::from(points);
        points
    }

    pub(crate) fn read(&mut self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        match self.keep {
            Keep::Values => {
                let mut unescaped = std::mem::take(&mut self.unescaped);
                unescaped.reserve(self.last_unescaped.saturating_sub(unescaped.len()));
                let plain = !self.nulls.has_spellings();
                self.read_kept(fields, column, bad, |texts, start, end| {
                    if plain && start < end && data[start] != b'"' {
                        return view(data, start, end, texts.chunk);
                    }
                    texts.view(data, start, end, fields.doubled, &mut unescaped).unwrap_or(NULL)
                });
                self.unescaped = unescaped;
            }
            Keep::Presence => {
                let mut scratch = Vec::new();
                let first = self.views.len();
                let there = |texts: &Self, start, end| u128::from(texts.is_there(data, start, end, &mut scratch));
                self.read_kept(fields, column, bad, there);
                // Any text would do; the empty one points nowhere.
                self.views[first..].fill(0);
            }
            // Any text is good, so only a null could reject a record.
            Keep::Nothing if self.nulls.required() => self.find_missing(data, fields, column, bad),
            Keep::Nothing => {}
        }
    }

    /// Keeps the views of the rows that have a bit in `wanted`, and of the others the empty text's.
    pub(crate) fn read_wanted(
        &mut self,
        data: &[u8],
        fields: Fields<'_>,
        column: usize,
        wanted: &[u64],
        bad: &mut Vec<Bad>,
    ) {
        let mut unescaped = std::mem::take(&mut self.unescaped);
        self.views.reserve(fields.rows);
        for (first, wanted) in (0..fields.rows).step_by(64).zip(wanted) {
            let count = (fields.rows - first).min(64);
            let all = u64::MAX >> (64 - count);
            let (from, mut valid, mut left) = (self.views.len(), all, wanted & all);
            self.views.resize(from + count, NULL);
            while left != 0 {
                let place = left.trailing_zeros() as usize;
                left &= left - 1;
                let (start, end) = fields.one(column, first + place);
                match self.view(data, start, end, fields.doubled, &mut unescaped) {
                    Some(view) => self.views[from + place] = view,
                    None => valid &= !(1 << place),
                }
            }
            self.valid.push(valid, count);
        }
        self.unescaped = unescaped;
        if self.nulls.required() {
            self.find_missing(data, fields, column, bad);
        }
    }

    fn find_missing(&self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        let mut scratch = Vec::new();
        for (row, (start, end)) in fields.column(column).enumerate() {
            if !self.is_there(data, start, end, &mut scratch) {
                bad.push((row, Reason::Missing));
            }
        }
    }

    /// The same: texts are not parsed.
    pub(crate) fn read_several<L>(&mut self, _: L, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        self.read(data, fields, column, bad);
    }

    /// Keeps the `view` of every field, or [`NULL`].
    #[inline(always)]
    fn read_kept(
        &mut self,
        fields: Fields<'_>,
        column: usize,
        bad: &mut Vec<Bad>,
        mut view: impl FnMut(&Self, usize, usize) -> u128,
    ) {
        let mut bounds = fields.column(column);
        let rows = bounds.len();
        self.views.reserve(rows);
        for first in (0..rows).step_by(64) {
            let count = (rows - first).min(64);
            let (mut views, mut word) = ([NULL; 64], 0);
            for (place, (start, end)) in bounds.by_ref().take(count).enumerate() {
                views[place] = view(self, start, end);
                word |= u64::from(views[place] != NULL) << place;
            }
            if self.nulls.required() && word.count_ones() as usize != count {
                let null = (0..count).filter(|place| word >> place & 1 == 0);
                bad.extend(null.map(|place| (first + place, Reason::Missing)));
            }
            self.views.extend_from_slice(&views[..count]);
            self.valid.push(word, count);
        }
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
            return Some(view(data, start, end, self.chunk));
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
                    return self.not_null(unescaped, from, unescaped.len(), UNESCAPED);
                }
                (start + 1, end - 1)
            }
            _ => (start, end),
        };
        self.not_null(data, start, end, self.chunk)
    }

    fn not_null(&self, data: &[u8], start: usize, end: usize, buffer: u32) -> Option<u128> {
        (start < end && !self.nulls.is_spelling(&data[start..end])).then(|| view(data, start, end, buffer))
    }

    /// About how many bytes of the chunk that is being read the views from this row on point to.
    pub(crate) fn bytes_from(&self, row: usize) -> usize {
        if self.keep != Keep::Values {
            return 0;
        }
        let views = &self.views[row..];
        let step = views.len().div_ceil(SAMPLE).max(1);
        let sample = views.iter().step_by(step).filter(|view| is_in(**view, self.chunk));
        step * sample.map(|view| length(*view)).sum::<usize>()
    }

    /// Copies what the views from this row on point to out of the chunk that is being read. It is none of the chunks any more.
    pub(crate) fn detach(&mut self, row: usize, data: &[u8]) {
        if self.keep != Keep::Values {
            return;
        }
        for view in &mut self.views[row..] {
            if is_in(*view, self.chunk) {
                let start = (*view >> 96) as usize;
                let (place, length) = (self.unescaped.len(), length(*view));
                match data[start..].first_chunk::<SHORT>() {
                    // Most texts are short, and to copy as many bytes whatever their length costs less than to look.
                    Some(bytes) if length <= SHORT => {
                        self.unescaped.extend_from_slice(bytes);
                        self.unescaped.truncate(place + length);
                    }
                    _ => self.unescaped.extend_from_slice(&data[start..start + length]),
                }
                *view = *view & u128::from(u64::MAX) | u128::from(UNESCAPED) << 64 | (place as u128) << 96;
            }
        }
        self.chunk -= 1;
    }

    pub(crate) fn give_back(&mut self, array: ArrayRef) {
        let Some(texts) = array.as_string_view_opt().cloned() else { return };
        drop(array);
        let (views, buffers, _) = texts.into_parts();
        reuse(&mut self.views, views.into_inner());
        let unescaped = buffers.first().cloned();
        drop(buffers);
        unescaped.into_iter().for_each(|buffer| reuse(&mut self.unescaped, buffer));
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

    /// The texts as an array over the chunks that were begun, if views point into them. The cells start anew.
    pub(crate) fn take(&mut self, chunks: &[Buffer]) -> ArrayRef {
        let views = ScalarBuffer::from(std::mem::take(&mut self.views));
        self.last_unescaped = self.unescaped.len();
        let unescaped = Buffer::from_vec(std::mem::take(&mut self.unescaped));
        let chunks = &chunks[..std::mem::take(&mut self.chunk) as usize];
        let buffers: Vec<Buffer> = std::iter::once(unescaped).chain(chunks.iter().cloned()).collect();
        let nulls = self.valid.take();
        // SAFETY: every view is 0, the empty text, or was made by `view` or `detach` for a range of `unescaped`, which only grew since, or of the
        // chunk that had its number, which is there: a number is used again only after no view points to it. The ranges are UTF-8: records were checked as a whole, and fields are cut out at ASCII
        // characters.
        Arc::new(unsafe { StringViewArray::new_unchecked(views, buffers, nulls) })
    }
}

/// How long a view's text is.
fn length(view: u128) -> usize {
    view as u32 as usize
}

/// Whether a view points into the buffer of this number.
fn is_in(view: u128, buffer: u32) -> bool {
    length(view) > INLINE && (view >> 64) as u32 == buffer
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

    #[test]
    fn views_of_every_length_anywhere_in_the_chunk() {
        let data = Buffer::from(b"abcdefghijklmnopqrstuvwxyz0123456789".as_slice());
        for start in 0..data.len() {
            for end in start + 1..=data.len() {
                let mut texts = Texts::new(&Column::new("t", Kind::Text), Keep::Values);
                let seps = [(start as u32).wrapping_sub(1), end as u32];
                texts.begin_chunk();
                texts.read(&data, Fields { seps: &seps, stride: 1, rows: 1, doubled: true }, 0, &mut Vec::new());
                let array = texts.take(std::slice::from_ref(&data));
                array.to_data().validate_full().expect("a well-formed array");
                assert_eq!(array.as_string_view().value(0).as_bytes(), &data[start..end]);
            }
        }
    }
}
