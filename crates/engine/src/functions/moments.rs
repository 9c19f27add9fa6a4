//! Sums, averages, variances, correlations and regressions of floats, computed exactly and rounded once.
//!
//! All of them follow from how many rows there are and from the sums of x, y, x², xy and y². These are kept without loss
//! ([`FloatSum`]), so that large values with small differences cancel nothing, and no order or grouping of rows shows.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, Int64Builder, ListBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::dyadic::Dyadic;
use super::float_sum::FloatSum;
use super::one_group::{SlidingGroups, passes};

/// What is computed. Functions of two arguments are called as (y, x).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Statistic {
    Sum,
    Average,
    PopulationVariance,
    SampleVariance,
    PopulationDeviation,
    SampleDeviation,
    PopulationCovariance,
    SampleCovariance,
    Correlation,
    Slope,
    Intercept,
    Pairs,
    Determination,
    AverageX,
    AverageY,
    SquaresX,
    SquaresY,
    Products,
}

/// Of what a sum is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    X,
    Y,
    XX,
    XY,
    YY,
}

impl Statistic {
    /// How many arguments it has.
    pub(super) fn arguments(self) -> usize {
        use Statistic::*;
        match self {
            Sum | Average | PopulationVariance | SampleVariance | PopulationDeviation | SampleDeviation => 1,
            _ => 2,
        }
    }

    pub(super) fn return_type(self) -> DataType {
        if self == Self::Pairs { DataType::Int64 } else { DataType::Float64 }
    }

    fn terms(self) -> &'static [Term] {
        use Statistic::*;
        use Term::*;
        match self {
            Sum | Average | AverageX => &[X],
            AverageY => &[Y],
            PopulationVariance | SampleVariance | PopulationDeviation | SampleDeviation | SquaresX => &[X, XX],
            SquaresY => &[Y, YY],
            PopulationCovariance | SampleCovariance | Products => &[X, Y, XY],
            Slope | Intercept => &[X, Y, XX, XY],
            Correlation | Determination => &[X, Y, XX, XY, YY],
            Pairs => &[],
        }
    }

    /// The columns of a partial result: the number of rows, and each sum.
    pub(super) fn state_fields(self, name: &str) -> Vec<FieldRef> {
        let count = Field::new(format!("{name}[count]"), DataType::Int64, true);
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        let sum = |term: &Term| Field::new(format!("{name}[{term:?}]"), DataType::List(Arc::clone(&item)), true);
        std::iter::once(count).chain(self.terms().iter().map(sum)).map(Arc::new).collect()
    }

    fn result(self, group: &Group<'_>) -> Option<f64> {
        use Statistic::*;
        use Term::*;
        let n = group.count;
        let least = if matches!(self, SampleVariance | SampleDeviation | SampleCovariance) { 2 } else { 1 };
        if n < least {
            return None;
        }
        if let Some(special) = group.special() {
            let linear = matches!(self, Sum | Average | AverageX | AverageY);
            return Some(if linear { special } else { f64::NAN });
        }
        let whole = Dyadic::from;
        // n² times what the names say, which needs no division.
        let (xx, yy, xy) = (|| group.spread(XX, X, X), || group.spread(YY, Y, Y), || group.spread(XY, X, Y));
        let population = || whole(n).times(&whole(n));
        let sample = || whole(n).times(&whole(n - 1));
        Some(match self {
            Sum => group.sum(X).nearest(),
            Average | AverageX => group.sum(X).over(&whole(n)),
            AverageY => group.sum(Y).over(&whole(n)),
            PopulationVariance => xx().over(&population()),
            SampleVariance => xx().over(&sample()),
            PopulationDeviation => xx().root_over(&population()),
            SampleDeviation => xx().root_over(&sample()),
            PopulationCovariance => xy().over(&population()),
            SampleCovariance => xy().over(&sample()),
            SquaresX => xx().over(&whole(n)),
            SquaresY => yy().over(&whole(n)),
            Products => xy().over(&whole(n)),
            Pairs => n as f64,
            Correlation => {
                let (both, xy) = (xx().times(&yy()), xy());
                if both.is_zero() {
                    return None;
                }
                let magnitude = xy.times(&xy).root_over(&both);
                if xy.nearest() < 0.0 { -magnitude } else { magnitude }
            }
            Determination => {
                let (xx, yy, xy) = (xx(), yy(), xy());
                match (xx.is_zero(), yy.is_zero()) {
                    (true, _) => return None,
                    (false, true) => 1.0,
                    (false, false) => xy.times(&xy).over(&xx.times(&yy)),
                }
            }
            Slope | Intercept if xx().is_zero() => return None,
            Slope => xy().over(&xx()),
            Intercept => {
                let over = group.sum(Y).times(&xx()).minus(&group.sum(X).times(&xy()));
                over.over(&whole(n).times(&xx()))
            }
        })
    }
}

/// The sums of one group.
struct Group<'s> {
    count: i64,
    terms: &'static [Term],
    sums: &'s [FloatSum],
}

