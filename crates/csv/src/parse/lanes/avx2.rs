//! Four words with AVX2.

use std::arch::x86_64::*;

use super::Lanes;

/// Made only by [`Four::new`] and from other values.
#[derive(Clone, Copy)]
pub(crate) struct Four(__m256i);

impl Four {
    /// The first value, which is zero.
    ///
    /// # Safety
    /// [`Simd::Avx2`](crate::simd::Simd) must be among those that the processor has.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: AVX2 is there, by this function's contract.
        Self(unsafe { _mm256_setzero_si256() })
    }
}

/// Calls an instruction.
macro_rules! avx2 {
    ($instruction:ident($($argument:expr),*)) => {
        // SAFETY: AVX2 is there, since a `Four` exists. The instruction touches no memory.
        Self(unsafe { $instruction($($argument),*) })
    };
}

impl Lanes for Four {
    const COUNT: usize = 4;
    type Words = [u64; 4];

    #[inline(always)]
    fn splat(self, word: u64) -> Self {
        avx2!(_mm256_set1_epi64x(word as i64))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        avx2!(_mm256_and_si256(self.0, other.0))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        avx2!(_mm256_or_si256(self.0, other.0))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        avx2!(_mm256_xor_si256(self.0, other.0))
    }

    #[inline(always)]
    fn without(self, other: Self) -> Self {
        avx2!(_mm256_andnot_si256(other.0, self.0))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        avx2!(_mm256_add_epi64(self.0, other.0))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        avx2!(_mm256_sub_epi64(self.0, other.0))
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        avx2!(_mm256_mul_epu32(self.0, other.0))
    }

    #[inline(always)]
    fn up(self, bits: Self) -> Self {
        avx2!(_mm256_sllv_epi64(self.0, bits.0))
    }

    #[inline(always)]
    fn down(self, bits: Self) -> Self {
        avx2!(_mm256_srlv_epi64(self.0, bits.0))
    }

    #[inline(always)]
    fn equal_bytes(self, other: Self) -> Self {
        avx2!(_mm256_cmpeq_epi8(self.0, other.0))
    }

    #[inline(always)]
    fn equal(self, other: Self) -> Self {
        avx2!(_mm256_cmpeq_epi64(self.0, other.0))
    }

    #[inline(always)]
    fn above(self, other: Self) -> Self {
        avx2!(_mm256_subs_epu8(self.0, other.0))
    }

    #[inline(always)]
    fn pairs(self) -> Self {
        let factors = self.splat(0x010A_010A_010A_010A);
        avx2!(_mm256_maddubs_epi16(self.0, factors.0))
    }

    #[inline(always)]
    fn fours(self) -> Self {
        let factors = self.splat(0x0001_0064_0001_0064);
        avx2!(_mm256_madd_epi16(self.0, factors.0))
    }

    #[inline(always)]
    fn signs(self) -> u64 {
        // SAFETY: AVX2 is there, since `self` exists.
        unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(self.0)) as u64 }
    }

    #[inline(always)]
    fn is_zero(self) -> bool {
        // SAFETY: AVX2 is there, since `self` exists.
        unsafe { _mm256_testz_si256(self.0, self.0) == 1 }
    }

    #[inline(always)]
    fn positions(self, positions: &[u32], stride: usize) -> Self {
        assert!(positions.len() > 3 * stride);
        let at = |i: usize| i64::from(positions[i * stride]);
        avx2!(_mm256_set_epi64x(at(3), at(2), at(1), at(0)))
    }

    #[inline(always)]
    fn load(self, data: &[u8]) -> Option<Self> {
        let last = self.splat((data.len() as u64).wrapping_sub(8));
        if last.minus(self).or(self).or(last).signs() != 0 {
            return None;
        }
        let words = self.words();
        // SAFETY: no word, nor what is left from it to the last place with eight bytes, is negative, as was just checked, so
        // eight bytes from there on lie in `data`; the read is unaligned.
        let at = |i: usize| unsafe { data.as_ptr().add(words[i] as usize).cast::<i64>().read_unaligned() };
        Some(avx2!(_mm256_set_epi64x(at(3), at(2), at(1), at(0))))
    }

    #[inline(always)]
    fn words(self) -> [u64; 4] {
        let mut words = [0; 4];
        // SAFETY: the array has the 32 bytes that are stored, unaligned; AVX2 is there, since `self` exists.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) };
        words
    }
}
