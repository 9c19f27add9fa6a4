//! Whole numbers times powers of two, without any limit of size, and their ratios and roots as floats that were rounded once.
//!
//! Every finite float is such a number, and so are sums and products of them. What is computed here depends on the value
//! alone, never on how it came about, so that answers are the same in whatever order rows came.

use num_bigint::{BigInt, BigUint, Sign};

/// Digits that a quotient or a root is computed to before it is rounded: more than a float has, and whether there is a rest.
const WORKING_BITS: u64 = 66;

/// `mantissa · 2^exponent`.
#[derive(Debug, Clone)]
pub(super) struct Dyadic {
    mantissa: BigInt,
    exponent: i64,
}

impl From<i64> for Dyadic {
    fn from(value: i64) -> Self {
        Self::new(BigInt::from(value), 0)
    }
}

impl Dyadic {
    pub(super) fn new(mantissa: BigInt, exponent: i64) -> Self {
        Self { mantissa, exponent }
    }

    /// The exact value of a finite float.
    pub(super) fn of_float(value: f64) -> Self {
        let (negative, mantissa, exponent) = decompose(value);
        let mantissa = BigInt::from(mantissa);
        Self::new(if negative { -mantissa } else { mantissa }, i64::from(exponent))
    }

    pub(super) fn is_zero(&self) -> bool {
        self.mantissa.sign() == Sign::NoSign
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self::new(&self.mantissa * &other.mantissa, self.exponent + other.exponent)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self::new(self.aligned(exponent) + other.aligned(exponent), exponent)
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self::new(self.aligned(exponent) - other.aligned(exponent), exponent)
    }

    /// The mantissa for an exponent that is not above its own.
    fn aligned(&self, exponent: i64) -> BigInt {
        &self.mantissa << (self.exponent - exponent) as u64
    }

    /// The nearest float (ties to even); infinite where it is beyond all of them.
    pub(super) fn nearest(&self) -> f64 {
        signed(self.mantissa.sign(), nearest(self.mantissa.magnitude(), self.exponent, false))
    }

    /// The float that is nearest to `self / divisor`, which must not be zero.
    pub(super) fn over(&self, divisor: &Self) -> f64 {
        let sign = self.mantissa.sign() * divisor.mantissa.sign();
        let (quotient, exponent, rest) = self.quotient(divisor, WORKING_BITS);
        signed(sign, nearest(&quotient, exponent, rest))
    }

    /// The float that is nearest to the square root of `self / divisor`, neither of which may be negative.
    pub(super) fn root_over(&self, divisor: &Self) -> f64 {
        let (mut quotient, mut exponent, rest) = self.quotient(divisor, 2 * WORKING_BITS);
        if exponent % 2 != 0 {
            quotient <<= 1_u8;
            exponent -= 1;
        }
        let root = quotient.sqrt();
        let rest = rest || &root * &root != quotient;
        nearest(&root, exponent / 2, rest)
    }

    /// The magnitude of a quotient to at least this many bits: (digits, exponent, whether there is more behind them).
    fn quotient(&self, divisor: &Self, bits: u64) -> (BigUint, i64, bool) {
        let (over, under) = (self.mantissa.magnitude(), divisor.mantissa.magnitude());
        let shift = (bits + under.bits()).saturating_sub(over.bits());
        let over = over << shift;
        let quotient = &over / under;
        let rest = &quotient * under != over;
        (quotient, self.exponent - divisor.exponent - shift as i64, rest)
    }
}

/// Sign, whole number and power of two of a finite float.
pub(super) fn decompose(value: f64) -> (bool, u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, biased) = match (bits >> 52) as i32 & 0x7ff {
        0 => (fraction, 1),
        biased => (fraction | 1 << 52, biased),
    };
    (value.is_sign_negative(), mantissa, biased - 1075)
}

fn signed(sign: Sign, magnitude: f64) -> f64 {
    if sign == Sign::Minus { -magnitude } else { magnitude }
}

/// The float that is nearest to `digits · 2^exponent`, or to a little more where there is a rest.
fn nearest(digits: &BigUint, exponent: i64, rest: bool) -> f64 {
    let bits = digits.bits() as i64;
    if bits == 0 {
        return 0.0;
    }
    let top = exponent + bits - 1;
    if top > 1023 {
        return f64::INFINITY;
    }
    // The power of two of the result's last place; floats below 2^-1022 have fewer places.
    let last = (top - 52).max(-1074);
    let dropped = last - exponent;
    if dropped <= 0 {
        return scaled(&(digits << dropped.unsigned_abs()), last);
    }
    let kept = digits >> dropped as u64;
    let half = digits.bit(dropped as u64 - 1);
    let below = rest || digits.trailing_zeros().is_some_and(|zeros| (zeros as i64) < dropped - 1);
    let up = half && (below || kept.bit(0));
    scaled(&(kept + u32::from(up)), last)
}

/// `whole · 2^exponent`, which is a float or beyond all of them.
fn scaled(whole: &BigUint, exponent: i64) -> f64 {
    let whole = whole.iter_u64_digits().next().unwrap_or(0);
    libm::ldexp(whole as f64, exponent as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn float(value: f64) -> Dyadic {
        Dyadic::of_float(value)
    }

    #[test]
    fn a_number_that_is_a_float_comes_back() {
        for value in [0.0, 1.0, -0.1, f64::MAX, f64::MIN_POSITIVE, 5e-324, -5e-324, 1e-310, 123_456_789.123] {
            assert_eq!(float(value).nearest(), value);
        }
    }

    #[test]
    fn half_way_goes_to_the_even_neighbour_and_a_rest_decides() {
        let one = float(1.0);
        assert_eq!(one.plus(&float(f64::EPSILON / 2.0)).nearest(), 1.0);
        assert_eq!(one.plus(&float(f64::EPSILON * 1.5)).nearest(), 1.0 + 2.0 * f64::EPSILON);
        let more = one.plus(&float(f64::EPSILON / 2.0)).plus(&float(1e-300));
        assert_eq!(more.nearest(), 1.0 + f64::EPSILON);
    }

    #[test]
    fn what_is_beyond_all_floats_is_infinite_and_what_is_below_is_zero() {
        assert_eq!(float(f64::MAX).times(&float(-2.0)).nearest(), f64::NEG_INFINITY);
        assert_eq!(float(5e-324).over(&float(4.0)), 0.0);
        assert_eq!(float(5e-324).over(&float(1.5)), 5e-324);
    }

    proptest! {
        /// Division and square root of floats are rounded once by the processor, too.
        #[test]
        fn quotients_and_roots_are_those_of_the_processor(
            a in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
            b in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
        ) {
            prop_assert_eq!(float(a).over(&float(b)), a / b);
            prop_assert_eq!(float(a.abs()).root_over(&Dyadic::from(1)), a.abs().sqrt());
            prop_assert_eq!(float(a).times(&float(b)).nearest(), a * b);
            prop_assert_eq!(float(a).plus(&float(b)).nearest(), a + b);
            prop_assert_eq!(float(a).minus(&float(b)).nearest(), a - b);
        }
    }
}
