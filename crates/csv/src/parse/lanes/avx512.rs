//! Eight words with AVX-512.

use std::arch::x86_64::*;

use super::Lanes;

/// Made only by [`Eight::new`] and from other values.
#[derive(Clone, Copy)]
pub(crate) struct Eight(__m512i);

impl Eight {
    /// The first value, which is zero.
    ///
    /// # Safety
    /// [`Simd::Avx512`](crate::simd::Simd) must be among those that the processor has.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: AVX-512 is there, by this function's contract.
        Self(unsafe { _mm512_setzero_si512() })
    }
}

/// Calls an instruction.
macro_rules! avx512 {
    ($instruction:ident($($argument:expr),*)) => {
        // SAFETY: AVX-512 is there, since an `Eight` exists. The instruction touches no memory.
        Self(unsafe { $instruction($($argument),*) })
    };
}

impl Lanes for Eight {
    const COUNT: usize = 8;
    type Words = [u64; 8];

    #[inline(always)]
    fn splat(self, word: u64) -> Self {
        avx512!(_mm512_set1_epi64(word as i64))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        avx512!(_mm512_and_si512(self.0, other.0))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        avx512!(_mm512_or_si512(self.0, other.0))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        avx512!(_mm512_xor_si512(self.0, other.0))
    }

    #[inline(always)]
    fn without(self, other: Self) -> Self {
        avx512!(_mm512_andnot_si512(other.0, self.0))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        avx512!(_mm512_add_epi64(self.0, other.0))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        avx512!(_mm512_sub_epi64(self.0, other.0))
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        avx512!(_mm512_mul_epu32(self.0, other.0))
    }

    #[inline(always)]
    fn up(self, bits: Self) -> Self {
        avx512!(_mm512_sllv_epi64(self.0, bits.0))
    }

    #[inline(always)]
    fn down(self, bits: Self) -> Self {
        avx512!(_mm512_srlv_epi64(self.0, bits.0))
    }

    #[inline(always)]
    fn equal_bytes(self, other: Self) -> Self {
        avx512!(_mm512_movm_epi8(_mm512_cmpeq_epi8_mask(self.0, other.0)))
    }

    #[inline(always)]
    fn equal(self, other: Self) -> Self {
        avx512!(_mm512_movm_epi64(_mm512_cmpeq_epi64_mask(self.0, other.0)))
    }

    #[inline(always)]
    fn above(self, other: Self) -> Self {
        avx512!(_mm512_subs_epu8(self.0, other.0))
    }

    #[inline(always)]
    fn pairs(self) -> Self {
        let factors = self.splat(0x010A_010A_010A_010A);
        avx512!(_mm512_maddubs_epi16(self.0, factors.0))
    }

    #[inline(always)]
    fn fours(self) -> Self {
        let factors = self.splat(0x0001_0064_0001_0064);
        avx512!(_mm512_madd_epi16(self.0, factors.0))
    }

    #[inline(always)]
    fn signs(self) -> u64 {
        // SAFETY: AVX-512 is there, since `self` exists.
        unsafe { u64::from(_mm512_movepi64_mask(self.0)) }
    }

    #[inline(always)]
    fn is_zero(self) -> bool {
        // SAFETY: AVX-512 is there, since `self` exists.
        unsafe { _mm512_test_epi64_mask(self.0, self.0) == 0 }
    }

    #[inline(always)]
    fn positions(self, positions: &[u32], stride: usize) -> Self {
        assert!(stride < 1 << 20 && positions.len() > 7 * stride);
        // SAFETY: the farthest is `7 * stride`, which lies in the slice, as was just checked, and fits 32 bits; AVX-512 is
        // there, since `self` exists.
        unsafe {
            let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let places = _mm256_mullo_epi32(places, _mm256_set1_epi32(stride as i32));
            let found = _mm256_i32gather_epi32::<4>(positions.as_ptr().cast(), places);
            Self(_mm512_cvtepu32_epi64(found))
        }
    }

    #[inline(always)]
    fn load(self, data: &[u8]) -> Option<Self> {
        let last = self.splat((data.len() as u64).wrapping_sub(8));
        if last.minus(self).or(self).or(last).signs() != 0 {
            return None;
        }
        // SAFETY: no word, nor what is left from it to the last place with eight bytes, is negative, as was just checked, so
        // eight bytes from there on lie in `data`; AVX-512 is there, since `self` exists.
        Some(Self(unsafe { _mm512_i64gather_epi64::<1>(self.0, data.as_ptr().cast()) }))
    }

    #[inline(always)]
    fn words(self) -> [u64; 8] {
        let mut words = [0; 8];
        // SAFETY: the array has the 64 bytes that are stored, unaligned; AVX-512 is there, since `self` exists.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) };
        words
    }
}
