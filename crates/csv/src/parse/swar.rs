//! Eight digits at once in a 64-bit word.

/// 10 to the power of the index.
pub(super) const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut i = 1;
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The last `end - start` bytes before `end` in the word's high bytes, first byte lowest, and zero characters below.
/// None if the field is longer than eight bytes or too near the start of the data to be loaded at once.
#[inline(always)]
pub(super) fn load_tail(data: &[u8], start: usize, end: usize) -> Option<u64> {
    let len = end - start;
    if len > 8 || len == 0 || end < 8 {
        return None;
    }
    let word = u64::from_le_bytes(data[end - 8..end].try_into().expect("the slice has 8 bytes"));
    let unused = 64 - 8 * len as u32;
    Some((word ^ ZEROS) >> unused << unused)
}

/// Whether every byte of a loaded word is a digit.
#[inline(always)]
pub(super) fn all_digits(word: u64) -> bool {
    (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080 == 0
}

/// The number whose eight digits are the bytes of `word`, first digit lowest.
#[inline(always)]
pub(super) fn number(word: u64) -> u64 {
    let pairs = (word * 10).wrapping_add(word >> 8);
    let low = (pairs & 0x0000_00FF_0000_00FF).wrapping_mul(0x000F_4240_0000_0064);
    let high = (pairs >> 16 & 0x0000_00FF_0000_00FF).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

/// A number of at most eight characters, `digits` or `digits.digits`, as its digits and how many of them follow the point.
#[inline(always)]
pub(super) fn fixed_point(data: &[u8], start: usize, end: usize) -> Option<(u64, usize)> {
    let (digits, fraction) = fixed_point_digits(data, start, end)?;
    Some((number(digits), fraction))
}

/// The same with the digits not yet made a [`number`].
#[inline(always)]
pub(super) fn fixed_point_digits(data: &[u8], start: usize, end: usize) -> Option<(u64, usize)> {
    const LOW7: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let word = load_tail(data, start, end)?;
    // The point is 0x1E after the zeros are taken off.
    let point = word ^ 0x1E1E_1E1E_1E1E_1E1E;
    let found = !(((point & LOW7) + LOW7) | point | LOW7);
    if found == 0 {
        return all_digits(word).then_some((word, 0));
    }
    // The highest point; the bytes above it are the fraction. Bytes below it move up over it.
    let fraction_bits = found.leading_zeros() & !7;
    let above = !(u64::MAX >> fraction_bits);
    let below = (u64::MAX >> fraction_bits) >> 8;
    let digits = (word & above) | (word & below) << 8;
    // A lone point has no digit at all.
    (all_digits(digits) && end - start > 1).then_some((digits, (fraction_bits / 8) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_number_is_read() {
        for value in (0..100_000_000u64).step_by(9_973) {
            for text in [format!("{value}"), format!("{value:08}")] {
                let data = format!("9876543.{text}");
                let word = load_tail(data.as_bytes(), 8, data.len()).expect("at most eight digits");
                assert!(all_digits(word));
                assert_eq!(number(word), value);
            }
        }
    }

    #[test]
    fn points_are_found_anywhere() {
        let read = |text: &str| fixed_point(format!("12345678{text}").as_bytes(), 8, 8 + text.len());
        assert_eq!(read("79.515"), Some((79515, 3)));
        assert_eq!(read("5."), Some((5, 0)));
        assert_eq!(read(".5"), Some((5, 1)));
        assert_eq!(read(".1234567"), Some((1234567, 7)));
        assert_eq!(read("."), None);
        assert_eq!(read("1.2.3"), None);
        assert_eq!(read("-1.5"), None);
        assert_eq!(read("1.5\u{ae}"), None);
    }

    #[test]
    fn no_byte_but_a_digit_is_a_digit() {
        for byte in 0..=255u8 {
            for place in 0..8 {
                let mut data = *b"12345678";
                data[place] = byte;
                let word = load_tail(&data, 0, 8).expect("eight bytes");
                assert_eq!(all_digits(word), byte.is_ascii_digit(), "{byte}");
            }
        }
    }
}
