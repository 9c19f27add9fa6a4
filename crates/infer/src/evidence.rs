//! What the sampled values of a column say about its type.

use std::collections::BTreeSet;

use tenaz_csv::{Column, Kind};
use tenaz_engine::parse_kind;
use tenaz_source::{NumberForm, currency_writes_day_first, formula_text};

use crate::misfits::{MISFIT_SHARE, MISFITS_AMONG, Misfits};
use crate::nulls::NULLS;
use crate::spelling::Spellings;

/// A point between groups of digits.
const POINT_GROUPS: NumberForm = NumberForm { decimal: b',', group: Some(b'.') };

/// Digits that a decimal column has at least, and how many more than were seen: later records may hold larger numbers.
const MIN_PRECISION: usize = 15;
const HEADROOM_DIGITS: usize = 6;
const MAX_PRECISION: usize = 38;

/// Values of a column that are kept for a second look.
const ODD_VALUES: usize = 2_000;

/// Values that are no numbers and are kept to be shown.
const MISFITS_KEPT: usize = 8;

/// Longer values are no numbers, dates or truth values.
const MAX_VALUE_BYTES: usize = 64;

/// What the values seen so far have in common.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    values: u64,
    nulls: u64,
    spellings: BTreeSet<&'static str>,
    /// Each is true while all values are of the kind.
    bools: bool,
    dates: bool,
    times: bool,
    numbers: bool,
    seen: Seen,
    bool_kind: Kind,
    /// Unlike values that are no plain whole numbers, for a second look.
    odd: BTreeSet<Box<str>>,
    odd_seen: u64,
    /// One value can only be text.
    is_text: bool,
    /// What the values can be besides text, once there are too many to keep them all.
    spellings_left: Option<Spellings>,
    /// What the values that were not kept hold.
    not_kept: NotKept,
    /// How many values are plain numbers.
    plain_numbers: u64,
    /// Values that are not, the first few of them.
    no_numbers: Vec<Box<str>>,
    /// Numbers with a point, and those of them in which it may stand between groups of digits: `1.234`.
    points: u64,
    points_as_groups: u64,
    /// Such a number.
    grouped_example: Option<Box<str>>,
    /// Values such as `1E5`, which may be numbers or codes, and the first of them.
    exponent_codes: u64,
    exponent_example: Option<Box<str>>,
    /// A number such as -999, which may stand for a missing one, and whether others come near it.
    sentinel: Option<Box<str>>,
    has_low_numbers: bool,
    /// Values such as 20251231, and the first of them.
    compact_dates: u64,
    compact_date: Option<Box<str>>,
    /// The first text in a formula: `="00123"`.
    formula: Option<Box<str>>,
    /// Whether a currency was seen in whose countries the day comes before the month.
    day_first: Option<bool>,
}

/// Values that could not be kept, as each spelling that all of them allow reads them.
#[derive(Debug, Clone, Default)]
pub(crate) struct NotKept {
    numbers: Vec<(NumberForm, Seen)>,
    /// One is a date with a time.
    pub(crate) has_time: bool,
}

impl NotKept {
    fn add(&mut self, text: &str, left: &Spellings) {
        match left {
            Spellings::Numbers(forms) => {
                for form in forms {
                    let Some(plain) = form.plain(text) else { continue };
                    match self.numbers.iter_mut().find(|(known, _)| known == form) {
                        Some((_, seen)) => {
                            seen.add(&plain);
                        }
                        None => {
                            let mut seen = Seen::default();
                            seen.add(&plain);
                            self.numbers.push((*form, seen));
                        }
                    }
                }
            }
            Spellings::Dates(orders) => {
                self.has_time |= orders.iter().any(|order| order.plain(text).is_some_and(|plain| plain.len() > 10));
            }
            Spellings::Truths(_) => {}
        }
    }

    /// The numbers, read in this form.
    pub(crate) fn numbers(&self, form: NumberForm) -> Option<&Seen> {
        self.numbers.iter().find(|(known, _)| *known == form).map(|(_, seen)| seen)
    }
}

