//! Where records and fields end, 64 bytes at a time.
//!
//! A block of 64 bytes is turned into bit masks of its quotes, delimiters, newlines and carriage returns. If every quote toggles
//! "inside quotes", a prefix xor gives the mask of quoted bytes. That is the exact meaning as long as quotes are *well placed*:
//! an opening quote starts a field (or follows a closing one: a doubled quote), and a closing quote ends one (or is followed by
//! an opening one). The first ill-placed quote stops the scan; what was found before it stands, and the caller reads one record
//! exactly (see [`scalar`]) before it comes back.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
pub(crate) mod scalar;
mod separators;
mod splitting;

use std::mem::MaybeUninit;

pub use splitting::Marks;
pub(crate) use splitting::Splitting;

use crate::simd::Simd;
use separators::{index_with, marked_with};
use splitting::{Run, Slots, plain_run, split_with};

/// Records found by an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The position after the last record's newline.
    pub(crate) end: usize,
    /// Newlines outside quotes up to there.
    pub(crate) newlines: u64,
    /// One of them follows a carriage return.
    pub(crate) crlf: bool,
    /// There are doubled quotes inside quotes.
    pub(crate) doubled: bool,
    /// The scan stopped before the end of the data.
    pub(crate) trouble: bool,
}

/// What is known of a table, whatever its columns are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) delimiter: u8,
    /// The longest record.
    pub(crate) limit: usize,
}

/// Goes on with a pass that finds whole records and counts them. `last`: no more data will be there. With `marks`, the pass notes
/// the separators there.
pub(crate) fn split(
    simd: Simd,
    pass: &mut Splitting,
    data: &[u8],
    rules: Rules,
    last: bool,
    marks: Option<&mut Marks>,
) {
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx512` is only made after asking the processor.
        Simd::Avx512 => unsafe { avx512::split(pass, data, rules, last, marks) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx2` is only made after asking the processor.
        Simd::Avx2 => unsafe { avx2::split(pass, data, rules, last, marks) },
        Simd::Portable => split_with(portable::Portable::new(rules.delimiter), pass, data, rules, last, marks),
    }
}

