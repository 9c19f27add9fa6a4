//! The values of one column of a batch, as they are read window by window.

use std::sync::Arc;

use arrow_array::types::{Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, ScalarBuffer};

use crate::bits::Bits;
use crate::fields::{Fields, unquote};
use crate::parse::boolean::BoolParser;
use crate::parse::decimal::DecimalParser;
use crate::parse::float::FloatParser;
use crate::parse::int::IntParser;
use crate::parse::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::parse::lanes::{avx2::Four, avx512::Eight};
use crate::parse::timestamp::{DateParser, TimestampParser};
use crate::parse::{Parser, trim_spaces};
use crate::simd::Simd;
use crate::text::Texts;
use crate::wanted::clear_outside;
use crate::{Column, Kind, Reason};

/// The most columns that are read several fields at a time.
const MAX_STRIDE: usize = 1 << 16;

/// A field that cannot be taken: its row in the window, and why.
pub(crate) type Bad = (usize, Reason);

/// What is kept of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Its values are only checked.
    Nothing,
    /// Which of them are null. Only of texts is that less than all.
    Presence,
    Values,
}

/// Reads and, if the column is asked for, keeps the values of one column.
pub(crate) enum Cells {
    Int(Typed<IntParser>),
    Decimal(Typed<DecimalParser>),
    Float(Typed<FloatParser>),
    Timestamp(Typed<TimestampParser>),
    Date(Typed<DateParser>),
    Bool(Typed<BoolParser>),
    Text(Texts),
}

macro_rules! each {
    ($cells:expr, $name:ident => $do:expr) => {
        match $cells {
            Cells::Int($name) => $do,
            Cells::Decimal($name) => $do,
            Cells::Float($name) => $do,
            Cells::Timestamp($name) => $do,
            Cells::Date($name) => $do,
            Cells::Bool($name) => $do,
            Cells::Text($name) => $do,
        }
    };
}

impl Cells {
    /// Cells of `column`.
    pub(crate) fn new(column: &Column, what: Keep) -> Self {
        let keep = what != Keep::Nothing;
        match &column.kind {
            Kind::Int { float_text } => Cells::Int(Typed::new(IntParser { float_text: *float_text }, column, keep)),
            Kind::Decimal { precision, scale } => {
                Cells::Decimal(Typed::new(DecimalParser::new(*precision, *scale), column, keep))
            }
            Kind::Float => Cells::Float(Typed::new(FloatParser, column, keep)),
            Kind::Timestamp => Cells::Timestamp(Typed::new(TimestampParser::default(), column, keep)),
            Kind::Date => Cells::Date(Typed::new(DateParser::default(), column, keep)),
            Kind::Bool { yes, no } => {
                Cells::Bool(Typed::new(BoolParser { yes: yes.clone(), no: no.clone() }, column, keep))
            }
            Kind::Text => Cells::Text(Texts::new(column, what)),
        }
    }

    /// Reads column `column` of a window; fields that cannot be taken are added to `bad`, with a stand-in value.
    pub(crate) fn read(&mut self, simd: Simd, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        match simd {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Simd::Avx512` is only made after asking the processor for these features.
            Simd::Avx512 => unsafe { self.read_avx512(data, fields, column, bad) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Simd::Avx2` is only made after asking the processor for these features.
            Simd::Avx2 => unsafe { self.read_avx2(data, fields, column, bad) },
            Simd::Portable => each!(self, cells => cells.read(data, fields, column, bad)),
        }
    }

    /// Reads eight fields at a time.
    ///
    /// # Safety
    /// [`Simd::Avx512`] must have been detected.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
    unsafe fn read_avx512(&mut self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        // SAFETY: AVX-512 is there, by this function's contract.
        let lanes = unsafe { Eight::new() };
        each!(self, cells => cells.read_several(lanes, data, fields, column, bad));
    }

