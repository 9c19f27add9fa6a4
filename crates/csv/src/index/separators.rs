//! Where fields end: the position of every separator.

use super::splitting::GROUP_BLOCKS;
use super::{Carry, Classify, Marks, SLACK, Stretch, below, masks_at};

/// Blocks that are looked at together.
const RUN_BLOCKS: usize = 8;

/// [`index_with`] for data without quotes and carriage returns that is shorter than the longest record; none if it is not.
#[inline(always)]
fn index_plain<C: Classify>(classify: C, data: &[u8], from: usize, seps: &mut Vec<u32>) -> Option<Stretch> {
    // One position per byte at most, and one block more because positions are written several at a time.
    seps.reserve(data.len() - from + 2 * SLACK);
    let room = seps.spare_capacity_mut();
    let (mut written, mut whole, mut end, mut newlines) = (0, 0, from, 0);
    let mut at = from;
    while at < data.len() {
        let stop = data.len().min(at + 64 * RUN_BLOCKS);
        let mut odd = 0;
        while at < stop {
            let masks = masks_at(classify, data, at);
            odd |= masks.quote | masks.cr;
            let bits = masks.delimiter | masks.newline;
            classify.write_places(bits, at as u32, &mut room[written..]);
            // Whether a block ends a record is hard to predict, so this is written for conditional moves.
            let past_last = masks.newline.leading_zeros();
            let any = masks.newline != 0;
            end = if any { at + 64 - past_last as usize } else { end };
            whole = if any { written + bits.wrapping_shl(past_last).count_ones() as usize } else { whole };
            newlines += u64::from(masks.newline.count_ones());
            written += bits.count_ones() as usize;
            at += 64;
        }
        if odd != 0 {
            return None;
        }
    }
    let len = seps.len() + whole;
    assert!(len <= seps.capacity());
    // SAFETY: the first `whole` slots of the spare capacity are written: `whole <= written`, and slots are written in order.
    unsafe { seps.set_len(len) };
    Some(Stretch { end, newlines, crlf: false, doubled: false, trouble: false })
}

#[inline(always)]
pub(super) fn index_with<C: Classify>(
    classify: C,
    data: &[u8],
    from: usize,
    limit: usize,
    seps: &mut Vec<u32>,
) -> Stretch {
    assert!(u32::try_from(data.len()).is_ok(), "positions are 32 bits");
    if data.len() - from <= limit
        && let Some(found) = index_plain(classify, data, from, seps)
    {
        return found;
    }
    let mut found = Stretch { end: from, newlines: 0, crlf: false, doubled: false, trouble: false };
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

#[inline(always)]
pub(super) fn marked_with<C: Classify>(
    classify: C,
    marks: &Marks,
    from: usize,
    to: usize,
    seps: &mut Vec<u32>,
) -> Stretch {
    let end = marks.last_end(from, to);
    // One position per byte at most, and one block more because positions are written several at a time.
    seps.reserve(end - from + 2 * SLACK);
    let room = seps.spare_capacity_mut();
    let (mut written, mut newlines) = (0, 0);
    let last = end.div_ceil(64);
    for group in (from / 64..last).step_by(GROUP_BLOCKS) {
        // Most blocks lie inside a quoted text and have none.
        let mut some = match marks.seps[group..last].first_chunk() {
            Some(words) => classify.some_of(words),
            None => u8::MAX >> (GROUP_BLOCKS - (last - group)),
        };
        while some != 0 {
            let block = group + some.trailing_zeros() as usize;
            some &= some - 1;
            let at = block * 64;
            let after_from = if at < from { !0 << (from - at) } else { !0 };
            let before_end = if end - at < 64 { (1 << (end - at)) - 1 } else { !0 };
            let bits = marks.seps[block] & after_from & before_end;
            classify.write_places(bits, at as u32, &mut room[written..]);
            written += bits.count_ones() as usize;
            newlines += u64::from((marks.ends[block] & after_from & before_end).count_ones());
        }
    }
    let len = seps.len() + written;
    assert!(len <= seps.capacity());
    // SAFETY: the first `written` slots of the spare capacity are written, in order.
    unsafe { seps.set_len(len) };
    Stretch { end, newlines, crlf: marks.crlf, doubled: marks.is_doubled(from, end), trouble: false }
}
