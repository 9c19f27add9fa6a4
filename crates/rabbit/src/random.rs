//! A little randomness for jitter and for spreading load: not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A random number. `RandomState` is seeded by the operating system and differs with every call.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Puts the items into a random order (Fisher-Yates).
pub(crate) fn shuffle<T>(items: &mut [T]) {
    for last in (1..items.len()).rev() {
        let other = (random_u64() % (last as u64 + 1)) as usize;
        items.swap(last, other);
    }
}
