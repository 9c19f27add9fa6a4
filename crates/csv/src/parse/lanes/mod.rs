//! Several fields at once: each is a 64-bit lane of a vector.
//!
//! What is computed is written here once, in terms of what a vector can do; [`avx2`] has four lanes, [`avx512`] eight.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;

/// A vector of 64-bit words. There is one only where the processor has the instructions for it, so every value proves that its
/// methods may be used; `self` is asked for just that where it is not computed with.
///
/// Methods are inlined into functions that enable those instructions, and are slow anywhere else.
pub(crate) trait Lanes: Copy {
    /// How many words it has.
    const COUNT: usize;
    /// The words one by one.
    type Words: AsRef<[u64]>;

    /// The same word everywhere.
    fn splat(self, word: u64) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Bits of `self` that `other` does not have.
    fn without(self, other: Self) -> Self;
    /// Sums that wrap.
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Products of the low halves.
    fn times(self, other: Self) -> Self;
    /// Shifted towards the high bits; zero from 64 bits on.
    fn up(self, bits: Self) -> Self;
    /// Shifted towards the low bits; zero from 64 bits on.
    fn down(self, bits: Self) -> Self;
    /// All ones in every byte that is equal.
    fn equal_bytes(self, other: Self) -> Self;
    /// All ones in every word that is equal.
    fn equal(self, other: Self) -> Self;
    /// Zero in every byte that is not above the other.
    fn above(self, other: Self) -> Self;
    /// Each two bytes as `10 * first + second`; bytes are digits.
    fn pairs(self) -> Self;
    /// Each two pairs as `100 * first + second`.
    fn fours(self) -> Self;
    /// The highest bit of every word.
    fn signs(self) -> u64;
    fn is_zero(self) -> bool;
    /// Every `stride`-th position, from the first one on.
    ///
    /// # Panics
    /// There are not so many.
    fn positions(self, positions: &[u32], stride: usize) -> Self;
    /// The eight bytes of `data` from each word on, the first one lowest. None unless all lie in `data`.
    fn load(self, data: &[u8]) -> Option<Self>;
    fn words(self) -> Self::Words;
}

/// Where several fields start and end.
#[derive(Clone, Copy)]
pub(crate) struct Spans<L> {
    pub(crate) starts: L,
    pub(crate) ends: L,
}

impl<L: Lanes> Spans<L> {
    /// Which of them are not empty, a bit each.
    #[inline(always)]
    pub(crate) fn filled(self) -> u64 {
        // Lengths fit 32 bits, so all but zero are negative when taken from zero.
        self.starts.minus(self.ends).signs()
    }

    #[inline(always)]
    pub(super) fn lengths(self) -> L {
        self.ends.minus(self.starts)
    }

    /// The fields' bytes, the last one highest, less `'0'`; zero where they have fewer than eight.
    ///
    /// None if a field is longer than eight bytes or does not lie eight bytes into the data.
    #[inline(always)]
    pub(super) fn digits(self, data: &[u8]) -> Option<L> {
        let (starts, ends) = (self.starts, self.ends);
        let words = ends.minus(ends.splat(8)).load(data)?;
        let unused = starts.splat(64).minus(self.lengths().up(starts.splat(3)));
        if unused.signs() != 0 {
            return None;
        }
        // An empty field shifts everything out.
        Some(words.xor(words.splat(0x3030_3030_3030_3030)).down(unused).up(unused))
    }
}

/// Whether every byte is a digit.
#[inline(always)]
pub(super) fn are_digits<L: Lanes>(digits: L) -> bool {
    digits.above(digits.splat(0x0909_0909_0909_0909)).is_zero()
}

/// The digits of numbers that may have a minus in front, as [`Spans::digits`] has them, and all ones in the lanes of those that
/// do. None if a lane is no such number.
#[inline(always)]
pub(super) fn without_minus<L: Lanes>(digits: L, spans: Spans<L>) -> Option<(L, L)> {
    // A minus is 0x1D after the zeros are taken off. An empty field has neither byte.
    let of = |word| digits.splat(word);
    let first = of(64).minus(spans.lengths().up(of(3)));
    let minus = of(0x1D).up(first);
    let negative = digits.and(of(0xFF).up(first)).equal(minus);
    let rest = digits.xor(minus.and(negative));
    // A minus alone is no number.
    let lone = digits.equal(of(0x1D << 56));
    (lone.is_zero() && are_digits(rest)).then_some((rest, negative))
}