impl Group<'_> {
    fn sum(&self, term: Term) -> Dyadic {
        let position = self.terms.iter().position(|t| *t == term);
        position.map_or_else(|| Dyadic::from(0), |position| self.sums[position].finite())
    }

    /// `n · Σ(product) - Σ(a) · Σ(b)`: n times the sum of the products of deviations.
    fn spread(&self, product: Term, a: Term, b: Term) -> Dyadic {
        let left = Dyadic::from(self.count).times(&self.sum(product));
        left.minus(&self.sum(a).times(&self.sum(b)))
    }

    fn special(&self) -> Option<f64> {
        self.sums.iter().find_map(FloatSum::special)
    }
}

/// The sums of many groups.
#[derive(Debug)]
pub(super) struct MomentGroups {
    statistic: Statistic,
    counts: Vec<i64>,
    /// Those of the first group, then those of the second, and so on.
    sums: Vec<FloatSum>,
    /// Bytes that the sums hold.
    heap: usize,
}

impl MomentGroups {
    pub(super) fn new(statistic: Statistic) -> Self {
        Self { statistic, counts: Vec::new(), sums: Vec::new(), heap: 0 }
    }

    fn width(&self) -> usize {
        self.statistic.terms().len()
    }

    /// Adds a row to a group, or takes it away.
    fn change(&mut self, group: usize, y: f64, x: f64, away: bool) {
        self.counts[group] += if away { -1 } else { 1 };
        let (terms, first) = (self.statistic.terms(), group * self.width());
        for (term, sum) in terms.iter().zip(&mut self.sums[first..]) {
            let before = sum.heap_size();
            match (term, away) {
                (Term::X, false) => sum.add(x),
                (Term::X, true) => sum.remove(x),
                (Term::Y, false) => sum.add(y),
                (Term::Y, true) => sum.remove(y),
                (Term::XX, false) => sum.add_product(x, x),
                (Term::XX, true) => sum.remove_product(x, x),
                (Term::XY, false) => sum.add_product(x, y),
                (Term::XY, true) => sum.remove_product(x, y),
                (Term::YY, false) => sum.add_product(y, y),
                (Term::YY, true) => sum.remove_product(y, y),
            }
            self.heap += sum.heap_size() - before;
        }
    }

    fn group(&self, group: usize) -> Group<'_> {
        let width = self.width();
        let sums = &self.sums[group * width..(group + 1) * width];
        Group { count: self.counts[group], terms: self.statistic.terms(), sums }
    }

    /// Takes the first groups out.
    fn take(&mut self, emit_to: EmitTo) -> Self {
        let counts = emit_to.take_needed(&mut self.counts);
        let sums = match emit_to {
            EmitTo::All => std::mem::take(&mut self.sums),
            EmitTo::First(groups) => EmitTo::First(groups * self.width()).take_needed(&mut self.sums),
        };
        let heap = sums.iter().map(FloatSum::heap_size).sum();
        self.heap = self.heap.saturating_sub(heap);
        Self { statistic: self.statistic, counts, sums, heap }
    }

    fn states(&self) -> Vec<ArrayRef> {
        let width = self.width();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(self.counts.clone()))];
        for term in 0..width {
            let mut lists = ListBuilder::new(Int64Builder::new());
            for group in 0..self.counts.len() {
                lists.values().append_slice(&self.sums[group * width + term].state());
                lists.append(true);
            }
            columns.push(Arc::new(lists.finish()));
        }
        columns
    }
}

/// (y, x) of rows that have all arguments, with the number of the row.
fn rows(values: &[ArrayRef], arguments: usize) -> Result<impl Iterator<Item = (usize, f64, f64)>> {
    let column = |index: usize| -> Result<Float64Array> {
        Ok(cast(&values[index], &DataType::Float64)?.as_primitive::<Float64Type>().clone())
    };
    // A single argument is x.
    let (y, x) = (column(0)?, column(arguments - 1)?);
    let rows = x.len();
    let pair = move |row: usize| {
        let is_whole = x.is_valid(row) && y.is_valid(row);
        if is_whole { Some((row, y.value(row), x.value(row))) } else { None }
    };
    Ok((0..rows).filter_map(pair))
}

