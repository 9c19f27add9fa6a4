//! Exact decimals.

use super::lanes::{self, Lanes, Spans};
use super::{Parser, sign, swar};
use crate::Reason;
use crate::reject::found;

/// Parses [`Kind::Decimal`](crate::Kind::Decimal).
pub(crate) struct DecimalParser {
    precision: u8,
    scale: i8,
    /// The first value that has too many digits.
    bound: i128,
    /// The factor that brings a number with this many fraction digits to the scale; zero: not for the fast way.
    factors: [u64; 8],
    /// `bound`, or the largest number if that is larger.
    fast_bound: u64,
    /// Whatever has the shape for the fast way is below the bound.
    roomy: bool,
    /// Roomy, and every factor has at most 32 bits.
    in_lanes: bool,
}

impl DecimalParser {
    /// Whether every value has at most 64 bits.
    pub(crate) fn fits_word(&self) -> bool {
        self.bound <= i128::from(i64::MAX)
    }

    pub(crate) fn new(precision: u8, scale: i8) -> Self {
        let bound = 10i128.pow(u32::from(precision));
        let mut factors = [0; 8];
        // Eight digits times 10^11 still fit 64 bits.
        if let Ok(scale @ 0..=11) = usize::try_from(scale) {
            for (digits, factor) in factors.iter_mut().enumerate().take(scale + 1) {
                *factor = swar::POWERS[scale - digits];
            }
        }
        let fast_bound = u64::try_from(bound).unwrap_or(u64::MAX);
        let roomy = factors[0].saturating_mul(100_000_000) <= fast_bound;
        let in_lanes = roomy && factors[0] <= u64::from(u32::MAX);
        Self { precision, scale, bound, factors, fast_bound, roomy, in_lanes }
    }

    /// The scaled value of a number, if it can be had exactly.
    fn scaled(&self, whole: &[u8], fraction: &[u8]) -> Option<i128> {
        let digits = whole.len() as isize + isize::from(self.scale);
        let all = || whole.iter().chain(fraction).map(|digit| i128::from(digit - b'0'));
        let kept = usize::try_from(digits).unwrap_or(0);
        let mut value = 0i128;
        for digit in all().take(kept) {
            value = value.checked_mul(10)?.checked_add(digit)?;
            if value >= self.bound {
                return None;
            }
        }
        if all().skip(kept).any(|digit| digit != 0) {
            return None;
        }
        let missing = kept.saturating_sub(whole.len() + fraction.len());
        if value != 0 {
            value = value.checked_mul(10i128.checked_pow(missing as u32)?)?;
        }
        (value < self.bound).then_some(value)
    }
}

impl Parser for DecimalParser {
    type Value = i128;

    #[inline(always)]
    fn fast(&mut self, data: &[u8], start: usize, end: usize) -> Option<i128> {
        let (digits, fraction) = swar::fixed_point(data, start, end)?;
        let factor = self.factors[fraction];
        let value = digits * factor;
        (factor != 0 && value < self.fast_bound).then_some(i128::from(value))
    }

    #[inline(always)]
    fn fast_check(&mut self, data: &[u8], start: usize, end: usize) -> bool {
        if !self.roomy {
            return self.fast(data, start, end).is_some();
        }
        swar::fixed_point_digits(data, start, end).is_some_and(|(_, fraction)| self.factors[fraction] != 0)
    }

    const SEVERAL: bool = true;

    #[inline(always)]
    fn several<L: Lanes>(&mut self, data: &[u8], spans: Spans<L>) -> Option<L> {
        if !self.in_lanes {
            return None;
        }
        let (digits, factors) = lanes::fixed_point(spans.digits(data)?, &self.factors)?;
        Some(lanes::numbers(digits).times(factors))
    }

    #[inline(always)]
    fn check_several<L: Lanes>(&mut self, data: &[u8], spans: Spans<L>) -> bool {
        self.in_lanes && spans.digits(data).is_some_and(|digits| lanes::fixed_point(digits, &self.factors).is_some())
    }

