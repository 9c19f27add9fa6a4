//! Columns that are text because of a few values.

use tenaz_csv::Kind;
use tenaz_source::{DateOrder, NumberForm};

use crate::evidence::Evidence;
use crate::spelling::{NUMBERS, ORDERS};

/// A column is said to be text because of a few values if these many at least fit, and at most one in so many does not.
pub(crate) const MISFITS_AMONG: u64 = 20;
pub(crate) const MISFIT_SHARE: u64 = 20;

/// Values that are shown.
const SHOWN: usize = 3;

/// Values because of which a column is text, although nearly all others are of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfits {
    /// How many.
    pub(crate) count: u64,
    /// Of how many values.
    pub(crate) of: u64,
    /// Unlike ones, the first few.
    pub(crate) examples: Vec<String>,
    /// The type that the other values have; none: one that takes a spelling besides.
    pub(crate) kind: Option<Kind>,
    /// What the others are.
    pub(crate) what: &'static str,
}

impl Misfits {
    /// The misfits of a column that is text.
    pub(crate) fn of(evidence: &Evidence) -> Option<Self> {
        evidence.misfits().or_else(|| in_spellings(evidence))
    }

    /// What to tell the user, and what to do about it.
    pub(crate) fn said(&self, table: &str, column: &str) -> String {
        let examples: Vec<String> = self.examples.iter().map(|text| format!("{text:?}")).collect();
        let (count, of, what) = (self.count, self.of, self.what);
        let are = if count == 1 { format!("is no {what}") } else { format!("are no {what}s") };
        let nulls = self.examples.join(",");
        let reject = match &self.kind {
            Some(kind) => format!(", --types \"{table}.{column}={kind}\" rejects them"),
            None => String::new(),
        };
        format!(
            "{table}.{column} is text because {count} of {of} sampled values {are}, such as {} (--null '{nulls}' reads them as null{reject})",
            examples.join(", ")
        )
    }
}

/// The values of which nearly all are numbers or dates in one spelling.
fn in_spellings(evidence: &Evidence) -> Option<Misfits> {
    let numbers = |form: NumberForm| best(evidence, "number", move |text| form.plain(text).is_some());
    let dates = |order: DateOrder| best(evidence, "date", move |text| order.plain(text).is_some());
    let all = NUMBERS.into_iter().filter_map(numbers).chain(ORDERS.into_iter().filter_map(dates));
    all.min_by_key(|misfits| misfits.count)
}

fn best(evidence: &Evidence, what: &'static str, fits: impl Fn(&str) -> bool) -> Option<Misfits> {
    let of = evidence.kept().len() as u64;
    if of < MISFITS_AMONG {
        return None;
    }
    let misfits: Vec<&str> = evidence.kept().filter(|text| !fits(text)).collect();
    let count = misfits.len() as u64;
    (count > 0 && count * MISFIT_SHARE <= of).then(|| {
        let examples = misfits.iter().take(SHOWN).map(|text| (*text).to_owned()).collect();
        Misfits { count, of, examples, kind: None, what }
    })
}
