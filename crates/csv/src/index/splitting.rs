//! Where records end, in one pass over data that comes in pieces. What the pass has found of separators can be kept as
//! [`Marks`], so that nobody has to look for them again.

use super::{Carry, Classify, Rules, below, masks_at};

/// Blocks that are looked at together.
pub(super) const GROUP_BLOCKS: usize = 8;
/// Bytes that are taken in groups at a time: what is too long for a record must be found.
const MAX_RUN_BYTES: usize = 64 << 10;
/// Bytes behind a group that was not easy that are split block by block, before groups are tried again: where easy ones are rare,
/// ever more.
const MIN_PATIENCE: usize = 512;
pub(super) const MAX_PATIENCE: usize = 64 << 10;
/// Blocks that share a note about doubled quotes.
const NOTED_BLOCKS: usize = 64;

/// Where the fields of a chunk end, as far as its chunker has noted that: a decoder need not look for it again.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// Delimiters and newlines outside quotes, a bit per byte of the chunk. Words past the end may say anything.
    pub(super) seps: Vec<u64>,
    /// Those that are newlines.
    pub(super) ends: Vec<u64>,
    /// Whether there are doubled quotes inside quotes, for every [`NOTED_BLOCKS`].
    doubled: Vec<bool>,
    /// There may be newlines that follow a carriage return.
    pub(super) crlf: bool,
    /// Up to where all this is good: a record's end.
    pub(crate) end: usize,
    /// Up to where the chunk is known to be UTF-8: a record's end.
    pub(crate) utf8_end: usize,
    /// There is something else behind that.
    not_utf8: bool,
}

impl Marks {
    /// Takes the memory that a chunk of so many bytes needs, and no more.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let blocks = bytes.div_ceil(64).next_multiple_of(GROUP_BLOCKS);
        self.seps.reserve_exact(blocks.saturating_sub(self.seps.len()));
        self.ends.reserve_exact(blocks.saturating_sub(self.ends.len()));
    }

    /// Makes room for so many bytes.
    fn fit(&mut self, bytes: usize) {
        let blocks = bytes.div_ceil(64).next_multiple_of(GROUP_BLOCKS);
        // Old words are written again before they are read.
        if self.seps.len() < blocks {
            self.seps.resize(blocks, 0);
            self.ends.resize(blocks, 0);
            self.doubled.resize(blocks.div_ceil(NOTED_BLOCKS), false);
        }
    }

    /// Goes on checking that the records up to `end` are UTF-8, while they are in the cache. What is not is for the decoder.
    pub(crate) fn check_utf8(&mut self, data: &[u8], end: usize) {
        self.not_utf8 = self.not_utf8 || simdutf8::basic::from_utf8(&data[self.utf8_end..end]).is_err();
        if !self.not_utf8 {
            self.utf8_end = end;
        }
    }

    /// Forgets everything but keeps the memory.
    pub(crate) fn forget(&mut self) {
        self.doubled.fill(false);
        (self.end, self.utf8_end) = (0, 0);
        (self.crlf, self.not_utf8) = (false, false);
    }

    /// Whether there is memory to keep.
    pub(crate) fn has_memory(&self) -> bool {
        !self.seps.is_empty()
    }

    /// Behind the last newline outside quotes among these bytes; `from` if there is none.
    pub(super) fn last_end(&self, from: usize, to: usize) -> usize {
        for block in (from / 64..to.div_ceil(64)).rev() {
            let at = block * 64;
            let before_to = if to - at < 64 { (1 << (to - at)) - 1 } else { !0 };
            let ends = self.ends[block] & before_to;
            if ends != 0 {
                return (at + 64 - ends.leading_zeros() as usize).max(from);
            }
        }
        from
    }

    /// Whether there is a newline outside quotes at a place before the marks' end.
    #[inline(always)]
    pub(crate) fn is_end(&self, at: usize) -> bool {
        self.ends[at / 64] >> (at % 64) & 1 != 0
    }

    /// Whether there may be doubled quotes inside quotes among these bytes.
    pub(super) fn is_doubled(&self, from: usize, to: usize) -> bool {
        let note = |at: usize| at / 64 / NOTED_BLOCKS;
        from < to && self.doubled[note(from)..=note(to - 1)].contains(&true)
    }
}

