//! Records that sum others up, and counts of records that programs write below them.

/// First values of a record that sums others up, in lower case.
const WORDS: [&str; 18] = [
    "total",
    "totals",
    "grand total",
    "subtotal",
    "sum",
    "summe",
    "gesamt",
    "gesamtsumme",
    "zwischensumme",
    "endsumme",
    "totale",
    "totaal",
    "total général",
    "somme",
    "suma",
    "итого",
    "*",
    "**",
];

/// How a first value begins that sums one group of records up, in lower case.
const GROUP_WORDS: [&str; 6] =
    ["total for ", "totals for ", "subtotal for ", "summe für ", "zwischensumme ", "total pour "];

/// Whether a record with these fields sums others up: its first value is one of the words for that, and others follow.
/// `(3 rows)` and `3 rows selected.` below a table are no records, either.
#[must_use]
pub fn is_total<'a>(fields: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut values = fields.map(<[u8]>::trim_ascii).filter(|field| !field.is_empty());
    let Some(first) = values.next().and_then(|first| std::str::from_utf8(first).ok()) else { return false };
    if values.next().is_none() {
        return is_count(first);
    }
    // Google Ads writes several: `Total: Account`, `Total: Campaigns`.
    let word = first.split(':').next().unwrap_or(first).trim_end().to_lowercase();
    // QuickBooks: `Total for Ann`; DATEV: `Summe für Konto 1200`.
    let is_of_group = || GROUP_WORDS.iter().any(|begin| word.starts_with(begin));
    WORDS.contains(&word.as_str()) || is_of_group()
}

/// Whether a record has nothing in its first field, and values behind it: below or above records that have a label there, it
/// sums them up.
#[must_use]
pub fn has_no_label<'a>(fields: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut values = fields.map(<[u8]>::trim_ascii);
    values.next().is_some_and(<[u8]>::is_empty) && values.any(|value| !value.is_empty())
}

/// What psql, sqlplus and sqlcmd write below a table.
fn is_count(line: &str) -> bool {
    let line = line.trim_matches(['(', ')', '.']).to_lowercase();
    let mut words = line.split_ascii_whitespace();
    let counted = words.next().is_some_and(|count| count.parse::<u64>().is_ok());
    let what = words.next().unwrap_or_default();
    counted
        && matches!(what, "row" | "rows" | "records" | "record" | "zeile" | "zeilen")
        && words.all(|word| matches!(word, "selected" | "affected" | "ausgewählt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(fields: &[&str]) -> bool {
        is_total(fields.iter().map(|field| field.as_bytes()))
    }

    #[test]
    fn sums_and_counts_below_a_table_are_told_from_records() {
        assert!(total(&["Summe", "", "2.410,70"]));
        assert!(total(&["", "Total:", "30"]));
        assert!(total(&["*", "", "1.242,50"]));
        assert!(total(&["Total: Account", "1,500"]));
        assert!(total(&["Total for Ann", "", "120.00"]) && total(&["Summe für Konto 1200", "5,00"]));
        assert!(total(&["(3 rows)"]) && total(&["3 rows selected."]) && total(&["(1 row)"]));
        let no_label = |fields: &[&str]| has_no_label(fields.iter().map(|field| field.as_bytes()));
        assert!(no_label(&["", "30"]) && !no_label(&["x", "30"]) && !no_label(&["", " "]));
        for record in [&["Total Wine", "5"][..], &["Total"], &["rows", "3"], &["3"], &["(3)"], &["", ""]] {
            assert!(!total(record), "{record:?}");
        }
    }
}
