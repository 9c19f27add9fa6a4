//! Words that may follow what was typed: tables, columns, functions, keywords, commands.

use std::collections::BTreeSet;

use tenaz_engine::{Workload, function_names, needs_quotes};

const KEYWORDS: [&str; 62] = [
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COPY",
    "CREATE VIEW",
    "CROSS JOIN",
    "CURRENT_DATE",
    "DATE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP VIEW",
    "ELSE",
    "END",
    "EXCEPT",
    "EXCLUDE",
    "EXISTS",
    "EXPLAIN",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FIRST",
    "FROM",
    "FULL JOIN",
    "GROUP BY",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER JOIN",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LEFT JOIN",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "RIGHT JOIN",
    "SELECT",
    "SHOW TABLES",
    "SUMMARIZE",
    "THEN",
    "TRUE",
    "TRY_CAST",
    "UNION ALL",
    "USING",
    "WHEN",
    "WHERE",
];

const COMMANDS: [&str; 6] = [".tables", ".schema ", ".notes", ".format ", ".help", ".quit"];

/// All that can be completed.
#[derive(Debug, Default)]
pub(super) struct Words {
    names: BTreeSet<String>,
    functions: Vec<String>,
    columns: BTreeSet<String>,
}

impl Words {
    pub(super) fn of(workload: &Workload) -> Self {
        let quoted = |name: &str| if needs_quotes(name) { format!("\"{name}\"") } else { name.to_owned() };
        let columns: BTreeSet<String> =
            workload.tables.iter().flat_map(|table| table.layout.columns.iter().map(|c| quoted(&c.name))).collect();
        let tables = workload.tables.iter().map(|table| quoted(&table.name));
        // Without functions a shell completes the rest.
        let functions = function_names(workload).unwrap_or_default();
        Self { names: tables.chain(columns.iter().cloned()).collect(), functions, columns }
    }

    /// Where the word before the cursor begins, and what it may become.
    pub(super) fn candidates(&self, before: &str) -> (usize, Vec<String>) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '"';
        let begin =
            before.char_indices().rev().take_while(|(_, c)| is_part(*c)).last().map_or(before.len(), |(at, _)| at);
        let line_begin = before.trim_start();
        if line_begin.starts_with('.') && !line_begin.contains(' ') {
            let begin = before.len() - line_begin.len();
            return (begin, starting(COMMANDS.iter().map(|command| (*command).to_owned()), line_begin));
        }
        let word = &before[begin..];
        if word.is_empty() && !before.ends_with('.') {
            return (begin, Vec::new());
        }
        if before[..begin].ends_with('.') {
            return (begin, starting(self.columns.iter().cloned(), word));
        }
        let is_small = word.chars().all(|c| !c.is_uppercase());
        let in_case = |keyword: &str| if is_small { keyword.to_lowercase() } else { keyword.to_owned() };
        let functions = self.functions.iter().map(|name| format!("{name}("));
        let keywords = KEYWORDS.iter().map(|keyword| in_case(keyword));
        (begin, starting(self.names.iter().cloned().chain(functions).chain(keywords), word))
    }
}

fn starting(words: impl Iterator<Item = String>, begin: &str) -> Vec<String> {
    let begin = begin.to_lowercase();
    let mut found: Vec<String> = words.filter(|word| word.to_lowercase().starts_with(&begin)).collect();
    found.dedup();
    found
}

/// What all candidates begin with.
pub(super) fn common_beginning(candidates: &[String]) -> &str {
    let Some((first, others)) = candidates.split_first() else { return "" };
    let same = |at: usize, c: char| others.iter().all(|other| other[at.min(other.len())..].starts_with(c));
    let end =
        first.char_indices().find(|(at, c)| !others.iter().all(|other| other.is_char_boundary(*at)) || !same(*at, *c));
    &first[..end.map_or(first.len(), |(at, _)| at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Words {
            names: set(&["orders", "order_id", "größe"]),
            functions: vec!["substr".into(), "sum".into()],
            columns: set(&["order_id", "größe"]),
        }
    }

    #[test]
    fn names_functions_and_keywords_complete_what_was_typed() {
        let of = |before: &str| words().candidates(before);
        assert_eq!(of("SELECT su"), (7, vec!["substr(".into(), "sum(".into(), "summarize".into()]));
        assert_eq!(of("SEL"), (0, vec!["SELECT".into()]));
        assert_eq!(of("select o.or"), (9, vec!["order_id".into()]), "behind a point are columns");
        assert_eq!(of("x, o."), (5, vec!["größe".into(), "order_id".into()]));
        assert_eq!(of("SELECT gr"), (7, vec!["größe".into(), "group by".into()]));
        assert_eq!(of(".sc"), (0, vec![".schema ".into()]));
        assert_eq!(of("SELECT ").1, Vec::<String>::new());
    }

    #[test]
    fn what_candidates_share_is_typed() {
        let shared = |words: &[&str]| {
            common_beginning(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).to_owned()
        };
        assert_eq!(shared(&["orders", "order_id"]), "order");
        assert_eq!(shared(&["größe", "größer"]), "größe");
        assert_eq!(shared(&["ä", "ö"]), "");
        assert_eq!(shared(&["x"]), "x");
    }
}