impl GroupsAccumulator for MomentGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.resize(total_num_groups);
        for (row, y, x) in rows(values, self.statistic.arguments())? {
            if passes(filter, row) {
                self.change(groups[row], y, x, false);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> Result<()> {
        self.resize(total_num_groups);
        let counts = states[0].as_primitive::<Int64Type>();
        for (count, group) in counts.iter().zip(groups) {
            self.counts[*group] += count.unwrap_or(0);
        }
        let width = self.width();
        for (term, states) in states[1..].iter().enumerate() {
            let Some(lists) = states.as_list_opt::<i32>() else {
                return exec_err!("a partial result has another shape");
            };
            let (numbers, offsets) = (lists.values().as_primitive::<Int64Type>().values(), lists.value_offsets());
            for (row, group) in groups.iter().enumerate().filter(|(row, _)| lists.is_valid(*row)) {
                let sum = &mut self.sums[group * width + term];
                let before = sum.heap_size();
                sum.merge(&numbers[offsets[row] as usize..offsets[row + 1] as usize]);
                self.heap += sum.heap_size() - before;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let taken = self.take(emit_to);
        if self.statistic == Statistic::Pairs {
            return Ok(Arc::new(Int64Array::from(taken.counts)));
        }
        let results = (0..taken.counts.len()).map(|group| self.statistic.result(&taken.group(group)));
        Ok(Arc::new(results.collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(self.take(emit_to).states())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let mut single = Self::new(self.statistic);
        single.update_batch(values, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        Ok(single.states())
    }

    fn size(&self) -> usize {
        self.heap + self.counts.capacity() * size_of::<i64>() + self.sums.capacity() * size_of::<FloatSum>()
    }
}

impl SlidingGroups for MomentGroups {
    fn resize(&mut self, groups: usize) {
        self.counts.resize(groups.max(self.counts.len()), 0);
        self.sums.resize_with(self.counts.len() * self.width(), FloatSum::default);
    }

    fn remove(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.resize(1);
        rows(values, self.statistic.arguments())?.for_each(|(_, y, x)| self.change(0, y, x, true));
        Ok(())
    }

    fn first_result(&mut self) -> Result<ScalarValue> {
        if self.statistic == Statistic::Pairs {
            return Ok(ScalarValue::Int64(Some(self.counts[0])));
        }
        Ok(ScalarValue::Float64(self.statistic.result(&self.group(0))))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::logical_expr::Accumulator;
    use proptest::prelude::*;

    use super::*;
    use crate::functions::one_group::OneGroup;

    fn column(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
        Arc::new(values.into_iter().collect::<Float64Array>())
    }

    fn of(statistic: Statistic, values: &[ArrayRef]) -> ScalarValue {
        let mut one = OneGroup(MomentGroups::new(statistic));
        one.update_batch(values).unwrap();
        one.evaluate().unwrap()
    }

    #[test]
    fn large_values_with_small_differences_cancel_nothing() {
        let values = column([1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0].map(Some));
        assert_eq!(of(Statistic::SampleVariance, &[Arc::clone(&values)]), ScalarValue::Float64(Some(1.0)));
        let values = column([1e16, 1e16 + 2.0, 1e16 + 4.0].map(Some));
        assert_eq!(of(Statistic::SampleDeviation, &[values]), ScalarValue::Float64(Some(2.0)));
    }

    #[test]
    fn a_pair_with_a_null_does_not_count() {
        let (y, x) = (column([Some(1.0), None, Some(3.0)]), column([Some(2.0), Some(9.0), None]));
        assert_eq!(of(Statistic::Pairs, &[y, x]), ScalarValue::Int64(Some(1)));
    }

    #[test]
    fn infinite_values_have_no_spread() {
        let values = column([Some(f64::INFINITY), Some(1.0)]);
        assert_eq!(of(Statistic::Average, &[Arc::clone(&values)]), ScalarValue::Float64(Some(f64::INFINITY)));
        let ScalarValue::Float64(Some(variance)) = of(Statistic::PopulationVariance, &[values]) else {
            panic!("a float")
        };
        assert!(variance.is_nan());
    }

    fn pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
        let number = || prop_oneof![-1e3..1e3_f64, 1e9..1e9 + 1.0, prop::num::f64::NORMAL];
        prop::collection::vec((number(), number()), 1..30)
    }

    proptest! {
        /// In one step, in groups whose states are merged in another order, and after rows have come and gone.
        #[test]
        fn any_order_and_any_grouping_gives_the_same_bits(rows in pairs(), gone in pairs(), groups in 1_usize..4) {
            let columns = |rows: &[(f64, f64)]| {
                [column(rows.iter().map(|row| Some(row.0))), column(rows.iter().map(|row| Some(row.1)))]
            };
            for statistic in [Statistic::Correlation, Statistic::Intercept, Statistic::SampleCovariance] {
                let whole = of(statistic, &columns(&rows));
                let mut parts = MomentGroups::new(statistic);
                let places: Vec<usize> = (0..rows.len()).map(|row| row % groups).collect();
                parts.update_batch(&columns(&rows), &places, None, groups).unwrap();
                let mut merged = OneGroup(MomentGroups::new(statistic));
                merged.update_batch(&columns(&gone)).unwrap();
                let first = parts.state(EmitTo::First(1)).unwrap();
                merged.merge_batch(&parts.state(EmitTo::All).unwrap()).unwrap();
                merged.merge_batch(&first).unwrap();
                merged.retract_batch(&columns(&gone)).unwrap();
                prop_assert_eq!(merged.evaluate().unwrap(), whole.clone());
                let mut single = OneGroup(MomentGroups::new(statistic));
                let states = MomentGroups::new(statistic).convert_to_state(&columns(&rows), None).unwrap();
                single.merge_batch(&states).unwrap();
                prop_assert_eq!(single.evaluate().unwrap(), whole);
                prop_assert!(single.size() > size_of::<OneGroup<MomentGroups>>());
            }
        }
    }
}
