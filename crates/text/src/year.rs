//! The year in an oddly written date.

/// Digits of a year.
const DIGITS: usize = 4;

/// The year of a date in any spelling: its first run of four digits.
///
/// A run is as long as it can be, and shorter ones are passed over. Of a longer one the first four
/// digits count, so that `20051231` is of 2005. Digits are `0` to `9`.
///
/// ```
/// use tenaz_text::year;
///
/// assert_eq!(year("1996*"), Some(1996));
/// assert_eq!(year("Oct 21, 2008"), Some(2008));
/// assert_eq!(year("19??"), None);
/// ```
#[must_use]
pub fn year(text: &str) -> Option<i32> {
    let mut runs = text.as_bytes().split(|byte| !byte.is_ascii_digit());
    let digits = runs.find_map(|run| run.first_chunk::<DIGITS>())?;
    Some(digits.iter().fold(0, |year, digit| year * 10 + i32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::year;

    #[test]
    fn every_spelling_of_the_samples_is_read() {
        for (text, expected) in [
            ("1996", Some(1996)),
            ("2005-01-01", Some(2005)),
            ("2000-10", Some(2000)),
            ("1996*", Some(1996)),
            ("Oct 21, 2008", Some(2008)),
            ("May 2020", Some(2020)),
            ("19??", None),
            ("", None),
        ] {
            assert_eq!(year(text), expected, "{text}");
        }
    }

    #[test]
    fn short_runs_are_passed_over_and_long_ones_cut() {
        assert_eq!(year("101-01-01"), None);
        assert_eq!(year("1 22 333 4444 5555"), Some(4444));
        assert_eq!(year("20051231"), Some(2005));
        assert_eq!(year("20051"), Some(2005));
        assert_eq!(year("0000"), Some(0));
    }

    #[test]
    fn other_digits_are_no_digits() {
        assert_eq!(year("１９９６ ٢٠٠٥"), None);
        assert_eq!(year("é1996é"), Some(1996));
    }
}
