//! Random numbers that are the same everywhere: xoshiro256++, seeded through splitmix64 from a seed and a name.

/// One splitmix64 step: a good 64-bit mixer, also used alone where a value is derived from an id.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers (xoshiro256++).
#[derive(Debug, Clone)]
pub(crate) struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream called `name`, number `index`, of a run with `seed`.
    pub(crate) fn named(seed: u64, name: &str, index: u64) -> Self {
        // FNV-1a: the name only has to tell streams apart, `mix` does the spreading.
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::from_key(mix(mix(seed) ^ name) ^ mix(index))
    }

    /// The stream that belongs to one key, such as an id.
    pub(crate) fn from_key(key: u64) -> Self {
        let mut state = [0; 4];
        let mut last = key;
        for word in &mut state {
            last = mix(last);
            *word = last;
        }
        Self { state }
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `end`; 0 when `end` is 0. The bias of the multiply-shift is below 2^-32 for every use here.
    #[inline]
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `low` to `high`, both in.
    #[inline]
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True `per_mille` times out of a thousand.
    #[inline]
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of `choices`, which must not be empty.
    #[inline]
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// An index chosen by `weights`, whose sum must not be 0.
    #[inline]
    pub(crate) fn weighted(&mut self, weights: &[u16]) -> usize {
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        let mut left = self.below(total);
        for (index, &weight) in weights.iter().enumerate() {
            if left < u64::from(weight) {
                return index;
            }
            left -= u64::from(weight);
        }
        unreachable!("`left` is below the sum of the weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_told_apart_by_seed_name_and_index() {
        let first = |seed, name, index| Rng::named(seed, name, index).bits();
        assert_eq!(first(1, "a", 0), first(1, "a", 0));
        assert_ne!(first(1, "a", 0), first(2, "a", 0));
        assert_ne!(first(1, "a", 0), first(1, "b", 0));
        assert_ne!(first(1, "a", 0), first(1, "a", 1));
    }

    #[test]
    fn xoshiro_yields_the_published_sequence() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.bits()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn weights_decide_how_often_an_index_comes() {
        let mut rng = Rng::from_key(3);
        let mut seen = [0; 3];
        for _ in 0..10_000 {
            seen[rng.weighted(&[1, 0, 3])] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!((2300..2700).contains(&seen[0]), "{seen:?}");
    }
}
