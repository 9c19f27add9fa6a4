//! Numbers and dates as people and programs write them, in the one spelling that `tenaz-csv` reads.
//!
//! A value that does not fit its form is left as it is: the decoder then rejects its record and shows the text of the file.

use crate::date_format::DateFormat;
use crate::zone::offset;

/// How the values of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// A number.
    Number(NumberForm),
    /// A date, or a date and a time.
    Date(DateOrder),
    /// A date, or a date and a time, in a format that the user has given.
    Format(DateFormat),
    /// A text that stands in a formula, so that Excel takes it for no number: `="00123"`.
    Formula,
}

/// The marks of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberForm {
    /// Before the fraction.
    pub decimal: u8,
    /// Between groups of three digits: `.`, `,`, `'` or a space (of any width).
    pub group: Option<u8>,
}

/// The order of day, month and year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateOrder {
    /// `31.12.2025`
    Dmy,
    /// `12/31/2025`
    Mdy,
    /// `2025/12/31`
    Ymd,
}

/// Digits of a second's fraction that are kept.
const MICROSECOND_DIGITS: usize = 6;

/// Signs of currencies, and the percent sign, that may stand before or behind a number.
const SIGNS: [&str; 38] = [
    "€", "R$", "US$", "CA$", "A$", "NZ$", "HK$", "$", "£", "¥", "₹", "₽", "₺", "₴", "₩", "₪", "%", "EUR", "USD", "GBP",
    "CHF", "JPY", "CNY", "INR", "AUD", "CAD", "BRL", "SEK", "NOK", "DKK", "PLN", "CZK", "Fr.", "kr.", "kr", "zł", "Kč",
    "Rs.",
];

const MONTHS: [&[&str]; 12] = [
    &["jan", "january", "januar", "jänner", "enero", "ene", "janvier", "janv", "gennaio", "gen", "janeiro"],
    &["feb", "february", "februar", "febrero", "février", "févr", "fév", "febbraio", "fevereiro", "fev"],
    &["mar", "march", "märz", "mär", "mrz", "marzo", "mars", "março"],
    &["apr", "april", "abril", "abr", "avril", "avr", "aprile"],
    &["may", "mai", "mayo", "maggio", "mag", "maio"],
    &["jun", "june", "juni", "junio", "juin", "giugno", "giu", "junho"],
    &["jul", "july", "juli", "julio", "juillet", "juil", "luglio", "lug", "julho"],
    &["aug", "august", "agosto", "ago", "août"],
    &["sep", "sept", "september", "septiembre", "septembre", "settembre", "set", "setembro"],
    &["oct", "october", "okt", "oktober", "octubre", "octobre", "ottobre", "ott", "outubro", "out"],
    &["nov", "november", "noviembre", "novembre", "novembro"],
    &["dec", "december", "dez", "dezember", "diciembre", "dic", "décembre", "déc", "dicembre", "dezembro"],
];

impl ValueForm {
    /// Appends the value in the spelling of `tenaz-csv`. False: it is none of this form, and nothing was appended.
    pub fn write(self, field: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(text) = std::str::from_utf8(field) else { return false };
        let written = match self {
            Self::Number(form) => form.plain(text),
            Self::Date(order) => order.plain(text),
            Self::Format(format) => format.plain(text),
            // A text may hold marks: the writer of records puts it into quotes.
            Self::Formula => None,
        };
        written.is_some_and(|text| {
            out.extend_from_slice(text.as_bytes());
            true
        })
    }
}

/// The text inside `="00123"`; none: the field is no such formula.
#[must_use]
pub fn formula_text(field: &str) -> Option<&str> {
    field.strip_prefix("=\"")?.strip_suffix('"').filter(|text| !text.contains('"'))
}

impl NumberForm {
    /// The number as `-1234.56`; none: it is no number of this form.
    #[must_use]
    pub fn plain(self, text: &str) -> Option<String> {
        let (text, negative) = signed(text)?;
        let (text, exponent) = match text.find(['E', 'e']) {
            Some(at) => (&text[..at], exponent(&text[at..])?),
            None => (text, ""),
        };
        let (whole, fraction) = match text.split_once(char::from(self.decimal)) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let whole = self.ungrouped(whole)?;
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(&whole) || !fraction.is_none_or(all_digits) || whole.len() + fraction.map_or(0, str::len) == 0 {
            return None;
        }
        let sign = if negative { "-" } else { "" };
        let whole = if whole.is_empty() { "0" } else { &whole };
        Some(match fraction {
            Some(fraction) if !fraction.is_empty() => format!("{sign}{whole}.{fraction}{exponent}"),
            _ => format!("{sign}{whole}{exponent}"),
        })
    }

