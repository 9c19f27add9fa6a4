//! A second look at columns that would be text: numbers, dates and truth values in the spelling of a country.

use tenaz_csv::Kind;
use tenaz_source::{DateOrder, NumberForm, ValueForm, has_nanoseconds, has_unit, has_zone};

use crate::evidence::{Evidence, Seen};

/// The ways to write a number that are tried, the likeliest first.
pub(crate) const NUMBERS: [NumberForm; 6] = [
    NumberForm { decimal: b'.', group: Some(b',') },
    NumberForm { decimal: b',', group: Some(b'.') },
    NumberForm { decimal: b',', group: Some(b' ') },
    NumberForm { decimal: b'.', group: Some(b'\'') },
    NumberForm { decimal: b'.', group: Some(b' ') },
    NumberForm { decimal: b',', group: None },
];

pub(crate) const ORDERS: [DateOrder; 3] = [DateOrder::Dmy, DateOrder::Mdy, DateOrder::Ymd];

/// Pairs of words for true and false.
const TRUTHS: [(&str, &str); 26] = [
    ("yes", "no"),
    ("t", "f"),
    ("y", "n"),
    ("ja", "nein"),
    ("j", "n"),
    ("si", "no"),
    ("sí", "no"),
    ("oui", "non"),
    ("wahr", "falsch"),
    ("on", "off"),
    ("sì", "no"),
    ("vrai", "faux"),
    ("vero", "falso"),
    ("verdadero", "falso"),
    ("verdadeiro", "falso"),
    ("sim", "não"),
    ("sim", "nao"),
    ("tak", "nie"),
    ("ano", "ne"),
    ("áno", "nie"),
    ("igen", "nem"),
    ("da", "nu"),
    ("да", "нет"),
    ("evet", "hayır"),
    ("kyllä", "ei"),
    ("是", "否"),
];

/// All spellings by which every value of a column is something else than text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spellings {
    /// Numbers, in one of these forms.
    Numbers(Vec<NumberForm>),
    /// Dates, in one of these orders.
    Dates(Vec<DateOrder>),
    /// Truth values, with these spellings.
    Truths(Kind),
}

/// What decides between spellings that a column alone leaves open.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hints {
    pub(crate) decimal_comma: Option<bool>,
    pub(crate) date_order: Option<DateOrder>,
    /// Neither was said nor seen elsewhere: a semicolon between fields speaks for a country with decimal commas.
    pub(crate) semicolons: bool,
    /// A currency speaks for dates that begin with the day.
    pub(crate) day_first: bool,
}

/// How a column is written, in the end.
pub(crate) struct Chosen {
    pub(crate) kind: Kind,
    pub(crate) form: Option<ValueForm>,
    /// Numbers have unlike numbers of digits behind the point.
    pub(crate) unlike_scales: bool,
    /// What was chosen although the values allow another reading, with the option that overrules it; and what is lost.
    pub(crate) said: Vec<String>,
}

impl Spellings {
    /// The spellings of a column that is text in the plain ones.
    pub(crate) fn of(evidence: &Evidence) -> Option<Self> {
        if let Some(left) = evidence.spellings_left() {
            return Some(left.clone());
        }
        let odd = evidence.odd();
        if odd.is_empty() || evidence.values() == 0 {
            return None;
        }
        if let Some(kind) = truths(&odd).filter(|_| !evidence.has_whole_numbers()) {
            return Some(Self::Truths(kind));
        }
        let numbers: Vec<NumberForm> =
            NUMBERS.into_iter().filter(|form| odd.iter().all(|text| is_number(*form, text))).collect();
        if !numbers.is_empty() {
            return Some(Self::Numbers(numbers));
        }
        if evidence.has_whole_numbers() {
            return None;
        }
        let dates: Vec<DateOrder> =
            ORDERS.into_iter().filter(|order| odd.iter().all(|text| order.plain(text).is_some())).collect();
        // `31.01.25` is hardly a day of 2031: a year of two digits comes first only if nothing else fits.
        let dates =
            if dates.len() > 1 { dates.into_iter().filter(|order| *order != DateOrder::Ymd).collect() } else { dates };
        (!dates.is_empty()).then_some(Self::Dates(dates))
    }

    /// The spellings that allow this value, too; none: it is text.
    pub(crate) fn without_misfits(self, text: &str) -> Option<Self> {
        match self {
            Self::Numbers(mut forms) => {
                forms.retain(|form| is_number(*form, text));
                (!forms.is_empty()).then_some(Self::Numbers(forms))
            }
            Self::Dates(mut orders) => {
                orders.retain(|order| order.plain(text).is_some());
                (!orders.is_empty()).then_some(Self::Dates(orders))
            }
            Self::Truths(kind) => kind.check(text).is_ok().then_some(Self::Truths(kind)),
        }
    }