/// The numbers seen so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Digits before and behind the point, at most.
    whole: usize,
    scale: usize,
    /// Digits behind the point, at least.
    least_scale: Option<usize>,
    /// One does not fit 64 bits.
    large: bool,
    /// One has a point; one has a point and anything but a single zero behind it.
    point: bool,
    fraction: bool,
    exponent: bool,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            values: 0,
            nulls: 0,
            spellings: BTreeSet::new(),
            bools: true,
            dates: true,
            times: true,
            numbers: true,
            seen: Seen::default(),
            bool_kind: parse_kind("bool").expect("a type that every workload file may use"),
            odd: BTreeSet::new(),
            odd_seen: 0,
            is_text: false,
            spellings_left: None,
            not_kept: NotKept::default(),
            plain_numbers: 0,
            no_numbers: Vec::new(),
            points: 0,
            points_as_groups: 0,
            grouped_example: None,
            exponent_codes: 0,
            exponent_example: None,
            sentinel: None,
            has_low_numbers: false,
            compact_dates: 0,
            compact_date: None,
            formula: None,
            day_first: None,
        }
    }
}

impl Evidence {
    /// Takes a field, without quotes, into account.
    pub(crate) fn add(&mut self, field: &str) {
        let text = field.trim_matches(' ');
        if text.is_empty() {
            self.nulls += 1;
            return;
        }
        if let Some(spelling) = NULLS.iter().find(|spelling| **spelling == text) {
            self.nulls += 1;
            self.spellings.insert(spelling);
            return;
        }
        self.values += 1;
        let short = text.len() <= MAX_VALUE_BYTES;
        self.bools = self.bools && short && self.bool_kind.check(text).is_ok();
        self.dates = self.dates && short && Kind::Date.check(text).is_ok();
        self.times = self.times && short && Kind::Timestamp.check(text).is_ok();
        let is_number = short && self.seen.add(text);
        if short {
            self.look_closer(text, is_number);
        }
        self.numbers = self.numbers && is_number;
        self.plain_numbers += u64::from(is_number);
        if !is_number && self.no_numbers.len() < MISFITS_KEPT && !self.no_numbers.iter().any(|known| **known == *text) {
            self.no_numbers.push(text.into());
        }
        // Whole numbers are numbers in every spelling, but `007` is a code.
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
        self.is_text |= !short;
        if !is_whole {
            self.odd_seen += 1;
            self.keep(text);
        }
    }

    /// What else a short value shows.
    fn look_closer(&mut self, text: &str, is_number: bool) {
        if is_number && text.contains('.') {
            self.points += 1;
            if POINT_GROUPS.plain(text).is_some() {
                self.points_as_groups += 1;
                self.grouped_example.get_or_insert_with(|| text.into());
            }
        }
        if is_number && text.starts_with('-') {
            if is_sentinel(text) {
                self.sentinel.get_or_insert_with(|| text.into());
            } else {
                self.has_low_numbers |= text.parse::<f64>().is_ok_and(|number| number < LOW_NUMBER);
            }
        }
        if is_compact_date(text) {
            self.compact_dates += 1;
            self.compact_date.get_or_insert_with(|| text.into());
        }
        if is_exponent_code(text) {
            self.exponent_codes += 1;
            self.exponent_example.get_or_insert_with(|| text.into());
        }
        if formula_text(text).is_some() {
            self.formula.get_or_insert_with(|| text.into());
        }
        if !is_number && self.day_first.is_none() {
            self.day_first = currency_writes_day_first(text);
        }
    }

    /// A number in which the point may stand between groups of digits, if it may in all of them: `1.234`.
    pub(crate) fn points_between_groups(&self) -> Option<&str> {
        let is_open = self.numbers && self.points > 0 && self.points == self.points_as_groups;
        self.grouped_example.as_deref().filter(|_| is_open)
    }

    /// Whether the point certainly stands before decimals.
    pub(crate) fn proves_decimal_point(&self) -> bool {
        self.numbers && self.points > self.points_as_groups
    }

    /// `1E5`, if the column is text only because of such values.
    pub(crate) fn exponent_code(&self) -> Option<&str> {
        let is_all = self.plain_numbers + self.exponent_codes == self.values;
        self.exponent_example.as_deref().filter(|_| is_all)
    }

    /// A number that may stand for missing ones: weather stations and sensors write -999 where they have measured nothing.
    pub(crate) fn sentinel(&self) -> Option<&str> {
        self.sentinel.as_deref().filter(|_| !self.has_low_numbers && self.plain_numbers > 1)
    }

    /// A number that may be a date, if all are: 20251231.
    pub(crate) fn compact_date(&self) -> Option<&str> {
        let is_all = self.values == self.compact_dates && self.values >= COMPACT_DATES_AMONG;
        self.compact_date.as_deref().filter(|_| is_all)
    }

