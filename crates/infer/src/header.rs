//! Which of the first records names the columns.
//!
//! Mostly the first one. But reports have lines of other things above it, as wide as the table (`From 1.1.,To 31.3.,`), and
//! headers of two lines (`sales,,costs,` over `Q1,Q2,Q1,Q2`, or units below the names). What tells is where types begin: below
//! the header columns hold numbers and dates, above it they never do.

use tenaz_csv::Kind;

use crate::evidence::Evidence;
use crate::limits::MAX_HEADER_NAME;

/// Records above the last line of a header, at most.
const MAX_ABOVE: usize = 10;

/// Records below a header that stands under another one that looks like a header itself.
const MIN_BELOW: usize = 4;

/// The header of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderGuess {
    /// The record that is its last, or only, line.
    pub(crate) record: usize,
    /// The names of the columns.
    pub(crate) names: Vec<String>,
    /// How many records from there upwards it takes.
    pub(crate) lines: usize,
    /// No column below it has a type that would tell the header from a record.
    pub(crate) is_doubtful: bool,
}

/// The header among these records, of which most have `usual` fields. None: the first one is data.
pub(crate) fn find_header(records: &[Vec<String>], usual: usize) -> Option<HeaderGuess> {
    let first = first_header(records, usual);
    let is_sure = |first: &HeaderGuess| !first.is_doubtful && !first.names.iter().any(String::is_empty);
    if !first.as_ref().is_some_and(is_sure)
        && let Some(lower) = (1..=MAX_ABOVE.min(records.len())).find(|&k| is_lower_header(records, k, usual))
    {
        return Some(joined(records, lower, usual));
    }
    first
}

/// The same, where only the first record may be the header.
pub(crate) fn first_header(records: &[Vec<String>], usual: usize) -> Option<HeaderGuess> {
    let (first, others) = records.split_first()?;
    let others: Vec<Vec<String>> =
        others.iter().filter(|other| *other != first && other.len() == usual).cloned().collect();
    is_header(first, &others).then(|| HeaderGuess {
        record: 0,
        names: first.iter().map(|name| name.trim().to_owned()).collect(),
        lines: 1,
        is_doubtful: !others.is_empty() && !has_types(&others, usual),
    })
}

/// Whether types begin below record `k`: it holds names, and nothing above it fits the columns below it.
fn is_lower_header(records: &[Vec<String>], k: usize, usual: usize) -> bool {
    let Some(candidate) = records.get(k).filter(|record| record.len() == usual && usual > 1) else { return false };
    let below = &records[k + 1..];
    let is_unlikely = is_complete(&records[0], usual) && !is_in_brackets(candidate);
    let enough = if is_unlikely { MIN_BELOW } else { 1 };
    let filled = candidate.iter().filter(|name| !name.trim().is_empty()).count();
    if below.len() < enough || filled * 2 < usual || candidate.iter().any(|name| is_value(name.trim())) {
        return false;
    }
    let typed: Vec<usize> = (0..usual).filter(|column| is_typed(below, *column)).collect();
    // Of a header of two lines the upper one may name what the lower one leaves out (SurveyMonkey: `ID,Which?,` over `,Tea,Coffee`).
    let above = &records[k - 1];
    let goes_on = above.len() == usual
        && (0..usual).any(|column| above[column].trim().is_empty() && !candidate[column].trim().is_empty());
    let is_named = |column: usize| {
        let is_above = goes_on && !above[column].trim().is_empty();
        !candidate[column].trim().is_empty() || is_above
    };
    let is_name_everywhere = typed.iter().any(|&column| is_named(column));
    let fits =
        |record: &Vec<String>| record.len() == usual && typed.iter().any(|&column| is_value(record[column].trim()));
    is_name_everywhere && !records[..k].iter().any(fits)
}

