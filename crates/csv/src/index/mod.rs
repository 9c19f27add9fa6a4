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

use std::mem::MaybeUninit;

use crate::simd::Simd;

/// Records found by a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The position after the last record's newline.
    pub(crate) end: usize,
    /// Records up to there, without blank lines. Zero if not counted.
    pub(crate) records: u64,
    /// Newlines up to there: all of them when splitting, those outside quotes when indexing.
    pub(crate) newlines: u64,
    /// A newline outside quotes follows a carriage return. Only found when indexing.
    pub(crate) crlf: bool,
    /// There are doubled quotes inside quotes. Only found when indexing.
    pub(crate) doubled: bool,
    /// The scan stopped before the end of the data.
    pub(crate) trouble: bool,
}

/// Finds whole records from `from`, a record's start, and counts them. `data` may end anywhere.
pub(crate) fn split(simd: Simd, data: &[u8], from: usize, delimiter: u8, limit: usize) -> Stretch {
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx512` is only made after asking the processor.
        Simd::Avx512 => unsafe { avx512::split(data, from, delimiter, limit) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx2` is only made after asking the processor.
        Simd::Avx2 => unsafe { avx2::split(data, from, delimiter, limit) },
        Simd::Portable => split_with(portable::Portable::new(delimiter), data, from, delimiter, limit),
    }
}

