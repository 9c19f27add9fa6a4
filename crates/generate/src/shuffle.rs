//! A permutation of 0..count that is computed, not stored: a small Feistel network, walked until it lands in range.

use crate::rng::mix;

/// Random-looking order of `count` things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shuffle {
    count: u64,
    half_bits: u32,
    key: u64,
}

impl Shuffle {
    /// The permutation of 0..`count` that belongs to `key`.
    pub(crate) fn new(count: u64, key: u64) -> Self {
        assert!(count > 0, "there is something to shuffle");
        let bits = u64::BITS - (count - 1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// Where `index`, which must be below the count, goes.
    pub(crate) fn at(self, index: u64) -> u64 {
        assert!(index < self.count, "{index} is not below {}", self.count);
        let mut place = index;
        // The network permutes at most 4 * count numbers, so this ends after about four rounds on average. It must
        // end: the walk follows a cycle that leads back to `index`.
        loop {
            place = self.permute(place);
            if place < self.count {
                return place;
            }
        }
    }

    fn permute(self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ (mix(self.key ^ (right << 8 | round)) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_taken_once() {
        for count in [1, 2, 3, 10, 97, 1024, 5000] {
            let shuffle = Shuffle::new(count, 42);
            let mut places: Vec<u64> = (0..count).map(|index| shuffle.at(index)).collect();
            places.sort_unstable();
            assert!(places.iter().copied().eq(0..count), "{count}");
        }
    }
}
