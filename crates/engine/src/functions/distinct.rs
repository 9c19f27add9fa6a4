//! `distinct_count(value)`: `count(DISTINCT value)` in one step; also by the name of `approx_distinct`, which is exact here.
//!
//! DataFusion turns a lone `count(DISTINCT x)` into two groupings one after the other. That scales better, but nothing
//! is known of a group before all rows are in. In one step the count only ever grows, so a condition such as
//! `distinct_count(x) >= 10` can be certain early.

mod groups;

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, SetMonotonicity, Signature, Volatility,
};

use super::count::Count;
use crate::machine_words::keys;
use groups::DistinctGroups;

/// Counts different values, nulls apart.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DistinctCount {
    signature: Signature,
    count: Arc<AggregateUDF>,
}

impl DistinctCount {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable), count: Arc::new(AggregateUDF::from(Count::new())) }
    }
}

impl AggregateUDFImpl for DistinctCount {
    fn name(&self) -> &str {
        "distinct_count"
    }

    fn aliases(&self) -> &[String] {
        static ALIASES: LazyLock<Vec<String>> = LazyLock::new(|| vec!["approx_distinct".to_owned()]);
        &ALIASES
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _: &DataType) -> Result<datafusion::common::ScalarValue> {
        Ok(datafusion::common::ScalarValue::Int64(Some(0)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.count.state_fields(StateFieldsArgs { is_distinct: true, ..args })
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.count.accumulator(AccumulatorArgs { is_distinct: true, ..args })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.count.inner().create_sliding_accumulator(AccumulatorArgs { is_distinct: true, ..args })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        argument_type(&args).is_ok_and(|data_type| keys::are_words(&data_type))
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(DistinctGroups::new(argument_type(&args)?)))
    }

    fn set_monotonicity(&self, _: &DataType) -> SetMonotonicity {
        SetMonotonicity::Increasing
    }
}

fn argument_type(args: &AccumulatorArgs<'_>) -> Result<DataType> {
    args.exprs[0].data_type(args.schema)
}
