//! `bool_and`, `bool_or`, `bit_and`, `bit_or`, `bit_xor`: DataFusion's own, which also slide over windows here.
//!
//! What a value does to a result that it has changed already is nothing (but for `bit_xor`, whose values undo themselves), so
//! the different values of a window are enough, each with how often it is there. The same goes for DISTINCT, which
//! DataFusion's `bit_xor` forgets in groups.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::functions_aggregate::bit_and_or_xor::{bit_and_udaf, bit_or_udaf, bit_xor_udaf};
use datafusion::functions_aggregate::bool_and_or::{bool_and_udaf, bool_or_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion::physical_expr::PhysicalExpr;

use super::distinct_rows::DistinctRows;
use super::ordered::rows_field;

/// One of them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Bits {
    plain: Arc<AggregateUDF>,
}

/// All of them.
pub(super) fn all() -> impl Iterator<Item = Bits> {
    let plain = [bool_and_udaf(), bool_or_udaf(), bit_and_udaf(), bit_or_udaf(), bit_xor_udaf()];
    plain.into_iter().map(|plain| Bits { plain })
}

impl Bits {
    /// The aggregate of different values.
    fn of_different(&self, args: &AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let plain = Arc::clone(&self.plain);
        let (return_field, schema, name) = (Arc::clone(&args.return_field), args.schema.clone(), args.name.to_owned());
        let (exprs, fields): (Vec<Arc<dyn PhysicalExpr>>, Vec<FieldRef>) =
            (args.exprs.to_vec(), args.expr_fields.to_vec());
        let make = move || {
            let schema: &Schema = &schema;
            plain.accumulator(AccumulatorArgs {
                return_field: Arc::clone(&return_field),
                schema,
                ignore_nulls: false,
                order_bys: &[],
                is_reversed: false,
                name: &name,
                is_distinct: false,
                exprs: &exprs,
                expr_fields: &fields,
            })
        };
        Ok(Box::new(DistinctRows::new(args.expr_fields, make)?))
    }
}

impl AggregateUDFImpl for Bits {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.plain.return_type(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            return Ok(vec![rows_field(args.name)]);
        }
        self.plain.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct { self.of_different(&args) } else { self.plain.accumulator(args) }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct || self.name() != "bit_xor" {
            return self.of_different(&args);
        }
        self.plain.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct && self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.plain.create_groups_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