/// The number in each lane, of eight digits.
#[inline(always)]
pub(super) fn numbers<L: Lanes>(digits: L) -> L {
    let fours = digits.pairs().fours();
    // The first four digits are the lane's low half.
    fours.times(fours.splat(10_000)).plus(fours.down(fours.splat(32)))
}

/// Numbers with at most one point: their digits without it, and for each the factor that `factors` has for the number of
/// digits after it. None if a lane is no such number or its factor is zero. Factors have at most 32 bits.
#[inline(always)]
pub(super) fn fixed_point<L: Lanes>(lanes: L, factors: &[u64; 8]) -> Option<(L, L)> {
    let zero = lanes.splat(0);
    // A point is 0x1E after the zeros are taken off. Its byte becomes all ones.
    let point = lanes.equal_bytes(lanes.splat(0x1E1E_1E1E_1E1E_1E1E));
    let lowest = point.and(zero.minus(point));
    let below = lowest.minus(lanes.splat(1));
    let above = lanes.without(point.or(below));
    let moved = lanes.and(below).up(lanes.splat(8));
    let whole = point.equal(zero);
    let digits = whole.and(lanes).or(above.or(moved).without(whole));
    let mut factor = whole.and(lanes.splat(factors[0]));
    // A lane with two points equals none of these, so its factor stays zero.
    for (fraction, value) in factors.iter().enumerate() {
        if *value == 0 {
            break;
        }
        let alone = point.equal(lanes.splat(0xFF << (56 - 8 * fraction)));
        factor = factor.or(alone.and(lanes.splat(*value)));
    }
    // A point and nothing but zeros may be a lone point, which is no number.
    let lone = lanes.equal(lanes.splat(0x1E << 56));
    let refused = factor.equal(zero).or(lone);
    (refused.is_zero() && are_digits(digits)).then_some((digits, factor))
}

/// Seconds since midnight of `HH:MM:SS`, loaded with the first byte lowest. None if one is no such time.
#[inline(always)]
pub(super) fn times_of_day<L: Lanes>(texts: L) -> Option<L> {
    let of = |word| texts.splat(word);
    let digits = texts.xor(of(u64::from_le_bytes(*b"00:00:00")));
    // A digit overflows into the top bit from 10 on, a colon's place from 1 on.
    let shape = digits.plus(of(0x7676_7F76_767F_7676)).or(digits).and(of(0x8080_8080_8080_8080));
    // Bytes 0, 3 and 6 become the two-digit numbers; the checks above keep sums inside their bytes.
    let tens = digits.up(of(3)).plus(digits.up(of(1)));
    let pairs = tens.plus(digits.down(of(8))).and(of(0x00FF_0000_FF00_00FF));
    let range = pairs.plus(of(0x0044_0000_4400_0068)).and(of(0x0080_0000_8000_0080));
    if !shape.or(range).is_zero() {
        return None;
    }
    let (hours, minutes) = (pairs.and(of(0xFF)), pairs.down(of(24)).and(of(0xFF)));
    Some(hours.times(of(3600)).plus(minutes.times(of(60))).plus(pairs.down(of(48))))
}

/// Days from 1 to `length`, of two digits in the lowest two bytes, the first one lowest; the rest is anything. None if one is no such
/// day.
#[inline(always)]
pub(super) fn days_of_month<L: Lanes>(texts: L, length: u8) -> Option<L> {
    let of = |word| texts.splat(word);
    let digits = texts.and(of(0xFFFF)).xor(of(0x3030));
    let shape = digits.plus(of(0x7676)).or(digits).and(of(0x8080));
    let tens = digits.up(of(3)).plus(digits.up(of(1)));
    let days = tens.plus(digits.down(of(8))).and(of(0xFF));
    let range = days.minus(of(1)).or(of(u64::from(length)).minus(days)).and(of(1 << 63));
    shape.or(range).is_zero().then_some(days)
}

#[cfg(test)]
mod tests;
