//! `stddev`, `var_*`, `covar_*`, `corr` and `regr_*`: exact, rounded once.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility};

use super::distinct_rows::DistinctRows;
use super::moments::{MomentGroups, Statistic};
use super::one_group::OneGroup;
use super::ordered::rows_field;

/// A function of rows of one or two numbers. Rows with a null do not count.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Statistics {
    name: &'static str,
    aliases: Vec<String>,
    statistic: Statistic,
    signature: Signature,
}

/// All of them. The samples' are null for less than two rows; `corr`, `regr_slope`, `regr_intercept` and `regr_r2` are null
/// where x does not vary (`corr` also where y does not), as in PostgreSQL.
pub(super) fn all() -> Vec<Statistics> {
    use Statistic::*;
    let function = |name, aliases: &[&str], statistic: Statistic| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        Statistics { name, aliases, statistic, signature: Signature::user_defined(Volatility::Immutable) }
    };
    vec![
        function("var", &["var_samp", "var_sample", "variance"], SampleVariance),
        function("var_pop", &["var_population"], PopulationVariance),
        function("stddev", &["stddev_samp"], SampleDeviation),
        function("stddev_pop", &[], PopulationDeviation),
        function("covar_samp", &["covar"], SampleCovariance),
        function("covar_pop", &[], PopulationCovariance),
        function("corr", &[], Correlation),
        function("regr_slope", &[], Slope),
        function("regr_intercept", &[], Intercept),
        function("regr_count", &[], Pairs),
        function("regr_r2", &[], Determination),
        function("regr_avgx", &[], AverageX),
        function("regr_avgy", &[], AverageY),
        function("regr_sxx", &[], SquaresX),
        function("regr_syy", &[], SquaresY),
        function("regr_sxy", &[], Products),
    ]
}

impl AggregateUDFImpl for Statistics {
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
        let wanted = self.statistic.arguments();
        let are_numbers = args.iter().all(|t| t.is_numeric() || t.is_null());
        if args.len() != wanted || !are_numbers {
            let what = if wanted == 1 { "a number" } else { "two numbers" };
            return plan_err!("{} takes {what}", self.name);
        }
        Ok(vec![DataType::Float64; wanted])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.statistic.return_type())
    }

    fn is_nullable(&self) -> bool {
        self.statistic != Statistic::Pairs
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        if self.statistic == Statistic::Pairs {
            Ok(ScalarValue::Int64(Some(0)))
        } else {
            ScalarValue::try_from(data_type)
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            return Ok(vec![rows_field(args.name)]);
        }
        Ok(self.statistic.state_fields(args.name))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let statistic = self.statistic;
        if args.is_distinct {
            let plain =
                move || -> Result<Box<dyn Accumulator>> { Ok(Box::new(OneGroup(MomentGroups::new(statistic)))) };
            return Ok(Box::new(DistinctRows::new(args.expr_fields, plain)?));
        }
        Ok(Box::new(OneGroup(MomentGroups::new(statistic))))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(MomentGroups::new(self.statistic)))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