    /// Reads four fields at a time.
    ///
    /// # Safety
    /// [`Simd::Avx2`] must have been detected.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt")]
    unsafe fn read_avx2(&mut self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        // SAFETY: AVX2 is there, by this function's contract.
        let lanes = unsafe { Four::new() };
        each!(self, cells => cells.read_several(lanes, data, fields, column, bad));
    }

    /// Whether it can be said which rows lie in a range of numbers: if their values are kept as numbers of at most 64 bits.
    pub(crate) fn has_ranges(&self) -> bool {
        match self {
            Cells::Int(cells) => cells.keep,
            Cells::Decimal(cells) => cells.keep && cells.parser.fits_word(),
            Cells::Timestamp(cells) => cells.keep,
            Cells::Date(cells) => cells.keep,
            Cells::Float(_) | Cells::Bool(_) | Cells::Text(_) => false,
        }
    }

    /// Clears the bits of rows, counted from `first`, that do not lie in a range. It must have them.
    pub(crate) fn clear_outside(&self, simd: Simd, first: usize, range: (i128, i128), bits: &mut [u64]) {
        match self {
            Cells::Int(cells) => clear_outside(simd, &cells.values[first..], |value| value, range, bits),
            Cells::Decimal(cells) => clear_outside(simd, &cells.values[first..], |value| value as i64, range, bits),
            Cells::Timestamp(cells) => clear_outside(simd, &cells.values[first..], |value| value, range, bits),
            Cells::Date(cells) => clear_outside(simd, &cells.values[first..], i64::from, range, bits),
            Cells::Float(_) | Cells::Bool(_) | Cells::Text(_) => {}
        }
    }

    /// Reads column `column` of a window, a text, of the rows that have a bit in `wanted`; the others are any text.
    pub(crate) fn read_wanted(
        &mut self,
        data: &[u8],
        fields: Fields<'_>,
        column: usize,
        wanted: &[u64],
        bad: &mut Vec<Bad>,
    ) {
        if let Cells::Text(texts) = self {
            texts.read_wanted(data, fields, column, wanted, bad);
        }
    }

    /// Makes room for this many further rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        each!(self, cells => cells.reserve(rows));
    }

    /// Drops all but the first `rows` rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        each!(self, cells => cells.truncate(rows));
    }

    /// Takes back the memory of an array that these cells made.
    pub(crate) fn give_back(&mut self, array: ArrayRef) {
        match self {
            Cells::Int(cells) => take_back(&mut cells.values, array),
            Cells::Decimal(cells) => take_back(&mut cells.values, array),
            Cells::Float(cells) => take_back(&mut cells.values, array),
            Cells::Timestamp(cells) => take_back(&mut cells.values, array),
            Cells::Date(cells) => take_back(&mut cells.values, array),
            // Its bits are few.
            Cells::Bool(_) => {}
            Cells::Text(cells) => cells.give_back(array),
        }
    }

    /// What is read from now on lies in the next chunk. Returns whether the array will be one over its chunks.
    pub(crate) fn begin_chunk(&mut self) -> bool {
        match self {
            Cells::Text(cells) => cells.begin_chunk(),
            _ => false,
        }
    }

    /// About how many bytes of the chunk that is being read the rows from this one on point to.
    pub(crate) fn bytes_from(&self, row: usize) -> usize {
        match self {
            Cells::Text(cells) => cells.bytes_from(row),
            _ => 0,
        }
    }

    /// Copies what rows from this one on point to out of the chunk that is being read. It is none of the chunks any more.
    pub(crate) fn detach(&mut self, row: usize, data: &[u8]) {
        if let Cells::Text(cells) = self {
            cells.detach(row, data);
        }
    }

    /// The rows as an array over the chunks that were begun. The cells start anew.
    pub(crate) fn take(&mut self, column: &Column, chunks: &[Buffer]) -> ArrayRef {
        match self {
            Cells::Int(cells) => cells.take_primitive::<Int64Type>(column),
            Cells::Decimal(cells) => cells.take_primitive::<Decimal128Type>(column),
            Cells::Float(cells) => cells.take_primitive::<Float64Type>(column),
            Cells::Timestamp(cells) => cells.take_primitive::<TimestampMicrosecondType>(column),
            Cells::Date(cells) => cells.take_primitive::<Date32Type>(column),
            Cells::Bool(cells) => {
                let values = BooleanBuffer::from(std::mem::take(&mut cells.values));
                Arc::new(BooleanArray::new(values, cells.valid.take()))
            }
            Cells::Text(cells) => cells.take(chunks),
        }
    }
}

