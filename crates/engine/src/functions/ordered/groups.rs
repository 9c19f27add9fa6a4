//! The rows of many groups, in a form whose bytes compare as the rows do.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, LargeStringBuilder, ListArray, ListBuilder, UInt64Array,
    new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::RowConverter;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::functions::distinct_rows::one_zero;
use crate::functions::one_group::{SlidingGroups, passes};
use crate::functions::share::Share;

/// Rows beyond twice what is needed that a group keeps before it throws away.
const SLACK_ROWS: usize = 64;

/// What is taken of the rows of a group.
#[derive(Debug, Clone)]
pub(super) enum Pick {
    /// All values as a list.
    All,
    /// All texts with this between them.
    Text(String),
    /// One value, counted from 1, or from the end if it is negative.
    Nth(i64),
    /// The value at a share of all.
    At(Share),
}

/// What all groups have in common.
#[derive(Debug)]
pub(super) struct Shape {
    /// Of the keys of the order, then of the value.
    pub(super) converter: RowConverter,
    /// Columns of the arguments, which come before those of the order.
    pub(super) arguments: usize,
    pub(super) return_type: DataType,
    pub(super) pick: Pick,
    pub(super) skips_nulls: bool,
    pub(super) distinct: bool,
    /// Whether rows may be taken away again, so that none may be forgotten.
    pub(super) keeps_all: bool,
}

impl Shape {
    /// How many rows from which end are enough.
    fn wanted(&self) -> Option<(usize, bool)> {
        match self.pick {
            Pick::Nth(n) if !self.keeps_all => Some((n.unsigned_abs() as usize, n < 0)),
            _ => None,
        }
    }

    /// Calls for every row that counts.
    fn each_row(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
        mut call: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let value = &values[0];
        let columns = values[self.arguments..].iter().chain([value]);
        let columns: Vec<ArrayRef> = columns.map(if self.distinct { one_zero } else { Arc::clone }).collect();
        let rows = self.converter.convert_columns(&columns)?;
        let counts = |row: &usize| passes(filter, *row) && !(self.skips_nulls && value.is_null(*row));
        (0..rows.num_rows()).filter(counts).for_each(|row| call(row, rows.row(row).as_ref()));
        Ok(())
    }
}

/// Adds a row to those of a group, whose bytes are part of `heap`.
fn add(rows: &mut Rows, row: &[u8], shape: &Shape, heap: &mut usize) {
    let before = rows.heap_size();
    rows.add(row, shape);
    *heap = (*heap + rows.heap_size()).saturating_sub(before);
}

/// The rows of one group.
#[derive(Debug, Clone, Default)]
struct Rows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Rows that were left when rows were thrown away last.
    settled: usize,
}

impl Rows {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// The rows that count, in order.
    fn in_order(&self, shape: &Shape) -> Vec<&[u8]> {
        let mut rows: Vec<&[u8]> = self.iter().collect();
        rows.sort_unstable();
        if shape.distinct {
            rows.dedup();
        }
        rows
    }

    fn add(&mut self, row: &[u8], shape: &Shape) {
        // The most common case needs no slack.
        if let Some((1, from_end)) = shape.wanted() {
            let is_better = self.iter().next().is_none_or(|best| if from_end { row > best } else { row < best });
            if is_better {
                self.bytes.clear();
                self.ends.clear();
                self.push(row);
            }
            return;
        }
        self.push(row);
        let may_shrink = !shape.keeps_all && (shape.distinct || shape.wanted().is_some());
        if may_shrink && self.ends.len() > 2 * self.settled + SLACK_ROWS {
            self.throw_away(shape);
        }
    }

    /// Forgets rows that cannot be in the result.
    fn throw_away(&mut self, shape: &Shape) {
        let mut left = Self::default();
        let rows = self.in_order(shape);
        let wanted = match shape.wanted() {
            Some((count, true)) => &rows[rows.len().saturating_sub(count)..],
            Some((count, false)) => &rows[..count.min(rows.len())],
            None => &rows[..],
        };
        wanted.iter().for_each(|row| left.push(row));
        left.settled = left.ends.len();
        *self = left;
    }

