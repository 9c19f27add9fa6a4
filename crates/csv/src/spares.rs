//! Memory of chunks that are done with, for chunks to come.
//!
//! A chunk is too large for an allocator to keep at hand: its pages go back to the system and come again cleared, which costs
//! as much as reading the file. The same few buffers used again and again also stay in the processor's cache.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Chunk, Marks};

/// Buffers without an owner. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Spares(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    data: Vec<Vec<u8>>,
    marks: Vec<Marks>,
}

impl Spares {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the memory of a chunk back, unless somebody still reads it. There are never more spares than there were
    /// chunks at a time.
    pub fn give_back(&self, chunk: Chunk) {
        let Chunk { data, memory, mut marks, .. } = chunk;
        drop(data);
        let memory = memory.into_vec::<u8>().ok();
        marks.forget();
        let mut kept = self.lock();
        kept.data.extend(memory);
        if marks.has_memory() {
            kept.marks.push(marks);
        }
    }

    /// Lets go of what is kept.
    pub fn clear(&self) {
        *self.lock() = Kept::default();
    }

    /// Marks that say nothing.
    pub(crate) fn take_marks(&self) -> Marks {
        self.lock().marks.pop().unwrap_or_default()
    }

    /// A buffer for at least so many bytes, with anything in it. Spares that are too small are let go.
    pub(crate) fn take(&self, bytes: usize) -> Vec<u8> {
        let mut kept = self.lock();
        while let Some(spare) = kept.data.pop() {
            if spare.capacity() >= bytes {
                return spare;
            }
        }
        Vec::with_capacity(bytes)
    }
}

#[cfg(test)]
mod tests {
    use arrow_buffer::Buffer;

    use super::*;

    fn chunk(data: Buffer) -> Chunk {
        Chunk { data: data.slice(0), memory: data, ..Chunk::empty() }
    }

    #[test]
    fn memory_is_used_again_unless_it_is_still_read_or_too_small() {
        let spares = Spares::default();
        let mut bytes = spares.take(100);
        bytes.extend_from_slice(b"abc");
        let place = bytes.as_ptr();
        let data = Buffer::from_vec(bytes);
        let reader = data.slice(1);
        spares.give_back(chunk(data));
        assert!(spares.lock().data.is_empty(), "somebody reads it");
        assert_eq!(reader.as_slice(), b"bc");

        let mut bytes = Vec::with_capacity(100);
        bytes.push(b'x');
        let kept = bytes.as_ptr();
        assert_ne!(kept, place);
        spares.clone().give_back(chunk(Buffer::from_vec(bytes)));
        let again = spares.take(50);
        assert_eq!(again.as_ptr(), kept);
        spares.give_back(chunk(Buffer::from_vec(again)));
        assert!(spares.take(1000).capacity() >= 1000);
        assert!(spares.lock().data.is_empty());
    }
}
