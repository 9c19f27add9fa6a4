//! `median`, `percentile_cont` and their approximate namesakes: all exact.
//!
//! The middle of whole numbers and decimals is a decimal with one digit more, so that nothing is rounded. A continuous
//! percentile is the float nearest to the value between its two neighbours.

mod groups;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility};

use super::one_group::OneGroup;
use super::share::Share;
use groups::{Outcome, QuantileGroups};

/// A median or a continuous percentile.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Quantile {
    name: &'static str,
    aliases: Vec<String>,
    /// Arguments: the value, the share, and the size of a digest that an exact result does not need.
    arguments: std::ops::RangeInclusive<usize>,
    signature: Signature,
}

/// All of them.
pub(super) fn all() -> Vec<Quantile> {
    let function = |name, aliases: &[&str], arguments| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        Quantile { name, aliases, arguments, signature: Signature::user_defined(Volatility::Immutable) }
    };
    vec![
        function("median", &[], 1..=1),
        function("approx_median", &[], 1..=1),
        function("percentile_cont", &["quantile_cont"], 2..=2),
        function("approx_percentile_cont", &[], 2..=3),
    ]
}

impl Quantile {
    fn is_median(&self) -> bool {
        *self.arguments.end() == 1
    }

    fn share(&self, args: &AccumulatorArgs<'_>) -> Result<Share> {
        if self.is_median() {
            return Ok(Share::HALF);
        }
        let share = Share::of(self.name, args)?;
        // WITHIN GROUP (ORDER BY value DESC)
        let descending = args.order_bys.first().is_some_and(|order| order.options.descending);
        Ok(if descending { share.counted_from_above() } else { share })
    }
}

fn outcome(return_type: &DataType) -> Outcome {
    match return_type {
        DataType::Decimal128(precision, scale) => Outcome::Decimal(*precision, *scale),
        _ => Outcome::Float,
    }
}

/// Does something with groups of the type of the argument.
macro_rules! with_groups {
    ($function:expr, $args:expr, $groups:ident => $result:expr) => {{
        let data_type = $args.expr_fields[0].data_type().clone();
        let (share, outcome, distinct) =
            ($function.share(&$args)?, outcome($args.return_field.data_type()), $args.is_distinct);
        match data_type {
            DataType::Int64 => {
                let $groups = QuantileGroups::<Int64Type>::new(data_type, share, outcome, distinct);
                Ok($result)
            }
            DataType::Decimal128(..) => {
                let $groups = QuantileGroups::<Decimal128Type>::new(data_type, share, outcome, distinct);
                Ok($result)
            }
            DataType::Float64 => {
                let $groups = QuantileGroups::<Float64Type>::new(data_type, share, outcome, distinct);
                Ok($result)
            }
            other => plan_err!("{} takes numbers, not {other}", $function.name),
        }
    }};
}

impl AggregateUDFImpl for Quantile {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        if !self.arguments.contains(&args.len()) {
            let what = if self.is_median() { "a number" } else { "a number and a share from 0 to 1" };
            return plan_err!("{} takes {what}", self.name);
        }
        let value = match &args[0] {
            DataType::UInt64 => DataType::Decimal128(20, 0),
            whole if whole.is_integer() => DataType::Int64,
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) => {
                DataType::Decimal128(*p, *s)
            }
            DataType::Null | DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
            other => return plan_err!("{} takes numbers, not {other}", self.name),
        };
        match args[1..].iter().find(|t| !t.is_numeric()) {
            Some(other) => plan_err!("{} takes a share from 0 to 1, such as 0.9, not {other}", self.name),
            None => Ok(std::iter::once(value).chain(args[1..].iter().cloned()).collect()),
        }
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(match &args[0] {
            DataType::Int64 if self.is_median() => DataType::Decimal128(20, 1),
            DataType::Decimal128(precision, scale) if self.is_median() => {
                DataType::Decimal128((precision + 1).min(38), (scale + 1).min(38))
            }
            _ => DataType::Float64,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let item = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), DataType::List(Arc::new(item)), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        with_groups!(self, args, groups => Box::new(OneGroup(groups)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        with_groups!(self, args, groups => Box::new(groups))
    }

    fn supports_within_group_clause(&self) -> bool {
        !self.is_median()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
