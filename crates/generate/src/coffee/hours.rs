//! When in a day things happen: shops are open from 07:00:00 to 19:59:59 and full around noon.
//!
//! A day is a fraction, 0 to 2^32: where `fraction` of the day's events lie before `second`. Both directions are
//! exact integer arithmetic, so that "who has registered by now" can be answered without remembering anybody.

use crate::field::two_digits;

const OPENING_HOUR: u64 = 7;
/// Events per hour, per mille, as in the real data.
const PER_MILLE: [u64; 13] = [20, 40, 80, 120, 145, 157, 159, 126, 79, 40, 22, 9, 3];
/// Events per mille before each hour.
const BEFORE: [u64; 13] = {
    let mut before = [0; 13];
    let mut hour = 1;
    while hour < 13 {
        before[hour] = before[hour - 1] + PER_MILLE[hour - 1];
        hour += 1;
    }
    before
};

/// The second (counted from opening) before which `fraction` / 2^32 of the day's events lie.
#[inline]
pub(super) fn second_of(fraction: u64) -> u64 {
    let per_mille = fraction * 1000;
    // Counting without a branch: the hour is hard to predict.
    let hour = BEFORE.iter().filter(|&&before| before << 32 <= per_mille).count() - 1;
    let into_hour = per_mille - (BEFORE[hour] << 32);
    hour as u64 * 3600 + ((into_hour * 3600 / PER_MILLE[hour]) >> 32)
}

/// The share of the day's events before `second`, in 1 / 2^32.
#[inline]
pub(super) fn fraction_of(second: u64) -> u64 {
    let hour = (second / 3600) as usize;
    ((BEFORE[hour] << 32) + ((second % 3600 * PER_MILLE[hour]) << 32) / 3600) / 1000
}

/// Appends the time of day of a second counted from opening: `HH:MM:SS`.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, second: u64) {
    two_digits(out, OPENING_HOUR + second / 3600);
    out.push(b':');
    two_digits(out, second / 60 % 60);
    out.push(b':');
    two_digits(out, second % 60);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hours_make_a_whole_day() {
        assert_eq!(PER_MILLE.iter().sum::<u64>(), 1000);
        assert_eq!(second_of(0), 0);
        assert_eq!(second_of((1 << 32) - 1), 13 * 3600 - 1);
    }

    #[test]
    fn fractions_and_seconds_are_inverse_and_rise() {
        let mut last = 0;
        for second in 0..13 * 3600 {
            let fraction = fraction_of(second);
            assert!(fraction >= last);
            assert!(second_of(fraction).abs_diff(second) <= 1, "{second}");
            last = fraction;
        }
    }
}
