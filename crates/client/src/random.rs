//! A little randomness, for jitter, for spreading load, and for keys that nobody else has.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

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

/// A key for one submission: whoever repeats the request with it gets the same job.
pub fn random_key() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("submit-{:x}-{:016x}{:016x}", now.as_micros(), random_u64(), random_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_fit_a_header() {
        let (one, two) = (random_key(), random_key());
        assert_ne!(one, two);
        assert!(one.len() <= 200 && one.bytes().all(|b| b.is_ascii_graphic()));
    }
}
