//! Block masks with nothing but 64-bit arithmetic.

use super::{Classify, Masks};

const LOW: u64 = 0x0101_0101_0101_0101;
const LOW7: u64 = 0x7F7F_7F7F_7F7F_7F7F;

/// Classifies eight bytes per word.
#[derive(Clone, Copy)]
pub(super) struct Portable {
    delimiter: u64,
}

impl Portable {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter: spread(delimiter) }
    }
}

impl Classify for Portable {
    #[inline(always)]
    fn masks(self, block: &[u8; 64]) -> Masks {
        let mut masks = Masks { quote: 0, delimiter: 0, newline: 0, cr: 0 };
        for (i, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*bytes);
            masks.quote |= equal(word, spread(b'"')) << (8 * i);
            masks.delimiter |= equal(word, self.delimiter) << (8 * i);
            masks.newline |= equal(word, spread(b'\n')) << (8 * i);
            masks.cr |= equal(word, spread(b'\r')) << (8 * i);
        }
        masks
    }
}

const fn spread(byte: u8) -> u64 {
    byte as u64 * LOW
}

/// Eight bits: which bytes of the two words are equal.
#[inline(always)]
fn equal(word: u64, pattern: u64) -> u64 {
    let differs = word ^ pattern;
    // The top bit of each byte is set iff the byte is zero; no carry crosses bytes.
    let zero = !(((differs & LOW7) + LOW7) | differs | LOW7);
    // Each byte holds 0 or 1 now; the product gathers them in its top byte, lowest byte first.
    (zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_classified() {
        for delimiter in [b',', b'\t', 0] {
            for byte in 0..=255u8 {
                for place in 0..64 {
                    let mut block = [b'x'; 64];
                    block[place] = byte;
                    let bit = |wanted: u8| u64::from(byte == wanted) << place;
                    let masks = Portable::new(delimiter).masks(&block);
                    let expected =
                        Masks { quote: bit(b'"'), delimiter: bit(delimiter), newline: bit(b'\n'), cr: bit(b'\r') };
                    assert_eq!(masks, expected);
                }
            }
        }
    }
}