/// The header whose last line is this record, with the line above it where the two belong together.
fn joined(records: &[Vec<String>], lower: usize, usual: usize) -> HeaderGuess {
    let (below, above) = (&records[lower], &records[lower - 1]);
    let names: Vec<String> = below.iter().map(|name| name.trim().to_owned()).collect();
    let index = index_name(records, lower, usual);
    let belongs = above.len() == usual
        && (!above[0].trim().is_empty() || index.is_some())
        && (is_complete(above, usual) || !is_complete(below, usual));
    if !belongs {
        return HeaderGuess { record: lower, names, lines: 1, is_doubtful: false };
    }
    // A name above stands for all columns to the right that have none.
    let mut over = "";
    let mut all = Vec::new();
    for (upper, name) in above.iter().map(|name| name.trim()).zip(&names) {
        over = if upper.is_empty() { over } else { upper };
        let parts = [if name.is_empty() { upper } else { over }, name.as_str()];
        all.push(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "));
    }
    if let Some(index) = index {
        all[0] = index;
        return HeaderGuess { record: lower + 1, names: all, lines: 3, is_doubtful: false };
    }
    HeaderGuess { record: lower, names: all, lines: 2, is_doubtful: false }
}

/// The name of the index, which pandas writes below a header of two lines whose first columns have no names: `region,,,`.
fn index_name(records: &[Vec<String>], lower: usize, usual: usize) -> Option<String> {
    let (above, below, third) = (&records[lower - 1], &records[lower], records.get(lower + 1)?);
    let has_none = |record: &Vec<String>| record.first().is_some_and(|name| name.trim().is_empty());
    let name = third.first()?.trim();
    let alone = third.len() == usual && third[1..].iter().all(|field| field.trim().is_empty());
    (has_none(above) && has_none(below) && alone && !name.is_empty() && !is_value(name)).then(|| name.to_owned())
}

/// Whether a record has a name for every column, each once.
fn is_complete(record: &[String], usual: usize) -> bool {
    let mut names: Vec<&str> = record.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names.len() == usual && record.len() == usual && !names.iter().any(|name| is_value(name))
}

/// Whether a record holds units: `[s]`, `(m/s)`.
fn is_in_brackets(record: &[String]) -> bool {
    let bracketed =
        |text: &str| (text.starts_with('[') && text.ends_with(']')) || (text.starts_with('(') && text.ends_with(')'));
    record.iter().map(|text| text.trim()).all(|text| text.is_empty() || bracketed(text))
}

fn has_types(records: &[Vec<String>], usual: usize) -> bool {
    (0..usual).any(|column| is_typed(records, column))
}

/// Whether a column of these records is something else than text.
fn is_typed(records: &[Vec<String>], column: usize) -> bool {
    let mut evidence = Evidence::default();
    records.iter().filter_map(|record| record.get(column)).for_each(|field| evidence.add(field));
    evidence.is_typed()
}

/// Names are texts, there is one for every column, and they differ. If some are missing or repeated (pandas leaves the name of an
/// index out), the records below must tell: a column with a name over values that are no texts. Years may be names, too.
fn is_header(first: &[String], body: &[Vec<String>]) -> bool {
    let names: Vec<&str> = first.iter().map(|name| name.trim()).collect();
    let years = years_in(&names, body);
    let is_name = |name: &str| years.contains(&name) || !is_value(name);
    if names.iter().any(|name| !is_name(name) || name.chars().count() > MAX_HEADER_NAME) {
        return false;
    }
    let mut sorted: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == names.len() {
        return true;
    }
    (0..names.len()).any(|column| !names[column].is_empty() && is_typed(body, column))
}

/// The years among the names, where they follow each other as in `country,2019,2020,2021`, and the values below are no years.
fn years_in<'a>(names: &[&'a str], body: &[Vec<String>]) -> Vec<&'a str> {
    let year = |text: &str| text.parse::<u32>().ok().filter(|year| text.len() == 4 && (1800..=2200).contains(year));
    let found: Vec<(usize, u32)> = names.iter().enumerate().filter_map(|(at, name)| Some((at, year(name)?))).collect();
    let in_order = |step: i64| found.windows(2).all(|two| i64::from(two[1].1) - i64::from(two[0].1) == step);
    let is_series = found.len() >= 2 && found.len() < names.len() && (in_order(1) || in_order(-1));
    let is_below =
        |(at, _): &(usize, u32)| body.iter().filter_map(|r| r.get(*at)).any(|text| year(text.trim()).is_some());
    if !is_series || body.is_empty() || found.iter().all(is_below) {
        return Vec::new();
    }
    found.into_iter().map(|(at, _)| names[at]).collect()
}

