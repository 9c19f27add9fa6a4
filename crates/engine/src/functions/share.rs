//! The share of a percentile, such as 0.9.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::physical_expr::expressions::Literal;

/// A share as a fraction of whole numbers: 0.9 is 9/10, not the nearest binary number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    over: u128,
    under: u128,
}

/// A place between two of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Between {
    /// The place of the lower one.
    pub(super) lower: usize,
    /// How far it is from there to the next one, as a fraction: (over, under).
    pub(super) further: (u128, u128),
}

impl Share {
    /// One half.
    pub(super) const HALF: Self = Self { over: 1, under: 2 };

    /// The second argument of a function.
    pub(super) fn of(function: &str, args: &AccumulatorArgs<'_>) -> Result<Self> {
        match args.exprs.get(1).and_then(|expr| expr.downcast_ref::<Literal>()) {
            Some(literal) => Self::new(function, literal.value()),
            None => plan_err!("the share of {function} must be a plain number from 0 to 1, such as 0.9"),
        }
    }

    fn new(function: &str, value: &ScalarValue) -> Result<Self> {
        let text = match value {
            ScalarValue::Float64(Some(p)) => p.to_string(),
            ScalarValue::Float32(Some(p)) => p.to_string(),
            value if !value.is_null() => match value.cast_to(&DataType::Utf8)? {
                ScalarValue::Utf8(Some(text)) => text,
                _ => String::new(),
            },
            _ => String::new(),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = format!("{whole}{fraction}");
        match digits.parse::<u128>() {
            Ok(over) if fraction.len() <= 18 && over <= 10u128.pow(fraction.len() as u32) => {
                Ok(Self { over, under: 10u128.pow(fraction.len() as u32) })
            }
            _ => plan_err!("the share of {function} must be from 0 to 1, such as 0.9; found {value}"),
        }
    }

    /// The share from the other end.
    pub(super) fn counted_from_above(self) -> Self {
        Self { over: self.under - self.over, ..self }
    }

    /// floor(share · n), and at most the last place.
    pub(super) fn place(self, n: usize) -> usize {
        let place = self.over * n as u128 / self.under;
        (place as usize).min(n - 1)
    }

    /// share · (n - 1): the place of a continuous percentile among n values.
    pub(super) fn between(self, n: usize) -> Between {
        let place = self.over * (n as u128 - 1);
        Between { lower: (place / self.under) as usize, further: (place % self.under, self.under) }
    }
}
