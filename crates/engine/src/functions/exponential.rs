//! e^x with more digits than a float has, so that the last one is right.
//!
//! The crate `libm` is off by one in the last place too often to be shown: e^1 would end in 455 instead of 45. Here numbers
//! are pairs of floats of which the second is what the first leaves over. Only additions, multiplications and fused
//! multiplications are used, so that every machine gets the same.

/// A number as the sum of two floats.
#[derive(Debug, Clone, Copy)]
struct Pair {
    high: f64,
    low: f64,
}

/// ln 2.
const LN_2: Pair = Pair { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
/// How often the argument is halved before the series, and the result squared behind it.
const HALVINGS: i32 = 8;
/// Terms of the series: the first that is left out is below 2^-104.
const TERMS: u32 = 9;
/// Beyond these e^x is infinite, or zero.
const LARGEST: f64 = 710.0;
const SMALLEST: f64 = -746.0;

impl Pair {
    /// a + b, where a is the larger one.
    fn quick_sum(a: f64, b: f64) -> Self {
        let high = a + b;
        Self { high, low: b - (high - a) }
    }

    fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let rest = high - a;
        Self { high, low: (a - (high - rest)) + (b - rest) }
    }

    fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        Self { high, low: libm::fma(a, b, -high) }
    }

    fn plus(self, other: Self) -> Self {
        let high = Self::sum(self.high, other.high);
        Self::quick_sum(high.high, high.low + (self.low + other.low))
    }

    fn times(self, other: Self) -> Self {
        let high = Self::product(self.high, other.high);
        Self::quick_sum(high.high, high.low + (self.high * other.low + self.low * other.high))
    }

    fn over(self, divisor: f64) -> Self {
        let high = self.high / divisor;
        let rest = libm::fma(-high, divisor, self.high) + self.low;
        Self::quick_sum(high, rest / divisor)
    }

    /// Times a power of two.
    fn scaled(self, exponent: i32) -> Self {
        Self { high: libm::ldexp(self.high, exponent), low: libm::ldexp(self.low, exponent) }
    }
}

/// e^x as a pair times a power of two.
fn parts(x: f64) -> (Pair, i32) {
    let twos = libm::round(x / LN_2.high);
    let whole = LN_2.times(Pair { high: -twos, low: 0.0 });
    let rest = Pair { high: x, low: 0.0 }.plus(whole).scaled(-HALVINGS);
    // e^rest - 1, from the last term of the series to the first.
    let one = Pair { high: 1.0, low: 0.0 };
    let mut series = one;
    for term in (2..=TERMS).rev() {
        series = one.plus(series.times(rest).over(f64::from(term)));
    }
    let mut more = series.times(rest);
    for _ in 0..HALVINGS {
        // (1 + m)² - 1 = 2m + m²
        more = more.scaled(1).plus(more.times(more));
    }
    (one.plus(more), twos as i32)
}

/// e^x.
pub(super) fn exp(x: f64) -> f64 {
    if x.is_nan() || x > LARGEST {
        return if x.is_nan() { x } else { f64::INFINITY };
    }
    if x < SMALLEST {
        return 0.0;
    }
    let (pair, twos) = parts(x);
    libm::ldexp(pair.high + pair.low, twos)
}

/// The hyperbolic cosine.
pub(super) fn cosh(x: f64) -> f64 {
    let x = x.abs();
    if x.is_nan() || x > 40.0 {
        // e^-x is too small to matter. Half of e^x may be a float where e^x is none.
        let half = exp(x / 2.0);
        return if x > 700.0 { half / 2.0 * half } else { exp(x) / 2.0 };
    }
    let (grows, twos) = parts(x);
    let (shrinks, negative_twos) = parts(-x);
    let sum = grows.scaled(twos).plus(shrinks.scaled(negative_twos));
    (sum.high + sum.low) / 2.0
}

/// The hyperbolic sine. Near zero the difference would lose what the series keeps.
pub(super) fn sinh(x: f64) -> f64 {
    let magnitude = x.abs();
    if !(1e-3..=40.0).contains(&magnitude) {
        return if magnitude > 40.0 { cosh(x).copysign(x) } else { libm::sinh(x) };
    }
    let (grows, twos) = parts(magnitude);
    let (shrinks, negative_twos) = parts(-magnitude);
    let difference = grows.scaled(twos).plus(shrinks.scaled(negative_twos).times(Pair { high: -1.0, low: 0.0 }));
    ((difference.high + difference.low) / 2.0).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digit_is_right() {
        // Computed with 60 digits.
        for (x, expected) in [
            (1.0, std::f64::consts::E),
            (0.0, 1.0),
            (-1.0, 0.367_879_441_171_442_33),
            (0.5, 1.648_721_270_700_128_2),
            (10.0, 22_026.465_794_806_718),
            (100.0, 2.688_117_141_816_135_6e43),
            (-700.5, 5.980_196_118_639_791e-305),
            (709.5, 1.354_986_319_314_632_8e308),
            (1e-10, 1.000_000_000_1),
        ] {
            assert_eq!(exp(x), expected, "{x}");
        }
        assert_eq!(cosh(1.0), 1.543_080_634_815_243_7);
        assert_eq!(sinh(1.0), 1.175_201_193_643_801_4);
        assert_eq!(sinh(-20.5), -399_951_088.737_752_7);
    }

    #[test]
    fn there_is_an_end_on_either_side() {
        assert_eq!(exp(709.79), f64::INFINITY);
        assert_eq!(exp(f64::INFINITY), f64::INFINITY);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp(-745.0), 5e-324);
        assert_eq!(exp(-800.0), 0.0);
        assert!(exp(f64::NAN).is_nan() && cosh(f64::NAN).is_nan() && sinh(f64::NAN).is_nan());
        assert_eq!((cosh(f64::NEG_INFINITY), sinh(f64::NEG_INFINITY)), (f64::INFINITY, f64::NEG_INFINITY));
        assert!(cosh(710.0).is_finite() && sinh(-710.0).is_finite());
        assert_eq!(sinh(0.0).to_bits(), 0);
        assert_eq!(sinh(-0.0).to_bits(), (-0.0_f64).to_bits());
    }

    #[test]
    fn it_is_near_libm_everywhere() {
        for step in -7000..7000 {
            let x = f64::from(step) * 0.1013;
            for (ours, theirs) in [(exp(x), libm::exp(x)), (cosh(x), libm::cosh(x)), (sinh(x), libm::sinh(x))] {
                assert!((ours - theirs).abs() <= 4.0 * f64::EPSILON * theirs.abs(), "{x}: {ours} {theirs}");
            }
        }
    }
}
