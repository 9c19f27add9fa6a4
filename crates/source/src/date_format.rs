//! Dates in a format that the user gives: `%d.%m.%Y %H:%M`, in the letters of `strftime`.

use crate::value::{days_of_month, full_year, month_name, number, shifted};
use crate::zone::offset;

/// The longest format.
const MAX_BYTES: usize = 40;

/// What a `%` may stand before.
const LETTERS: &[u8] = b"YymdeBbHIMSfpzZs%";

/// A format of dates, or of dates with times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateFormat {
    bytes: [u8; MAX_BYTES],
    len: usize,
}

impl DateFormat {
    /// The format that `text` writes: `%Y %y %m %d %e %b %B %H %I %M %S %f %p %z %Z`, or `%s` for seconds since 1970.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut format = Self { bytes: [0; MAX_BYTES], len: text.len() };
        if text.len() > MAX_BYTES || !text.is_ascii() {
            return Err(format!("a format has at most {MAX_BYTES} plain characters"));
        }
        format.bytes[..text.len()].copy_from_slice(text.as_bytes());
        let letters: Vec<u8> = format.letters().collect();
        if let Some(wrong) = letters.iter().find(|letter| !LETTERS.contains(letter)) {
            return Err(format!("there is no %{}; write %Y %m %d %b %H %M %S %f %p %z or %s", char::from(*wrong)));
        }
        let has = |any: &[u8]| letters.iter().any(|letter| any.contains(letter));
        let is_day = has(b"Yy") && has(b"mbB") && has(b"de");
        if !is_day && !has(b"s") {
            return Err("a date needs a year (%Y), a month (%m) and a day (%d)".to_owned());
        }
        Ok(format)
    }

    /// The format as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Whether it has a time of day.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.letters().any(|letter| b"HIs".contains(&letter))
    }

    fn letters(&self) -> impl Iterator<Item = u8> + '_ {
        let mut rest = &self.bytes[..self.len];
        std::iter::from_fn(move || {
            let at = memchr::memchr(b'%', rest)?;
            // A format that ends with % has a letter too few.
            let letter = rest.get(at + 1).copied().unwrap_or(b' ');
            rest = rest.get(at + 2..).unwrap_or_default();
            Some(letter)
        })
    }

    /// The date as `2025-12-31`, with its time if the format has one; none: it is not in this format.
    #[must_use]
    pub fn plain(&self, text: &str) -> Option<String> {
        let mut seen = Seen { rest: text.trim(), ..Seen::default() };
        let mut format = self.bytes[..self.len].iter();
        while let Some(&byte) = format.next() {
            match byte {
                b'%' => seen.take(*format.next()?)?,
                byte => seen.rest = seen.rest.strip_prefix(char::from(byte))?,
            }
        }
        if !seen.rest.is_empty() {
            return None;
        }
        seen.written(self.has_time())
    }
}

/// What was read of a value.
#[derive(Default)]
struct Seen<'a> {
    rest: &'a str,
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    fraction: &'a str,
    afternoon: Option<bool>,
    offset_minutes: i64,
    epoch: Option<i64>,
}

impl<'a> Seen<'a> {
    fn take(&mut self, letter: u8) -> Option<()> {
        match letter {
            b'Y' => self.year = full_year(self.digits(4)?).filter(|year| *year > 99)?,
            b'y' => self.year = full_year(self.digits(2)?)?,
            b'm' => self.month = self.number(2)?,
            b'b' | b'B' => {
                let end = self.rest.find(|c: char| !c.is_alphabetic()).unwrap_or(self.rest.len());
                self.month = month_name(&self.rest[..end])?;
                self.rest = self.rest[end..].strip_prefix('.').unwrap_or(&self.rest[end..]);
            }
            b'd' | b'e' => {
                self.rest = self.rest.trim_start();
                self.day = self.number(2)?;
            }
            b'H' => self.hour = self.number(2).filter(|hour| *hour < 24)?,
            b'I' => self.hour = self.number(2).filter(|hour| (1..=12).contains(hour))? % 12,
            b'M' => self.minute = self.number(2).filter(|minute| *minute < 60)?,
            b'S' => self.second = self.number(2).filter(|second| *second < 60)?,
            b'f' => self.fraction = self.digits(9)?,
            b'p' => {
                let (half, rest) = self.rest.split_at_checked(2)?;
                self.afternoon = Some(half.eq_ignore_ascii_case("pm"));
                if !half.eq_ignore_ascii_case("am") && !half.eq_ignore_ascii_case("pm") {
                    return None;
                }
                self.rest = rest;
            }
            b'z' | b'Z' => {
                (_, self.offset_minutes) = offset(self.rest).filter(|(before, _)| before.is_empty())?;
                self.rest = "";
            }
            b's' => self.epoch = Some(self.digits(12)?.parse().ok()?),
            b'%' => self.rest = self.rest.strip_prefix('%')?,
            _ => return None,
        }
        Some(())
    }

