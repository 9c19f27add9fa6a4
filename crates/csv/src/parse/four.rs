//! Four numbers at once with AVX2: one number in each 64-bit lane, its digits as bytes, the last one highest.
//!
//! Every function is inlined into [`Cells::read_avx2`](crate::column::Cells), where the compiler may use AVX2 throughout.

use std::arch::x86_64::*;

use crate::fields::Four;

/// The fields' last eight bytes, with what is before a field made zero, and `'0'` taken off every byte.
///
/// None if a field is longer than eight bytes or does not lie eight bytes into the data.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
pub(super) unsafe fn load(data: &[u8], bounds: &Four) -> Option<__m256i> {
    let Four { starts, ends } = bounds;
    // Negative as soon as one field lies outside or is too long: the sign bits are gathered and looked at once.
    let outside = |i: usize| {
        let longer = (8 - ends[i] as i64) + starts[i] as i64;
        longer | (ends[i] as i64 - 8) | (data.len() as i64 - ends[i] as i64)
    };
    if outside(0) | outside(1) | outside(2) | outside(3) < 0 {
        return None;
    }
    // SAFETY: 8 <= ends[i] <= data.len() was just checked, so the eight bytes before it lie in the data; the read is unaligned.
    let tail = |i: usize| unsafe { data.as_ptr().add(ends[i] - 8).cast::<i64>().read_unaligned() };
    let unused = |i: usize| 64 - 8 * (ends[i] - starts[i]) as i64;
    // SAFETY: AVX2 is there, by this function's contract.
    unsafe {
        let words = _mm256_set_epi64x(tail(3), tail(2), tail(1), tail(0));
        let unused = _mm256_set_epi64x(unused(3), unused(2), unused(1), unused(0));
        let digits = _mm256_xor_si256(words, _mm256_set1_epi8(0x30));
        // An empty field shifts everything out.
        Some(_mm256_sllv_epi64(_mm256_srlv_epi64(digits, unused), unused))
    }
}

/// Whether every byte is a digit.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
pub(super) unsafe fn are_digits(lanes: __m256i) -> bool {
    // SAFETY: AVX2 is there, by this function's contract.
    unsafe {
        let above_nine = _mm256_subs_epu8(lanes, _mm256_set1_epi8(9));
        _mm256_testz_si256(above_nine, above_nine) == 1
    }
}

/// The number in each lane, of eight digits.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
pub(super) unsafe fn numbers(digits: __m256i) -> __m256i {
    // SAFETY: AVX2 is there, by this function's contract.
    unsafe {
        let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010A));
        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
        // The first four digits are the lane's low half.
        let first = _mm256_mul_epu32(fours, _mm256_set1_epi64x(10_000));
        _mm256_add_epi64(first, _mm256_srli_epi64::<32>(fours))
    }
}

/// Products of numbers that have at most 32 bits.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
pub(super) unsafe fn products(numbers: __m256i, factors: __m256i) -> __m256i {
    // SAFETY: AVX2 is there, by this function's contract.
    unsafe { _mm256_mul_epu32(numbers, factors) }
}

/// The lanes as an array.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
pub(super) unsafe fn array(lanes: __m256i) -> [u64; 4] {
    let mut array = [0; 4];
    // SAFETY: the array has the 32 bytes that are stored, unaligned; AVX2 is there, by this function's contract.
    unsafe { _mm256_storeu_si256(array.as_mut_ptr().cast(), lanes) };
    array
}

