//! Dates and times of the Gregorian calendar, years 0001 to 9999.

use super::Parser;
use super::lanes::{self, Lanes, Spans};
use crate::Reason;
use crate::reject::found;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Parses [`Kind::Timestamp`](crate::Kind::Timestamp) to microseconds since 1970.
#[derive(Default)]
pub(crate) struct TimestampParser {
    month: Month,
}

/// Parses [`Kind::Date`](crate::Kind::Date) to days since 1970.
#[derive(Default)]
pub(crate) struct DateParser {
    month: Month,
}

impl Parser for TimestampParser {
    type Value = i64;

    #[inline(always)]
    fn fast(&mut self, data: &[u8], start: usize, end: usize) -> Option<i64> {
        let text: &[u8; 19] = data[start..end].try_into().ok()?;
        let (date, [separator, time @ ..]) = text.split_first_chunk::<10>()? else {
            return None;
        };
        let days = self.month.day(date)?;
        let seconds = time_of_day(u64::from_le_bytes(time.try_into().expect("8 bytes are left")))?;
        matches!(separator, b' ' | b'T')
            .then(|| (i64::from(days) * SECONDS_PER_DAY + i64::from(seconds)) * MICROS_PER_SECOND)
    }

    const SEVERAL: bool = true;

    #[inline(always)]
    fn several<L: Lanes>(&mut self, data: &[u8], spans: Spans<L>) -> Option<L> {
        let starts = spans.starts;
        let of = |word| starts.splat(word);
        if !spans.lengths().xor(of(19)).is_zero() {
            return None;
        }
        let dates = starts.plus(of(3)).load(data)?;
        let separators = dates.down(of(56));
        let known = separators.equal(of(u64::from(b' '))).or(separators.equal(of(u64::from(b'T'))));
        if known.signs().count_ones() as usize != L::COUNT {
            return None;
        }
        let days = self.month.days(starts.load(data)?, dates.down(of(40)))?;
        let seconds = lanes::times_of_day(starts.plus(of(11)).load(data)?)?;
        let first = i64::from(self.month.before) * SECONDS_PER_DAY * MICROS_PER_SECOND;
        let seconds = days.times(of(SECONDS_PER_DAY as u64)).plus(seconds);
        Some(seconds.times(of(MICROS_PER_SECOND as u64)).plus(of(first as u64)))
    }

    #[inline(always)]
    fn value(word: u64) -> i64 {
        word as i64
    }

    fn slow(&self, text: &[u8]) -> Result<i64, Reason> {
        timestamp(text).ok_or_else(|| Reason::NotTimestamp { found: found(text) })
    }
}

impl Parser for DateParser {
    type Value = i32;

    #[inline(always)]
    fn fast(&mut self, data: &[u8], start: usize, end: usize) -> Option<i32> {
        self.month.day(data[start..end].try_into().ok()?)
    }

    const SEVERAL: bool = true;

    #[inline(always)]
    fn several<L: Lanes>(&mut self, data: &[u8], spans: Spans<L>) -> Option<L> {
        let starts = spans.starts;
        let of = |word| starts.splat(word);
        if !spans.lengths().xor(of(10)).is_zero() {
            return None;
        }
        let days = starts.plus(of(2)).load(data)?.down(of(48));
        let days = self.month.days(starts.load(data)?, days)?;
        Some(days.plus(of(i64::from(self.month.before) as u64)))
    }

    #[inline(always)]
    fn value(word: u64) -> i32 {
        word as i32
    }

    fn slow(&self, text: &[u8]) -> Result<i32, Reason> {
        text.try_into()
            .ok()
            .and_then(|text| Month::default().day(text))
            .ok_or_else(|| Reason::NotDate { found: found(text) })
    }
}

