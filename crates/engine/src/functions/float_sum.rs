//! Sums of binary floating-point numbers that do not depend on the order of the numbers.

/// A sum kept without any loss, as numbers whose digits do not overlap (Shewchuk's expansions).
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FloatSum {
    /// Increasing magnitude, no two overlapping.
    parts: Vec<f64>,
    /// The plain sum of infinities and NaN, where there are any: their order does not matter.
    special: Option<f64>,
}

impl FloatSum {
    pub(super) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.special = Some(self.special.unwrap_or(0.0) + value);
            return;
        }
        let mut x = value;
        let mut kept = 0;
        for i in 0..self.parts.len() {
            let mut y = self.parts[i];
            if x.abs() < y.abs() {
                std::mem::swap(&mut x, &mut y);
            }
            let high = x + y;
            let low = y - (high - x);
            if low != 0.0 {
                self.parts[kept] = low;
                kept += 1;
            }
            x = high;
        }
        self.parts.truncate(kept);
        if x.is_finite() {
            self.parts.push(x);
        } else {
            self.special = Some(self.special.unwrap_or(0.0) + x);
        }
    }

    /// The numbers that stand for the sum; adding them to another sum adds this one.
    pub(super) fn parts(&self) -> impl Iterator<Item = f64> + '_ {
        self.parts.iter().copied().chain(self.special)
    }

    /// The sum, rounded once to the nearest number (ties to even).
    pub(super) fn value(&self) -> f64 {
        if let Some(special) = self.special {
            return special;
        }
        let mut rest = self.parts.iter().rev().copied();
        let mut high = rest.next().unwrap_or(0.0);
        let mut low = 0.0;
        for part in rest.by_ref() {
            let x = high;
            high = x + part;
            low = part - (high - x);
            if low != 0.0 {
                break;
            }
        }
        // Half-way cases: what lies below decides which neighbour is nearer.
        if let Some(next) = rest.next()
            && ((low < 0.0 && next < 0.0) || (low > 0.0 && next > 0.0))
        {
            let doubled = low * 2.0;
            let other = high + doubled;
            if doubled == other - high {
                high = other;
            }
        }
        high
    }

    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.parts.capacity() * size_of::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(values: &[f64]) -> f64 {
        let mut sum = FloatSum::default();
        values.iter().for_each(|v| sum.add(*v));
        sum.value()
    }

    #[test]
    fn nothing_is_lost_between_large_and_small() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, f64::EPSILON / 4.0]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[]), 0.0);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }

    proptest! {
        #[test]
        fn any_order_and_any_grouping_gives_the_same_bits(
            values in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 0..40),
            order in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let values: Vec<f64> = values.into_iter().map(|v| v / 1e10).collect();
            let whole = sum(&values);
            let mut turned = values.clone();
            if !turned.is_empty() {
                let by = order.index(turned.len());
                turned.rotate_left(by);
                turned.reverse();
            }
            let at = if turned.is_empty() { 0 } else { cut.index(turned.len()) };
            let (mut left, mut right) = (FloatSum::default(), FloatSum::default());
            turned[..at].iter().for_each(|v| left.add(*v));
            turned[at..].iter().for_each(|v| right.add(*v));
            right.parts().for_each(|v| left.add(v));
            prop_assert_eq!(left.value().to_bits(), whole.to_bits());
        }
    }
}
