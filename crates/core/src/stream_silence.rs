//! When a reader of a stream that hears nothing subscribes again.
//!
//! Silence may mean that there is nothing new, or that the broker has forgotten to wake the subscription (`rabbit/src/stream.rs`
//! says how). Subscribing again costs the broker little, and less and less often is enough where it brings nothing.

use crate::limits::{MAX_STREAM_SILENCE_MS, STREAM_SILENCE_MS};

/// How long one subscription may be silent. Times are of a clock that does not go back.
///
/// ```
/// use tenaz_core::StreamSilence;
///
/// let mut silence = StreamSilence::new(0);
/// assert_eq!(silence.due_ms(), 3_000);
/// silence.subscribed_again(3_000);
/// assert_eq!(silence.due_ms(), 9_000, "twice as long the second time");
/// silence.heard(8_000);
/// assert_eq!(silence.due_ms(), 11_000);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSilence {
    allowed_ms: u64,
    due_ms: u64,
}

impl StreamSilence {
    /// A subscription that was made just now.
    pub fn new(now_ms: u64) -> Self {
        Self { allowed_ms: STREAM_SILENCE_MS, due_ms: now_ms.saturating_add(STREAM_SILENCE_MS) }
    }

    /// Something has arrived.
    pub fn heard(&mut self, now_ms: u64) {
        *self = Self::new(now_ms);
    }

    /// The subscription was made anew, because nothing was heard until it was due.
    pub fn subscribed_again(&mut self, now_ms: u64) {
        self.allowed_ms = (2 * self.allowed_ms).min(MAX_STREAM_SILENCE_MS);
        self.due_ms = now_ms.saturating_add(self.allowed_ms);
    }

    /// When the subscription has to be made anew, unless something is heard before.
    pub fn due_ms(&self) -> u64 {
        self.due_ms
    }

    /// How long a silence is allowed at present.
    pub fn allowed_ms(&self) -> u64 {
        self.allowed_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_may_be_twice_as_long_each_time_up_to_a_minute() {
        let mut silence = StreamSilence::new(100);
        let mut waits = Vec::new();
        let mut now_ms = 100;
        for _ in 0..8 {
            waits.push((silence.due_ms() - now_ms) / 1000);
            now_ms = silence.due_ms();
            silence.subscribed_again(now_ms);
        }
        assert_eq!(waits, [3, 6, 12, 24, 48, 60, 60, 60]);
    }

    #[test]
    fn whatever_is_heard_begins_with_the_shortest_silence_again() {
        let mut silence = StreamSilence::new(0);
        (1..5).for_each(|n| silence.subscribed_again(n));
        assert!(silence.allowed_ms() > STREAM_SILENCE_MS);
        silence.heard(1_000_000);
        assert_eq!(silence, StreamSilence::new(1_000_000));
    }

    #[test]
    fn a_subscription_that_took_long_to_make_has_its_whole_time() {
        let mut silence = StreamSilence::new(0);
        silence.subscribed_again(30_000);
        assert_eq!(silence.due_ms(), 30_000 + 2 * STREAM_SILENCE_MS);
    }
}
