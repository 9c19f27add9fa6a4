//! Memory of chunks that are done with, for chunks to come.
//!
//! A chunk is too large for an allocator to keep at hand: its pages go back to the system and come again cleared, which costs
//! as much as reading the file. The same few buffers used again and again also stay in the processor's cache.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;

/// Buffers without an owner. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Spares(Arc<Mutex<Vec<Vec<u8>>>>);

impl Spares {
    /// Gives the memory of a chunk back, unless somebody still reads it. There are never more spares than there were
    /// chunks at a time.
    pub fn give_back(&self, chunk: Buffer) {
        if let Ok(bytes) = chunk.into_vec::<u8>() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        }
    }

    /// A buffer for at least so many bytes, with anything in it. Spares that are too small are let go.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(spare) = spares.pop() {
            if spare.capacity() >= bytes {
                return spare;
            }
        }
        Vec::with_capacity(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_unless_it_is_still_read_or_too_small() {
        let spares = Spares::default();
        let mut bytes = spares.take(100);
        bytes.extend_from_slice(b"abc");
        let place = bytes.as_ptr();
        let chunk = Buffer::from_vec(bytes);
        let reader = chunk.slice(1);
        spares.give_back(chunk);
        assert!(spares.0.lock().expect("not poisoned").is_empty(), "somebody reads it");
        assert_eq!(reader.as_slice(), b"bc");

        let mut bytes = Vec::with_capacity(100);
        bytes.push(b'x');
        let kept = bytes.as_ptr();
        assert_ne!(kept, place);
        spares.clone().give_back(Buffer::from_vec(bytes));
        let again = spares.take(50);
        assert_eq!(again.as_ptr(), kept);
        spares.give_back(Buffer::from_vec(again));
        assert!(spares.take(1000).capacity() >= 1000);
        assert!(spares.0.lock().expect("not poisoned").is_empty());
    }
}