fn timestamp(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_first_chunk::<10>()?;
    let midnight = i64::from(Month::default().day(date)?) * SECONDS_PER_DAY * MICROS_PER_SECOND;
    let [b' ' | b'T', rest @ ..] = rest else {
        return rest.is_empty().then_some(midnight);
    };
    let (time, rest) = rest.split_first_chunk::<8>()?;
    let seconds = i64::from(time_of_day(u64::from_le_bytes(*time))?);
    let rest = rest.strip_suffix(b"Z").unwrap_or(rest);
    let micros = match rest {
        [] => 0,
        [b'.', digits @ ..] if (1..=6).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) => {
            let digits = digits.iter().chain(std::iter::repeat(&b'0')).take(6);
            digits.fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0'))
        }
        _ => return None,
    };
    Some(midnight + seconds * MICROS_PER_SECOND + micros)
}

/// Seconds since midnight of `HH:MM:SS`, loaded with the first byte lowest.
#[inline(always)]
fn time_of_day(text: u64) -> Option<u32> {
    let digits = text ^ u64::from_le_bytes(*b"00:00:00");
    // A digit overflows into the top bit from 10 on, a colon's place from 1 on.
    let shape = (digits.wrapping_add(0x7676_7F76_767F_7676) | digits) & 0x8080_8080_8080_8080;
    // Bytes 0, 3 and 6 become the two-digit numbers; the checks above keep sums inside their bytes.
    let pairs = (digits.wrapping_mul(10).wrapping_add(digits >> 8)) & 0x00FF_0000_FF00_00FF;
    let range = pairs.wrapping_add(0x0044_0000_4400_0068) & 0x0080_0000_8000_0080;
    let (hours, minutes, seconds) = (pairs as u8, (pairs >> 24) as u8, (pairs >> 48) as u8);
    (shape | range == 0).then(|| u32::from(hours) * 3600 + u32::from(minutes) * 60 + u32::from(seconds))
}

/// The month that was read last: neighbouring records are mostly of one month.
#[derive(Default)]
struct Month {
    /// `YYYY-MM-`, or zero.
    text: u64,
    /// The day before its first, since 1970.
    before: i32,
    length: u8,
}

impl Month {
    /// Days since 1970 of `YYYY-MM-DD`.
    #[inline(always)]
    fn day(&mut self, text: &[u8; 10]) -> Option<i32> {
        let (month, [tens, ones]) = text.split_first_chunk::<8>()? else {
            return None;
        };
        let month = u64::from_le_bytes(*month);
        if month != self.text {
            *self = Month::read(month)?;
        }
        let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
        if tens > 9 || ones > 9 {
            return None;
        }
        let day = tens * 10 + ones;
        (day.wrapping_sub(1) < self.length).then(|| self.before + i32::from(day))
    }

    /// The days of several dates of this month, of which the first eight and the last two characters are given. None if one
    /// is of another month or does not exist.
    #[inline(always)]
    fn days<L: Lanes>(&self, months: L, days: L) -> Option<L> {
        if !months.xor(months.splat(self.text)).is_zero() {
            return None;
        }
        lanes::days_of_month(days, self.length)
    }

    #[cold]
    fn read(text: u64) -> Option<Month> {
        let digits = text ^ u64::from_le_bytes(*b"0000-00-");
        if (digits.wrapping_add(0x7F76_767F_7676_7676) | digits) & 0x8080_8080_8080_8080 != 0 {
            return None;
        }
        let [y1, y2, y3, y4, _, m1, m2, _] = digits.to_le_bytes();
        let year = [y1, y2, y3, y4].into_iter().fold(0, |year, digit| year * 10 + i32::from(digit));
        let month = m1 * 10 + m2;
        if year == 0 || !(1..=12).contains(&month) {
            return None;
        }
        Some(Month { text, before: days_before(year, month), length: length(year, month) })
    }
}

