//! The digests of a table's chunks, packed: about nine bytes for each of a million chunks.

use std::collections::BTreeMap;

use crate::ChunkDigest;

/// Chunks of one block.
const BLOCK: u64 = u64::BITS as u64;

/// Digests by chunk number. Numbers come nearly in order, so blocks of 64 are nearly always full; a number that stands alone,
/// as the only chunk of a small file does, costs no more than its block.
#[derive(Debug, Clone, Default)]
pub(crate) struct DigestStore {
    blocks: BTreeMap<u64, Block>,
}

#[derive(Debug, Clone, Default)]
struct Block {
    /// Bit n: the n-th chunk of the block is known.
    known: u64,
    /// Those of the known chunks, in their order.
    digests: Vec<ChunkDigest>,
}

impl Block {
    fn place(&self, bit: u64) -> Result<usize, usize> {
        let before = (self.known & ((1 << bit) - 1)).count_ones() as usize;
        if self.known & (1 << bit) == 0 { Err(before) } else { Ok(before) }
    }
}

impl DigestStore {
    /// The digest of a chunk.
    pub(crate) fn get(&self, number: u64) -> Option<ChunkDigest> {
        let block = self.blocks.get(&(number / BLOCK))?;
        block.place(number % BLOCK).ok().map(|place| block.digests[place])
    }

    /// Keeps the first digest of a chunk, and returns it.
    pub(crate) fn get_or_insert(&mut self, number: u64, digest: ChunkDigest) -> ChunkDigest {
        let block = self.blocks.entry(number / BLOCK).or_default();
        match block.place(number % BLOCK) {
            Ok(place) => block.digests[place],
            Err(place) => {
                block.digests.insert(place, digest);
                block.known |= 1 << (number % BLOCK);
                digest
            }
        }
    }

    /// The bytes of memory in use, without what the allocator adds.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let of_block = |block: &Block| 8 + size_of::<Block>() + block.digests.capacity() * size_of::<ChunkDigest>();
        self.blocks.values().map(of_block).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_plain_map_does(pairs in prop::collection::vec((0u64..200, 0u64..3), 0..300)) {
            let mut store = DigestStore::default();
            let mut plain: BTreeMap<u64, u64> = BTreeMap::new();
            for (number, digest) in pairs {
                let first = *plain.entry(number).or_insert(digest);
                prop_assert_eq!(store.get_or_insert(number, ChunkDigest(digest)), ChunkDigest(first));
            }
            for number in 0..200 {
                prop_assert_eq!(store.get(number), plain.get(&number).copied().map(ChunkDigest));
            }
        }
    }

    #[test]
    fn a_million_chunks_take_less_than_nine_megabytes() {
        let mut store = DigestStore::default();
        // Sixteen senders at once: not quite in order.
        for number in 0..1_000_000u64 {
            store.get_or_insert((number & !15) | (15 - (number & 15)), ChunkDigest(number));
        }
        assert!(store.bytes() < 9_000_000, "{}", store.bytes());
        assert_eq!(store.get(15), Some(ChunkDigest(0)));
        assert_eq!(store.get(1_000_000), None);
    }
}