    /// Whether numbers certainly have a decimal comma, or certainly not.
    pub(crate) fn decimal_comma(&self) -> Option<bool> {
        let Self::Numbers(forms) = self else { return None };
        let comma = |form: &NumberForm| form.decimal == b',';
        match (forms.iter().any(comma), forms.iter().all(comma)) {
            (true, true) => Some(true),
            (false, _) => Some(false),
            _ => None,
        }
    }

    /// The order of dates, if there is only one.
    pub(crate) fn date_order(&self) -> Option<DateOrder> {
        match self {
            Self::Dates(orders) if orders.len() == 1 => orders.first().copied(),
            _ => None,
        }
    }

    /// The spelling, and the type with which every value that was seen fits.
    pub(crate) fn choose(&self, column: &str, evidence: &Evidence, hints: Hints) -> Chosen {
        match self {
            Self::Truths(kind) => Chosen { kind: kind.clone(), form: None, unlike_scales: false, said: Vec::new() },
            Self::Numbers(forms) => choose_number(column, forms, evidence, hints),
            Self::Dates(orders) => choose_date(column, orders, evidence, hints),
        }
    }
}

fn truths(odd: &[&str]) -> Option<Kind> {
    let mut words: Vec<&str> = odd.iter().map(|word| word.trim()).collect();
    words.sort_unstable();
    words.dedup();
    let (yes, no) = TRUTHS.iter().find(|(yes, no)| {
        words.iter().all(|word| same(word, yes) || same(word, no))
            && words.iter().any(|word| same(word, yes))
            // A letter alone may be a code.
            && (yes.len() > 1 || words.iter().any(|word| same(word, no)))
    })?;
    let all = |meaning: &str| -> Vec<String> {
        let lower = meaning.to_owned();
        let title = lower.chars().next().map(|first| first.to_uppercase().chain(lower.chars().skip(1)).collect());
        let mut all: Vec<String> =
            [Some(lower.clone()), title, Some(lower.to_uppercase())].into_iter().flatten().collect();
        all.dedup();
        all
    };
    Some(Kind::Bool { yes: all(yes), no: all(no) })
}

fn same(word: &str, meaning: &str) -> bool {
    word.to_lowercase() == meaning
}

/// Whether the text is a number in this form, and no code such as `007`.
fn is_number(form: NumberForm, text: &str) -> bool {
    form.plain(text).is_some_and(|plain| Seen::default().add(&plain))
}

fn choose_number(column: &str, forms: &[NumberForm], evidence: &Evidence, hints: Hints) -> Chosen {
    let of = |comma: bool| forms.iter().copied().find(|form| (form.decimal == b',') == comma);
    let comma = hints.decimal_comma.unwrap_or(hints.semicolons);
    let form = of(comma).or(of(!comma)).unwrap_or(forms[0]);
    let mut seen = evidence.whole_numbers();
    for text in evidence.odd() {
        if let Some(plain) = form.plain(text) {
            seen.add(&plain);
        }
    }
    if let Some(others) = evidence.not_kept().numbers(form) {
        seen.extend(others);
    }
    let is_open = of(true).is_some() && of(false).is_some() && hints.decimal_comma.is_none();
    let example = evidence
        .odd()
        .into_iter()
        .find(|text| of(true).and_then(|f| f.plain(text)) != of(false).and_then(|f| f.plain(text)));
    let said = example.filter(|_| is_open).map(|text| {
        let plain = form.plain(text).unwrap_or_default();
        let other = if form.decimal == b',' { "no" } else { "yes" };
        format!("{column}: {text} is read as {plain} (--decimal-comma {other} reads it the other way)")
    });
    let units = units(&evidence.odd());
    let said = said.into_iter().chain((units.len() > 1).then(|| {
        format!(
            "{column}: numbers have unlike units ({}), which are dropped (--types {column}=text keeps them)",
            units.join(", ")
        )
    }));
    let percent = evidence.odd().into_iter().find(|text| text.contains('%')).filter(|_| units.len() == 1);
    let said = said.chain(percent.map(|text| {
        let plain = form.plain(text).unwrap_or_default();
        format!("{column}: the percent sign is dropped: {text} is {plain} (--types {column}=text keeps it)")
    }));
    match seen.kind(false) {
        // More digits than a number can have.
        Kind::Text => Chosen { kind: Kind::Text, form: None, unlike_scales: false, said: Vec::new() },
        kind => Chosen {
            kind: widened(kind),
            form: Some(ValueForm::Number(form)),
            unlike_scales: seen.has_unlike_scales(),
            said: said.collect(),
        },
    }
}

/// The unlike signs of currencies and percent signs at these numbers, and that some have none.
fn units(numbers: &[&str]) -> Vec<String> {
    let unit = |text: &&str| -> String {
        text.chars().filter(|c| c.is_alphabetic() || matches!(c, '€' | '$' | '£' | '¥' | '₹' | '₽' | '%')).collect()
    };
    let mut units: Vec<String> = numbers.iter().filter(|text| has_unit(text)).map(unit).collect();
    units.sort_unstable();
    units.dedup();
    units
}