    #[inline(always)]
    fn value(word: u64) -> i128 {
        i128::from(word)
    }

    fn slow(&self, text: &[u8]) -> Result<i128, Reason> {
        let (negative, number) = sign(text);
        let (whole, fraction) = match number.iter().position(|byte| *byte == b'.') {
            Some(point) => (&number[..point], &number[point + 1..]),
            None => (number, &number[..0]),
        };
        let digits = || whole.iter().chain(fraction);
        if digits().next().is_none() || !digits().all(u8::is_ascii_digit) {
            return Err(Reason::NotDecimal { found: found(text) });
        }
        let value = self.scaled(whole, fraction).ok_or_else(|| Reason::DecimalRange {
            found: found(text),
            precision: self.precision,
            scale: self.scale,
        })?;
        Ok(if negative { -value } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::super::both_ways;
    use super::*;

    fn read(precision: u8, scale: i8, text: &str) -> Option<i128> {
        match both_ways(&mut DecimalParser::new(precision, scale), text) {
            Ok(value) => Some(value),
            Err(Reason::DecimalRange { .. }) => None,
            Err(other) => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn values_are_scaled_exactly() {
        assert_eq!(read(12, 3, "79.515"), Some(79_515));
        assert_eq!(read(12, 3, "38.0"), Some(38_000));
        assert_eq!(read(12, 3, "-0.5"), Some(-500));
        assert_eq!(read(12, 3, "+5"), Some(5_000));
        assert_eq!(read(12, 3, "5."), Some(5_000));
        assert_eq!(read(12, 3, ".5"), Some(500));
        assert_eq!(read(12, 3, "123456789.123"), Some(123_456_789_123));
        assert_eq!(read(12, 3, "1.2340000000000000000000000"), Some(1_234));
        assert_eq!(read(18, 11, "12345678"), Some(1_234_567_800_000_000_000).filter(|_| false));
        assert_eq!(read(20, 11, "12345678"), Some(1_234_567_800_000_000_000));
    }

    #[test]
    fn nothing_is_rounded_or_wrapped() {
        assert_eq!(read(12, 3, "1.2345"), None);
        assert_eq!(read(12, 3, "0.0001"), None);
        assert_eq!(read(5, 2, "999.99"), Some(99_999));
        assert_eq!(read(5, 2, "-999.99"), Some(-99_999));
        assert_eq!(read(5, 2, "1000"), None);
        assert_eq!(read(5, 2, "1000.00"), None);
        assert_eq!(read(5, 2, "00001.00"), Some(100));
        let most = "9".repeat(38);
        assert_eq!(read(38, 0, &most), Some(10i128.pow(38) - 1));
        assert_eq!(read(38, 0, &format!("{most}9")), None);
        assert_eq!(read(38, 0, &format!("-{most}")), Some(1 - 10i128.pow(38)));
        assert_eq!(read(38, 38, "1"), None);
        assert_eq!(read(38, 38, "0.5"), Some(5 * 10i128.pow(37)));
        assert_eq!(read(38, 38, &"0".repeat(100)), Some(0));
        assert_eq!(read(38, 0, &format!("{}1", "0".repeat(100))), Some(1));
    }

    #[test]
    fn a_negative_scale_counts_zeros_before_the_point() {
        assert_eq!(read(3, -2, "12300"), Some(123));
        assert_eq!(read(3, -2, "12340"), None);
        assert_eq!(read(3, -2, "0"), Some(0));
        assert_eq!(read(3, -2, "7"), None);
        assert_eq!(read(3, -2, "100000"), None);
    }

    #[test]
    fn other_texts_are_no_decimals() {
        for text in [".", "-", "+.", "1e3", "1,5", "abc", "1..2", "0x10", "- 1"] {
            let parsed = both_ways(&mut DecimalParser::new(12, 3), text);
            assert_eq!(parsed, Err(Reason::NotDecimal { found: text.into() }));
        }
    }
}
