//! Times as engines write them: RFC 3339 with up to nine decimals.

/// Milliseconds since 1970 of a time such as `2026-11-16T03:49:33.828594413Z`; `None` if it is none, or before 1970: the
/// engine writes the year 1 for "never".
pub(super) fn unix_ms(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let (time, offset_s) = split_offset(rest)?;
    let mut date = date.splitn(3, '-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut clock = clock.splitn(3, ':').map(number);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !valid || year > 9999 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s;
    u64::try_from(seconds * 1000 + milliseconds(fraction)?).ok()
}

fn split_offset(rest: &str) -> Option<(&str, i64)> {
    if let Some(time) = rest.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let at = rest.rfind(['+', '-'])?;
    let (hours, minutes) = rest[at + 1..].split_once(':')?;
    let seconds = number(hours)? * 3600 + number(minutes)? * 60;
    Some((&rest[..at], if rest[at..].starts_with('-') { -seconds } else { seconds }))
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn milliseconds(fraction: &str) -> Option<i64> {
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let three: String = fraction.chars().chain("000".chars()).take(3).collect();
    three.parse().ok()
}

/// Howard Hinnant's `days_from_civil`: years begin in March, so that the leap day is the last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_engines_are_understood() {
        // `date -u -d TIME +%s%3N` says the same.
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-16T03:49:33.828594413Z", 1_794_800_973_828),
            ("2026-11-16T03:49:33Z", 1_794_800_973_000),
            ("2026-11-16T04:49:33.5+01:00", 1_794_800_973_500),
            ("2026-11-15T22:49:33.05-05:00", 1_794_800_973_050),
            ("2024-02-29T23:59:59.999Z", 1_709_251_199_999),
            ("2000-03-01T00:00:00Z", 951_868_800_000),
        ] {
            assert_eq!(unix_ms(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn never_and_nonsense_are_no_times() {
        for text in [
            "",
            "0001-01-01T00:00:00Z",
            "hello",
            "2026-11-16",
            "2026-11-16T03:49:33",
            "2026-13-16T03:49:33Z",
            "2026-11-16T25:49:33Z",
            "2026-11-16T03:49:33.Xz",
            "2026-11-16T03:4\u{e9}:33Z",
            "99999-11-16T03:49:33Z",
            "T",
            "Z",
            "+",
        ] {
            assert_eq!(unix_ms(text), None, "{text}");
        }
    }
}