/// Finds whole records from `from`, a record's start, and appends the position of every delimiter and newline outside quotes
/// in them to `seps`.
pub(crate) fn index(simd: Simd, data: &[u8], from: usize, delimiter: u8, limit: usize, seps: &mut Vec<u32>) -> Stretch {
    match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx512` is only made after asking the processor.
        Simd::Avx512 => unsafe { avx512::index(data, from, delimiter, limit, seps) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Simd::Avx2` is only made after asking the processor.
        Simd::Avx2 => unsafe { avx2::index(data, from, delimiter, limit, seps) },
        Simd::Portable => index_with(portable::Portable::new(delimiter), data, from, limit, seps),
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
#[derive(Clone, Copy)]
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

/// Blocks that are looked at together for lines without quotes and carriage returns.
const RUN_BLOCKS: usize = 8;
/// Runs that are taken at once at most: what is too long for a record must be found.
const MAX_RUNS: usize = 128;
/// Bytes behind a quote that are split the general way, before lines without quotes are looked for again: where such lines
/// are rare, ever more.
const MIN_PATIENCE: usize = 512;
const MAX_PATIENCE: usize = 64 << 10;

/// Whether there is no quote and no carriage return.
#[inline(always)]
fn is_plain<C: Classify>(classify: C, data: &[u8]) -> bool {
    let mut runs = data.chunks_exact(64 * RUN_BLOCKS);
    for run in &mut runs {
        let mut odd = 0;
        for block in run.chunks_exact(64) {
            let masks = classify.masks(block.try_into().expect("the slice has 64 bytes"));
            odd |= masks.quote | masks.cr;
        }
        if odd != 0 {
            return false;
        }
    }
    runs.remainder().iter().all(|byte| !matches!(byte, b'"' | b'\r'))
}

/// [`index_with`] for data that [`is_plain`] and shorter than the longest record.
#[inline(always)]
fn index_plain<C: Classify>(classify: C, data: &[u8], from: usize, seps: &mut Vec<u32>) -> Stretch {
    // One position per byte at most, and one block more because positions are written several at a time.
    seps.reserve(data.len() - from + 2 * SLACK);
    let room = seps.spare_capacity_mut();
    let (mut written, mut whole, mut end, mut newlines) = (0, 0, from, 0);
    for at in (from..data.len()).step_by(64) {
        let masks = masks_at(classify, data, at);
        let bits = masks.delimiter | masks.newline;
        classify.write_places(bits, at as u32, &mut room[written..]);
        // Whether a block ends a record is hard to predict, so this is written for conditional moves.
        let past_last = masks.newline.leading_zeros();
        let any = masks.newline != 0;
        end = if any { at + 64 - past_last as usize } else { end };
        whole = if any { written + bits.wrapping_shl(past_last).count_ones() as usize } else { whole };
        newlines += u64::from(masks.newline.count_ones());
        written += bits.count_ones() as usize;
    }
    let len = seps.len() + whole;
    assert!(len <= seps.capacity());
    // SAFETY: the first `whole` slots of the spare capacity are written: `whole <= written`, and slots are written in order.
    unsafe { seps.set_len(len) };
    Stretch { end, records: 0, newlines, crlf: false, doubled: false, trouble: false }
}

/// Lines without quotes and carriage returns: every newline ends one.
#[derive(Default)]
struct PlainLines {
    /// A multiple of a run.
    bytes: usize,
    ends: u64,
    /// Those that end an empty line.
    blanks: u64,
    /// Behind the last newline.
    last_end: Option<usize>,
}

/// Finds such lines at the front of `data`. `after_end`: whether the byte before it ended a line.
#[inline(always)]
fn plain_lines<C: Classify>(classify: C, data: &[u8], after_end: u64) -> PlainLines {
    let mut lines = PlainLines::default();
    let mut after_end = after_end;
    for run in data.chunks_exact(64 * RUN_BLOCKS).take(MAX_RUNS) {
        let (mut odd, mut ends, mut blanks, mut after) = (0, 0, 0, after_end);
        let mut last_end = lines.last_end;
        for (place, block) in run.chunks_exact(64).enumerate() {
            let masks = classify.masks(block.try_into().expect("the slice has 64 bytes"));
            odd |= masks.quote | masks.cr;
            ends += masks.newline.count_ones();
            blanks += (masks.newline & (masks.newline << 1 | after)).count_ones();
            after = masks.newline >> 63;
            let end = lines.bytes + 64 * place + 64 - masks.newline.leading_zeros() as usize;
            last_end = if masks.newline == 0 { last_end } else { Some(end) };
        }
        if odd != 0 {
            break;
        }
        lines.bytes += run.len();
        lines.ends += u64::from(ends);
        lines.blanks += u64::from(blanks);
        (lines.last_end, after_end) = (last_end, after);
    }
    lines
}

#[inline(always)]
fn split_with<C: Classify>(classify: C, data: &[u8], from: usize, delimiter: u8, limit: usize) -> Stretch {
    let mut found = Stretch { end: from, records: 0, newlines: 0, crlf: false, doubled: false, trouble: false };
    let mut carry = Carry::RECORD_START;
    let mut newlines = 0;
    // Whether the byte before the block ended a record, and whether the two before it did and were `\n\r`.
    let (mut after_end, mut after_end_cr) = (1, 0);
    let mut at = from;
    // Where to look for lines without quotes again, and how far from there when there are some.
    let (mut try_at, mut patience) = (from, MIN_PATIENCE);
    while at < data.len() {
        if at >= try_at && carry.is_outside() && after_end_cr == 0 {
            let lines = plain_lines(classify, &data[at..], after_end);
            let whole = at + lines.last_end.unwrap_or(0);
            // The longest line is shorter than all of them, and what is before and behind them is looked at below.
            if lines.bytes > 0 && at + lines.bytes - found.end <= limit {
                if lines.last_end.is_some() {
                    found.end = whole;
                    found.records += lines.ends - lines.blanks;
                }
                newlines += lines.ends;
                at += lines.bytes;
                after_end = u64::from(found.end == at);
                let last = data[at - 1];
                carry.field_start = u64::from(last == delimiter || last == b'\n');
                patience = MIN_PATIENCE;
                continue;
            }
            try_at = at + patience;
            patience = (2 * patience).min(MAX_PATIENCE);
        }
        if at + 64 - found.end > limit {
            found.trouble = true;
            break;
        }
        let masks = masks_at(classify, data, at);
        if carry.is_quoted(masks) {
            newlines += u64::from(masks.newline.count_ones());
            (after_end, after_end_cr) = (0, 0);
            at += 64;
            continue;
        }
        let quoting = carry.step(classify, masks);
        // Past the end of the data `after_close` may look ill; no newline is there, and the scan is over.
        let ends = masks.newline & !quoting.quoted & below(quoting.ill);
        let line_start = ends << 1 | after_end;
        let line_start_cr = line_start & masks.cr;
        found.records += u64::from(ends.count_ones());
        if line_start & masks.newline | line_start_cr | after_end_cr != 0 {
            let blank = line_start | line_start_cr << 1 | after_end_cr;
            found.records -= u64::from((ends & blank).count_ones());
        }
        // Whether a block ends a record is hard to predict, so this is written for a conditional move.
        found.end = if ends != 0 { at + 64 - ends.leading_zeros() as usize } else { found.end };
        if quoting.ill != 0 {
            found.trouble = true;
            break;
        }
        newlines += u64::from(masks.newline.count_ones());
        after_end = ends >> 63;
        after_end_cr = line_start_cr >> 63;
        at += 64;
    }
    // Newlines were counted up to `at`.
    let at = at.min(data.len());
    let count = |from: usize, to: usize| memchr::memchr_iter(b'\n', &data[from..to]).count() as u64;
    found.newlines = if found.end >= at { newlines + count(at, found.end) } else { newlines - count(found.end, at) };
    found
}

#[inline(always)]
fn index_with<C: Classify>(classify: C, data: &[u8], from: usize, limit: usize, seps: &mut Vec<u32>) -> Stretch {
    assert!(u32::try_from(data.len()).is_ok(), "positions are 32 bits");
    if data.len() - from <= limit && is_plain(classify, &data[from..]) {
        return index_plain(classify, data, from, seps);
    }
    let mut found = Stretch { end: from, records: 0, newlines: 0, crlf: false, doubled: false, trouble: false };
    let mut carry = Carry::RECORD_START;
    let (mut after_cr, mut crlf, mut doubled) = (0, 0, 0);
    // One position per byte at most, and one block more because positions are written several at a time.
    seps.reserve(data.len() - from + 2 * SLACK);
    let room = seps.spare_capacity_mut();
    // Positions written, and those of them that belong to whole records.
    let (mut written, mut whole) = (0, 0);
    let mut at = from;
    while at < data.len() {
        if at + 64 - found.end > limit {
            found.trouble = true;
            break;
        }
        let masks = masks_at(classify, data, at);
        if carry.is_quoted(masks) {
            at += 64;
            continue;
        }
        let quoting = carry.step(classify, masks);
        let outside = !quoting.quoted & below(quoting.ill);
        let ends = masks.newline & outside;
        let bits = (masks.delimiter | masks.newline) & outside;
        let count = bits.count_ones() as usize;
        // Whether a block ends a record is hard to predict, so this is written for conditional moves.
        let past_last = ends.leading_zeros();
        let any = ends != 0;
        found.end = if any { at + 64 - past_last as usize } else { found.end };
        let in_whole = written + bits.wrapping_shl(past_last).count_ones() as usize;
        whole = if any { in_whole } else { whole };
        found.newlines += u64::from(ends.count_ones());
        crlf |= ends & (masks.cr << 1 | after_cr);
        doubled |= quoting.doubled;
        classify.write_places(bits, at as u32, &mut room[written..]);
        written += count;
        if quoting.ill != 0 {
            found.trouble = true;
            break;
        }
        after_cr = masks.cr >> 63;
        at += 64;
    }
    found.crlf = crlf != 0;
    found.doubled = doubled != 0;
    let len = seps.len() + whole;
    assert!(len <= seps.capacity());
    // SAFETY: the first `whole` slots of the spare capacity are written: `whole <= written`, and slots are written in order.
    unsafe { seps.set_len(len) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(data: &[u8]) -> Vec<(Stretch, Vec<u32>)> {
        Simd::all()
            .into_iter()
            .map(|simd| {
                let mut seps = Vec::new();
                let mut stretch = index(simd, data, 0, b',', 1 << 20, &mut seps);
                let split = split(simd, data, 0, b',', 1 << 20);
                assert_eq!((split.end, split.trouble), (stretch.end, stretch.trouble));
                stretch.records = split.records;
                (stretch, seps)
            })
            .collect()
    }

    #[test]
    fn separators_inside_quotes_are_data() {
        for (stretch, seps) in all(b"a,\"b,\n\"\"\",c\nd,e,f") {
            assert_eq!(seps, [1, 9, 11]);
            assert_eq!((stretch.end, stretch.records, stretch.trouble), (12, 1, false));
        }
    }

    #[test]
    fn an_ill_placed_quote_stops_after_the_last_whole_record() {
        for bad in ["x\"y,z\n", "\"x\"y,z\n", "\"x\"\ry,z\n"] {
            for before in 0..70 {
                let data = format!("{}\na,b\n{bad}", "k".repeat(before));
                for (stretch, _) in all(data.as_bytes()) {
                    assert_eq!((stretch.end, stretch.trouble), (before + 5, true), "{data:?}");
                }
            }
        }
    }

    #[test]
    fn blank_lines_are_not_records() {
        for before in 0..130 {
            let data = format!("\n\r\n{}\n\n\r\n\r\nx\r\n\n", "k".repeat(before));
            for (stretch, _) in all(data.as_bytes()) {
                assert_eq!(stretch.records, if before == 0 { 1 } else { 2 });
                assert_eq!(stretch.end, data.len());
            }
        }
    }
}
