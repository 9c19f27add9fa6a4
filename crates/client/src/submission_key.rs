//! Keys that nobody else has.

use std::time::{SystemTime, UNIX_EPOCH};

/// A key for one submission: whoever repeats the request with it gets the same job.
pub fn random_key() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system gives random numbers");
    format!("submit-{:x}-{:032x}", now.as_micros(), u128::from_be_bytes(bytes))
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
