//! The share of the real volume: checked once, then a plain multiplier of counts.

use crate::Error;

/// The smallest scale: a few thousand records per data set.
pub const SCALE_MIN: f64 = 0.0001;
/// The largest scale: ten times the real volume.
pub const SCALE_MAX: f64 = 10.0;

/// A scale within [`SCALE_MIN`]..=[`SCALE_MAX`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale(f64);

impl Scale {
    pub(crate) fn new(scale: f64) -> Result<Self, Error> {
        if (SCALE_MIN..=SCALE_MAX).contains(&scale) { Ok(Self(scale)) } else { Err(Error::Scale { found: scale }) }
    }

    /// `real` records at this scale, at least one. One multiplication and one rounding: IEEE 754 fixes both, so the
    /// count is the same everywhere.
    pub(crate) fn count(self, real: u64) -> u64 {
        ((real as f64 * self.0).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_scale_and_never_reach_zero() {
        let scale = Scale::new(0.0001).expect("the smallest scale is allowed");
        assert_eq!(scale.count(580), 1);
        assert_eq!(scale.count(14_400_000), 1440);
        assert_eq!(Scale::new(10.0).expect("the largest scale is allowed").count(7), 70);
    }

    #[test]
    fn scales_out_of_range_are_named_in_the_error() {
        for found in [0.0, -1.0, 0.000_09, 10.1, f64::NAN, f64::INFINITY] {
            let error = Scale::new(found).expect_err("out of range");
            assert!(error.to_string().contains("from 0.0001 to 10"), "{error}");
        }
    }
}
