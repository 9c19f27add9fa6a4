//! A growing validity bitmap.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

/// Which rows hold a value.
#[derive(Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
    unset: usize,
}

impl Bits {
    /// Appends the `count` lowest bits of `word`, at most 64. Higher bits must be zero.
    #[inline]
    pub(crate) fn push(&mut self, word: u64, count: usize) {
        debug_assert!(count <= 64 && (count == 64 || word >> count == 0));
        let used = self.len % 64;
        if used == 0 {
            if count > 0 {
                self.words.push(word);
            }
        } else {
            *self.words.last_mut().expect("a word is in use") |= word << used;
            if used + count > 64 {
                self.words.push(word >> (64 - used));
            }
        }
        self.len += count;
        self.unset += count - word.count_ones() as usize;
    }

    /// Drops all but the first `len` bits.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.words.truncate(len.div_ceil(64));
        if !len.is_multiple_of(64) {
            *self.words.last_mut().expect("some bits are left") &= (1 << (len % 64)) - 1;
        }
        self.len = len;
        self.unset = len - self.words.iter().map(|word| word.count_ones() as usize).sum::<usize>();
    }

    /// The bitmap, which starts anew; none if no bit is unset.
    pub(crate) fn take(&mut self) -> Option<NullBuffer> {
        let Bits { words, len, unset } = std::mem::take(self);
        // Arrow's bitmaps are little-endian by byte, as are these words on every platform Arrow supports.
        (unset > 0).then(|| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_in_order_whatever_the_portions() {
        let mut bits = Bits::default();
        let mut expected = Vec::new();
        for (i, count) in [3, 64, 0, 61, 1, 64, 63, 7].into_iter().enumerate() {
            let word = 0x9E37_79B9_7F4A_7C15u64.rotate_left(i as u32 * 7);
            let word = if count == 64 { word } else { word & ((1 << count) - 1) };
            bits.push(word, count);
            expected.extend((0..count).map(|bit| word >> bit & 1 == 1));
            if i == 4 {
                bits.truncate(100);
                expected.truncate(100);
            }
        }
        let nulls = bits.take().expect("some are unset");
        assert_eq!(nulls.iter().collect::<Vec<_>>(), expected);
        assert!(bits.take().is_none());
    }
}