/// Room for numbers that the sample did not show.
fn widened(kind: Kind) -> Kind {
    match kind {
        Kind::Decimal { precision, scale } => Kind::Decimal { precision: precision.max(18), scale },
        kind => kind,
    }
}

fn choose_date(column: &str, orders: &[DateOrder], evidence: &Evidence, hints: Hints) -> Chosen {
    let allowed = |order: DateOrder| orders.contains(&order).then_some(order);
    let by_country = if hints.semicolons || hints.day_first || hints.decimal_comma == Some(true) {
        DateOrder::Dmy
    } else {
        DateOrder::Mdy
    };
    let dotted = evidence.odd().iter().any(|text| text.contains('.') && !text.contains('/'));
    let usual = if dotted { DateOrder::Dmy } else { by_country };
    let order = hints.date_order.and_then(allowed).or_else(|| allowed(usual)).unwrap_or(orders[0]);
    let has_time = evidence.not_kept().has_time
        || evidence.odd().iter().any(|text| order.plain(text).is_some_and(|plain| plain.len() > 10));
    let kind = if has_time { Kind::Timestamp } else { Kind::Date };
    let is_open = orders.len() > 1 && hints.date_order.is_none();
    let differs = |text: &str| orders.iter().any(|other| other.plain(text) != order.plain(text));
    let example = evidence.odd().into_iter().find(|text| differs(text)).filter(|_| is_open);
    let said = example.map(|text| {
        let plain = order.plain(text).unwrap_or_default();
        let other = if order == DateOrder::Mdy { "dmy" } else { "mdy" };
        format!("{column}: {text} is read as {plain} (--date-order {other} reads it the other way)")
    });
    let mut said: Vec<String> = said.into_iter().collect();
    let odd = evidence.odd();
    if let Some(text) = odd.iter().find(|text| has_zone(text)) {
        let plain = order.plain(text).unwrap_or_default();
        said.push(format!(
            "{column}: times have a zone and are read in UTC: {text} is {plain} (--types {column}=text keeps them)"
        ));
    }
    if let Some(text) = odd.iter().find(|text| has_nanoseconds(text)) {
        said.push(format!(
            "{column}: digits beyond microseconds are dropped, as in {text} (--types {column}=text keeps them)"
        ));
    }
    Chosen { kind, form: Some(ValueForm::Date(order)), unlike_scales: false, said }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(values: &[&str], hints: Hints) -> Option<(String, Option<ValueForm>, bool)> {
        let mut evidence = Evidence::default();
        values.iter().for_each(|value| evidence.add(value));
        let chosen = Spellings::of(&evidence)?.choose("c", &evidence, hints);
        Some((chosen.kind.to_string(), chosen.form, !chosen.said.is_empty()))
    }

    #[test]
    fn numbers_are_read_by_the_marks_that_all_values_allow() {
        let comma = |group| Some(ValueForm::Number(NumberForm { decimal: b',', group }));
        let point = Some(ValueForm::Number(NumberForm { decimal: b'.', group: Some(b',') }));
        let none = Hints::default();
        assert_eq!(chosen(&["1.234,56", "7", "0,5"], none), Some(("decimal(18,2)".into(), comma(Some(b'.')), false)));
        assert_eq!(chosen(&["$1,234.56", "7"], none), Some(("decimal(18,2)".into(), point, false)));
        assert_eq!(chosen(&["1,234", "22,500"], none), Some(("int".into(), point, true)), "open, and said");
        let semicolons = Hints { semicolons: true, ..none };
        assert_eq!(chosen(&["1,234", "22,500"], semicolons).map(|c| c.1), Some(comma(Some(b'.'))));
        assert_eq!(chosen(&["12,5", "007"], none), None, "a code is no number");
    }

    #[test]
    fn dates_are_read_in_the_order_that_the_column_proves() {
        let none = Hints::default();
        let date = |order| Some(ValueForm::Date(order));
        assert_eq!(chosen(&["01/02/2025", "31/12/2025"], none), Some(("date".into(), date(DateOrder::Dmy), false)));
        assert_eq!(chosen(&["01/02/2025", "12/31/2025"], none), Some(("date".into(), date(DateOrder::Mdy), false)));
        assert_eq!(chosen(&["01/02/2025"], none), Some(("date".into(), date(DateOrder::Mdy), true)), "open, and said");
        assert_eq!(chosen(&["01.02.2025 10:00"], none), Some(("timestamp".into(), date(DateOrder::Dmy), true)));
        assert_eq!(chosen(&["31-Dez-2025"], none).map(|c| c.0), Some("date".into()));
    }

    #[test]
    fn truth_is_told_in_several_languages() {
        let none = Hints::default();
        for words in [["ja", "nein"], ["Yes", "No"], ["Y", "N"], ["sí", "no"], ["t", "f"]] {
            assert_eq!(chosen(&words, none).map(|c| c.0), Some("bool".into()), "{words:?}");
        }
        assert_eq!(chosen(&["no", "no"], none), None, "one word alone is a word");
        assert_eq!(chosen(&["t", "t"], none), None, "one letter alone is a code");
    }
}
