//! Sums of floats and of products of floats, without any loss.
//!
//! A sum is kept as one long whole number whose digits (base 2^32) cover just the magnitudes that were met. Adding a float
//! changes three digits, and carries wait until a digit might overflow. So a sum is the same in whatever order its numbers
//! come, what was added can be taken away again (for windows that slide), and nothing overflows on the way.
//!
//! Advice for whoever changes this: a digit must stay below 2^63 in magnitude. One addition changes it by less than 2^32,
//! and [`CARRY_AFTER`] additions are the most between two carries.

use num_bigint::{BigInt, Sign};

use super::dyadic::{Dyadic, decompose};

const DIGIT_BITS: i32 = 32;
/// Additions that a digit takes before carries must be moved on.
const CARRY_AFTER: u32 = 1 << 30;

/// An exact sum. Infinities and NaN are counted, so that they can be taken away as well.
#[derive(Debug, Clone, Default)]
pub(super) struct FloatSum {
    /// Lowest digit first; any of them may be negative.
    digits: Vec<i64>,
    /// The power of 2^32 that the first digit counts.
    lowest: i32,
    additions: u32,
    specials: Option<Box<Specials>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Specials {
    infinite: i64,
    negative_infinite: i64,
    nan: i64,
}

impl FloatSum {
    pub(super) fn add(&mut self, value: f64) {
        self.change(value, false);
    }

    /// Takes away what was added before.
    pub(super) fn remove(&mut self, value: f64) {
        self.change(value, true);
    }

    /// Adds `a · b`, not rounded.
    pub(super) fn add_product(&mut self, a: f64, b: f64) {
        self.change_product(a, b, false);
    }

    /// Takes away a product that was added before.
    pub(super) fn remove_product(&mut self, a: f64, b: f64) {
        self.change_product(a, b, true);
    }

    fn change(&mut self, value: f64, away: bool) {
        if !value.is_finite() {
            return self.count_special(value, away);
        }
        let (negative, mantissa, exponent) = decompose(value);
        self.add_bits(mantissa, exponent, negative != away);
    }

    fn change_product(&mut self, a: f64, b: f64, away: bool) {
        if !a.is_finite() || !b.is_finite() {
            return self.count_special(a * b, away);
        }
        let (a_negative, a_mantissa, a_exponent) = decompose(a);
        let (b_negative, b_mantissa, b_exponent) = decompose(b);
        let product = u128::from(a_mantissa) * u128::from(b_mantissa);
        let (exponent, negative) = (a_exponent + b_exponent, (a_negative != b_negative) != away);
        self.add_bits(product as u64, exponent, negative);
        self.add_bits((product >> 64) as u64, exponent + 64, negative);
    }

    fn count_special(&mut self, value: f64, away: bool) {
        let specials = self.specials.get_or_insert_default();
        let count = match value {
            f64::INFINITY => &mut specials.infinite,
            f64::NEG_INFINITY => &mut specials.negative_infinite,
            _ => &mut specials.nan,
        };
        *count += if away { -1 } else { 1 };
    }

    /// Adds `±bits · 2^exponent`.
    fn add_bits(&mut self, bits: u64, exponent: i32, negative: bool) {
        if bits == 0 {
            return;
        }
        if self.additions == CARRY_AFTER {
            self.carry();
        }
        self.additions += 1;
        let first = self.place(exponent.div_euclid(DIGIT_BITS), 3);
        let shifted = u128::from(bits) << exponent.rem_euclid(DIGIT_BITS);
        for (index, digit) in self.digits[first..first + 3].iter_mut().enumerate() {
            let part = i64::from((shifted >> (32 * index)) as u32);
            *digit += if negative { -part } else { part };
        }
    }