    /// The digits without the marks between groups. Groups have three digits but for the first; in India only the last has, and
    /// the others have two: `1,23,456`.
    fn ungrouped(self, whole: &str) -> Option<String> {
        let Some(group) = self.group else { return Some(whole.to_owned()) };
        let is_mark = |c: char| match group {
            b' ' => matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}'),
            b'\'' => matches!(c, '\'' | '\u{2019}'),
            group => c == char::from(group),
        };
        let mut groups = whole.split(is_mark);
        let first = groups.next()?;
        let rest: Vec<&str> = groups.collect();
        if rest.is_empty() {
            return Some(first.to_owned());
        }
        let (last, middle) = rest.split_last()?;
        let in_threes = first.len() <= 3 && middle.iter().all(|group| group.len() == 3);
        let in_india = group == b',' && !middle.is_empty() && first.len() <= 2 && middle.iter().all(|g| g.len() == 2);
        // No number of several groups begins with a zero: `0,125` has a decimal comma.
        if first.is_empty() || first.starts_with('0') || last.len() != 3 || !(in_threes || in_india) {
            return None;
        }
        Some(first.to_owned() + &rest.concat())
    }
}

/// The exponent `E+12` or `e-7`, which has a sign: `1E5` may be the number of an article.
fn exponent(text: &str) -> Option<&str> {
    let digits = text[1..].strip_prefix(['+', '-'])?;
    let is_exponent = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_exponent.then_some(text)
}

/// The number without its signs, and whether it is negative: `-5`, `5-` (SAP), `(5)` (accountants).
fn signed(text: &str) -> Option<(&str, bool)> {
    let mut text = trimmed(text);
    let mut negative = false;
    if let Some(inside) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        (text, negative) = (inside, true);
    }
    text = without_signs(text);
    for minus in ['-', '\u{2212}'] {
        let inside = text.strip_prefix(minus).or_else(|| text.strip_suffix(minus));
        if let Some(inside) = inside.filter(|_| !negative) {
            (text, negative) = (without_signs(inside), true);
        }
    }
    if let Some(inside) = text.strip_prefix('+') {
        text = without_signs(inside);
    }
    (!text.is_empty()).then_some((text, negative))
}

fn without_signs(text: &str) -> &str {
    let text = trimmed(text);
    let stripped = SIGNS.iter().find_map(|sign| text.strip_prefix(sign).or_else(|| text.strip_suffix(sign)));
    stripped.map_or(text, trimmed)
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{a0}' || c == '\u{202f}')
}

/// Whether a number carries a sign of a currency or a percent sign.
#[must_use]
pub fn has_unit(text: &str) -> bool {
    let text = trimmed(text);
    SIGNS.iter().any(|sign| text.starts_with(sign) || text.ends_with(sign))
}

/// Whether a value has the sign of a currency whose countries write the day before the month, or that of one who do not;
/// none: it has no such sign.
#[must_use]
pub fn currency_writes_day_first(text: &str) -> Option<bool> {
    let has = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    if has(&["£", "€", "₹", "GBP", "EUR", "CHF", "AUD", "INR"]) {
        return Some(true);
    }
    has(&["$", "USD"]).then_some(false)
}

impl DateOrder {
    /// The date as `2025-12-31`, with its time if it has one; none: it is no date in this order. Times with an offset are moved
    /// to UTC.
    #[must_use]
    pub fn plain(self, text: &str) -> Option<String> {
        let text = trimmed(text);
        let (date, time) = split_time(text);
        let (year, month, day) = self.date(date)?;
        let Some(time) = time else { return Some(format!("{year:04}-{month:02}-{day:02}")) };
        let time = Time::parse(time)?;
        let (year, month, day, minutes) = shifted((year, month, day), time.minutes - time.offset_minutes);
        let (hour, minute) = (minutes / 60, minutes % 60);
        let fraction = if time.fraction.is_empty() { String::new() } else { format!(".{}", time.fraction) };
        Some(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}{fraction}", time.seconds))
    }

    fn date(self, text: &str) -> Option<(i64, u32, u32)> {
        let text = without_weekday(text);
        let parts: Vec<&str> =
            text.split(['/', '-', '.', ' ', ',']).map(str::trim).filter(|part| !part.is_empty()).collect();
        let [one, two, three] = parts[..] else { return None };
        // A month's name tells its place: "Dec 31, 2025" and "31-Dec-2025".
        let (day, month, year) = match (month_name(one), month_name(two)) {
            (Some(month), None) => (two, Some(month), three),
            (None, Some(month)) if one.len() == 4 => (three, Some(month), one),
            (None, Some(month)) => (one, Some(month), three),
            _ => match self {
                Self::Dmy => (one, number(two, 2), three),
                Self::Mdy => (two, number(one, 2), three),
                Self::Ymd => (three, number(two, 2), one),
            },
        };
        let (day, month, year) = (number(day, 2)?, month?, full_year(year)?);
        let last = days_of_month(year, month)?;
        (1..=last).contains(&day).then_some((year, month, day))
    }
}

