//! What was asked, what came out, and everything that was passed over.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::case::Case;
use super::judge::Opinions;
use super::runs::Ours;
use super::sql_text::{Dialect, sql};
use super::tree::Query;
use super::value::Answer;
use crate::staged::Rows;

/// Counts of a run.
#[derive(Debug, Default)]
pub struct Report {
    pub queries: u64,
    /// Answers with rows.
    pub with_rows: u64,
    /// Answers that one, two and three opinions stand behind.
    pub agreed: [u64; 4],
    /// DataFusion alone is wrong or fails, by the class of its error.
    pub datafusion_alone: Classes,
    /// tenaz and DataFusion fail, by the class of tenaz's error.
    pub nobody: Classes,
    /// DuckDB fails where the others answer.
    pub duck_fails: Classes,
    /// Known differences by name.
    pub known: BTreeMap<&'static str, u64>,
    /// Differences that are not known, by what they look like.
    pub failures: BTreeMap<String, Failure>,
}

/// How often something alike was met, and the first example.
#[derive(Debug, Default)]
pub struct Classes(BTreeMap<String, (u64, String)>);

impl Classes {
    pub fn count(&mut self, class: String, example: impl FnOnce() -> String) {
        self.0.entry(class).or_insert_with(|| (0, example())).0 += 1;
    }

    fn add(&mut self, other: Self) {
        for (class, (count, example)) in other.0 {
            self.0.entry(class).or_insert((0, example)).0 += count;
        }
    }

    pub fn total(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }
}

/// The first of some alike failures.
#[derive(Debug, Default)]
pub struct Failure {
    pub count: u64,
    pub text: String,
}

impl Report {
    pub fn add(&mut self, other: Self) {
        self.queries += other.queries;
        self.with_rows += other.with_rows;
        for (ours, theirs) in self.agreed.iter_mut().zip(other.agreed) {
            *ours += theirs;
        }
        self.datafusion_alone.add(other.datafusion_alone);
        self.nobody.add(other.nobody);
        self.duck_fails.add(other.duck_fails);
        other.known.into_iter().for_each(|(name, count)| *self.known.entry(name).or_default() += count);
        for (look, failure) in other.failures {
            match self.failures.get_mut(&look) {
                Some(known) => {
                    known.count += failure.count;
                    if known.text.is_empty() {
                        known.text = failure.text;
                    }
                }
                None => drop(self.failures.insert(look, failure)),
            }
        }
    }

    pub fn answered(&self) -> u64 {
        self.agreed.iter().sum::<u64>() + self.datafusion_alone.total()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: u64 = self.known.values().sum();
        let failures: u64 = self.failures.values().map(|failure| failure.count).sum();
        writeln!(
            f,
            "{} queries: {} answered ({} with rows), {} known differences, {} unknown",
            self.queries,
            self.answered(),
            self.with_rows,
            known,
            failures
        )?;
        let [_, one, two, three] = self.agreed;
        writeln!(
            f,
            "opinions behind an answer: {three} three, {two} two, {one} only tenaz (open, or nobody else knows)"
        )?;
        for (title, classes) in [
            ("tenaz and DuckDB agree, DataFusion run directly does not", &self.datafusion_alone),
            ("neither tenaz nor DataFusion answers", &self.nobody),
            ("DuckDB does not answer", &self.duck_fails),
        ] {
            writeln!(f, "{title}: {}", classes.total())?;
            let mut classes: Vec<_> = classes.0.iter().collect();
            classes.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
            for (class, (count, example)) in classes {
                writeln!(f, "  {count:6}  {class}")?;
                if f.alternate() {
                    writeln!(f, "          {example}")?;
                }
            }
        }
        writeln!(f, "known differences: {known}")?;
        for (name, count) in &self.known {
            writeln!(f, "  {count:6}  {name}")?;
        }
        Ok(())
    }
}

/// An error without what is different in every query.
pub fn class(error: &str) -> String {
    let mut class = String::new();
    let mut quoted = false;
    // Here the name is what matters.
    let names_matter = error.contains("there is no function");
    // What follows is a whole plan, or the expression.
    let ends = ["is not implemented: ", "Plan: [", "HAVING clause references: ", "OuterReferenceColumn("];
    let end = ends.iter().filter_map(|end| error.find(end).map(|at| at + end.len())).min();
    let error = &error[..end.unwrap_or(error.len())];
    for character in error.lines().next().unwrap_or_default().chars() {
        match character {
            '\'' | '"' | '`' if !names_matter => quoted = !quoted,
            _ if quoted => continue,
            c if c.is_ascii_digit() => {
                if !class.ends_with('#') {
                    class.push('#');
                }
                continue;
            }
            _ => {}
        }
        class.push(character);
        if class.len() > 110 {
            break;
        }
    }
    class
}

/// A difference with all that is needed to see it again.
pub fn describe(seed: u64, title: &str, case: &Case, query: &Query, opinions: &Opinions) -> String {
    let mut text = format!("seed {seed}: {title}\n");
    let mut line = |label: &str, what: &str| writeln!(text, "{label}: {what}").expect("a string");
    let ours = sql(query, Dialect::Tenaz).unwrap_or_default();
    line("SQL", &ours);
    let direct = sql(query, Dialect::Direct).unwrap_or_default();
    if direct != ours {
        line("directly", &direct);
    }
    if let Some(duck) = sql(query, Dialect::Duck).filter(|duck| *duck != ours) {
        line("DuckDB's SQL", &duck);
    }
    for table in case.tables.iter().filter(|table| direct.contains(&format!("{} AS", table.name))) {
        line("table", &show(table));
    }
    let mut shown: Vec<String> = Vec::new();
    for (settings, answer) in &opinions.ours {
        let answer = answer.as_ref().map(show_ours).unwrap_or_else(|error| format!("ERROR {error}"));
        if !shown.contains(&answer) {
            line(&format!("tenaz {settings:?}"), &answer);
            shown.push(answer);
        }
    }
    line("DataFusion", &show_result(&opinions.direct));
    match &opinions.duck {
        Some(duck) => line("DuckDB", &show_result(duck)),
        None => line("DuckDB", "was not asked"),
    }
    text
}

fn show_ours(ours: &Ours) -> String {
    show_rows(&ours.values)
}

fn show_result(answer: &Result<Answer, String>) -> String {
    answer.as_ref().map(show_rows).unwrap_or_else(|error| format!("ERROR {error}"))
}

fn show_rows(answer: &Answer) -> String {
    const MOST: usize = 40;
    let row = |row: &Vec<_>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let rows: Vec<String> = answer.iter().take(MOST).map(row).collect();
    let more = answer.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" … and {more} more") } else { String::new() };
    format!("{} rows: {}{more}", answer.len(), rows.join(" | "))
}

fn show(table: &Rows) -> String {
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    let row = |row: &Vec<Option<String>>| {
        row.iter().map(|field| field.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(", ")
    };
    format!("{}({}): {}", table.name, names.join(", "), table.rows.iter().map(row).collect::<Vec<_>>().join(" | "))
}
