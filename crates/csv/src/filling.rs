//! A buffer that is filled from a reader.

use std::io::{ErrorKind, Read, Result};
use std::ops::Deref;

/// Bytes that were read. Memory that was written once is read into again without being cleared first.
#[derive(Default)]
pub(crate) struct Filling {
    /// All of it may be read into.
    bytes: Vec<u8>,
    filled: usize,
}

impl Filling {
    /// Nothing yet, in this memory.
    pub(crate) fn new(memory: Vec<u8>) -> Self {
        Self { bytes: memory, filled: 0 }
    }

    /// These bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), filled: bytes.len() }
    }

    /// How many bytes its memory holds.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Reads until there are `to` bytes or the reader has no more. Returns whether it has no more.
    pub(crate) fn fill(&mut self, reader: &mut impl Read, to: usize) -> Result<bool> {
        if self.bytes.len() < to {
            self.bytes.reserve_exact(to - self.bytes.len());
            self.bytes.resize(to, 0);
        }
        while self.filled < to {
            match reader.read(&mut self.bytes[self.filled..to]) {
                Ok(0) => return Ok(true),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, more: &[u8]) {
        let end = self.filled + more.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[self.filled..end].copy_from_slice(more);
        self.filled = end;
    }

    /// Drops bytes from the front.
    pub(crate) fn drop_front(&mut self, count: usize) {
        self.bytes.copy_within(count..self.filled, 0);
        self.filled -= count;
    }

    /// The first `count` bytes.
    pub(crate) fn into_front(mut self, count: usize) -> Vec<u8> {
        self.bytes.truncate(count.min(self.filled));
        self.bytes
    }
}

impl Deref for Filling {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_bytes_are_never_seen() {
        let mut filling = Filling::new(b"old bytes".to_vec());
        assert!(filling.is_empty());
        let mut reader = &b"abcdefgh"[..];
        assert!(!filling.fill(&mut reader, 5).expect("it is in memory"));
        assert_eq!(&*filling, b"abcde");
        filling.drop_front(2);
        assert_eq!(&*filling, b"cde");
        assert!(filling.fill(&mut reader, 100).expect("it is in memory"));
        assert_eq!(&*filling, b"cdefgh");
        filling.drop_front(6);
        filling.push(b"xyz");
        assert_eq!(&*filling, b"xyz");
        assert_eq!(filling.into_front(2), b"xy");
    }
}