    /// The digits at the front, at most so many.
    fn digits(&mut self, most: usize) -> Option<&'a str> {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        (count > 0).then_some(digits)
    }

    fn number(&mut self, most: usize) -> Option<u32> {
        number(self.digits(most)?, most)
    }

    fn written(mut self, has_time: bool) -> Option<String> {
        if let Some(epoch) = self.epoch {
            (self.year, self.month, self.day) = civil(epoch.div_euclid(86_400));
            let second = epoch.rem_euclid(86_400) as u32;
            (self.hour, self.minute, self.second) = (second / 3600, second / 60 % 60, second % 60);
        }
        if !(1..=days_of_month(self.year, self.month)?).contains(&self.day) {
            return None;
        }
        if !has_time {
            return Some(format!("{:04}-{:02}-{:02}", self.year, self.month, self.day));
        }
        let hour = self.hour + if self.afternoon == Some(true) && self.hour < 12 { 12 } else { 0 };
        let minutes = i64::from(hour * 60 + self.minute) - self.offset_minutes;
        let (year, month, day, minutes) = shifted((self.year, self.month, self.day), minutes);
        let fraction = self.fraction[..self.fraction.len().min(6)].trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        let (hour, minute, second) = (minutes / 60, minutes % 60, self.second);
        Some(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{point}{fraction}"))
    }
}

/// The date of a day counted from 1970-01-01 (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_the_format_says_and_not_otherwise() {
        for (format, text, plain) in [
            ("%d.%m.%Y", "31.12.2025", Some("2025-12-31")),
            ("%d.%m.%Y", "31/12/2025", None),
            ("%d.%m.%Y", "31.12.2025 x", None),
            ("%d.%m.%Y", "31.02.2025", None),
            ("%Y%m%d", "20251231", Some("2025-12-31")),
            ("%Y%m%d", "2025123", Some("2025-12-03")),
            ("%d-%b-%y", "31-Dez-25", Some("2025-12-31")),
            ("%Y-%m-%d %H:%M:%S.%f", "2025-12-31 23:59:58.1200", Some("2025-12-31 23:59:58.12")),
            ("%m/%d/%Y %I:%M %p", "12/31/2025 12:05 AM", Some("2025-12-31 00:05:00")),
            ("%m/%d/%Y %I:%M %p", "12/31/2025 1:05 pm", Some("2025-12-31 13:05:00")),
            ("%Y-%m-%dT%H:%M%z", "2025-12-31T23:30+02:00", Some("2025-12-31 21:30:00")),
            ("%s", "1735689599", Some("2024-12-31 23:59:59")),
            ("%s", "0", Some("1970-01-01 00:00:00")),
        ] {
            let read = DateFormat::parse(format).expect("a format").plain(text);
            assert_eq!(read.as_deref(), plain, "{format} {text}");
        }
    }

    #[test]
    fn what_is_no_format_says_why() {
        assert!(DateFormat::parse("%d.%q.%Y").expect_err("no format").starts_with("there is no %q"));
        assert!(DateFormat::parse("%d.%m").expect_err("no format").contains("needs a year"));
        assert!(DateFormat::parse("%Y-%m-%d %").is_err());
        assert_eq!(DateFormat::parse("%d.%m.%Y").expect("a format").text(), "%d.%m.%Y");
        assert!(!DateFormat::parse("%Y%m%d").expect("a format").has_time());
    }
}
