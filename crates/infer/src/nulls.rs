//! Spellings of null that exports use besides the empty field.

/// They count only in columns that are something else than text.
pub(crate) const NULLS: [&str; 33] = [
    "NULL",
    "null",
    "Null",
    "(null)",
    "<null>",
    "NA",
    "N/A",
    "n/a",
    "na",
    "#N/A",
    "#NV",
    "#NULL!",
    "#DIV/0!",
    "#VALUE!",
    "#WERT!",
    "#REF!",
    "#NAME?",
    "NaN",
    "nan",
    "None",
    "none",
    "nil",
    "\\N",
    "-",
    "--",
    "–",
    "—",
    "k.A.",
    "k. A.",
    "n.a.",
    "N.A.",
    // MySQL's date that is none.
    "0000-00-00",
    "0000-00-00 00:00:00",
];

/// What is read as null in a table, by spelling with the columns that have it; none: nothing but empty fields.
pub(crate) fn said_of_nulls(table: &str, seen: &[(String, Vec<&'static str>)]) -> Option<String> {
    let mut spellings: Vec<&str> = seen.iter().flat_map(|(_, spellings)| spellings.iter().copied()).collect();
    spellings.sort_unstable();
    spellings.dedup();
    if spellings.is_empty() {
        return None;
    }
    let columns: Vec<&str> =
        seen.iter().filter(|(_, found)| !found.is_empty()).map(|(name, _)| name.as_str()).collect();
    Some(format!(
        "{table}: {} read as null in {} (--types \"{table}.{}=text\" keeps the text)",
        if spellings.len() == 1 { format!("{} is", spellings[0]) } else { format!("{} are", spellings.join(", ")) },
        columns.join(", "),
        columns.first().copied().unwrap_or_default(),
    ))
}