pub(crate) fn number(text: &str, digits: usize) -> Option<u32> {
    let is_number = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Two digits are a year from 1969 to 2068.
pub(crate) fn full_year(text: &str) -> Option<i64> {
    let year = i64::from(number(text, 4)?);
    match text.len() {
        2 if year < 69 => Some(2000 + year),
        2 => Some(1900 + year),
        4 if year > 0 => Some(year),
        _ => None,
    }
}

pub(crate) fn month_name(text: &str) -> Option<u32> {
    let text = text.trim_end_matches('.').to_lowercase();
    MONTHS.iter().position(|names| names.contains(&text.as_str())).map(|month| month as u32 + 1)
}

fn without_weekday(text: &str) -> &str {
    match text.split_once(',') {
        Some((day, rest)) if day.chars().all(char::is_alphabetic) && month_name(day).is_none() => rest.trim(),
        _ => text,
    }
}

pub(crate) fn days_of_month(year: i64, month: u32) -> Option<u32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    Some(match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    })
}

/// The date and the time behind it, if there is one.
fn split_time(text: &str) -> (&str, Option<&str>) {
    let Some(colon) = text.find(':') else { return split_dotted_time(text) };
    let begin = text[..colon].rfind([' ', 'T']).or_else(|| text[..colon].rfind(','));
    match begin {
        Some(begin) => (text[..begin].trim_end_matches([',', ' ']), Some(text[begin + 1..].trim())),
        None => (text, None),
    }
}

/// The date and the time of Oracle, `31-MAR-25 10.15.00.000000 AM`, in which points stand for colons.
fn split_dotted_time(text: &str) -> (&str, Option<&str>) {
    match text.split_once(' ') {
        Some((date, time)) if date.contains('-') && is_dotted_time(time) => (date, Some(time)),
        _ => (text, None),
    }
}

fn is_dotted_time(text: &str) -> bool {
    let mut parts = text.split(['.', ' ']);
    let two_digits = |part: Option<&str>| part.is_some_and(|part| number(part, 2).is_some() && part.len() == 2);
    two_digits(parts.next()) && two_digits(parts.next()) && two_digits(parts.next())
}

/// Whether a date and time has digits of a second beyond microseconds that are not zero.
#[must_use]
pub fn has_nanoseconds(text: &str) -> bool {
    let fraction = text.rsplit_once(['.', ',']).filter(|(time, _)| time.contains(':')).map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit);
    digits.skip(MICROSECOND_DIGITS).any(|digit| digit != b'0')
}

/// Whether the time behind a date has a zone that is not UTC.
#[must_use]
pub fn has_zone(text: &str) -> bool {
    split_time(trimmed(text)).1.and_then(offset).is_some_and(|(_, minutes)| minutes != 0)
}

/// A time of day.
struct Time {
    minutes: i64,
    seconds: u32,
    fraction: String,
    offset_minutes: i64,
}

impl Time {
    fn parse(text: &str) -> Option<Self> {
        let (text, offset_minutes) = offset(text)?;
        let lower = text.to_lowercase();
        let half = ["am", "pm", "a.m.", "p.m."].iter().find(|half| lower.ends_with(*half));
        let text = half.map_or(text, |half| text[..text.len() - half.len()].trim_end());
        let colons = if is_dotted_time(text) { text.replacen('.', ":", 2) } else { text.to_owned() };
        let mut parts = colons.split(':');
        let mut hour = number(parts.next()?, 2)?;
        let minute = number(parts.next()?, 2).filter(|minute| *minute < 60)?;
        let (seconds, fraction) = match parts.next() {
            None => (0, ""),
            Some(seconds) => {
                let (seconds, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, ""));
                (number(seconds, 2).filter(|seconds| *seconds < 60)?, fraction)
            }
        };
        if parts.next().is_some() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        if let Some(half) = half {
            if !(1..=12).contains(&hour) {
                return None;
            }
            hour = hour % 12 + if half.starts_with('p') { 12 } else { 0 };
        }
        // The reader knows six digits; more are dropped (tenaz-infer says so).
        let fraction = fraction[..fraction.len().min(MICROSECOND_DIGITS)].trim_end_matches('0').to_owned();
        (hour < 24).then_some(Self { minutes: i64::from(hour * 60 + minute), seconds, fraction, offset_minutes })
    }
}