/// Keeps the memory of an array's values, if nobody else holds it.
fn take_back<T: ArrowNativeType>(values: &mut Vec<T>, array: ArrayRef) {
    let data = array.to_data();
    drop(array);
    let Some(buffer) = data.buffers().first().cloned() else { return };
    drop(data);
    reuse(values, buffer);
}

/// Keeps the memory of a buffer, if nobody else holds it.
pub(crate) fn reuse<T: ArrowNativeType>(values: &mut Vec<T>, buffer: Buffer) {
    if let Ok(mut spare) = buffer.into_vec::<T>()
        && values.capacity() == 0
    {
        spare.clear();
        *values = spare;
    }
}

/// What a null is in a column, and what becomes of it.
pub(crate) struct Nulls {
    spellings: Vec<String>,
    required: bool,
}

impl Nulls {
    pub(crate) fn new(column: &Column) -> Self {
        Self { spellings: column.nulls.clone(), required: column.required }
    }

    pub(crate) fn is_spelling(&self, text: &[u8]) -> bool {
        self.spellings.iter().any(|spelling| spelling.as_bytes() == text)
    }

    pub(crate) fn has_spellings(&self) -> bool {
        !self.spellings.is_empty()
    }

    pub(crate) fn required(&self) -> bool {
        self.required
    }
}

/// Values of every kind but text.
pub(crate) struct Typed<P: Parser> {
    parser: P,
    nulls: Nulls,
    /// No spelling of null is a value as well, so the fast way needs no look at them.
    fast: bool,
    keep: bool,
    values: Vec<P::Value>,
    valid: Bits,
}

impl<P: Parser> Typed<P> {
    fn new(parser: P, column: &Column, keep: bool) -> Self {
        let fast = column.nulls.iter().all(|spelling| spelling.is_empty() || parser.slow(spelling.as_bytes()).is_err());
        Self { parser, nulls: Nulls::new(column), fast, keep, values: Vec::new(), valid: Bits::default() }
    }

    /// Reads field by field.
    fn read(&mut self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        let way = |_: &mut Self, _| None;
        self.read_by(1, way, data, fields, column, bad);
    }

    /// Reads as many fields at a time as there are lanes, where they have a common shape.
    #[inline(always)]
    fn read_several<L: Lanes>(&mut self, lanes: L, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        if !P::SEVERAL || !self.fast || fields.stride > MAX_STRIDE {
            return self.read(data, fields, column, bad);
        }
        if self.keep {
            let way = |cells: &mut Self, row| cells.keep_several(lanes, data, fields, column, row);
            self.read_by(L::COUNT, way, data, fields, column, bad);
        } else {
            let way = |cells: &mut Self, row| cells.check_several(lanes, data, fields, column, row);
            self.read_by(L::COUNT, way, data, fields, column, bad);
        }
    }

    /// Reads `count` fields at a time `way`, which returns which of them are not null, a bit each, or none if it does not
    /// know them. Those are read one by one.
    #[inline(always)]
    fn read_by(
        &mut self,
        count: usize,
        way: impl Fn(&mut Self, usize) -> Option<u64>,
        data: &[u8],
        fields: Fields<'_>,
        column: usize,
        bad: &mut Vec<Bad>,
    ) {
        let rows = fields.rows;
        if self.keep {
            self.values.reserve(rows);
        }
        // Rows of a word of the bitmap at a time.
        for first in (0..rows).step_by(64) {
            let end = rows.min(first + 64);
            let (mut word, mut row) = (0, first);
            while row < end {
                let next = end.min(row + count);
                if row + count <= end
                    && let Some(valid) = way(self, row)
                {
                    word |= valid << (row - first);
                } else {
                    for row in row..next {
                        let (start, end) = fields.one(column, row);
                        word |= u64::from(self.read_one(data, start, end, row, bad)) << (row - first);
                    }
                }
                row = next;
            }
            if self.keep {
                self.valid.push(word, end - first);
            }
        }
    }

