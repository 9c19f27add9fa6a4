//! A set of numbers that costs memory by its gaps, not by its size: chunk numbers arrive nearly in order.

use std::collections::BTreeMap;

/// A set of `u64`, kept as disjoint, non-touching half-open intervals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalSet {
    /// start -> end (exclusive)
    intervals: BTreeMap<u64, u64>,
    len: u64,
}

impl IntervalSet {
    /// Adds `number`; false if it was there already.
    pub fn insert(&mut self, number: u64) -> bool {
        let before = self.intervals.range(..=number).next_back().map(|(&start, &end)| (start, end));
        if before.is_some_and(|(_, end)| number < end) {
            return false;
        }
        let next = number + 1;
        let end = self.intervals.remove(&next).unwrap_or(next);
        match before {
            Some((start, before_end)) if before_end == number => self.intervals.insert(start, end),
            _ => self.intervals.insert(number, end),
        };
        self.len += 1;
        true
    }

    /// Whether `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        self.intervals.range(..=number).next_back().is_some_and(|(_, &end)| number < end)
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds all numbers from `first` up to, not including, `end`.
    pub fn insert_range(&mut self, first: u64, end: u64) {
        if first >= end {
            return;
        }
        let (mut start, mut stop) = (first, end);
        let touching = self.intervals.range(..=end).rev().take_while(|(_, e)| **e >= first);
        let touching: Vec<(u64, u64)> = touching.map(|(&s, &e)| (s, e)).collect();
        for (s, e) in touching {
            self.intervals.remove(&s);
            self.len -= e - s;
            start = start.min(s);
            stop = stop.max(e);
        }
        self.intervals.insert(start, stop);
        self.len += stop - start;
    }

    /// Takes all numbers from `first` up to, not including, `end` out.
    pub fn remove_range(&mut self, first: u64, end: u64) {
        let overlapping: Vec<(u64, u64)> =
            self.intervals.range(..end).rev().take_while(|(_, e)| **e > first).map(|(&s, &e)| (s, e)).collect();
        for (s, e) in overlapping {
            self.intervals.remove(&s);
            self.len -= e - s;
            self.insert_range(s, first.max(s));
            self.insert_range(end.min(e), e);
        }
    }

    /// The intervals of the set, as (first, end) pairs.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.intervals.iter().map(|(&start, &end)| (start, end))
    }

    /// The intervals of numbers in `first..end` that are not in the set.
    pub fn gaps_within(&self, first: u64, end: u64) -> Vec<(u64, u64)> {
        let clipped = self.gaps(end).into_iter().map(|(a, b)| (a.max(first), b));
        clipped.filter(|(a, b)| a < b).collect()
    }

    /// The largest number in the set.
    pub fn last(&self) -> Option<u64> {
        self.intervals.values().next_back().map(|end| end - 1)
    }

    /// The intervals of numbers below `bound` that are not in the set, as (first, end) pairs.
    pub fn gaps(&self, bound: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut from = 0;
        for (&start, &end) in self.intervals.range(..bound) {
            if from < start {
                gaps.push((from, start));
            }
            from = end;
        }
        if from < bound {
            gaps.push((from, bound));
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_plain_set_does(numbers in prop::collection::vec(0u64..60, 0..200), bound in 0u64..70) {
            let mut set = IntervalSet::default();
            let mut plain = BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(set.insert(number), plain.insert(number));
                prop_assert_eq!(set.len(), plain.len() as u64);
            }
            for number in 0..70 {
                prop_assert_eq!(set.contains(number), plain.contains(&number));
            }
            prop_assert_eq!(set.last(), plain.last().copied());
            let missing: Vec<u64> = set.gaps(bound).into_iter().flat_map(|(a, b)| a..b).collect();
            let expected: Vec<u64> = (0..bound).filter(|n| !plain.contains(n)).collect();
            prop_assert_eq!(missing, expected);
        }

        #[test]
        fn a_range_is_all_its_numbers(ranges in prop::collection::vec((0u64..60, 0u64..12), 0..20)) {
            let mut set = IntervalSet::default();
            let mut one_by_one = IntervalSet::default();
            for (first, count) in ranges {
                set.insert_range(first, first + count);
                for number in first..first + count {
                    one_by_one.insert(number);
                }
                prop_assert_eq!(&set, &one_by_one);
            }
        }

        #[test]
        fn what_is_taken_out_is_out_and_nothing_else(
            numbers in prop::collection::vec(0u64..40, 0..60), first in 0u64..45, count in 0u64..12
        ) {
            let mut set = IntervalSet::default();
            numbers.iter().for_each(|&n| { set.insert(n); });
            let before = set.clone();
            set.remove_range(first, first + count);
            for n in 0..60 {
                prop_assert_eq!(set.contains(n), before.contains(n) && !(first..first + count).contains(&n));
            }
            prop_assert_eq!(set.len(), (0..60).filter(|&n| set.contains(n)).count() as u64);
        }

        #[test]
        fn a_full_run_is_one_interval_in_any_order(mut order in Just((0u64..50).collect::<Vec<_>>()).prop_shuffle()) {
            let mut set = IntervalSet::default();
            for number in order.drain(..) {
                set.insert(number);
            }
            prop_assert_eq!(set.intervals.len(), 1);
            prop_assert!(set.gaps(50).is_empty());
        }
    }
}