fn length(year: i32, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the day before the first of a month.
fn days_before(year: i32, month: u8) -> i32 {
    let years = year - 1;
    // 719162 days lie between 0001-01-01 and 1970-01-01.
    let before_year = years * 365 + years / 4 - years / 100 + years / 400 - 719_162;
    before_year + (1..month).map(|month| i32::from(length(year, month))).sum::<i32>() - 1
}

#[cfg(test)]
mod tests {
    use super::super::both_ways;
    use super::*;

    fn time(text: &str) -> Option<i64> {
        both_ways(&mut TimestampParser::default(), text).ok()
    }

    fn date(text: &str) -> Option<i32> {
        both_ways(&mut DateParser::default(), text).ok()
    }

    #[test]
    fn every_day_from_year_1_to_9999_is_one_more_than_the_day_before() {
        let mut expected = -719_162;
        let mut parser = DateParser::default();
        for year in 1..=9999 {
            for month in 1..=12 {
                for day in 1..=length(year, month) {
                    let text = format!("{year:04}-{month:02}-{day:02}");
                    assert_eq!(parser.fast(text.as_bytes(), 0, 10), Some(expected), "{text}");
                    expected += 1;
                }
            }
        }
        assert_eq!(expected - 1, 2_932_896, "9999-12-31");
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date("2024-02-29"), Some(19_782));
        assert_eq!(date("2000-02-29"), Some(11_016));
        for text in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "2024-01-32",
            "2024-04-31",
            "0000-01-01",
            "2024-1-01",
            "2024/01/01",
            "24-01-01",
            "2024-01-0x",
            "10000-01-01",
            "2024-01-01 ",
            "-024-01-01",
            "2024-01-:0",
        ] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn times_of_all_shapes() {
        let day = 19_782 * 86_400_000_000;
        assert_eq!(time("2024-02-29 00:00:00"), Some(day));
        assert_eq!(time("2024-02-29"), Some(day));
        assert_eq!(time("2024-02-29 23:59:59"), Some(day + 86_399_000_000));
        assert_eq!(time("2024-02-29T23:59:59"), Some(day + 86_399_000_000));
        assert_eq!(time("2024-02-29T01:02:03Z"), Some(day + 3_723_000_000));
        assert_eq!(time("2024-02-29 01:02:03.5"), Some(day + 3_723_500_000));
        assert_eq!(time("2024-02-29 01:02:03.000001Z"), Some(day + 3_723_000_001));
        assert_eq!(time("1969-12-31 23:59:59.999999"), Some(-1));
        assert_eq!(time("0001-01-01 00:00:00"), Some(-62_135_596_800_000_000));
        assert_eq!(time("9999-12-31 23:59:59.999999"), Some(253_402_300_799_999_999));
    }

    #[test]
    fn times_that_do_not_exist_are_refused() {
        for text in [
            "2023-02-29 00:00:00",
            "2024-01-01 24:00:00",
            "2024-01-01 23:60:00",
            "2024-01-01 23:59:60",
            "2024-01-01 1:00:00",
            "2024-01-01 00:00",
            "2024-01-01x00:00:00",
            "2024-01-01 00:00:00.",
            "2024-01-01 00:00:00.1234567",
            "2024-01-01 ",
            "2024-01-01T",
            "2024-01-01 00-00-00",
            "2024-01-01 00:00:0a",
            "2024-01-01Z",
            "2024-01-01 00:00:00z",
            "",
            "2024-01-01 00:00:00+01:00",
            "2024-01-01 0:000:00",
            "2024-01-01 \u{ff}0:00:00",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn every_second_of_a_day_is_read() {
        for second in 0..86_400u32 {
            let text = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
            let bytes: [u8; 8] = text.as_bytes().try_into().expect("eight characters");
            assert_eq!(time_of_day(u64::from_le_bytes(bytes)), Some(second));
        }
        for (place, byte) in (0..8).flat_map(|place| (0..=255u8).map(move |byte| (place, byte))) {
            let mut text = *b"00:00:00";
            text[place] = byte;
            let good = match place {
                2 | 5 => byte == b':',
                0 => (b'0'..=b'2').contains(&byte),
                3 | 6 => (b'0'..=b'5').contains(&byte),
                _ => byte.is_ascii_digit(),
            };
            assert_eq!(time_of_day(u64::from_le_bytes(text)).is_some(), good, "{text:?}");
        }
    }
}