    /// `="00123"`.
    pub(crate) fn formula(&self) -> Option<&str> {
        self.formula.as_deref()
    }

    /// Whether a currency speaks for dates that begin with the day, or against them.
    pub(crate) fn day_first(&self) -> Option<bool> {
        self.day_first
    }

    /// The first values that were kept, whatever the column is.
    pub(crate) fn kept(&self) -> impl ExactSizeIterator<Item = &str> {
        self.odd.iter().map(|text| &**text)
    }

    /// Keeps a value for the second look. What does not fit any more is looked at right away, unless plain types still do.
    fn keep(&mut self, text: &str) {
        if self.is_text {
            return;
        }
        if self.odd.len() < ODD_VALUES {
            if !self.odd.contains(text) {
                self.odd.insert(text.into());
            }
            return;
        }
        if self.is_plainly_typed() {
            return;
        }
        let left = self.spellings_left.take().or_else(|| Spellings::of(self));
        self.spellings_left = left.and_then(|left| left.without_misfits(text));
        match &self.spellings_left {
            Some(left) => self.not_kept.add(text, left),
            None => self.is_text = true,
        }
    }

    /// What the values hold that are not among the odd ones.
    pub(crate) fn not_kept(&self) -> &NotKept {
        &self.not_kept
    }

    /// Why a column is text of which nearly all values are numbers.
    pub(crate) fn misfits(&self) -> Option<Misfits> {
        let count = self.values - self.plain_numbers;
        let few = count > 0 && self.plain_numbers >= MISFITS_AMONG && count * MISFIT_SHARE <= self.values;
        // Numbers that do not fit any type are no misfits.
        let kind = self.seen.kind(self.nulls > 0);
        (few && kind != Kind::Text).then(|| Misfits {
            count,
            of: self.values,
            examples: self.no_numbers.iter().take(3).map(|text| text.to_string()).collect(),
            kind: Some(kind),
            what: "number",
        })
    }

    /// Values that are worth a second look; none, if one of them can only be text.
    pub(crate) fn odd(&self) -> Vec<&str> {
        if self.is_text { Vec::new() } else { self.odd.iter().map(|text| &**text).collect() }
    }

    /// The spellings that all values allow, if there were too many to keep them.
    pub(crate) fn spellings_left(&self) -> Option<&Spellings> {
        self.spellings_left.as_ref()
    }

    /// The whole numbers among the values, which are numbers in every spelling.
    pub(crate) fn whole_numbers(&self) -> Seen {
        let least_scale = self.has_whole_numbers().then_some(0);
        Seen { whole: self.seen.whole, large: self.seen.large, least_scale, ..Seen::default() }
    }

    /// Whether plain numbers have unlike numbers of digits behind the point.
    pub(crate) fn has_unlike_scales(&self) -> bool {
        self.numbers && self.seen.has_unlike_scales()
    }

    /// Whether whole numbers are among the values, which are no dates and no words.
    pub(crate) fn has_whole_numbers(&self) -> bool {
        self.odd_seen < self.values
    }

    /// How many values there were.
    pub(crate) fn values(&self) -> u64 {
        self.values
    }

    /// The spellings of null that were seen.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.spellings.iter().copied()
    }

    /// Whether the values are something else than text, as they stand.
    pub(crate) fn is_plainly_typed(&self) -> bool {
        !matches!(self.kind(), Kind::Text)
    }

    /// Whether the values are something else than text, in any spelling.
    pub(crate) fn is_typed(&self) -> bool {
        !matches!(self.kind(), Kind::Text) || Spellings::of(self).is_some()
    }

    /// The column, with the narrowest type that takes every value seen.
    pub(crate) fn column(&self, name: String) -> Column {
        let kind = self.kind();
        let nulls = if matches!(kind, Kind::Text) { BTreeSet::new() } else { self.spellings.clone() };
        Column { name, kind, required: false, nulls: nulls.into_iter().map(str::to_owned).collect() }
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.values == 0 {
            Kind::Text
        } else if self.bools {
            self.bool_kind.clone()
        } else if self.dates {
            Kind::Date
        } else if self.times {
            Kind::Timestamp
        } else if self.numbers {
            self.seen.kind(self.nulls > 0)
        } else {
            Kind::Text
        }
    }
}

/// Numbers below this one are so low that -999 may be one of them.
const LOW_NUMBER: f64 = -150.0;

