//! Which group a row belongs to: a hash table of keys that are a few words each.
//!
//! Groups are numbered in the order in which they are first met, so their order depends on the rows alone.

use std::any::Any;
use std::cell::RefCell;

use datafusion::arrow::buffer::NullBuffer;

/// Numbers the groups of rows.
pub(crate) trait Groups: Send {
    /// Appends the group of every row to `to`. `columns` holds the words of each key column, zero where it is null.
    fn find(&mut self, columns: &[&[u64]], nulls: &[Option<NullBuffer>], to: &mut Vec<usize>);
    /// How many groups there are.
    fn len(&self) -> usize;
    /// Bytes that it holds.
    fn size(&self) -> usize;
    /// The values of a key column, group by group, and which are null.
    fn keys(&self, column: usize) -> (Vec<u64>, Option<NullBuffer>);
}

/// The most key columns that there is a table for.
pub(crate) const MAX_COLUMNS: usize = 4;

/// A table for keys of this many columns, if there is one.
pub(crate) fn groups(columns: usize) -> Option<Box<dyn Groups>> {
    Some(match columns {
        1 => Box::new(Table::<1>::new()),
        2 => Box::new(Table::<2>::new()),
        3 => Box::new(Table::<3>::new()),
        MAX_COLUMNS => Box::new(Table::<MAX_COLUMNS>::new()),
        _ => return None,
    })
}

