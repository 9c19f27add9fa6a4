//! The different values of many groups at once, where values are words: one table of pairs of group and value.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::machine_words::groups::{self, Groups};
use crate::machine_words::keys;

/// Counts different values, nulls apart.
pub(super) struct DistinctGroups {
    data_type: DataType,
    /// Group and value.
    pairs: Box<dyn Groups>,
    counts: Vec<i64>,
}

fn table() -> Box<dyn Groups> {
    groups::groups(2).expect("there is a table of pairs")
}

impl DistinctGroups {
    pub(super) fn new(data_type: DataType) -> Self {
        Self { data_type, pairs: table(), counts: Vec::new() }
    }

    fn item(&self) -> FieldRef {
        Arc::new(Field::new_list_field(self.data_type.clone(), true))
    }

    fn add(&mut self, groups: &[u64], values: &[u64], total: usize) {
        self.counts.resize(total.max(self.counts.len()), 0);
        let (mut places, mut next) = (Vec::new(), self.pairs.len());
        self.pairs.find(&[groups, values], &[None, None], &mut places);
        for (place, group) in places.into_iter().zip(groups) {
            // Pairs are numbered as they are met, so this is where the pair was met first.
            if place == next {
                self.counts[*group as usize] += 1;
                next += 1;
            }
        }
    }

    /// The values of the first groups, which are gone then; the others move to the front.
    fn take(&mut self, first: usize) -> ListArrayParts {
        let first = first.min(self.counts.len());
        let (groups, values) = (self.pairs.keys(0).0, self.pairs.keys(1).0);
        let mut starts = Vec::with_capacity(first + 1);
        let mut total = 0;
        for count in &self.counts[..first] {
            starts.push(total);
            total += *count as usize;
        }
        let lengths: Vec<usize> = self.counts.drain(..first).map(|count| count as usize).collect();
        let mut taken = vec![0; total];
        let (mut left_groups, mut left_values) = (Vec::new(), Vec::new());
        for (group, value) in groups.into_iter().zip(values) {
            match starts.get_mut(group as usize) {
                Some(place) => {
                    taken[*place] = value;
                    *place += 1;
                }
                None => {
                    left_groups.push(group - first as u64);
                    left_values.push(value);
                }
            }
        }
        self.pairs = table();
        let left = self.counts.len();
        self.counts.clear();
        self.add(&left_groups, &left_values, left);
        ListArrayParts { values: taken, lengths }
    }
}

struct ListArrayParts {
    values: Vec<u64>,
    lengths: Vec<usize>,
}

fn first(counts: &[i64], emit: EmitTo) -> usize {
    match emit {
        EmitTo::All => counts.len(),
        EmitTo::First(first) => first,
    }
}

/// The words of the rows that are wanted, with their groups.
fn wanted(values: &ArrayRef, group: impl Fn(usize) -> usize, filter: Option<&BooleanArray>) -> (Vec<u64>, Vec<u64>) {
    let words = keys::words(values);
    let all = words.values();
    let is_wanted =
        |row: usize| values.is_valid(row) && filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
    (0..values.len()).filter(|row| is_wanted(*row)).map(|row| (group(row) as u64, all[row])).unzip()
}

impl GroupsAccumulator for DistinctGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let (groups, values) = wanted(&values[0], |row| group_indices[row], opt_filter);
        self.add(&groups, &values, total_num_groups);
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        let lists: &ListArray = values[0].as_list();
        let offsets = lists.value_offsets();
        let mut of = Vec::with_capacity(lists.values().len());
        for (row, group) in group_indices.iter().enumerate() {
            let length = if lists.is_valid(row) { offsets[row + 1] - offsets[row] } else { 0 };
            of.resize(of.len() + length as usize, *group);
        }
        let (from, to) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
        debug_assert_eq!(of.len(), to - from, "what is null has no values");
        let (groups, values) = wanted(&lists.values().slice(from, to - from), |place| of[place], None);
        self.add(&groups, &values, total_num_groups);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let lengths = self.take(first(&self.counts, emit_to)).lengths;
        Ok(Arc::new(lengths.into_iter().map(|length| length as i64).collect::<Int64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let ListArrayParts { values, lengths } = self.take(first(&self.counts, emit_to));
        let values = keys::column(&self.data_type, (values, None))?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(vec![Arc::new(ListArray::try_new(self.item(), offsets, values, None)?)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let (places, words) = wanted(&values[0], |row| row, opt_filter);
        let mut lengths = vec![0; rows];
        places.into_iter().for_each(|row| lengths[row as usize] = 1);
        let nulls: Option<NullBuffer> = None;
        let values = keys::column(&self.data_type, (words, nulls))?;
        Ok(vec![Arc::new(ListArray::try_new(self.item(), OffsetBuffer::from_lengths(lengths), values, None)?)])
    }

    fn size(&self) -> usize {
        self.pairs.size() + self.counts.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::arrow::array::Int32Array;
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    fn counts(of: &ArrayRef) -> Vec<i64> {
        of.as_primitive::<Int64Type>().values().to_vec()
    }

    fn rows(seed: i32) -> (ArrayRef, Vec<usize>) {
        let value = |row: i32| (row % 5 != 1).then_some((row * 37 + seed) % 11 - 5);
        let values: Int32Array = (0..400).map(value).collect();
        (Arc::new(values), (0..400).map(|row| (row * row + seed as usize) % 13).collect())
    }

    #[test]
    fn different_values_are_counted_once_over_all_steps() {
        let mut expected = vec![BTreeSet::new(); 14];
        let (mut plain, mut merged) = (DistinctGroups::new(DataType::Int32), DistinctGroups::new(DataType::Int32));
        for seed in [0, 3, 8] {
            let (values, groups) = rows(seed);
            let every_third: BooleanArray =
                (0..400).map(|row| if row % 7 == 2 { None } else { Some(row % 3 > 0) }).collect();
            for (row, group) in groups.iter().enumerate() {
                let value = values.as_primitive::<datafusion::arrow::datatypes::Int32Type>();
                if value.is_valid(row) && every_third.is_valid(row) && every_third.value(row) {
                    expected[*group].insert(value.value(row));
                }
            }
            let all = std::slice::from_ref(&values);
            plain.update_batch(all, &groups, Some(&every_third), 14).unwrap();
            // Through the states of another one, and of single rows.
            let mut first = DistinctGroups::new(DataType::Int32);
            first.update_batch(all, &groups, Some(&every_third), 14).unwrap();
            let states = first.state(EmitTo::First(4)).unwrap();
            merged.merge_batch(&states, &[0, 1, 2, 3], 14).unwrap();
            let states = first.state(EmitTo::All).unwrap();
            assert_eq!(states[0].len(), 10);
            merged.merge_batch(&states, &(4..14).collect::<Vec<_>>(), 14).unwrap();
            let states = plain.convert_to_state(all, Some(&every_third)).unwrap();
            merged.merge_batch(&states, &groups, 14).unwrap();
        }
        let expected: Vec<i64> = expected.iter().map(|set| set.len() as i64).collect();
        assert_eq!(expected[13], 0, "a group without values");
        assert_eq!(counts(&plain.evaluate(EmitTo::First(5)).unwrap()), expected[..5]);
        assert_eq!(counts(&plain.evaluate(EmitTo::All).unwrap()), expected[5..]);
        assert_eq!(counts(&merged.evaluate(EmitTo::All).unwrap()), expected);
        assert!(merged.size() > 0);
    }
}