    #[inline(always)]
    fn keep_several<L: Lanes>(
        &mut self,
        lanes: L,
        data: &[u8],
        fields: Fields<'_>,
        column: usize,
        row: usize,
    ) -> Option<u64> {
        let spans = fields.several(lanes, column, row);
        let valid = spans.filled();
        if self.nulls.required && valid.count_ones() as usize != L::COUNT {
            return None;
        }
        let words = self.parser.several(data, spans)?.words();
        append(&mut self.values, words.as_ref().iter().map(|word| P::value(*word)));
        Some(valid)
    }

    #[inline(always)]
    fn check_several<L: Lanes>(
        &mut self,
        lanes: L,
        data: &[u8],
        fields: Fields<'_>,
        column: usize,
        row: usize,
    ) -> Option<u64> {
        let spans = fields.several(lanes, column, row);
        let complete = !self.nulls.required || spans.filled().count_ones() as usize == L::COUNT;
        (complete && self.parser.check_several(data, spans)).then_some(0)
    }

    /// Reads a field; returns whether it is a value.
    #[inline(always)]
    fn read_one(&mut self, data: &[u8], start: usize, end: usize, row: usize, bad: &mut Vec<Bad>) -> bool {
        let Self { parser, nulls, values, keep, fast, .. } = self;
        let fast = *fast && start < end;
        if !*keep && fast && parser.fast_check(data, start, end) {
            return true;
        }
        let value = match (*keep && fast).then(|| parser.fast(data, start, end)).flatten() {
            Some(value) => Some(value),
            None if start == end && !nulls.required => None,
            None => general(parser, nulls, &data[start..end]).unwrap_or_else(|reason| {
                bad.push((row, reason));
                None
            }),
        };
        if *keep {
            values.push(value.unwrap_or_default());
        }
        value.is_some()
    }

    fn reserve(&mut self, rows: usize) {
        if self.keep {
            self.values.reserve(rows);
        }
    }

    fn truncate(&mut self, rows: usize) {
        if self.keep {
            self.values.truncate(rows);
            self.valid.truncate(rows);
        }
    }

    fn take_primitive<T>(&mut self, column: &Column) -> ArrayRef
    where
        T: ArrowPrimitiveType<Native = P::Value>,
        P::Value: ArrowNativeType,
    {
        let values = ScalarBuffer::from(std::mem::take(&mut self.values));
        let array = PrimitiveArray::<T>::new(values, self.valid.take());
        Arc::new(array.with_data_type(column.kind.data_type()))
    }
}

/// Appends a few values. `Vec::extend` does the same, but is not always inlined.
#[inline(always)]
fn append<T>(values: &mut Vec<T>, more: impl ExactSizeIterator<Item = T>) {
    let count = more.len();
    values.reserve(count);
    let (len, spare) = (values.len(), &mut values.spare_capacity_mut()[..count]);
    let mut written = 0;
    for (slot, value) in spare.iter_mut().zip(more) {
        slot.write(value);
        written += 1;
    }
    // SAFETY: so many values were just written behind the others, into capacity that there is.
    unsafe { values.set_len(len + written) };
}

/// The way that handles every field: quotes, spaces, nulls, then the slow parser.
#[cold]
#[inline(never)]
fn general<P: Parser>(parser: &P, nulls: &Nulls, field: &[u8]) -> Result<Option<P::Value>, Reason> {
    let text = unquote(field);
    let text = trim_spaces(&text);
    if text.is_empty() || nulls.is_spelling(text) {
        return if nulls.required { Err(Reason::Missing) } else { Ok(None) };
    }
    parser.slow(text).map(Some)
}
