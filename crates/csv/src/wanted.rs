//! Texts that are wanted only of some records.
//!
//! `SELECT id … WHERE amount >= 75` needs the ids of few records. Which ones is known as soon as the amounts are, so the ids are
//! read after them, and no others.

use crate::column::Cells;
use crate::simd::Simd;

/// Values of a column from `low` to `high`, both of them too: whole numbers as they are, decimals in units of their last digit,
/// dates in days and times in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// The column's place in the layout.
    pub column: usize,
    /// The least value.
    pub low: i128,
    /// The largest.
    pub high: i128,
}

/// A text column, and of which records it is wanted: of those that lie in all ranges of one of these.
pub(crate) struct Wanted {
    pub(crate) column: usize,
    pub(crate) any_of: Vec<Vec<Within>>,
    /// Working memory: a bit for each record of the window that is wanted, and those of one of the cases.
    bits: Vec<u64>,
    case: Vec<u64>,
}

impl Wanted {
    pub(crate) fn new(column: usize, any_of: Vec<Vec<Within>>) -> Self {
        Self { column, any_of, bits: Vec::new(), case: Vec::new() }
    }

    /// A bit for each record from `first` on that is wanted, perhaps for others too: a null has a stand-in value here.
    pub(crate) fn find(&mut self, simd: Simd, cells: &[Cells], first: usize, rows: usize) -> &[u64] {
        let words = rows.div_ceil(64);
        self.bits.clear();
        self.bits.resize(words, 0);
        for ranges in &self.any_of {
            self.case.clear();
            self.case.resize(words, u64::MAX);
            for Within { column, low, high } in ranges {
                cells[*column].clear_outside(simd, first, (*low, *high), &mut self.case);
            }
            self.bits.iter_mut().zip(&self.case).for_each(|(all, case)| *all |= case);
        }
        &self.bits
    }
}

/// Clears the bits of values outside of a range; of numbers that fit into 64 bits.
pub(crate) fn clear_outside<T: Copy>(
    simd: Simd,
    values: &[T],
    number: impl Fn(T) -> i64,
    range: (i128, i128),
    bits: &mut [u64],
) {
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let (low, high) = (range.0.max(least), range.1.min(most));
    if low > high {
        return bits.fill(0);
    }
    let (low, width) = (low as i64, (high - low) as u64);
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx512` is only made after asking the processor for these features.
        Simd::Avx512 => unsafe { clear_avx512(values, number, low, width, bits) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx2` is only made after asking the processor for these features.
        Simd::Avx2 => unsafe { clear_avx2(values, number, low, width, bits) },
        Simd::Portable => clear(values, number, low, width, bits),
    }
}

/// The same code with wider instructions.
///
/// # Safety
/// [`Simd::Avx512`] must have been detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn clear_avx512<T: Copy>(values: &[T], number: impl Fn(T) -> i64, low: i64, width: u64, bits: &mut [u64]) {
    clear(values, number, low, width, bits);
}

/// The same code with wider instructions.
///
/// # Safety
/// [`Simd::Avx2`] must have been detected.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn clear_avx2<T: Copy>(values: &[T], number: impl Fn(T) -> i64, low: i64, width: u64, bits: &mut [u64]) {
    clear(values, number, low, width, bits);
}

#[inline(always)]
fn clear<T: Copy>(values: &[T], number: impl Fn(T) -> i64, low: i64, width: u64, bits: &mut [u64]) {
    for (values, word) in values.chunks(64).zip(bits) {
        let mut inside = 0;
        for (place, value) in values.iter().enumerate() {
            inside |= u64::from(number(*value).wrapping_sub(low) as u64 <= width) << place;
        }
        *word &= inside;
    }
}