thread_local! {
    /// Memory of tables that are done with. Every chunk needs the same tables again, and memory that comes from the system is
    /// cleared page by page.
    static SPARES: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// A thread keeps the memory of so many tables, each within these bounds.
const MAX_SPARES: usize = 4;
const SPARE_BYTES: std::ops::RangeInclusive<usize> = 16 << 10..=4 << 20;

/// Keys of `W` columns. Open addressing: at most half of the slots are taken.
struct Table<const W: usize> {
    /// A group's number plus one; zero: free. Their number is a power of two.
    slots: Vec<u32>,
    keys: Vec<[u64; W]>,
    /// For each group, which columns of its key are null, a bit each.
    nulls: Vec<u8>,
}

const FIRST_SLOTS: usize = 1024;

/// Growing costs as much as what is there; a table that grows fast is grown seldom.
const GROWTH: usize = 4;

/// The most values from the least to the largest of a column for which a list of them is kept.
const MAX_LISTED: u64 = 1024;

/// Digits of pi. The numbers only have to look like none that data are likely to have.
const MIX: [u64; MAX_COLUMNS + 1] =
    [0x2436_3f84_d5b5_b547, 0x13d1_d9d3_f3a4_2aa1, 0x0917_93f0_22a8_2bb3, 0x0f4f_95aa_d72f_9d01, 0x9e37_79b9_7f4a_7c15];

impl<const W: usize> Table<W> {
    fn new() -> Self {
        let spare = SPARES.with_borrow_mut(|spares| {
            let place = spares.iter().rposition(|spare| spare.is::<Spare<W>>())?;
            spares.swap_remove(place).downcast::<Spare<W>>().ok()
        });
        let Spare { mut slots, keys, nulls } = spare.map(|spare| *spare).unwrap_or_default();
        slots.resize(FIRST_SLOTS, 0);
        Self { slots, keys, nulls }
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

    /// The groups of rows of which at most one column is not the same everywhere, and that one has few values: neighbouring
    /// rows are often of one month, and many keys are small numbers. A list takes the place of the table. Returns whether
    /// the rows are like that.
    fn find_by_one(&mut self, columns: [&[u64]; W], to: &mut Vec<usize>) -> bool {
        let rows = columns[0].len();
        let mut varying = None;
        for (column, values) in columns.iter().enumerate() {
            if values.iter().any(|value| *value != values[0]) && varying.replace(column).is_some() {
                return false;
            }
        }
        let Some(varying) = varying else {
            if rows > 0 {
                let group = self.group(columns.map(|column| column[0]), 0);
                to.resize(to.len() + rows, group);
            }
            return true;
        };
        let values = columns[varying];
        let (least, largest) = values.iter().fold((u64::MAX, 0), |(l, m), value| (l.min(*value), m.max(*value)));
        if largest - least >= MAX_LISTED {
            return false;
        }
        const UNKNOWN: usize = usize::MAX;
        let mut list = [UNKNOWN; MAX_LISTED as usize];
        to.extend(values.iter().enumerate().map(|(row, value)| {
            let known = &mut list[(value - least) as usize];
            if *known == UNKNOWN {
                *known = self.group(columns.map(|column| column[row]), 0);
            }
            *known
        }));
        true
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
        let mut slots = std::mem::take(&mut self.slots);
        let count = slots.len() * GROWTH;
        slots.clear();
        slots.reserve_exact(count);
        slots.resize(count, 0);
        let mask = count - 1;
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

/// The memory of a table, with nothing in it.
#[derive(Default)]
struct Spare<const W: usize> {
    slots: Vec<u32>,
    keys: Vec<[u64; W]>,
    nulls: Vec<u8>,
}

impl<const W: usize> Drop for Table<W> {
    fn drop(&mut self) {
        if !SPARE_BYTES.contains(&self.size()) {
            return;
        }
        let Self { slots, keys, nulls } = self;
        let mut spare =
            Spare { slots: std::mem::take(slots), keys: std::mem::take(keys), nulls: std::mem::take(nulls) };
        spare.slots.clear();
        spare.keys.clear();
        spare.nulls.clear();
        // A thread that is ending has no use for it.
        let _ = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < MAX_SPARES {
                spares.push(Box::new(spare));
            }
        });
    }
}

impl<const W: usize> Groups for Table<W> {
    fn find(&mut self, columns: &[&[u64]], nulls: &[Option<NullBuffer>], to: &mut Vec<usize>) {
        let columns: [&[u64]; W] = columns.try_into().expect("as many columns as the table was made for");
        let rows = columns[0].len();
        assert!(columns.iter().all(|column| column.len() == rows));
        to.reserve(rows);
        if nulls.iter().all(Option::is_none) {
            if self.find_by_one(columns, to) {
                return;
            }
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

    fn size(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.keys.capacity() * size_of::<[u64; W]>() + self.nulls.capacity()
    }

    fn keys(&self, column: usize) -> (Vec<u64>, Option<NullBuffer>) {
        let values = self.keys.iter().map(|key| key[column]).collect();
        let is_null = |nulls: &u8| nulls >> column & 1 != 0;
        let nulls = self.nulls.iter().any(is_null).then(|| self.nulls.iter().map(|nulls| !is_null(nulls)).collect());
        (values, nulls)
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
        let keys: Vec<_> = (0..width).map(|column| table.keys(column)).collect();
        for (key, group) in reference.known {
            for (column, (values, nulls)) in keys.iter().enumerate() {
                let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(group));
                assert_eq!((!is_null).then_some(values[group]), key[column]);
            }
        }
        assert!(table.size() >= table.len() * width * 8);
    }

    /// Rows that differ in one column only.
    fn check_listed(width: usize, values: u64) {
        let (mut table, mut reference) = (groups(width).expect("a table"), Reference::default());
        for varying in 0..width {
            for constant in [0, 7, u64::MAX] {
                let value = |row: u64| (row * 37 % values.min(1100)).wrapping_sub(5).max(constant % 3);
                let column = |c: usize| (0..900).map(|row| if c == varying { value(row) } else { constant }).collect();
                let columns: Vec<Vec<u64>> = (0..width).map(column).collect();
                let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
                let mut found = Vec::new();
                table.find(&slices, &vec![None; width], &mut found);
                let key = |row: usize| columns.iter().map(|column| Some(column[row])).collect();
                let expected: Vec<usize> = (0..900).map(|row| reference.group(key(row))).collect();
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn groups_are_numbered_as_they_are_met() {
        for width in 1..=MAX_COLUMNS {
            for values in [1, 3, 40, 1 << 20] {
                check(width, 3_000, values, false);
                check(width, 3_000, values, true);
                check_listed(width, values);
            }
        }
        check(2, 0, 1, false);
        assert!(groups(0).is_none() && groups(MAX_COLUMNS + 1).is_none());
    }
}
