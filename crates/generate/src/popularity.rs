//! A Zipf-like choice of ranks without floats and without a table.
//!
//! Ranks fall into octaves: rank 0, ranks 1-2, ranks 3-6, and so on, each twice as long as the one before. Every octave
//! is equally likely, and so is every rank within it: a staircase under which rank r has a share of about 1 / (r + 1).

use crate::rng::Rng;

/// Chooses among ranks 0 to `count - 1`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Popularity {
    /// Octaves that lie below `count` entirely.
    full: u32,
    /// Ranks in the octave that `count` cuts.
    rest: u64,
}

impl Popularity {
    /// Of `count` things, at least one.
    pub(crate) fn new(count: u64) -> Self {
        assert!(count > 0, "there is something to choose");
        let full = (count + 1).ilog2();
        Self { full, rest: count + 1 - (1 << full) }
    }

    /// A rank: 0 is the most popular.
    pub(crate) fn rank(self, rng: &mut Rng) -> u64 {
        let octave_size = 1 << self.full;
        let choice = rng.below(u64::from(self.full) * octave_size + self.rest);
        let octave = choice >> self.full;
        // The bits below the octave choose within it; the cut octave takes them as they are.
        (1 << octave) - 1 + ((choice & (octave_size - 1)) >> (u64::from(self.full) - octave))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_in_range_and_halve_with_every_octave() {
        for count in [1, 2, 3, 7, 8, 100, 487] {
            let popularity = Popularity::new(count);
            let mut rng = Rng::from_key(count);
            let mut seen = vec![0_u32; count as usize];
            for _ in 0..100_000 {
                seen[popularity.rank(&mut rng) as usize] += 1;
            }
            assert!(seen.iter().all(|&times| times > 0), "{count}: {seen:?}");
            if count >= 7 {
                assert!(seen[0] > seen[1] * 8 / 5 && seen[2] > seen[3] * 8 / 5, "{count}: {seen:?}");
            }
        }
    }
}