    fn heap_size(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// The rows of many groups.
#[derive(Debug)]
pub(super) struct OrderedGroups {
    shape: Shape,
    groups: Vec<Rows>,
    /// Bytes that the rows hold.
    heap: usize,
}

impl OrderedGroups {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, groups: Vec::new(), heap: 0 }
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<Rows> {
        let taken = emit_to.take_needed(&mut self.groups);
        self.heap = self.heap.saturating_sub(taken.iter().map(Rows::heap_size).sum());
        taken
    }

    fn results(&self, groups: &[Rows]) -> Result<ArrayRef> {
        let ordered: Vec<Vec<&[u8]>> = groups.iter().map(|rows| rows.in_order(&self.shape)).collect();
        match &self.shape.pick {
            Pick::All => self.lists(&ordered),
            Pick::Text(separator) => self.texts(&ordered, separator),
            Pick::Nth(n) => {
                let nth = n.unsigned_abs() as usize;
                let place = |rows: usize| if *n > 0 { Some(nth - 1) } else { rows.checked_sub(nth) };
                self.one(&ordered, |rows| place(rows).filter(|place| *place < rows))
            }
            Pick::At(share) => self.one(&ordered, |rows| (rows > 0).then(|| share.place(rows))),
        }
    }

    /// The values of rows.
    fn values<'r>(&self, rows: impl Iterator<Item = &'r [u8]>) -> Result<ArrayRef> {
        let parser = self.shape.converter.parser();
        let mut columns = self.shape.converter.convert_rows(rows.map(|row| parser.parse(row)))?;
        match columns.pop() {
            Some(values) => Ok(values),
            None => exec_err!("rows of an ordered aggregate have no value"),
        }
    }

    /// No rows at all make no list.
    fn lists(&self, groups: &[Vec<&[u8]>]) -> Result<ArrayRef> {
        let DataType::List(item) = &self.shape.return_type else { return exec_err!("array_agg makes lists") };
        let values = self.values(groups.iter().flatten().copied())?;
        let offsets = OffsetBuffer::from_lengths(groups.iter().map(Vec::len));
        let nulls: NullBuffer = groups.iter().map(|rows| !rows.is_empty()).collect();
        Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, cast(&values, item.data_type())?, Some(nulls))?))
    }

    fn texts(&self, groups: &[Vec<&[u8]>], separator: &str) -> Result<ArrayRef> {
        let texts = cast(&self.values(groups.iter().flatten().copied())?, &DataType::LargeUtf8)?;
        let mut texts = texts.as_string::<i64>().iter().flatten();
        let mut joined = LargeStringBuilder::new();
        for rows in groups {
            if rows.is_empty() {
                joined.append_null();
                continue;
            }
            joined.append_value(texts.by_ref().take(rows.len()).collect::<Vec<_>>().join(separator));
        }
        Ok(Arc::new(joined.finish()))
    }

    /// The value at a place that depends on how many rows there are.
    fn one(&self, groups: &[Vec<&[u8]>], place: impl Fn(usize) -> Option<usize>) -> Result<ArrayRef> {
        let picked = groups.iter().filter_map(|rows| place(rows.len()).map(|place| rows[place]));
        let values = self.values(picked)?;
        if values.is_empty() {
            return Ok(new_null_array(&self.shape.return_type, groups.len()));
        }
        let mut next = 0..;
        let places: UInt64Array = groups.iter().map(|rows| place(rows.len()).and_then(|_| next.next())).collect();
        Ok(cast(&take(&values, &places, None)?, &self.shape.return_type)?)
    }
}

fn lists_of<'r>(groups: impl Iterator<Item = Vec<&'r [u8]>>) -> ArrayRef {
    let mut lists = ListBuilder::new(BinaryBuilder::new());
    for rows in groups {
        rows.into_iter().for_each(|row| lists.values().append_value(row));
        lists.append(true);
    }
    Arc::new(lists.finish())
}

