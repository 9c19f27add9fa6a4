//! Whole numbers of 64 bits.

use super::lanes::{self, Lanes, Spans};
use super::{Parser, sign, swar};
use crate::Reason;
use crate::reject::found;

/// Parses [`Kind::Int`](crate::Kind::Int).
pub(crate) struct IntParser {
    pub(crate) float_text: bool,
}

impl IntParser {
    /// The digits of several numbers, and all ones in the lanes of those that are negative.
    #[inline(always)]
    fn digits<L: Lanes>(&self, data: &[u8], spans: Spans<L>) -> Option<(L, L)> {
        let spans = if self.float_text { without_fractions(data, spans)? } else { spans };
        let digits = spans.digits(data)?;
        if lanes::are_digits(digits) {
            return Some((digits, digits.splat(0)));
        }
        lanes::without_minus(digits, spans)
    }
}

/// The fields without a `.0` at their ends. None if one does not lie eight bytes into the data.
#[inline(always)]
fn without_fractions<L: Lanes>(data: &[u8], spans: Spans<L>) -> Option<Spans<L>> {
    let Spans { starts, ends } = spans;
    let of = |word| ends.splat(word);
    let tails = ends.minus(of(8)).load(data)?.down(of(48));
    let fraction = tails.equal(of(u64::from(u16::from_le_bytes(*b".0"))));
    let long = of(2).minus(spans.lengths()).down(of(62)).equal(of(3));
    Some(Spans { starts, ends: ends.minus(fraction.and(long).and(of(2))) })
}

impl Parser for IntParser {
    type Value = i64;

    #[inline(always)]
    fn fast(&mut self, data: &[u8], start: usize, end: usize) -> Option<i64> {
        let mut end = end;
        if self.float_text && end - start > 2 && data[end - 1] == b'0' && data[end - 2] == b'.' {
            end -= 2;
        }
        let negative = data[start] == b'-';
        let word = swar::load_tail(data, start + usize::from(negative), end)?;
        let number = || swar::number(word) as i64;
        swar::all_digits(word).then(|| if negative { -number() } else { number() })
    }

    const SEVERAL: bool = true;

    #[inline(always)]
    fn several<L: Lanes>(&mut self, data: &[u8], spans: Spans<L>) -> Option<L> {
        let (digits, negative) = self.digits(data, spans)?;
        let numbers = lanes::numbers(digits);
        let below_zero = numbers.and(negative);
        Some(numbers.minus(below_zero).minus(below_zero))
    }

    #[inline(always)]
    fn check_several<L: Lanes>(&mut self, data: &[u8], spans: Spans<L>) -> bool {
        self.digits(data, spans).is_some()
    }

    #[inline(always)]
    fn value(word: u64) -> i64 {
        word as i64
    }

    fn slow(&self, text: &[u8]) -> Result<i64, Reason> {
        let bad = || Reason::NotInt { found: found(text) };
        let (negative, digits) = sign(text);
        let digits = match digits.iter().position(|byte| *byte == b'.') {
            Some(point) if self.float_text && digits[point + 1..].iter().all(|byte| *byte == b'0') => &digits[..point],
            Some(_) => return Err(bad()),
            None => digits,
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(bad());
        }
        digits
            .iter()
            .try_fold(0i64, |value, digit| {
                let digit = i64::from(digit - b'0');
                let value = value.checked_mul(10)?;
                // Negative numbers grow downwards, or the smallest one would not fit on the way.
                if negative { value.checked_sub(digit) } else { value.checked_add(digit) }
            })
            .ok_or_else(|| Reason::IntRange { found: found(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::both_ways;
    use super::*;

    #[test]
    fn whole_numbers_to_the_ends_of_64_bits() {
        let mut parser = IntParser { float_text: false };
        for value in [0, 1, -1, 12345678, 123456789, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(both_ways(&mut parser, &value.to_string()), Ok(value));
        }
        assert_eq!(both_ways(&mut parser, "+007"), Ok(7));
        assert_eq!(both_ways(&mut parser, "00000000000000000000000000001"), Ok(1));
        for text in ["9223372036854775808", "-9223372036854775809", "99999999999999999999999"] {
            assert_eq!(both_ways(&mut parser, text), Err(Reason::IntRange { found: text.into() }));
        }
        for text in ["abc", "-", "+", "1.0", "1e3", "--1", "1 2", "0x1", "١"] {
            assert_eq!(both_ways(&mut parser, text), Err(Reason::NotInt { found: text.into() }));
        }
    }

    #[test]
    fn float_text_is_whole_when_its_fraction_is_zeros() {
        let mut parser = IntParser { float_text: true };
        for text in ["29454", "29454.0", "29454.", "29454.00", "+29454.0"] {
            assert_eq!(both_ways(&mut parser, text), Ok(29454));
        }
        assert_eq!(both_ways(&mut parser, "-0.0"), Ok(0));
        assert_eq!(both_ways(&mut parser, "-9223372036854775808.0"), Ok(i64::MIN));
        for text in ["29454.5", ".0", ".", "1.0.0", "1.0x", "-.0"] {
            assert_eq!(both_ways(&mut parser, text), Err(Reason::NotInt { found: text.into() }));
        }
    }
}