/// Numbers with at most one point: their digits without it, and for each the factor that `factors` has for the number of
/// digits after it. None if a lane is no such number or its factor is zero.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
pub(super) unsafe fn fixed_point(lanes: __m256i, factors: &[u64; 8]) -> Option<(__m256i, __m256i)> {
    // SAFETY: AVX2 is there, by this function's contract.
    unsafe {
        let zero = _mm256_setzero_si256();
        // A point is 0x1E after the zeros are taken off. Its byte becomes all ones.
        let point = _mm256_cmpeq_epi8(lanes, _mm256_set1_epi8(0x1E));
        let lowest = _mm256_and_si256(point, _mm256_sub_epi64(zero, point));
        let below = _mm256_sub_epi64(lowest, _mm256_set1_epi64x(1));
        let above = _mm256_andnot_si256(_mm256_or_si256(point, below), lanes);
        let moved = _mm256_slli_epi64::<8>(_mm256_and_si256(lanes, below));
        let whole = _mm256_cmpeq_epi64(point, zero);
        let digits = _mm256_blendv_epi8(_mm256_or_si256(above, moved), lanes, whole);
        let mut factor = _mm256_and_si256(whole, _mm256_set1_epi64x(factors[0] as i64));
        // A lane with two points equals none of these, so its factor stays zero.
        for (fraction, value) in factors.iter().enumerate() {
            if *value == 0 {
                break;
            }
            let alone = _mm256_cmpeq_epi64(point, _mm256_set1_epi64x(0xFF << (56 - 8 * fraction)));
            factor = _mm256_or_si256(factor, _mm256_and_si256(alone, _mm256_set1_epi64x(*value as i64)));
        }
        // A point and nothing but zeros may be a lone point, which is no number.
        let lone = _mm256_cmpeq_epi64(lanes, _mm256_set1_epi64x(0x1E << 56));
        let refused = _mm256_or_si256(_mm256_cmpeq_epi64(factor, zero), lone);
        let good = _mm256_testz_si256(refused, refused) == 1 && are_digits(digits);
        good.then_some((digits, factor))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Parser;
    use super::super::decimal::DecimalParser;
    use super::super::int::IntParser;
    use super::*;
    use crate::index::Simd;

    /// Texts of a few characters that are numbers more often than not, the same ones every time.
    struct Texts(u64);

    impl Texts {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }

        fn next(&mut self) -> Vec<u8> {
            let mut text: Vec<u8> = (0..self.below(9)).map(|_| b'0' + self.below(10) as u8).collect();
            match self.below(8) {
                0 | 1 if !text.is_empty() => {
                    let place = self.below(text.len() as u64) as usize;
                    text[place] = b'.';
                }
                2 => text.extend_from_slice(b".0"),
                3 if !text.is_empty() && self.below(8) == 0 => {
                    let place = self.below(text.len() as u64) as usize;
                    text[place] = self.below(256) as u8;
                }
                _ => {}
            }
            text
        }
    }

    /// Wherever four fields are read at once, each is what the slow way says. Returns how often they were.
    fn check<P: Parser>(parser: &mut P, before: &[u8]) -> usize
    where
        P::Value: PartialEq + std::fmt::Debug,
    {
        if Simd::detect() == Simd::Portable {
            return usize::MAX;
        }
        let mut texts = Texts(11);
        let mut read = 0;
        for _ in 0..200_000 {
            let fields: [Vec<u8>; 4] = [texts.next(), texts.next(), texts.next(), texts.next()];
            let mut data = before.to_vec();
            let mut bounds = Four { starts: [0; 4], ends: [0; 4] };
            for (i, field) in fields.iter().enumerate() {
                bounds.starts[i] = data.len();
                data.extend_from_slice(field);
                bounds.ends[i] = data.len();
                data.push(b',');
            }
            data.pop();
            // SAFETY: AVX2 was just detected.
            let (values, checked) = unsafe { (parser.four(&data, &bounds), parser.check_four(&data, &bounds)) };
            assert_eq!(values.is_some(), checked, "{fields:?}");
            let Some(values) = values else { continue };
            read += 1;
            for (field, value) in fields.iter().zip(values) {
                let expected = if field.is_empty() { Ok(P::Value::default()) } else { parser.slow(field) };
                assert_eq!(Ok(value), expected, "{field:?}");
            }
        }
        read
    }

    #[test]
    fn four_numbers_at_once_are_what_each_is_alone() {
        for before in [&b""[..], b"9", b"12345678,"] {
            // At the start of the data there are no eight bytes before the first field.
            let often = if before.len() < 8 { 0 } else { 10_000 };
            assert!(check(&mut IntParser { float_text: false }, before) >= often / 2);
            assert!(check(&mut IntParser { float_text: true }, before) >= often);
            for (precision, scale) in [(15, 3), (12, 0), (18, 9)] {
                assert!(check(&mut DecimalParser::new(precision, scale), before) >= often / 10, "{precision},{scale}");
            }
        }
        // Not roomy, factors too large, and no factors at all: never four at once.
        for (precision, scale) in [(5, 2), (30, 11), (3, -2)] {
            let read = check(&mut DecimalParser::new(precision, scale), b"12345678,");
            assert!(read == 0 || read == usize::MAX);
        }
    }
}