    /// Where the digit for this power of 2^32 is; there are as many from there on.
    fn place(&mut self, power: i32, count: usize) -> usize {
        if self.digits.is_empty() {
            self.lowest = power;
        }
        if power < self.lowest {
            let more = (self.lowest - power) as usize;
            self.digits.splice(..0, std::iter::repeat_n(0, more));
            self.lowest = power;
        }
        let first = (power - self.lowest) as usize;
        if self.digits.len() < first + count {
            self.digits.resize(first + count, 0);
        }
        first
    }

    /// Makes every digit small again, of which the last keeps the sign.
    fn carry(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits {
            let sum = *digit + carry;
            (*digit, carry) = (sum & 0xffff_ffff, sum >> DIGIT_BITS);
        }
        if carry != 0 {
            self.digits.push(carry);
        }
        self.additions = 1;
    }

    /// The sum of all that is finite.
    pub(super) fn finite(&self) -> Dyadic {
        let (sign, digits) = self.sign_and_digits();
        Dyadic::new(BigInt::from_slice(sign, &digits), i64::from(self.lowest) * i64::from(DIGIT_BITS))
    }

    fn sign_and_digits(&self) -> (Sign, Vec<u32>) {
        let mut digits = Vec::with_capacity(self.digits.len() + 2);
        let mut carry = 0;
        for digit in &self.digits {
            let sum = digit + carry;
            digits.push(sum as u32);
            carry = sum >> DIGIT_BITS;
        }
        while carry != 0 && carry != -1 {
            digits.push(carry as u32);
            carry >>= DIGIT_BITS;
        }
        if carry == 0 {
            return (Sign::Plus, digits);
        }
        // Two's complement: all digits inverted, plus one.
        let mut one = true;
        for digit in &mut digits {
            (*digit, one) = (!*digit).overflowing_add(u32::from(one));
        }
        if one {
            digits.push(1);
        }
        (Sign::Minus, digits)
    }