/// Finds whole records among `from..to`, where `from` is a record's start, and appends the position of every delimiter and newline
/// outside quotes in them to `seps`, all from marks.
pub(crate) fn marked(simd: Simd, marks: &Marks, from: usize, to: usize, seps: &mut Vec<u32>) -> Stretch {
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx512` is only made after asking the processor.
        Simd::Avx512 => unsafe { avx512::marked(marks, from, to, seps) },
        // Writing positions is the same with AVX2.
        _ => marked_with(portable::Portable::new(b','), marks, from, to, seps),
    }
}

/// Finds whole records from `from`, a record's start, and appends the position of every delimiter and newline outside quotes
/// in them to `seps`.
pub(crate) fn index(simd: Simd, data: &[u8], from: usize, rules: Rules, seps: &mut Vec<u32>) -> Stretch {
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx512` is only made after asking the processor.
        Simd::Avx512 => unsafe { avx512::index(data, from, rules, seps) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx2` is only made after asking the processor.
        Simd::Avx2 => unsafe { avx2::index(data, from, rules, seps) },
        Simd::Portable => index_with(portable::Portable::new(rules.delimiter), data, from, rules.limit, seps),
    }
}

/// One bit per byte of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Masks {
    quote: u64,
    delimiter: u64,
    newline: u64,
    cr: u64,
}

/// Turns 64 bytes into [`Masks`].
trait Classify: Copy {
    /// Bytes behind a group that was not easy, before groups are tried again, at most.
    const MAX_PATIENCE: usize = splitting::MAX_PATIENCE;

    /// Takes the easy groups of blocks at the front of `data`, as many as it knows how to. `after_end`, `after_cr`: whether the byte
    /// before ended a record, and is a carriage return.
    #[inline(always)]
    fn run<const MARK: bool>(
        self,
        data: &[u8],
        carry: Carry,
        after_end: u64,
        _after_cr: u64,
        slots: &mut Slots<'_>,
    ) -> Run {
        plain_run::<Self, MARK>(self, data, carry, after_end, slots)
    }

    fn masks(self, block: &[u8; 64]) -> Masks;

    /// Each bit becomes the xor of itself and all lower ones.
    #[inline(always)]
    fn prefix_xor(self, mut bits: u64) -> u64 {
        bits ^= bits << 1;
        bits ^= bits << 2;
        bits ^= bits << 4;
        bits ^= bits << 8;
        bits ^= bits << 16;
        bits ^ bits << 32
    }

    /// Which of these words are not zero, a bit each.
    #[inline(always)]
    fn some_of(self, words: &[u64; splitting::GROUP_BLOCKS]) -> u8 {
        words.iter().enumerate().fold(0, |some, (place, word)| some | u8::from(*word != 0) << place)
    }

    /// Writes the place of every bit, counted from `at`, to the front of `to`, and anything behind. `to` has room for
    /// [`SLACK`] positions.
    #[inline(always)]
    fn write_places(self, mut bits: u64, at: u32, to: &mut [MaybeUninit<u32>]) {
        let count = bits.count_ones() as usize;
        let mut done = 0;
        while done < count {
            for slot in &mut to[done..done + 8] {
                slot.write(at.wrapping_add(bits.trailing_zeros()));
                bits &= bits.wrapping_sub(1);
            }
            done += 8;
        }
    }
}

/// Positions that a block may have.
const SLACK: usize = 64;

/// The masks of the block at `at`, which may stick out of the data.
#[inline(always)]
fn masks_at<C: Classify>(classify: C, data: &[u8], at: usize) -> Masks {
    if let Some(block) = data.get(at..at + 64) {
        return classify.masks(block.try_into().expect("the slice has 64 bytes"));
    }
    let rest = &data[at..];
    let mut block = [0; 64];
    block[..rest.len()].copy_from_slice(rest);
    let masks = classify.masks(&block);
    let inside = (1 << rest.len()) - 1;
    Masks {
        quote: masks.quote & inside,
        delimiter: masks.delimiter & inside,
        newline: masks.newline & inside,
        cr: masks.cr & inside,
    }
}

/// What a block must know of the bytes before it: all bits of `inside`, or the lowest bit of the others.
#[derive(Debug, Clone, Copy)]
struct Carry {
    inside: u64,
    field_start: u64,
    closed: u64,
    closed_cr: u64,
}

/// Quoted bytes of a block, and where quotes are found to be ill placed.
struct Quoting {
    quoted: u64,
    ill: u64,
    /// Quotes right behind a closing one: the second of two.
    doubled: u64,
}

impl Carry {
    const RECORD_START: Carry = Carry { inside: 0, field_start: 1, closed: 0, closed_cr: 0 };

    /// Whether all of the block lies inside quotes. It then changes nothing: what comes next is a quote, or inside, too.
    #[inline(always)]
    fn is_quoted(&self, masks: Masks) -> bool {
        self.inside != 0 && masks.quote == 0
    }

    /// Whether no quote before the block says anything about it.
    #[inline(always)]
    fn is_outside(&self) -> bool {
        self.inside | self.closed | self.closed_cr == 0
    }

    #[inline(always)]
    fn step<C: Classify>(&mut self, classify: C, masks: Masks) -> Quoting {
        let before_open = masks.delimiter | masks.newline | masks.quote;
        if masks.quote | self.closed | self.closed_cr == 0 {
            self.field_start = before_open >> 63;
            return Quoting { quoted: self.inside, ill: 0, doubled: 0 };
        }
        let quoted = classify.prefix_xor(masks.quote) ^ self.inside;
        let open = masks.quote & quoted;
        let close = masks.quote & !quoted;
        let after_close = close << 1 | self.closed;
        let after_cr = after_close & masks.cr;
        let ill = open & !(before_open << 1 | self.field_start)
            | after_close & !(before_open | masks.cr)
            | (after_cr << 1 | self.closed_cr) & !masks.newline;
        *self = Carry {
            inside: (quoted as i64 >> 63) as u64,
            field_start: before_open >> 63,
            closed: close >> 63,
            closed_cr: after_cr >> 63,
        };
        Quoting { quoted, ill, doubled: after_close & masks.quote }
    }
}

/// [`Classify::prefix_xor`] as a product without carries: with all ones, every bit is added to itself and all higher ones.
///
/// # Safety
/// The processor must have PCLMULQDQ.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn carryless_prefix_xor(bits: u64) -> u64 {
    use std::arch::x86_64::{_mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8};
    // SAFETY: the instruction is there, by this function's contract.
    unsafe { _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1))) as u64 }
}

/// The bits below the lowest set one; all if none is set.
#[inline(always)]
fn below(bits: u64) -> u64 {
    !bits & bits.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { delimiter: b',', limit: 1 << 20 };

    /// Indexes with all instructions, and splits in pieces of all sizes. Returns what was found, the records and the separators.
    fn all(data: &[u8]) -> Vec<(Stretch, u64, Vec<u32>)> {
        let both = |simd: Simd| {
            let mut seps = Vec::new();
            let stretch = index(simd, data, 0, RULES, &mut seps);
            let mut records = None;
            for step in [1, 63, 64, 100, data.len().max(1)] {
                let (mut pass, mut unmarked) = (Splitting::from(0), Splitting::from(0));
                let mut marks = Marks::default();
                for end in (step..data.len() + step).step_by(step) {
                    let piece = &data[..end.min(data.len())];
                    let last = end >= data.len();
                    split(simd, &mut pass, piece, RULES, last, Some(&mut marks));
                    split(simd, &mut unmarked, piece, RULES, last, None);
                }
                assert_eq!((pass.end, pass.trouble), (stretch.end, stretch.trouble));
                assert_eq!((unmarked.end, unmarked.records), (pass.end, pass.records));
                assert_eq!(*records.get_or_insert(pass.records), pass.records);
                let newlines = data[..pass.end].iter().filter(|byte| **byte == b'\n').count() as u64;
                assert_eq!((pass.newlines(data), unmarked.newlines(data)), (newlines, newlines));
                pass.finish(&mut marks);
                assert!(marks.crlf >= stretch.crlf && marks.is_doubled(0, marks.end) >= stretch.doubled);
                let mut again = Vec::new();
                let from_marks = marked(simd, &marks, 0, marks.end, &mut again);
                assert_eq!((from_marks.end, from_marks.newlines), (stretch.end, stretch.newlines));
                assert_eq!(again, seps);
            }
            (stretch, records.unwrap_or_default(), seps)
        };
        Simd::all().into_iter().map(both).collect()
    }

    #[test]
    fn separators_inside_quotes_are_data() {
        for (stretch, records, seps) in all(b"a,\"b,\n\"\"\",c\nd,e,f") {
            assert_eq!(seps, [1, 9, 11]);
            assert_eq!((stretch.end, records, stretch.trouble), (12, 1, false));
        }
    }

    #[test]
    fn an_ill_placed_quote_stops_after_the_last_whole_record() {
        for bad in ["x\"y,z\n", "\"x\"y,z\n", "\"x\"\ry,z\n"] {
            for before in 0..70 {
                let data = format!("{}\na,b\n{bad}", "k".repeat(before));
                for (stretch, ..) in all(data.as_bytes()) {
                    assert_eq!((stretch.end, stretch.trouble), (before + 5, true), "{data:?}");
                }
            }
        }
    }

    #[test]
    fn blank_lines_are_not_records() {
        for before in 0..130 {
            let data = format!("\n\r\n{}\n\n\r\n\r\nx\r\n\n", "k".repeat(before));
            for (stretch, records, _) in all(data.as_bytes()) {
                assert_eq!(records, if before == 0 { 1 } else { 2 });
                assert_eq!(stretch.end, data.len());
            }
        }
    }

    /// Records with quotes anywhere, from a small generator.
    fn records(seed: u64, bytes: usize) -> Vec<u8> {
        let pieces: [&[u8]; 12] = [
            b"a",
            b"some longer text",
            b",",
            b",",
            b"\n",
            b"\r\n",
            b"\"q\"",
            b"\"one, two\nthree\"",
            b"\"say \"\"hi\"\"\"",
            b"\"\"",
            b"12.50",
            b"\r",
        ];
        let (mut state, mut data, mut field_start) = (seed, Vec::new(), true);
        while data.len() < bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let piece = pieces[(state >> 33) as usize % pieces.len()];
            let quoted = piece.starts_with(b"\"");
            if quoted && !field_start {
                data.push(b',');
            }
            data.extend_from_slice(piece);
            if quoted {
                data.push(if state >> 62 == 0 { b'\n' } else { b',' });
            }
            field_start = matches!(data.last(), Some(b',' | b'\n'));
        }
        data
    }

    #[test]
    fn long_data_with_quotes_is_the_same_by_all_ways() {
        for seed in 0..200 {
            let data = records(seed, 6000);
            let found = all(&data);
            assert!(found[0].0.end > 5000 && !found[0].0.trouble, "{:?}", found[0].0);
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{seed}");
        }
    }
}