impl GroupsAccumulator for OrderedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.resize(total_num_groups);
        let Self { shape, groups: all, heap } = self;
        shape.each_row(values, filter, |row, bytes| add(&mut all[groups[row]], bytes, shape, heap))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> Result<()> {
        self.resize(total_num_groups);
        let Some(lists) = states[0].as_list_opt::<i32>() else {
            return exec_err!("a partial result of an ordered aggregate has another shape");
        };
        let Self { shape, groups: all, heap } = self;
        for (list, group) in lists.iter().zip(groups) {
            if let Some(list) = list {
                let rows = list.as_binary::<i32>().iter().flatten();
                rows.for_each(|row| add(&mut all[*group], row, shape, heap));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let taken = self.take(emit_to);
        self.results(&taken)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let mut taken = self.take(emit_to);
        taken.iter_mut().for_each(|rows| rows.throw_away(&self.shape));
        Ok(vec![lists_of(taken.iter().map(|rows| rows.iter().collect()))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut single = vec![Rows::default(); values[0].len()];
        self.shape.each_row(values, filter, |row, bytes| single[row].push(bytes))?;
        Ok(vec![lists_of(single.iter().map(|rows| rows.iter().collect()))])
    }

    fn size(&self) -> usize {
        self.heap + self.shape.converter.size() + self.groups.capacity() * size_of::<Rows>()
    }
}

impl SlidingGroups for OrderedGroups {
    fn resize(&mut self, groups: usize) {
        self.groups.resize_with(groups.max(self.groups.len()), Rows::default);
    }

    fn remove(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.resize(1);
        let mut away = Vec::new();
        self.shape.each_row(values, None, |_, bytes| away.push(bytes.to_vec()))?;
        away.sort_unstable();
        let mut away = away.iter().peekable();
        let old = std::mem::take(&mut self.groups[0]);
        let mut rows: Vec<&[u8]> = old.iter().collect();
        rows.sort_unstable();
        for row in rows {
            if away.next_if(|gone| gone.as_slice() == row).is_none() {
                self.groups[0].push(row);
            }
        }
        self.heap = self.groups.iter().map(Rows::heap_size).sum();
        Ok(())
    }

    fn first_result(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.results(&self.groups[..1])?, 0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::compute::SortOptions;
    use datafusion::arrow::datatypes::Field;
    use datafusion::arrow::row::SortField;
    use proptest::prelude::*;

    use super::*;

    /// Of texts in the order of descending numbers.
    fn groups(pick: Pick, distinct: bool) -> OrderedGroups {
        let options = SortOptions { descending: true, nulls_first: false };
        let fields = vec![SortField::new_with_options(DataType::Int64, options), SortField::new(DataType::Utf8)];
        let return_type = match pick {
            Pick::All => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            Pick::Text(_) => DataType::LargeUtf8,
            _ => DataType::Utf8,
        };
        let converter = RowConverter::new(fields).unwrap();
        let shape =
            Shape { converter, arguments: 1, return_type, pick, skips_nulls: false, distinct, keeps_all: false };
        OrderedGroups::new(shape)
    }

    fn columns(rows: &[(u8, i64)]) -> Vec<ArrayRef> {
        let texts: StringArray = rows.iter().map(|row| Some(row.0.to_string())).collect();
        let keys: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
        vec![Arc::new(texts), Arc::new(keys)]
    }

    fn joined(mut rows: Vec<(u8, i64)>, distinct: bool) -> String {
        rows.sort_by_key(|row| (-row.1, row.0.to_string()));
        if distinct {
            rows.dedup();
        }
        rows.iter().map(|row| row.0.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_group_forgets_rows_that_it_does_not_need() {
        let rows: Vec<(u8, i64)> = (0..2000).map(|n| ((n % 7) as u8, n % 5)).collect();
        let whole = |mut groups: OrderedGroups| {
            groups.update_batch(&columns(&rows), &vec![0; rows.len()], None, 1).unwrap();
            (groups.groups[0].ends.len(), groups.size())
        };
        let (all, bytes) = whole(groups(Pick::All, false));
        assert_eq!(all, 2000);
        assert!(bytes > 2000 * 10);
        assert_eq!(whole(groups(Pick::Nth(-1), false)).0, 1);
        assert!(whole(groups(Pick::Nth(3), false)).0 < 100);
        assert!(whole(groups(Pick::All, true)).0 < 150);
    }

    proptest! {
        #[test]
        fn any_order_and_any_grouping_gives_the_same_rows(
            rows in prop::collection::vec((0_u8..4, 0_i64..4), 1..200),
            parts in 1_usize..5,
            nth in prop_oneof![-3_i64..0, 1_i64..4],
            distinct in any::<bool>(),
        ) {
            let places: Vec<usize> = (0..rows.len()).map(|row| row % parts).collect();
            let merged = |pick: Pick| {
                let mut first = groups(pick.clone(), distinct);
                first.update_batch(&columns(&rows), &places, None, parts).unwrap();
                let mut last = groups(pick, distinct);
                let states = first.state(EmitTo::First(1)).unwrap();
                let others = first.state(EmitTo::All).unwrap();
                last.merge_batch(&others, &vec![0; parts - 1], 1).unwrap();
                last.merge_batch(&states, &[0], 1).unwrap();
                last.evaluate(EmitTo::All).unwrap()
            };
            let expected = joined(rows.clone(), distinct);
            let text = merged(Pick::Text(" ".to_owned()));
            prop_assert_eq!(text.as_string::<i64>().value(0), &expected);
            let all: Vec<&str> = expected.split(' ').collect();
            let lists = merged(Pick::All);
            let list = lists.as_list::<i32>().value(0);
            let list: Vec<Option<&str>> = list.as_string::<i32>().iter().collect();
            prop_assert_eq!(list, all.iter().map(|text| Some(*text)).collect::<Vec<_>>());
            let one = merged(Pick::Nth(nth));
            let place = if nth > 0 { nth as usize - 1 } else { all.len().wrapping_sub(nth.unsigned_abs() as usize) };
            prop_assert_eq!(one.as_string::<i32>().iter().next().flatten(), all.get(place).copied());
        }
    }
}