/// A date and minutes that may lie before or behind its day.
pub(crate) fn shifted((year, month, day): (i64, u32, u32), minutes: i64) -> (i64, u32, u32, i64) {
    let (days, minutes) = (minutes.div_euclid(24 * 60), minutes.rem_euclid(24 * 60));
    let (mut year, mut month, mut day) = (year, month, i64::from(day) + days);
    if day < 1 {
        (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
        day += i64::from(days_of_month(year, month).unwrap_or(31));
    }
    let last = i64::from(days_of_month(year, month).unwrap_or(31));
    if day > last {
        day -= last;
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    (year, month, day as u32, minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_countries_have_one_spelling() {
        let form = |decimal, group| NumberForm { decimal, group };
        for (decimal, group, text, plain) in [
            (b',', Some(b'.'), "1.234,56", Some("1234.56")),
            (b',', Some(b'.'), "-1.234.567,5 €", Some("-1234567.5")),
            (b',', Some(b'.'), "0,5", Some("0.5")),
            (b',', Some(b'.'), "12", Some("12")),
            (b',', Some(b'.'), "1.23", None),
            (b',', Some(b'.'), "1234.567,0", None),
            (b'.', Some(b','), "$1,234.50", Some("1234.50")),
            (b'.', Some(b','), "(1,234.50)", Some("-1234.50")),
            (b'.', Some(b','), "1,23", None),
            (b'.', Some(b','), "12.5%", Some("12.5")),
            (b',', Some(b' '), "1\u{202f}234\u{a0}567,8", Some("1234567.8")),
            (b'.', Some(b'\''), "CHF 1'234.50", Some("1234.50")),
            (b',', None, "123,45-", Some("-123.45")),
            (b'.', Some(b','), "-", None),
            (b'.', Some(b','), "", None),
            (b'.', Some(b','), "1.2.3", None),
            (b'.', Some(b','), "abc", None),
            (b'.', Some(b','), "1,23,456.00", Some("123456.00")),
            (b'.', Some(b','), "₹12,34,56,789", Some("123456789")),
            (b'.', Some(b','), "123,45,678", None),
            (b'.', Some(b','), "0,125", None),
            (b',', Some(b'.'), "R$ 1.234,56", Some("1234.56")),
            (b',', Some(b' '), "\u{2212} 12,00 kr", Some("-12.00")),
            (b',', Some(b'.'), "1,5E+10", Some("1.5E+10")),
            (b',', Some(b'.'), "1E5", None),
        ] {
            assert_eq!(form(decimal, group).plain(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn dates_of_all_orders_have_one_spelling() {
        use DateOrder::{Dmy, Mdy, Ymd};
        for (order, text, plain) in [
            (Dmy, "31/12/2025", Some("2025-12-31")),
            (Dmy, "31.12.25", Some("2025-12-31")),
            (Dmy, "1.2.1970", Some("1970-02-01")),
            (Mdy, "12/31/25", Some("2025-12-31")),
            (Mdy, "31/12/2025", None),
            (Ymd, "2025/12/31", Some("2025-12-31")),
            (Dmy, "31-Dez-2025", Some("2025-12-31")),
            (Dmy, "3. März 2025", Some("2025-03-03")),
            (Mdy, "Oct 21, 2008", Some("2008-10-21")),
            (Dmy, "29.02.2025", None),
            (Dmy, "29.02.2024", Some("2024-02-29")),
            (Dmy, "31.12.2025 23:30", Some("2025-12-31 23:30:00")),
            (Mdy, "12/31/2025 11:30:15 PM", Some("2025-12-31 23:30:15")),
            (Mdy, "12/31/2025 12:05 AM", Some("2025-12-31 00:05:00")),
            (Dmy, "31.12.2025, 08:00:00,250", Some("2025-12-31 08:00:00.25")),
            (Ymd, "2025-12-31T23:30:00+02:00", Some("2025-12-31 21:30:00")),
            (Ymd, "2025-12-31T23:30:00.123-0500", Some("2026-01-01 04:30:00.123")),
            (Dmy, "31.12.2025 24:00", None),
            (Dmy, "31-MAR-25 10.15.00.000000000 AM", Some("2025-03-31 10:15:00")),
            (Dmy, "01-APR-25 01.05.30.500000 PM", Some("2025-04-01 13:05:30.5")),
            (Dmy, "28/02/2008,0:10:00", Some("2008-02-28 00:10:00")),
            (Dmy, "12", None),
            (Dmy, "1.2.3.4", None),
        ] {
            assert_eq!(order.plain(text).as_deref(), plain, "{order:?} {text}");
        }
    }
}