/// As many numbers that could be dates, and no others, are dates.
const COMPACT_DATES_AMONG: u64 = 3;

/// Whether a number consists of nines, and is far below zero: -999, -9999.0, -999.9.
fn is_sentinel(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let nines =
        whole.strip_prefix('-').is_some_and(|digits| digits.len() > 2 && digits.bytes().all(|digit| digit == b'9'));
    nines && (fraction.bytes().all(|digit| digit == b'9') || fraction.bytes().all(|digit| digit == b'0'))
}

/// Whether a text is a date of our times without marks: 20251231.
fn is_compact_date(text: &str) -> bool {
    let is_of_our_times = text.len() == 8 && (text.starts_with("19") || text.starts_with("20")) && text.is_ascii();
    is_of_our_times && Kind::Date.check(&format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..])).is_ok()
}

/// Whether a text is digits, an E and digits: a number or the code of an article. Programs that write numbers so write a point or
/// a sign, too: `1.0E5`, `1e+05`.
fn is_exponent_code(text: &str) -> bool {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(['e', 'E']).is_some_and(|(one, other)| all_digits(one) && all_digits(other))
}

impl Seen {
    /// Takes all numbers of another one into account.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.whole = self.whole.max(other.whole);
        self.scale = self.scale.max(other.scale);
        self.least_scale = self.least_scale.into_iter().chain(other.least_scale).min();
        self.large |= other.large;
        self.point |= other.point;
        self.fraction |= other.fraction;
        self.exponent |= other.exponent;
    }

    /// Takes a number into account; false: it is none. Numbers with leading zeros or a plus are codes (`007`, `+49…`), not numbers.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match digits.find(['e', 'E']) {
            Some(at) => (&digits[..at], Some(&digits[at + 1..])),
            None => (digits, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let behind = fraction.unwrap_or_default();
        let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let is_code = whole.len() > 1 && whole.starts_with('0');
        if !all_digits(whole) || !all_digits(behind) || whole.len() + behind.len() == 0 || is_code {
            return false;
        }
        if exponent.is_some() && (Kind::Float.check(text).is_err() || is_exponent_code(text)) {
            return false;
        }
        self.whole = self.whole.max(whole.len());
        self.scale = self.scale.max(behind.len());
        self.least_scale = Some(self.least_scale.map_or(behind.len(), |least| least.min(behind.len())));
        self.large |= whole.is_empty()
            || format!("{}{whole}", if text.starts_with('-') { "-" } else { "" }).parse::<i64>().is_err();
        self.point |= fraction.is_some();
        self.fraction |= fraction.is_some_and(|f| f != "0");
        self.exponent |= exponent.is_some();
        true
    }

    /// Whether numbers have unlike numbers of digits behind the point.
    pub(crate) fn has_unlike_scales(&self) -> bool {
        self.least_scale.is_some_and(|least| least < self.scale)
    }

    pub(crate) fn kind(&self, nulls: bool) -> Kind {
        if self.exponent {
            return Kind::Float;
        }
        if !self.large && !self.point {
            return Kind::Int { float_text: false };
        }
        // A whole column with gaps is what pandas writes as 29454.0; without gaps it would have had no reason to.
        if !self.large && !self.fraction && nulls {
            return Kind::Int { float_text: true };
        }
        let digits = self.whole + self.scale;
        if digits > MAX_PRECISION {
            return if self.point { Kind::Float } else { Kind::Text };
        }
        let precision = (digits + HEADROOM_DIGITS).clamp(MIN_PRECISION, MAX_PRECISION);
        Kind::Decimal { precision: precision as u8, scale: self.scale as i8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(values: &[&str]) -> String {
        let mut evidence = Evidence::default();
        values.iter().for_each(|value| evidence.add(value));
        match evidence.kind() {
            Kind::Int { float_text: true } => "int, float_text".to_owned(),
            kind => kind.to_string(),
        }
    }

    #[test]
    fn the_narrowest_type_is_taken() {
        for (values, expected) in [
            (&["1", "-2", "", " 3 "][..], "int"),
            (&["9223372036854775807", "-9223372036854775808"], "int"),
            (&["9223372036854775808"], "decimal(25,0)"),
            (&["1", "2.5"], "decimal(15,1)"),
            (&["79.515", "38.0"], "decimal(15,3)"),
            (&["123456789012.25"], "decimal(20,2)"),
            (&[".5", "5."], "decimal(15,1)"),
            (&["1", "1e+5"], "float"),
            (&["1", "1.0E5"], "float"),
            (&["1", "1e5"], "text"),
            (&["-5.5E-17", "0.25"], "float"),
            (&["1e999"], "text"),
            (&["2024-01-31", "1999-12-01"], "date"),
            (&["2024-02-30"], "text"),
            (&["2024-01-31", "2024-01-31 10:00:00"], "timestamp"),
            (&["2024-01-31T10:00:00.123Z"], "timestamp"),
            (&["True", "False", ""], "bool"),
            (&["true", "FALSE"], "bool"),
            (&["True", "1"], "text"),
            (&["a", "1"], "text"),
            (&["12:30"], "text"),
            (&["0x10"], "text"),
            (&["1 000"], "text"),
            (&["-"], "text"),
            (&["."], "text"),
            (&["inf"], "text"),
        ] {
            assert_eq!(kind(values), expected, "{values:?}");
        }
    }

    #[test]
    fn a_column_of_nulls_is_text() {
        assert_eq!(kind(&[]), "text");
        assert_eq!(kind(&["", " "]), "text");
        assert_eq!(kind(&["", "NULL"]), "text");
    }

    #[test]
    fn codes_stay_text() {
        assert_eq!(kind(&["007", "12"]), "text");
        assert_eq!(kind(&["01067", "50998"]), "text");
        assert_eq!(kind(&["+491701234567"]), "text");
        assert_eq!(kind(&["0", "10", "0.5"]), "decimal(15,1)");
    }

    #[test]
    fn whole_numbers_with_a_zero_fraction_are_whole_where_pandas_had_to_write_them_so() {
        assert_eq!(kind(&["29454.0", "", "5.0"]), "int, float_text");
        assert_eq!(kind(&["29454.0", "", "5"]), "int, float_text");
        assert_eq!(kind(&["29454.0", "5.0"]), "decimal(15,1)");
        assert_eq!(kind(&["29454.0", "", "5.5"]), "decimal(15,1)");
        assert_eq!(kind(&["75.00", "", "5.00"]), "decimal(15,2)");
    }

    #[test]
    fn numbers_beyond_38_digits_are_not_exact_any_more() {
        assert_eq!(kind(&[&"9".repeat(38)]), "decimal(38,0)");
        assert_eq!(kind(&[&"9".repeat(39)]), "text");
        assert_eq!(kind(&[&format!("0.{}", "1".repeat(38))]), "float");
    }

    #[test]
    fn one_bad_value_among_many_is_never_forgotten() {
        let mut evidence = Evidence::default();
        (0..5_000).for_each(|n| evidence.add(&format!("{n},5")));
        assert!(evidence.is_typed());
        evidence.add("amount");
        (5_000..10_000).for_each(|n| evidence.add(&format!("{n},5")));
        assert!(!evidence.is_typed());
    }

    #[test]
    fn a_column_that_is_text_because_of_a_few_values_knows_them() {
        let mut evidence = Evidence::default();
        (0..100).for_each(|n| evidence.add(&format!("{n}.5")));
        assert_eq!(evidence.misfits(), None);
        ["?", "unbekannt", "?"].iter().for_each(|value| evidence.add(value));
        let misfits = evidence.misfits().expect("three misfits");
        assert_eq!(
            (misfits.count, misfits.of, misfits.examples),
            (3, 103, vec!["?".to_owned(), "unbekannt".to_owned()])
        );
        assert_eq!(misfits.kind.map(|kind| kind.to_string()).as_deref(), Some("decimal(15,1)"));
        let mut codes = Evidence::default();
        (0..100).for_each(|n| codes.add(&format!("{n:03}")));
        assert_eq!(codes.misfits(), None, "codes are no numbers");
    }

    #[test]
    fn other_spellings_of_null_are_kept_with_typed_columns_only() {
        let mut numbers = Evidence::default();
        ["1", "NA", "", "NaN", "NA"].iter().for_each(|value| numbers.add(value));
        let column = numbers.column("n".to_owned());
        assert_eq!(column.nulls, ["NA", "NaN"]);
        assert_eq!(column.kind, Kind::Int { float_text: false });
        let mut texts = Evidence::default();
        ["de", "NA"].iter().for_each(|value| texts.add(value));
        let column = texts.column("country".to_owned());
        assert_eq!((column.kind, column.nulls), (Kind::Text, vec![]));
    }
}
