//! `array_agg`, `string_agg`, `first_value`, `last_value`, `nth_value` and `any_value` over groups, with one outcome.
//!
//! What SQL leaves open is settled by the values: rows that tie in the aggregate's ORDER BY come in ascending order of its
//! argument, nulls last, and so do all rows where there is no ORDER BY. Rows that tie in both cannot be told apart. (Where
//! several such aggregates stand beside each other, `plan/row_order.rs` makes them agree.) Rows are kept in a form whose
//! bytes compare as the rows do, so a partial result is a bag of rows, and states may be merged in any order.
//!
//! As window functions they follow the window's order, and are DataFusion's.

mod groups;

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;

use super::one_group::OneGroup;
use super::share::Share;
use groups::{OrderedGroups, Pick, Shape};

/// An aggregate whose result depends on the order of its rows.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct OrderedAggregate {
    name: &'static str,
    kind: Kind,
    signature: Signature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Array,
    Text,
    First,
    Last,
    Nth,
    Any,
}

/// All of them.
pub(super) fn all() -> Vec<OrderedAggregate> {
    let of = |name, kind, signature| OrderedAggregate { name, kind, signature };
    let any = |arguments| Signature::any(arguments, Volatility::Immutable);
    vec![
        of("array_agg", Kind::Array, any(1)),
        of("string_agg", Kind::Text, string_agg_udaf().signature().clone()),
        of("first_value", Kind::First, any(1)),
        of("last_value", Kind::Last, any(1)),
        of("nth_value", Kind::Nth, any(2)),
        of("any_value", Kind::Any, any(1)),
    ]
}

impl OrderedAggregate {
    /// Whether a few rows of each group are enough.
    pub(super) fn is_small(&self) -> bool {
        !matches!(self.kind, Kind::Array | Kind::Text)
    }

    /// What is taken of the rows, once they are in order.
    fn pick(&self, args: &AccumulatorArgs<'_>) -> Result<Pick> {
        let literal = || args.exprs.get(1).and_then(|e| e.downcast_ref::<Literal>()).map(Literal::value);
        Ok(match self.kind {
            Kind::Array => Pick::All,
            Kind::First | Kind::Any => Pick::Nth(1),
            Kind::Last => Pick::Nth(-1),
            Kind::Text => match literal() {
                Some(separator) if separator.is_null() => Pick::Text(String::new()),
                Some(separator) => match separator.try_as_str() {
                    Some(Some(text)) => Pick::Text(text.to_owned()),
                    _ => return plan_err!("the separator of string_agg must be a text, not {separator}"),
                },
                None => return plan_err!("the separator of string_agg must be a plain text, such as ', '"),
            },
            Kind::Nth => match literal().map(|n| n.cast_to(&DataType::Int64)) {
                Some(Ok(ScalarValue::Int64(Some(n)))) if n != 0 => Pick::Nth(n),
                _ => {
                    return plan_err!(
                        "the second argument of nth_value must be a whole number such as 2, or -2 from the end"
                    );
                }
            },
        })
    }

    fn groups(&self, args: &AccumulatorArgs<'_>, sliding: bool) -> Result<OrderedGroups> {
        if args.is_distinct && args.order_bys.iter().any(|order| !order.expr.eq(&args.exprs[0])) {
            return plan_err!("{}(DISTINCT …) can be ordered by its argument only", self.name);
        }
        let keys = args
            .order_bys
            .iter()
            .map(|order| Ok(SortField::new_with_options(order.expr.data_type(args.schema)?, order.options)));
        let mut fields = keys.collect::<Result<Vec<_>>>()?;
        let last = SortOptions { descending: false, nulls_first: false };
        fields.push(SortField::new_with_options(args.expr_fields[0].data_type().clone(), last));
        if !RowConverter::supports_fields(&fields) {
            return plan_err!("{} cannot put values of type {} in order", self.name, args.expr_fields[0].data_type());
        }
        Ok(OrderedGroups::new(Shape {
            converter: RowConverter::new(fields)?,
            arguments: args.exprs.len(),
            return_type: args.return_field.data_type().clone(),
            pick: self.pick(args)?,
            skips_nulls: args.ignore_nulls || matches!(self.kind, Kind::Text | Kind::Any),
            distinct: args.is_distinct,
            keeps_all: sliding,
        }))
    }
}

/// The column of a partial result: a bag of rows.
pub(super) fn rows_field(name: &str) -> FieldRef {
    let item = Arc::new(Field::new_list_field(DataType::Binary, true));
    Arc::new(Field::new(format!("{name}[rows]"), DataType::List(item), true))
}

/// The value at a share of all, for windows that slide and for DISTINCT.
pub(super) fn percentile_of_rows(args: &AccumulatorArgs<'_>, share: Share) -> Result<Box<dyn Accumulator>> {
    let data_type = args.expr_fields[0].data_type().clone();
    Ok(Box::new(OneGroup(OrderedGroups::new(Shape {
        converter: RowConverter::new(vec![SortField::new(data_type)])?,
        arguments: args.exprs.len(),
        return_type: args.return_field.data_type().clone(),
        pick: Pick::At(share),
        skips_nulls: true,
        distinct: args.is_distinct,
        keeps_all: true,
    }))))
}

impl AggregateUDFImpl for OrderedAggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            Kind::Array => DataType::List(Arc::new(Field::new_list_field(args[0].clone(), true))),
            Kind::Text => DataType::LargeUtf8,
            Kind::First | Kind::Last | Kind::Nth | Kind::Any => args[0].clone(),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![rows_field(args.name)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup(self.groups(&args, false)?)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneGroup(self.groups(&args, true)?)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.groups(&args, false)?))
    }

    /// Rows may come in any order; the columns of the ORDER BY come with them.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Beneficial
    }

    fn with_beneficial_ordering(self: Arc<Self>, _: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn supports_null_handling_clause(&self) -> bool {
        matches!(self.kind, Kind::Array | Kind::First | Kind::Last)
    }
}
