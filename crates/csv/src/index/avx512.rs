//! Block masks with AVX-512: one comparison for all 64 bytes.
//!
//! The generic scanners are inlined into functions that enable the features, so that the compiler may use them throughout.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_add_epi64, _mm512_alignr_epi64, _mm512_and_si512, _mm512_andnot_si512,
    _mm512_castsi512_si128, _mm512_clmulepi64_epi128, _mm512_cmpeq_epi8_mask, _mm512_cvtepu8_epi32, _mm512_loadu_si512,
    _mm512_mask_mov_epi64, _mm512_mask_xor_epi64, _mm512_maskz_compress_epi8, _mm512_movepi64_mask, _mm512_or_si512,
    _mm512_popcnt_epi64, _mm512_reduce_add_epi64, _mm512_set_epi64, _mm512_set1_epi8, _mm512_set1_epi32,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shldi_epi64, _mm512_storeu_si512, _mm512_test_epi64_mask,
    _mm512_unpacklo_epi64,
};
use std::mem::MaybeUninit;

use super::splitting::GROUP_BLOCKS;
use super::{
    Carry, Classify, Marks, Masks, Rules, Run, SLACK, Slots, Splitting, Stretch, index_with, marked_with, plain_run,
    split_with,
};

/// # Safety
/// [`Simd::Avx512`](crate::simd::Simd) must have been detected.
#[target_feature(
    enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx512vpopcntdq,vpclmulqdq"
)]
pub(super) unsafe fn split(pass: &mut Splitting, data: &[u8], rules: Rules, last: bool, marks: Option<&mut Marks>) {
    split_with(Avx512 { delimiter: rules.delimiter }, pass, data, rules, last, marks);
}

/// # Safety
/// [`Simd::Avx512`](crate::simd::Simd) must have been detected.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2")]
pub(super) unsafe fn index(data: &[u8], from: usize, rules: Rules, seps: &mut Vec<u32>) -> Stretch {
    index_with(Avx512 { delimiter: rules.delimiter }, data, from, rules.limit, seps)
}

