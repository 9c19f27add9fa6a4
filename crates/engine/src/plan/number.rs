//! Numbers as people write them: `1e6`, `1.5e-3`, `1e300`.
//!
//! DataFusion makes decimals of a negative scale of the first, at which its optimizer panics, and refuses the last. A number with an
//! exponent is a decimal, as every number with a point, if it has few enough digits, and else a float.

/// Digits of a decimal that every function takes.
const EXACT_DIGITS: usize = 38;
/// Digits that a number can have at all.
const MAX_DIGITS: usize = 76;

/// How a number is to be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// As it is.
    Plain,
    /// As this text, which has no exponent.
    Decimal(String),
    /// As a float.
    Float,
}

/// Reads a number without a sign.
///
/// # Errors
/// It has more digits than any type of number.
pub(super) fn read_number(text: &str) -> Result<Number, String> {
    let text: String = text.chars().filter(|c| *c != '_').collect();
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits = whole.trim_start_matches('0').len() + fraction.len();
        if digits > MAX_DIGITS {
            return Err(format!(
                "this number has {digits} digits, and the most are {MAX_DIGITS}; with an exponent (1e{}) it is a float",
                digits - 1
            ));
        }
        return Ok(Number::Plain);
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(Number::Decimal("0.0".to_owned()));
    }
    let places: Option<i64> = exponent.parse::<i64>().ok().and_then(|e| e.checked_sub(fraction.len() as i64));
    if let Some(plain) = places.and_then(|places| plain(digits, places)) {
        return Ok(Number::Decimal(plain));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Number::Float),
        _ => Err(format!("the number {text} is too large; the largest float is about 1.8e308")),
    }
}

/// Digits times ten to the power of `places`, with a point; `None` if that is too long.
fn plain(digits: &str, places: i64) -> Option<String> {
    let shift = usize::try_from(places.unsigned_abs()).ok().filter(|shift| *shift <= EXACT_DIGITS)?;
    let (text, length) = if places >= 0 {
        (format!("{digits}{}.0", "0".repeat(shift)), digits.len() + shift + 1)
    } else {
        let padded = format!("{}{digits}", "0".repeat((shift + 1).saturating_sub(digits.len())));
        let (whole, fraction) = padded.split_at(padded.len() - shift);
        (format!("{whole}.{fraction}"), digits.len().max(shift))
    };
    (length <= EXACT_DIGITS).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_exponents_are_written_out_or_are_floats() {
        for (text, plain) in [
            ("1e6", "1000000.0"),
            ("1E+3", "1000.0"),
            ("1.5e-3", "0.0015"),
            ("12.5e1", "125.0"),
            ("1.25e1", "12.5"),
            (".5e1", "5.0"),
            ("5.e2", "500.0"),
            ("1_000e3", "1000000.0"),
            ("0e99", "0.0"),
            ("0.00e-5", "0.0"),
            ("1e0", "1.0"),
            ("1e36", "1000000000000000000000000000000000000.0"),
            ("1e-38", "0.00000000000000000000000000000000000001"),
        ] {
            assert_eq!(read_number(text), Ok(Number::Decimal(plain.to_owned())), "{text}");
        }
        for text in ["1e37", "1e-39", "1e300", "1.5e-300", "1e-400", "1234567890123456789012345678901234567890e-3"] {
            assert_eq!(read_number(text), Ok(Number::Float), "{text}");
        }
        for text in ["1", "1.50", "0.1", "1_000", "123456789012345678901234567890123456789012"] {
            assert_eq!(read_number(text), Ok(Number::Plain), "{text}");
        }
        for text in ["1e309".to_owned(), "1e99999999999999999999".to_owned(), "9".repeat(77)] {
            assert!(read_number(&text).is_err(), "{text}");
        }
    }
}