/// A pass over data from a record's start.
#[derive(Debug, Clone)]
pub(crate) struct Splitting {
    /// The position after the last record's newline.
    pub(crate) end: usize,
    /// Records up to there, without blank lines.
    pub(crate) records: u64,
    /// The pass stopped at something that is not for it.
    pub(crate) trouble: bool,
    /// There are quotes.
    pub(crate) quotes: bool,
    from: usize,
    /// What was looked at: whole blocks from the start.
    at: usize,
    /// All of them up to `at`.
    newlines: u64,
    carry: Carry,
    /// Whether the byte before `at` ended a record, and whether the two before it did and were `\n\r`.
    after_end: u64,
    after_end_cr: u64,
    /// Whether the byte before `at` is a carriage return.
    after_cr: u64,
    crlf: bool,
    /// Where to try groups again, and how far from there if the first of them is not easy.
    try_at: usize,
    patience: usize,
}

impl Splitting {
    /// A pass from `start`, where a record starts.
    pub(crate) fn from(start: usize) -> Self {
        Self {
            end: start,
            records: 0,
            trouble: false,
            quotes: false,
            from: start,
            at: start,
            newlines: 0,
            carry: Carry::RECORD_START,
            after_end: 1,
            after_end_cr: 0,
            after_cr: 0,
            crlf: false,
            try_at: start,
            patience: MIN_PATIENCE,
        }
    }

    /// Whether it began at the data's start.
    pub(crate) fn is_first(&self) -> bool {
        self.from == 0
    }

    /// Newlines from the pass's start to its last record's end, quoted ones included.
    pub(crate) fn newlines(&self, data: &[u8]) -> u64 {
        let at = self.at.min(data.len());
        let count = |from: usize, to: usize| memchr::memchr_iter(b'\n', &data[from..to]).count() as u64;
        if self.end >= at { self.newlines + count(at, self.end) } else { self.newlines - count(self.end, at) }
    }

    /// Says in the marks up to where this pass, which began at the data's start, has come.
    pub(crate) fn finish(&self, marks: &mut Marks) {
        (marks.end, marks.crlf) = (self.end, self.crlf);
    }

    /// Takes over what was found in groups from `at`.
    fn take(&mut self, run: &Run, data: &[u8]) {
        if let Some(end) = run.last_end {
            self.end = self.at + end;
        }
        self.records += run.records;
        self.newlines += run.newlines;
        self.crlf |= run.crlf;
        self.quotes |= run.quotes;
        self.at += run.bytes;
        self.carry = run.carry;
        self.after_end = u64::from(self.end == self.at);
        self.after_cr = u64::from(data[self.at - 1] == b'\r');
        self.patience = MIN_PATIENCE;
    }
}

/// Easy groups of blocks: no quote is ill placed, and no line is blank or begins with a carriage return.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// A multiple of a group.
    pub(super) bytes: usize,
    pub(super) records: u64,
    /// Quoted ones included.
    pub(super) newlines: u64,
    /// Behind the last newline outside quotes.
    pub(super) last_end: Option<usize>,
    pub(super) crlf: bool,
    pub(super) quotes: bool,
    /// What the next block must know.
    pub(super) carry: Carry,
}

impl Run {
    /// Nothing yet.
    pub(super) fn new(carry: Carry) -> Self {
        Self { bytes: 0, records: 0, newlines: 0, last_end: None, crlf: false, quotes: false, carry }
    }
}

/// Where a run writes its marks, a word for every block; of no length if it need not.
pub(super) struct Slots<'a> {
    pub(super) seps: &'a mut [u64],
    pub(super) ends: &'a mut [u64],
    doubled: &'a mut [bool],
    /// The first block's number.
    first: usize,
}

impl Slots<'_> {
    /// There are doubled quotes in a group that begins with this block of the run.
    #[inline(always)]
    pub(super) fn note_doubled(&mut self, block: usize, is_doubled: bool) {
        // A group may reach into the next note's blocks.
        for block in [block, block + GROUP_BLOCKS - 1] {
            self.doubled[(self.first + block) / NOTED_BLOCKS] |= is_doubled;
        }
    }
}

/// Finds lines without quotes and carriage returns, where every newline ends one, at the front of `data`.
#[inline(always)]
pub(super) fn plain_run<C: Classify, const MARK: bool>(
    classify: C,
    data: &[u8],
    carry: Carry,
    after_end: u64,
    slots: &mut Slots<'_>,
) -> Run {
    let mut run = Run::new(carry);
    if !carry.is_outside() {
        return run;
    }
    let mut after_end = after_end;
    for (number, group) in data.chunks_exact(64 * GROUP_BLOCKS).enumerate() {
        let (mut odd, mut ends, mut after, mut field_start) = (0, 0, after_end, 0);
        let mut last_end = run.last_end;
        for (place, block) in group.chunks_exact(64).enumerate() {
            let masks = classify.masks(block.try_into().expect("the slice has 64 bytes"));
            odd |= masks.quote | masks.cr | masks.newline & (masks.newline << 1 | after);
            ends += masks.newline.count_ones();
            after = masks.newline >> 63;
            field_start = (masks.delimiter | masks.newline) >> 63;
            let end = run.bytes + 64 * place + 64 - masks.newline.leading_zeros() as usize;
            last_end = if masks.newline == 0 { last_end } else { Some(end) };
            if MARK {
                // Where there are quotes after all, these are written again.
                slots.seps[number * GROUP_BLOCKS + place] = masks.delimiter | masks.newline;
                slots.ends[number * GROUP_BLOCKS + place] = masks.newline;
            }
        }
        if odd != 0 {
            break;
        }
        run.bytes += group.len();
        run.records += u64::from(ends);
        run.carry.field_start = field_start;
        (run.last_end, after_end) = (last_end, after);
    }
    run.newlines = run.records;
    run
}