/// Whether the text is a number, a date, a time or a truth value, in any spelling, or has digits and no letters.
pub(crate) fn is_value(text: &str) -> bool {
    let mut evidence = Evidence::default();
    evidence.add(text);
    let has = |test: fn(char) -> bool| text.chars().any(test);
    evidence.is_typed() || Kind::Float.check(text).is_ok() || (has(char::is_numeric) && !has(char::is_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(text: &str) -> Option<(usize, Vec<String>)> {
        let records: Vec<Vec<String>> = text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
        let usual = records.last().map_or(0, Vec::len);
        find_header(&records, usual).map(|guess| (guess.record, guess.names))
    }

    fn names(record: usize, names: &str) -> Option<(usize, Vec<String>)> {
        Some((record, names.split(',').map(str::to_owned).collect()))
    }

    #[test]
    fn the_first_record_is_the_header_where_it_can_be() {
        assert_eq!(guess("id,name\n1,a\n2,b"), names(0, "id,name"));
        assert_eq!(guess("name,city\nAnn,Rome\nBob,5\nCy,6"), names(0, "name,city"), "a dirty column proves nothing");
        assert_eq!(guess("id,amount\n1,5\n2,unknown\n3,7\n4,8\n5,9\n6,9"), names(0, "id,amount"));
        assert_eq!(guess(",a,b\n0,1,2\n1,3,4"), names(0, ",a,b"), "the index of pandas has no name");
        assert_eq!(guess("28/02/2008,0:10:00\n28/02/2008,0:20:00"), None);
        assert_eq!(guess("0:10:00,on\n0:20:00,off"), None, "digits without letters are no name");
    }

    #[test]
    fn lines_as_wide_as_the_table_may_stand_above_the_header() {
        assert_eq!(guess("From 2025-01-01,To 2025-03-31,\nid,name,amount\n1,a,5\n2,b,6"), names(1, "id,name,amount"));
    }

    #[test]
    fn a_header_may_have_two_lines() {
        assert_eq!(
            guess("id,sales,,costs,\n,Q1,Q2,Q1,Q2\n1,10,20,5,6\n2,11,21,7,8"),
            names(1, "id,sales Q1,sales Q2,costs Q1,costs Q2")
        );
        assert_eq!(guess("time,temp\n[s],[C]\n1,20.5"), names(1, "time [s],temp [C]"));
    }

    #[test]
    fn pandas_writes_the_name_of_the_index_below_two_lines_of_names() {
        assert_eq!(
            guess(",sales,sales,cost\n,Q1,Q2,Q1\nregion,,,\nnorth,1,2,3\nsouth,4,5,6"),
            names(2, "region,sales Q1,sales Q2,cost Q1")
        );
    }

    #[test]
    fn questions_may_stand_over_their_answers() {
        assert_eq!(
            guess("ID,Which?,,Comment\n,Tea,Coffee,Open-Ended Response\n1,Tea,,x\n2,,Coffee,\n3,Tea,Coffee,y"),
            names(1, "ID,Which? Tea,Which? Coffee,Comment Open-Ended Response")
        );
    }

    #[test]
    fn years_are_names_where_they_follow_each_other() {
        assert_eq!(guess("country,2019,2020\nDE,83.1,83.2\nFR,67.1,67.3"), names(0, "country,2019,2020"));
        assert_eq!(guess("DE,2019,2020\nFR,2018,2019"), None);
        assert_eq!(guess("DE,2019,7\nFR,2018,9"), None);
    }
}
