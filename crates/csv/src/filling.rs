//! A buffer that is filled from a reader.

use std::io::{ErrorKind, Read, Result};
use std::ops::Deref;

use arrow_buffer::Buffer;

/// Bytes that were read. Memory that was written once is read into again without being cleared first.
#[derive(Default)]
pub(crate) struct Filling {
    /// All of it may be read into.
    bytes: Vec<u8>,
    /// Where those that were read begin and end.
    start: usize,
    end: usize,
}

impl Filling {
    /// Nothing yet, in this memory, with room for so many bytes in front.
    pub(crate) fn new(memory: Vec<u8>, front: usize) -> Self {
        Self { bytes: memory, start: front, end: front }
    }

    /// These bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), start: 0, end: bytes.len() }
    }

    /// How many bytes its memory holds.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Reads until there are `to` bytes or the reader has no more. Returns whether it has no more.
    pub(crate) fn fill(&mut self, reader: &mut impl Read, to: usize) -> Result<bool> {
        self.make_room(to);
        let to = self.start + to;
        while self.end < to {
            match reader.read(&mut self.bytes[self.end..to]) {
                Ok(0) => return Ok(true),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Makes room for `to` bytes in all, in the memory that there is if it is enough.
    fn make_room(&mut self, to: usize) {
        if self.start + to > self.bytes.capacity() && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let needed = self.start + to;
        if self.bytes.len() < needed {
            self.bytes.reserve_exact(needed - self.bytes.len());
            self.bytes.resize(needed, 0);
        }
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, more: &[u8]) {
        self.make_room(self.len() + more.len());
        self.bytes[self.end..self.end + more.len()].copy_from_slice(more);
        self.end += more.len();
    }

    /// Puts bytes in front.
    pub(crate) fn prepend(&mut self, before: &[u8]) {
        if before.len() > self.start {
            self.bytes.splice(..self.start, before.iter().copied());
            self.end += before.len() - self.start;
            self.start = 0;
        } else {
            self.bytes[self.start - before.len()..self.start].copy_from_slice(before);
            self.start -= before.len();
        }
    }

    /// Drops bytes from the front.
    pub(crate) fn drop_front(&mut self, count: usize) {
        self.start += count;
    }

    /// The first `count` bytes, and the memory that they lie in.
    pub(crate) fn into_front(self, count: usize) -> (Buffer, Buffer) {
        let (start, count) = (self.start, count.min(self.len()));
        let memory = Buffer::from_vec(self.bytes);
        (memory.slice_with_length(start, count), memory)
    }
}

impl Deref for Filling {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_bytes_are_never_seen() {
        for front in [0, 3, 20] {
            let mut filling = Filling::new(b"old bytes that are still here".to_vec(), front);
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
            filling.prepend(b"w");
            assert_eq!(&*filling, b"wxyz");
            filling.prepend(b"a longer text than there is room for");
            assert_eq!(&*filling, b"a longer text than there is room forwxyz");
            let (front, memory) = filling.into_front(8);
            assert_eq!(front.as_slice(), b"a longer");
            drop(front);
            assert!(memory.into_vec::<u8>().is_ok());
        }
    }
}