/// Goes on with a pass over `data`, of which more may be there than last time. `last`: no more will be.
#[inline(always)]
pub(super) fn split_with<C: Classify>(
    classify: C,
    pass: &mut Splitting,
    data: &[u8],
    rules: Rules,
    last: bool,
    marks: Option<&mut Marks>,
) {
    match marks {
        Some(marks) => {
            marks.fit(data.len());
            go_on::<C, true>(classify, pass, data, rules, last, marks);
        }
        None => go_on::<C, false>(classify, pass, data, rules, last, &mut Marks::default()),
    }
}

#[inline(always)]
fn go_on<C: Classify, const MARK: bool>(
    classify: C,
    pass: &mut Splitting,
    data: &[u8],
    rules: Rules,
    last: bool,
    marks: &mut Marks,
) {
    let mut now = pass.clone();
    let stop = if last { data.len() } else { now.at + (data.len() - now.at) / 64 * 64 };
    while now.at < stop && !now.trouble {
        // The longest record is shorter than a run and what is before it.
        let room = (rules.limit + now.end).saturating_sub(now.at).min(MAX_RUN_BYTES).min(stop - now.at);
        if now.at >= now.try_at && now.after_end_cr == 0 && room >= 64 * GROUP_BLOCKS {
            let first = (now.at - now.from) / 64;
            let mut slots = match MARK {
                true => Slots {
                    seps: &mut marks.seps[first..],
                    ends: &mut marks.ends[first..],
                    doubled: &mut marks.doubled,
                    first,
                },
                false => Slots { seps: &mut [], ends: &mut [], doubled: &mut [], first },
            };
            let data_here = &data[now.at..now.at + room];
            let run = classify.run::<MARK>(data_here, now.carry, now.after_end, now.after_cr, &mut slots);
            if run.bytes > 0 {
                now.take(&run, data);
                continue;
            }
            now.try_at = now.at + now.patience;
            now.patience = (2 * now.patience).min(C::MAX_PATIENCE);
        }
        now.block::<C, MARK>(classify, data, rules, marks);
    }
    *pass = now;
}

impl Splitting {
    /// Splits a block the general way.
    #[inline(always)]
    fn block<C: Classify, const MARK: bool>(&mut self, classify: C, data: &[u8], rules: Rules, marks: &mut Marks) {
        let at = self.at;
        if at + 64 - self.end > rules.limit {
            self.trouble = true;
            return;
        }
        let masks = masks_at(classify, data, at);
        self.quotes |= masks.quote != 0;
        let quoting = self.carry.step(classify, masks);
        // Past the end of the data `after_close` may look ill; no newline is there, and the scan is over.
        let outside = !quoting.quoted & below(quoting.ill);
        let ends = masks.newline & outside;
        let line_start = ends << 1 | self.after_end;
        let line_start_cr = line_start & masks.cr;
        self.records += u64::from(ends.count_ones());
        if line_start & masks.newline | line_start_cr | self.after_end_cr != 0 {
            let blank = line_start | line_start_cr << 1 | self.after_end_cr;
            self.records -= u64::from((ends & blank).count_ones());
        }
        // Whether a block ends a record is hard to predict, so this is written for a conditional move.
        self.end = if ends != 0 { at + 64 - ends.leading_zeros() as usize } else { self.end };
        if MARK {
            let block = (at - self.from) / 64;
            marks.seps[block] = (masks.delimiter | masks.newline) & outside;
            marks.ends[block] = ends;
            marks.doubled[block / NOTED_BLOCKS] |= quoting.doubled != 0;
            self.crlf |= ends & (masks.cr << 1 | self.after_cr) != 0;
            self.after_cr = masks.cr >> 63;
        }
        if quoting.ill != 0 {
            self.trouble = true;
            return;
        }
        self.newlines += u64::from(masks.newline.count_ones());
        self.after_end = ends >> 63;
        self.after_end_cr = line_start_cr >> 63;
        self.at += 64;
    }
}
