//! Times as people write them: `500ms`, `90s`, `10m`, `2h`. The crate humantime takes more (`1month`, `3 s`), which an option must not.

use std::time::Duration;

const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// `None` if it is not written so, or longer than a number of milliseconds can say.
pub fn parse_span(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let (_, unit_ms) = UNITS.into_iter().find(|(unit, _)| *unit == &text[digits.len()..])?;
    number.checked_mul(unit_ms).map(Duration::from_millis)
}

/// A time as [`parse_span`] reads it, in the largest unit that loses nothing.
pub fn show_span(time: Duration) -> String {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (unit, unit_ms) = UNITS.into_iter().find(|(_, unit_ms)| ms.is_multiple_of(*unit_ms)).unwrap_or(UNITS[3]);
    format!("{}{unit}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_shown_is_read_again() {
        for text in ["500ms", "3s", "10m", "2h", "1500ms", "90s"] {
            assert_eq!(parse_span(text).map(show_span), Some(text.to_owned()));
        }
        for wrong in ["", "3", "s", "-1s", "1d", "1.5s", "99999999999999999999h", "3 s"] {
            assert_eq!(parse_span(wrong), None, "{wrong}");
        }
    }
}
