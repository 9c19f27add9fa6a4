//! Which group a row belongs to: a hash table of keys that are a few words each.
//!
//! Groups are numbered in the order in which they are first met, so their order depends on the rows alone.

use datafusion::arrow::buffer::NullBuffer;

/// Numbers the groups of rows.
pub(super) trait Groups: Send {
    /// Appends the group of every row to `to`. `columns` holds the words of each key column, zero where it is null.
    fn find(&mut self, columns: &[&[u64]], nulls: &[Option<NullBuffer>], to: &mut Vec<usize>);
    /// How many groups there are.
    fn len(&self) -> usize;
    /// The values of a key column, group by group.
    fn keys(&self, column: usize) -> Vec<Option<u64>>;
}

/// The most key columns that there is a table for.
pub(super) const MAX_COLUMNS: usize = 4;

/// A table for keys of this many columns, if there is one.
pub(super) fn groups(columns: usize) -> Option<Box<dyn Groups>> {
    Some(match columns {
        1 => Box::new(Table::<1>::new()),
        2 => Box::new(Table::<2>::new()),
        3 => Box::new(Table::<3>::new()),
        MAX_COLUMNS => Box::new(Table::<MAX_COLUMNS>::new()),
        _ => return None,
    })
}

/// Keys of `W` columns. Open addressing: at most half of the slots are taken.
struct Table<const W: usize> {
    /// A group's number plus one; zero: free. Their number is a power of two.
    slots: Vec<u32>,
    keys: Vec<[u64; W]>,
    /// For each group, which columns of its key are null, a bit each.
    nulls: Vec<u8>,
}

const FIRST_SLOTS: usize = 1024;

/// Digits of pi. The numbers only have to look like none that data are likely to have.
const MIX: [u64; MAX_COLUMNS + 1] =
    [0x2436_3f84_d5b5_b547, 0x13d1_d9d3_f3a4_2aa1, 0x0917_93f0_22a8_2bb3, 0x0f4f_95aa_d72f_9d01, 0x9e37_79b9_7f4a_7c15];

impl<const W: usize> Table<W> {
    fn new() -> Self {
        Self { slots: vec![0; FIRST_SLOTS], keys: Vec::new(), nulls: Vec::new() }
    }

    #[inline(always)]
    fn hash(key: &[u64; W], nulls: u8) -> usize {
        let mut hash = u64::from(nulls);
        for (word, mix) in key.iter().zip(MIX) {
            // Both halves of the product: every bit of the word reaches the low bits.
            let product = u128::from(hash ^ word ^ mix) * u128::from(MIX[MAX_COLUMNS]);
            hash = product as u64 ^ (product >> 64) as u64;
        }
        hash as usize
    }

    #[inline(always)]
    fn group(&mut self, key: [u64; W], nulls: u8) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = Self::hash(&key, nulls) & mask;
        loop {
            let Some(group) = (self.slots[slot] as usize).checked_sub(1) else {
                return self.add(slot, key, nulls);
            };
            if self.keys[group] == key && self.nulls[group] == nulls {
                return group;
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, slot: usize, key: [u64; W], nulls: u8) -> usize {
        let group = self.keys.len();
        self.keys.push(key);
        self.nulls.push(nulls);
        self.slots[slot] = u32::try_from(group + 1).expect("a chunk has fewer rows than 32 bits count");
        if self.keys.len() * 2 > self.slots.len() {
            self.grow();
        }
        group
    }

    fn grow(&mut self) {
        let mut slots = vec![0; self.slots.len() * 2];
        let mask = slots.len() - 1;
        for (group, (key, nulls)) in self.keys.iter().zip(&self.nulls).enumerate() {
            let mut slot = Self::hash(key, *nulls) & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = group as u32 + 1;
        }
        self.slots = slots;
    }
}

impl<const W: usize> Groups for Table<W> {
    fn find(&mut self, columns: &[&[u64]], nulls: &[Option<NullBuffer>], to: &mut Vec<usize>) {
        let columns: [&[u64]; W] = columns.try_into().expect("as many columns as the table was made for");
        let rows = columns[0].len();
        assert!(columns.iter().all(|column| column.len() == rows));
        to.reserve(rows);
        if nulls.iter().all(Option::is_none) {
            for row in 0..rows {
                let group = self.group(columns.map(|column| column[row]), 0);
                to.push(group);
            }
            return;
        }
        for row in 0..rows {
            let is_null = |nulls: &Option<NullBuffer>| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let bits = nulls.iter().enumerate().fold(0, |bits, (i, nulls)| bits | u8::from(is_null(nulls)) << i);
            let group = self.group(columns.map(|column| column[row]), bits);
            to.push(group);
        }
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn keys(&self, column: usize) -> Vec<Option<u64>> {
        let keys = self.keys.iter().zip(&self.nulls);
        keys.map(|(key, nulls)| (nulls >> column & 1 == 0).then_some(key[column])).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// The same with the standard library's table.
    #[derive(Default)]
    struct Reference {
        known: HashMap<Vec<Option<u64>>, usize>,
    }

    impl Reference {
        fn group(&mut self, key: Vec<Option<u64>>) -> usize {
            let next = self.known.len();
            *self.known.entry(key).or_insert(next)
        }
    }

    fn check(width: usize, rows: usize, values: u64, with_nulls: bool) {
        let mut state = 7u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (mut table, mut reference) = (groups(width).expect("a table"), Reference::default());
        for batch in 0..3 {
            let mut rows_of_keys = Vec::new();
            for _ in 0..rows {
                // Keys that only differ in high bits, too.
                let key: Vec<Option<u64>> = (0..width)
                    .map(|_| (!with_nulls || batch == 1 || random(4) > 0).then(|| random(values) << (random(2) * 40)))
                    .collect();
                rows_of_keys.push(key);
            }
            let column = |c: usize| rows_of_keys.iter().map(|key| key[c].unwrap_or(0)).collect::<Vec<_>>();
            let nulls = |c: usize| {
                let nulls: NullBuffer = rows_of_keys.iter().map(|key| key[c].is_some()).collect();
                Some(nulls).filter(|nulls| nulls.null_count() > 0)
            };
            let columns: Vec<Vec<u64>> = (0..width).map(column).collect();
            let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            let mut found = Vec::new();
            table.find(&slices, &(0..width).map(nulls).collect::<Vec<_>>(), &mut found);
            let expected: Vec<usize> = rows_of_keys.iter().map(|key| reference.group(key.clone())).collect();
            assert_eq!(found, expected);
        }
        assert_eq!(table.len(), reference.known.len());
        let keys: Vec<Vec<Option<u64>>> = (0..width).map(|column| table.keys(column)).collect();
        for (key, group) in reference.known {
            assert!((0..width).all(|column| keys[column][group] == key[column]));
        }
    }

    #[test]
    fn groups_are_numbered_as_they_are_met() {
        for width in 1..=MAX_COLUMNS {
            for values in [1, 3, 40, 1 << 20] {
                check(width, 3_000, values, false);
                check(width, 3_000, values, true);
            }
        }
        check(2, 0, 1, false);
        assert!(groups(0).is_none() && groups(MAX_COLUMNS + 1).is_none());
    }
}
