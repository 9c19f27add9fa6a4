//! The values of one column of a chunk, as they are read window by window.

use std::sync::Arc;

use arrow_array::types::{Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, ScalarBuffer};

use crate::bits::Bits;
use crate::fields::{Fields, Four, unquote};
use crate::index::Simd;
use crate::parse::boolean::BoolParser;
use crate::parse::decimal::DecimalParser;
use crate::parse::float::FloatParser;
use crate::parse::int::IntParser;
use crate::parse::timestamp::{DateParser, TimestampParser};
use crate::parse::{Parser, trim_spaces};
use crate::text::Texts;
use crate::{Column, Kind, Reason};

/// A field that cannot be taken: its row in the window, and why.
pub(crate) type Bad = (usize, Reason);

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
    /// Cells of `column`, whose values are only checked unless `keep`.
    pub(crate) fn new(column: &Column, keep: bool) -> Self {
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
            Kind::Text => Cells::Text(Texts::new(column, keep)),
        }
    }

    /// Reads column `column` of a window; fields that cannot be taken are added to `bad`, with a stand-in value.
    pub(crate) fn read(&mut self, simd: Simd, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        match simd {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Simd::Avx2` is only made by `Simd::detect`, after asking the processor for these features.
            Simd::Avx2 => unsafe { self.read_avx2(data, fields, column, bad) },
            Simd::Portable => self.read_inlined::<false>(data, fields, column, bad),
        }
    }

    /// The same code for a processor that shifts and counts bits in one instruction.
    ///
    /// # Safety
    /// [`Simd::Avx2`] must have been detected.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn read_avx2(&mut self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        self.read_inlined::<true>(data, fields, column, bad);
    }

    /// `AVX2`: inlined into [`Cells::read_avx2`].
    #[inline(always)]
    fn read_inlined<const AVX2: bool>(&mut self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        match self {
            Cells::Int(cells) => cells.read::<AVX2>(data, fields, column, bad),
            Cells::Decimal(cells) => cells.read::<AVX2>(data, fields, column, bad),
            Cells::Float(cells) => cells.read::<AVX2>(data, fields, column, bad),
            Cells::Timestamp(cells) => cells.read::<AVX2>(data, fields, column, bad),
            Cells::Date(cells) => cells.read::<AVX2>(data, fields, column, bad),
            Cells::Bool(cells) => cells.read::<AVX2>(data, fields, column, bad),
            Cells::Text(cells) => cells.read(data, fields, column, bad),
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

    /// The rows as an array over `chunk`. The cells start anew.
    pub(crate) fn take(&mut self, column: &Column, chunk: &Buffer) -> ArrayRef {
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
            Cells::Text(cells) => cells.take(chunk),
        }
    }
}

/// Keeps the memory of an array's values, if nobody else holds it.
pub(crate) fn take_back<T: ArrowNativeType>(values: &mut Vec<T>, array: ArrayRef) {
    let data = array.to_data();
    drop(array);
    let Some(buffer) = data.buffers().first().cloned() else { return };
    drop(data);
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

    #[inline(always)]
    fn read<const AVX2: bool>(&mut self, data: &[u8], fields: Fields<'_>, column: usize, bad: &mut Vec<Bad>) {
        match (self.keep, self.fast) {
            (true, true) => self.read_as::<AVX2, true, true>(data, fields, column, bad),
            (true, false) => self.read_as::<false, true, false>(data, fields, column, bad),
            (false, true) => self.read_as::<AVX2, false, true>(data, fields, column, bad),
            (false, false) => self.read_as::<false, false, false>(data, fields, column, bad),
        }
    }

    #[inline(always)]
    fn read_as<const FOUR: bool, const KEEP: bool, const FAST: bool>(
        &mut self,
        data: &[u8],
        fields: Fields<'_>,
        column: usize,
        bad: &mut Vec<Bad>,
    ) {
        let rows = fields.rows;
        if KEEP {
            self.values.reserve(rows);
        }
        // Rows of a word of the bitmap at a time.
        for first in (0..rows).step_by(64) {
            let end = rows.min(first + 64);
            let (mut word, mut row) = (0, first);
            while row < end {
                if FOUR && row + 4 <= end {
                    let bounds = fields.four(column, row);
                    // SAFETY: `FOUR` is only set in `read_avx2`, whose contract it is.
                    if let Some(valid) = unsafe { self.read_four::<KEEP>(data, &bounds) } {
                        word |= valid << (row - first);
                        row += 4;
                        continue;
                    }
                }
                let (start, end) = fields.one(column, row);
                word |= u64::from(self.read_one::<KEEP, FAST>(data, start, end, row, bad)) << (row - first);
                row += 1;
            }
            if KEEP {
                self.valid.push(word, end - first);
            }
        }
    }

    /// Reads four fields at once, if all have a common shape. Returns which are not null, a bit each.
    ///
    /// # Safety
    /// [`Simd::Avx2`] must have been detected.
    #[inline(always)]
    unsafe fn read_four<const KEEP: bool>(&mut self, data: &[u8], bounds: &Four) -> Option<u64> {
        let valid = bounds.filled();
        if self.nulls.required && valid != 0b1111 {
            return None;
        }
        // SAFETY: both have this function's contract.
        unsafe {
            if KEEP {
                self.values.extend_from_slice(&self.parser.four(data, bounds)?);
            } else if !self.parser.check_four(data, bounds) {
                return None;
            }
        }
        Some(valid)
    }

    /// Reads a field; returns whether it is a value.
    #[inline(always)]
    fn read_one<const KEEP: bool, const FAST: bool>(
        &mut self,
        data: &[u8],
        start: usize,
        end: usize,
        row: usize,
        bad: &mut Vec<Bad>,
    ) -> bool {
        let Self { parser, nulls, values, .. } = self;
        if !KEEP && FAST && start < end && parser.fast_check(data, start, end) {
            return true;
        }
        let value = match (KEEP && FAST && start < end).then(|| parser.fast(data, start, end)).flatten() {
            Some(value) => Some(value),
            None if start == end && !nulls.required => None,
            None => general(parser, nulls, &data[start..end]).unwrap_or_else(|reason| {
                bad.push((row, reason));
                None
            }),
        };
        if KEEP {
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
