//! Finite numbers of 64 bits.

use super::{Parser, swar};
use crate::Reason;
use crate::reject::found;

/// Parses [`Kind::Float`](crate::Kind::Float).
pub(crate) struct FloatParser;

/// Powers of ten that a float holds exactly.
const EXACT: [f64; 8] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

impl Parser for FloatParser {
    type Value = f64;

    #[inline(always)]
    fn fast(&mut self, data: &[u8], start: usize, end: usize) -> Option<f64> {
        // Both operands are exact, so the one rounding of the division is the right one.
        let (digits, fraction) = swar::fixed_point(data, start, end)?;
        Some(digits as f64 / EXACT[fraction])
    }

    fn slow(&self, text: &[u8]) -> Result<f64, Reason> {
        std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
            .filter(|value| value.is_finite())
            .ok_or_else(|| Reason::NotFloat { found: found(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::both_ways;
    use super::*;

    #[test]
    fn floats_are_read_as_rust_reads_them() {
        for text in [
            "0",
            "1",
            "-1.5",
            "3.14159",
            "0.1",
            "99999.99",
            ".3",
            "5.",
            "1e10",
            "1E-7",
            "+2.5",
            "1.7976931348623157e308",
        ] {
            assert_eq!(both_ways(&mut FloatParser, text).ok(), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn only_finite_numbers_are_floats() {
        for text in ["nan", "NaN", "inf", "-Infinity", "1e999", "abc", ".", "1,5", "0x1p3", "1 "] {
            assert_eq!(both_ways(&mut FloatParser, text), Err(Reason::NotFloat { found: text.into() }));
        }
    }
}
