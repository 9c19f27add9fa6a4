//! Block masks with AVX-512: one comparison for all 64 bytes.
//!
//! The generic scanners are inlined into functions that enable the features, so that the compiler may use them throughout.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_castsi512_si128, _mm512_cmpeq_epi8_mask, _mm512_cvtepu8_epi32,
    _mm512_loadu_si512, _mm512_maskz_compress_epi8, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_storeu_si512,
};
use std::mem::MaybeUninit;

use super::{Classify, Masks, SLACK, Stretch, index_with, split_with};

/// # Safety
/// [`Simd::Avx512`](crate::simd::Simd) must have been detected.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
pub(super) unsafe fn split(data: &[u8], from: usize, delimiter: u8, limit: usize) -> Stretch {
    split_with(Avx512 { delimiter }, data, from, delimiter, limit)
}

/// # Safety
/// [`Simd::Avx512`](crate::simd::Simd) must have been detected.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
pub(super) unsafe fn index(data: &[u8], from: usize, delimiter: u8, limit: usize, seps: &mut Vec<u32>) -> Stretch {
    index_with(Avx512 { delimiter }, data, from, limit, seps)
}

/// Only made inside the functions above, hence proof that AVX-512 is there.
#[derive(Clone, Copy)]
struct Avx512 {
    delimiter: u8,
}

/// The numbers from 0 to 63.
const PLACES: [u8; 64] = {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        places[i] = i as u8;
        i += 1;
    }
    places
};

impl Classify for Avx512 {
    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        // SAFETY: the processor has what comes with AVX-512 here, since `self` exists.
        unsafe { super::carryless_prefix_xor(bits) }
    }

    #[inline(always)]
    fn masks(self, block: &[u8; 64]) -> Masks {
        // SAFETY: AVX-512 is there, since `self` exists; the load is unaligned and has the 64 bytes of `block`.
        unsafe {
            let bytes = _mm512_loadu_si512(block.as_ptr().cast());
            let equal = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
            Masks { quote: equal(b'"'), delimiter: equal(self.delimiter), newline: equal(b'\n'), cr: equal(b'\r') }
        }
    }

    #[inline(always)]
    fn write_places(self, bits: u64, at: u32, to: &mut [MaybeUninit<u32>]) {
        let to: &mut [MaybeUninit<u32>; SLACK] = to.first_chunk_mut().expect("there is slack");
        let count = bits.count_ones();
        // SAFETY: AVX-512 is there, since `self` exists. `PLACES` has the 64 bytes that are loaded; `to` has room for 64
        // positions, of which each store writes 16, unaligned.
        unsafe {
            let places = _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512(PLACES.as_ptr().cast()));
            let first = _mm512_set1_epi32(at as i32);
            let mut write = |places: __m512i, offset: usize| {
                let positions = _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(places)), first);
                _mm512_storeu_si512(to.as_mut_ptr().add(offset).cast(), positions);
            };
            write(places, 0);
            if count > 16 {
                let mut rest = places;
                for offset in [16, 32, 48] {
                    rest = upper(rest);
                    write(rest, offset);
                }
            }
        }
    }
}

/// The bytes from the 16th on, moved to the front.
///
/// # Safety
/// The processor must have AVX-512.
#[inline(always)]
unsafe fn upper(bytes: __m512i) -> __m512i {
    use std::arch::x86_64::_mm512_alignr_epi32;
    // SAFETY: AVX-512 is there, by this function's contract.
    unsafe { _mm512_alignr_epi32::<4>(bytes, bytes) }
}
