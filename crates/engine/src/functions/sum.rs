//! `sum(value)`: floats are added without loss, and whole numbers and decimals without wrapping around.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
};

use super::distinct_rows::DistinctRows;
use super::moments::{MomentGroups, Statistic};
use super::one_group::OneGroup;
use super::ordered::rows_field;
use super::whole_sum::{self, WholeSum, WholeSums};

/// The exact sum.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ExactSum {
    plain: Arc<AggregateUDF>,
}

impl ExactSum {
    pub(super) fn new() -> Self {
        Self { plain: sum_udaf() }
    }
}

/// Whether DataFusion's own is not used.
fn is_ours(result: &DataType) -> bool {
    result == &DataType::Float64 || whole_sum::is_whole(result)
}

fn of_one_group(result: &DataType) -> Box<dyn Accumulator> {
    match result {
        DataType::Float64 => Box::new(OneGroup(MomentGroups::new(Statistic::Sum))),
        whole => Box::new(WholeSum::new(whole.clone())),
    }
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.plain.return_type(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match args.return_field.data_type() {
            result if !is_ours(result) => self.plain.state_fields(args),
            _ if args.is_distinct => Ok(vec![rows_field(args.name)]),
            DataType::Float64 => Ok(Statistic::Sum.state_fields(args.name)),
            whole => Ok(vec![whole_sum::state_field(args.name, whole)]),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let result = args.return_field.data_type().clone();
        if !is_ours(&result) {
            return self.plain.accumulator(args);
        }
        if args.is_distinct {
            return Ok(Box::new(DistinctRows::new(args.expr_fields, move || Ok(of_one_group(&result)))?));
        }
        Ok(of_one_group(&result))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        if is_ours(args.return_field.data_type()) {
            return !args.is_distinct;
        }
        self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            result if !is_ours(result) => self.plain.create_groups_accumulator(args),
            DataType::Float64 => Ok(Box::new(MomentGroups::new(Statistic::Sum))),
            whole => Ok(Box::new(WholeSums::new(whole.clone()))),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_ours(args.return_field.data_type()) {
            return self.accumulator(args);
        }
        self.plain.create_sliding_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.plain.inner().set_monotonicity(data_type)
    }
}