/// # Safety
/// [`Simd::Avx512`](crate::simd::Simd) must have been detected.
#[target_feature(
    enable = "avx2,bmi1,bmi2,lzcnt,pclmulqdq,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,avx512vpopcntdq"
)]
pub(super) unsafe fn marked(marks: &Marks, from: usize, to: usize, seps: &mut Vec<u32>) -> Stretch {
    marked_with(Avx512 { delimiter: b',' }, marks, from, to, seps)
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
    const MAX_PATIENCE: usize = 4 << 10;

    #[inline(always)]
    fn run<const MARK: bool>(
        self,
        data: &[u8],
        carry: Carry,
        after_end: u64,
        after_cr: u64,
        slots: &mut Slots<'_>,
    ) -> Run {
        if !MARK {
            let run = plain_run::<Self, MARK>(self, data, carry, after_end, slots);
            if run.bytes > 0 {
                return run;
            }
        }
        // SAFETY: AVX-512 is there, since `self` exists.
        unsafe { run::<MARK>(self, data, carry, after_end, after_cr, slots) }
    }

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
    fn some_of(self, words: &[u64; GROUP_BLOCKS]) -> u8 {
        // SAFETY: AVX-512 is there, since `self` exists; the load is unaligned and has the 64 bytes of `words`.
        unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            _mm512_test_epi64_mask(words, words)
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

/// Groups whose masks are made before the first of them is looked at. Masks leave their registers a word at a time, and reading
/// eight words at once has to wait until the last of them has arrived in the cache: by then it has.
const AHEAD_GROUPS: usize = 8;

/// [`Classify::run`] for any well-placed quotes: what a step does to a block is done to eight blocks at a time.
///
/// # Safety
/// The processor must have AVX-512, as [`Simd::Avx512`](crate::simd::Simd) says.
#[inline(always)]
unsafe fn run<const MARK: bool>(
    classify: Avx512,
    data: &[u8],
    carry: Carry,
    after_end: u64,
    after_cr: u64,
    slots: &mut Slots<'_>,
) -> Run {
    // SAFETY: AVX-512 is there, by this function's contract. Loads and stores are unaligned and of 64 bytes, the size of what they
    // are given.
    unsafe {
        let ones = _mm512_set1_epi64(-1);
        // What comes before the first block, as the last of eight.
        let before = |bit: u64| _mm512_set_epi64((bit << 63) as i64, 0, 0, 0, 0, 0, 0, 0);
        // Every bit moves to the next byte's place, over the ends of blocks.
        let next = |now: __m512i, before: __m512i| _mm512_shldi_epi64::<1>(now, _mm512_alignr_epi64::<7>(now, before));
        let any = |bits: __m512i| _mm512_test_epi64_mask(bits, bits) != 0;
        let mut opening_before = before(carry.field_start);
        let (mut close_before, mut close_cr_before) = (before(carry.closed), before(carry.closed_cr));
        let (mut ends_before, mut cr_before) = (before(after_end), before(after_cr));
        let mut inside = carry.inside as u8;
        let (mut records, mut newlines) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        let (mut crlf, mut last_ends, mut last_at) = (_mm512_setzero_si512(), _mm512_setzero_si512(), 0);
        let (mut bytes, mut quotes_seen) = (0, _mm512_setzero_si512());
        let [mut quotes, mut separators, mut newlines_of, mut crs] = [[0; AHEAD_GROUPS * GROUP_BLOCKS]; 4];
        for number in 0..data.len() / (64 * GROUP_BLOCKS) {
            let group = number % AHEAD_GROUPS * GROUP_BLOCKS;
            if group == 0 {
                let ahead = &data[bytes..];
                for (place, block) in ahead.as_chunks::<64>().0.iter().take(AHEAD_GROUPS * GROUP_BLOCKS).enumerate() {
                    let masks = classify.masks(block);
                    (quotes[place], separators[place]) = (masks.quote, masks.delimiter | masks.newline);
                    (newlines_of[place], crs[place]) = (masks.newline, masks.cr);
                }
            }
            let load = |words: &[u64]| {
                let words: &[u64; GROUP_BLOCKS] = words[group..].first_chunk().expect("a word for every block");
                _mm512_loadu_si512(words.as_ptr().cast())
            };
            let (quote, newline, cr) = (load(&quotes), load(&newlines_of), load(&crs));
            let separator = load(&separators);
            // Quotes up to each byte, odd or even: first in every block, then over the blocks before it.
            let odd = _mm512_unpacklo_epi64(
                _mm512_clmulepi64_epi128::<0x00>(quote, ones),
                _mm512_clmulepi64_epi128::<0x01>(quote, ones),
            );
            let mut blocks = _mm512_movepi64_mask(odd);
            blocks ^= blocks << 1;
            blocks ^= blocks << 2;
            blocks ^= blocks << 4;
            let quoted = _mm512_mask_xor_epi64(odd, blocks << 1 ^ inside, odd, ones);
            let (open, close) = (_mm512_and_si512(quote, quoted), _mm512_andnot_si512(quoted, quote));
            let opening = _mm512_or_si512(separator, quote);
            let after_close = next(close, close_before);
            let after_close_cr = _mm512_and_si512(after_close, cr);
            let ill_open = _mm512_andnot_si512(next(opening, opening_before), open);
            let ill_close = _mm512_andnot_si512(_mm512_or_si512(opening, cr), after_close);
            let ill_cr = _mm512_andnot_si512(newline, next(after_close_cr, close_cr_before));
            let ends = _mm512_andnot_si512(quoted, newline);
            let line_start = next(ends, ends_before);
            let blank = _mm512_and_si512(line_start, _mm512_or_si512(newline, cr));
            if any(_mm512_or_si512(_mm512_or_si512(ill_open, ill_close), _mm512_or_si512(ill_cr, blank))) {
                break;
            }
            if MARK {
                let store = |words: &mut [u64], bits: __m512i| {
                    let words: &mut [u64; GROUP_BLOCKS] =
                        words[number * GROUP_BLOCKS..].first_chunk_mut().expect("a word for every block");
                    _mm512_storeu_si512(words.as_mut_ptr().cast(), bits);
                };
                store(slots.seps, _mm512_andnot_si512(quoted, separator));
                store(slots.ends, ends);
                slots.note_doubled(number * GROUP_BLOCKS, any(_mm512_and_si512(after_close, quote)));
                crlf = _mm512_or_si512(crlf, _mm512_and_si512(ends, next(cr, cr_before)));
                cr_before = cr;
            }
            quotes_seen = _mm512_or_si512(quotes_seen, quote);
            records = _mm512_add_epi64(records, _mm512_popcnt_epi64(ends));
            newlines = _mm512_add_epi64(newlines, _mm512_popcnt_epi64(newline));
            // Whether a group ends a record is hard to predict.
            let has_end = any(ends);
            last_ends = _mm512_mask_mov_epi64(last_ends, u8::from(has_end).wrapping_neg(), ends);
            last_at = if has_end { bytes } else { last_at };
            (opening_before, close_before, close_cr_before, ends_before) = (opening, close, after_close_cr, ends);
            inside ^= (blocks >> 7).wrapping_neg();
            bytes += 64 * GROUP_BLOCKS;
        }
        let words = |bits: __m512i| {
            let mut words = [0u64; GROUP_BLOCKS];
            _mm512_storeu_si512(words.as_mut_ptr().cast(), bits);
            words
        };
        let last_bit = |bits: __m512i| words(bits)[GROUP_BLOCKS - 1] >> 63;
        let last_ends = words(last_ends);
        let last_block = last_ends.iter().rposition(|ends| *ends != 0);
        Run {
            bytes,
            records: _mm512_reduce_add_epi64(records) as u64,
            newlines: _mm512_reduce_add_epi64(newlines) as u64,
            last_end: last_block.map(|block| last_at + 64 * block + 64 - last_ends[block].leading_zeros() as usize),
            crlf: any(crlf),
            quotes: any(quotes_seen),
            carry: Carry {
                inside: u64::from(inside & 1).wrapping_neg(),
                field_start: last_bit(opening_before),
                closed: last_bit(close_before),
                closed_cr: last_bit(close_cr_before),
            },
        }
    }
}
