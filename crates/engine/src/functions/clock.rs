//! `now()` and its like: the time of the job, a constant.
//!
//! DataFusion's ask this machine's clock when a query is planned, which every process of a cluster does for itself.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::JobTime;

/// The names under which the time of the job can be asked for, and those of its day.
const TIMES: [&str; 3] = ["now", "current_timestamp", "localtimestamp"];
const DAYS: [&str; 2] = ["current_date", "today"];

/// A function without arguments that gives the time or the day of the job, in UTC.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct JobClock {
    name: &'static str,
    value: ScalarValue,
    signature: Signature,
}

/// One for each name.
pub(super) fn all(time: JobTime) -> impl Iterator<Item = JobClock> {
    let moment = ScalarValue::TimestampMicrosecond(Some(time.micros()), None);
    let day = ScalarValue::Date32(Some(time.days()));
    let times = TIMES.map(|name| (name, moment.clone())).into_iter();
    times.chain(DAYS.map(|name| (name, day.clone()))).map(|(name, value)| {
        let signature = Signature::nullary(Volatility::Immutable);
        JobClock { name, value, signature }
    })
}

/// Whether a function of this name gives the time of the job.
pub(super) fn is_clock(name: &str) -> bool {
    TIMES.contains(&name) || DAYS.contains(&name)
}

impl ScalarUDFImpl for JobClock {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        let is_day = DAYS.contains(&self.name);
        Ok(if is_day { DataType::Date32 } else { DataType::Timestamp(TimeUnit::Microsecond, None) })
    }

    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(self.value.clone(), None)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}