    /// What infinities and NaN make of the sum, where there are any.
    pub(super) fn special(&self) -> Option<f64> {
        let specials = self.specials.as_deref()?;
        match (specials.infinite > 0, specials.negative_infinite > 0, specials.nan > 0) {
            (false, false, false) => None,
            (true, false, false) => Some(f64::INFINITY),
            (false, true, false) => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }

    /// Numbers that stand for the sum, the same for equal sums. [`Self::merge`] reads them.
    pub(super) fn state(&self) -> Vec<i64> {
        let (sign, digits) = self.sign_and_digits();
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        let end = digits.iter().rposition(|digit| *digit != 0).map_or(zeros, |last| last + 1);
        let lowest = if zeros == end { 0 } else { i64::from(self.lowest) + zeros as i64 };
        let specials = self.specials.as_deref().filter(|_| self.special().is_some());
        let mut state = vec![lowest * 2 + i64::from(specials.is_some())];
        if let Some(specials) = specials {
            state.extend([specials.infinite, specials.negative_infinite, specials.nan]);
        }
        let signed = |digit: &u32| if sign == Sign::Minus { -i64::from(*digit) } else { i64::from(*digit) };
        state.extend(digits[zeros..end].iter().map(signed));
        state
    }

    /// Adds a sum by its [`Self::state`].
    pub(super) fn merge(&mut self, state: &[i64]) {
        let Some((head, mut rest)) = state.split_first() else { return };
        if head % 2 != 0
            && let Some((&[infinite, negative_infinite, nan], digits)) = rest.split_first_chunk()
        {
            let specials = self.specials.get_or_insert_default();
            specials.infinite += infinite;
            specials.negative_infinite += negative_infinite;
            specials.nan += nan;
            rest = digits;
        }
        if rest.is_empty() {
            return;
        }
        if self.additions == CARRY_AFTER {
            self.carry();
        }
        self.additions += 1;
        let first = self.place(head.div_euclid(2) as i32, rest.len());
        self.digits[first..].iter_mut().zip(rest).for_each(|(digit, more)| *digit += more);
    }

    /// Bytes outside of the value itself.
    pub(super) fn heap_size(&self) -> usize {
        let specials = if self.specials.is_some() { size_of::<Specials>() } else { 0 };
        self.digits.capacity() * size_of::<i64>() + specials
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl FloatSum {
        fn value(&self) -> f64 {
            self.special().unwrap_or_else(|| self.finite().nearest())
        }
    }

    fn sum_of(values: &[f64]) -> FloatSum {
        let mut sum = FloatSum::default();
        values.iter().for_each(|v| sum.add(*v));
        sum
    }

    fn sum(values: &[f64]) -> f64 {
        sum_of(values).value()
    }

    #[test]
    fn nothing_is_lost_between_large_and_small() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, f64::EPSILON / 4.0]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[]), 0.0);
        assert_eq!(sum(&[5e-324, 5e-324, -1e-323]), 0.0);
        assert_eq!(sum(&[-1e300, 1e-300]), -1e300);
    }

    #[test]
    fn sums_that_are_too_large_on_the_way_are_right_at_the_end() {
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, -f64::MAX, f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX, 1.0]), f64::NEG_INFINITY);
    }

    #[test]
    fn infinities_and_nan_are_taken_away_again() {
        let mut sum = sum_of(&[1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
        assert!(sum.value().is_nan());
        sum.remove(f64::NAN);
        assert!(sum.value().is_nan());
        sum.remove(f64::NEG_INFINITY);
        assert_eq!(sum.value(), f64::INFINITY);
        let mut merged = FloatSum::default();
        merged.merge(&sum.state());
        assert_eq!(merged.value(), f64::INFINITY);
        sum.remove(f64::INFINITY);
        assert_eq!(sum.value(), 1.5);
        assert_eq!(sum.state(), sum_of(&[1.5]).state());
    }

    #[test]
    fn carries_are_moved_on_in_time() {
        let mut sum = FloatSum { additions: CARRY_AFTER - 1, ..sum_of(&[-1e20]) };
        [1e20, -3.0, f64::MAX, -f64::MAX, 1.0].into_iter().for_each(|v| sum.add(v));
        assert_eq!(sum.value(), -2.0);
        assert!(sum.additions < 10);
        let mut merged = FloatSum { additions: CARRY_AFTER, ..sum_of(&[7.0]) };
        merged.merge(&sum.state());
        assert_eq!(merged.value(), 5.0);
    }

    #[test]
    fn products_are_not_rounded() {
        let mut sum = FloatSum::default();
        sum.add_product(1e200, 1e200);
        sum.add_product(0.1, 0.1);
        sum.remove_product(1e200, 1e200);
        assert_eq!(sum.value(), Dyadic::of_float(0.1).times(&Dyadic::of_float(0.1)).nearest());
        sum.remove(0.1 * 0.1);
        assert_ne!(sum.value(), 0.0, "what rounding the product would have lost");
    }

    fn numbers() -> impl Strategy<Value = f64> {
        prop_oneof![
            prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO,
            -1e9..1e9_f64,
            Just(f64::MAX),
            Just(f64::INFINITY),
        ]
    }

    proptest! {
        #[test]
        fn any_order_and_any_grouping_gives_the_same_bits(
            values in prop::collection::vec(numbers(), 0..40),
            away in prop::collection::vec(numbers(), 0..10),
            order in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = sum_of(&values);
            let mut turned = values.clone();
            if !turned.is_empty() {
                let by = order.index(turned.len());
                turned.rotate_left(by);
                turned.reverse();
            }
            let at = if turned.is_empty() { 0 } else { cut.index(turned.len()) };
            let (mut left, mut right) = (sum_of(&away), FloatSum::default());
            turned[..at].iter().for_each(|v| left.add(*v));
            turned[at..].iter().for_each(|v| right.add(*v));
            away.iter().for_each(|v| left.remove(*v));
            left.merge(&right.state());
            prop_assert_eq!(left.value().to_bits(), whole.value().to_bits());
            prop_assert_eq!(left.state(), whole.state());
        }
    }
}
