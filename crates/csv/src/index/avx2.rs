//! Block masks with AVX2.
//!
//! The generic scanners are inlined into functions that enable the features, so that the compiler may use them throughout.

use std::arch::x86_64::{__m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8};

use super::{Classify, Marks, Masks, Rules, Splitting, Stretch, index_with, split_with};

/// # Safety
/// [`Simd::Avx2`](crate::simd::Simd) must have been detected.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt")]
pub(super) unsafe fn split(pass: &mut Splitting, data: &[u8], rules: Rules, last: bool, marks: Option<&mut Marks>) {
    split_with(Avx2 { delimiter: rules.delimiter }, pass, data, rules, last, marks);
}

/// # Safety
/// [`Simd::Avx2`](crate::simd::Simd) must have been detected.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt")]
pub(super) unsafe fn index(data: &[u8], from: usize, rules: Rules, seps: &mut Vec<u32>) -> Stretch {
    index_with(Avx2 { delimiter: rules.delimiter }, data, from, rules.limit, seps)
}

/// Only made inside the functions above, hence proof that AVX2 is there.
#[derive(Clone, Copy)]
struct Avx2 {
    delimiter: u8,
}

impl Classify for Avx2 {
    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        // SAFETY: the processor has what comes with AVX2 here, since `self` exists.
        unsafe { super::carryless_prefix_xor(bits) }
    }

    #[inline(always)]
    fn masks(self, block: &[u8; 64]) -> Masks {
        // SAFETY: AVX2 is there, since `self` exists; both loads are unaligned and inside the 64 bytes of `block`.
        unsafe {
            let low = _mm256_loadu_si256(block.as_ptr().cast());
            let high = _mm256_loadu_si256(block.as_ptr().add(32).cast());
            Masks {
                quote: equal(low, high, b'"'),
                delimiter: equal(low, high, self.delimiter),
                newline: equal(low, high, b'\n'),
                cr: equal(low, high, b'\r'),
            }
        }
    }
}

/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn equal(low: __m256i, high: __m256i, byte: u8) -> u64 {
    // SAFETY: AVX2 is there, by this function's contract.
    unsafe {
        let pattern = _mm256_set1_epi8(byte as i8);
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, pattern)) as u32;
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, pattern)) as u32;
        u64::from(low) | u64::from(high) << 32
    }
}
