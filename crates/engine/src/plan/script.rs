//! A text of several statements: queries, and what is said about them (`CREATE VIEW`, `COPY (…) TO`, `EXPLAIN`).
//!
//! A view becomes a common table expression of every later query that names it. Its text stays where it stood: the text of a
//! query begins with blanks, and views take their place in them, so that a mistake in either is shown at its place in the whole
//! text.
//!
//! ```text
//!  CREATE VIEW v AS SELECT 1 AS x;            WITH v AS (      SELECT 1 AS x)
//!  SELECT * FROM v;                     ──▶   SELECT * FROM v
//! ```

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Whitespace};

use super::mistake::pointed;
use super::text::{byte_of, matters, tokens};
use crate::Error;
use crate::limits::{MAX_NAME, MAX_SQL_BYTES};
use crate::workload::Query;

/// Characters of a query that make its title.
const TITLE_CHARS: usize = 100;

/// What a statement wants of its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// The answer.
    Answer,
    /// How the answer would be computed.
    Explain,
    /// The answer, in a file.
    Copy {
        /// The file.
        path: String,
        /// Its format, if that is said.
        format: Option<String>,
    },
}

/// A query, and what is wanted of it.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The query.
    pub query: Query,
    /// What is wanted.
    pub purpose: Purpose,
}

/// The statements of a text, which are separated by `;`. They are called q1, q2, … unless a comment in front of one names it:
/// `-- name: best_sellers`. A text without any query gives none.
///
/// The text in front of a query is kept as blanks, so that places in it are places in the whole text.
///
/// # Errors
/// The text cannot be taken apart, or a name cannot be used. `origin` says where the text is from.
pub fn split_statements(origin: &str, text: &str) -> Result<Vec<Statement>, Error> {
    let script = Script { origin, text };
    if text.len() as u64 > MAX_SQL_BYTES {
        return Err(script.wrong(None, format!("the text has {} bytes, and the limit is {MAX_SQL_BYTES}", text.len())));
    }
    let tokens = tokens(text).map_err(|e| script.wrong(Some(e.location), e.message))?;
    let mut views: Vec<View<'_>> = Vec::new();
    let mut statements: Vec<Statement> = Vec::new();
    for part in tokens.split(|token| token.token == Token::SemiColon) {
        let words: Vec<&TokenWithSpan> = part.iter().filter(|token| matters(token)).collect();
        if words.is_empty() {
            continue;
        }
        if let Some(view) = View::created(&words) {
            views.retain(|known| known.name != view.name);
            views.push(view);
            continue;
        }
        if let Some(name) = dropped_view(&words) {
            views.retain(|known| known.name != name);
            continue;
        }
        let name = script.name(part, &words, &statements)?;
        let (purpose, body) = script.purpose(&words)?;
        let sql = script.with_views(&views, body);
        let title = title(script.between(words[0], words[words.len() - 1]));
        let query = Query { name, title, origin: origin.to_owned(), sql, ordered: None };
        statements.push(Statement { query, purpose });
    }
    Ok(statements)
}

/// The text being taken apart.
struct Script<'t> {
    origin: &'t str,
    text: &'t str,
}

/// A view that was created.
struct View<'t> {
    /// As SQL knows it: in small letters, unless it stood in quotes.
    name: String,
    start: Location,
    /// From its name to before AS: the name, and maybe names of columns.
    head: Vec<&'t TokenWithSpan>,
    body: Vec<&'t TokenWithSpan>,
}

impl<'t> View<'t> {
    /// `CREATE [OR REPLACE] [TEMP] VIEW name [(columns)] AS query`; none: it is something else.
    fn created(words: &[&'t TokenWithSpan]) -> Option<Self> {
        let mut rest = after(words, "CREATE")?;
        rest = after(rest, "OR").and_then(|rest| after(rest, "REPLACE")).unwrap_or(rest);
        rest = after(rest, "TEMP").or_else(|| after(rest, "TEMPORARY")).unwrap_or(rest);
        rest = after(rest, "VIEW")?;
        let name = name_of(rest.first()?)?;
        let end = rest.iter().position(|token| is_word(token, "AS"))?;
        let (head, body) = (rest[..end].to_vec(), rest[end + 1..].to_vec());
        (!body.is_empty()).then(|| Self { name, start: words[0].span.start, head, body })
    }

    fn is_named_in(&self, words: &[&TokenWithSpan]) -> bool {
        words.iter().any(|token| name_of(token).is_some_and(|name| name == self.name))
    }
}

/// The name in `DROP VIEW [IF EXISTS] name`.
fn dropped_view(words: &[&TokenWithSpan]) -> Option<String> {
    let rest = after(after(words, "DROP")?, "VIEW")?;
    let rest = after(rest, "IF").and_then(|rest| after(rest, "EXISTS")).unwrap_or(rest);
    match rest {
        [name] => name_of(name),
        _ => None,
    }
}

/// What stands behind a word, if that comes first.
fn after<'w, 't>(words: &'w [&'t TokenWithSpan], word: &str) -> Option<&'w [&'t TokenWithSpan]> {
    let (first, rest) = words.split_first()?;
    is_word(first, word).then_some(rest)
}

fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// The name that a token may be.
fn name_of(token: &TokenWithSpan) -> Option<String> {
    let Token::Word(word) = &token.token else { return None };
    Some(if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() })
}

impl Script<'_> {
    fn wrong(&self, place: Option<Location>, message: String) -> Error {
        pointed(self.origin, self.text, place, message)
    }

    fn between(&self, first: &TokenWithSpan, last: &TokenWithSpan) -> &str {
        &self.text[byte_of(self.text, first.span.start)..byte_of(self.text, last.span.end)]
    }

    /// The name of a statement's query: that of the last comment in front of it that has one, or its number.
    fn name(&self, part: &[TokenWithSpan], words: &[&TokenWithSpan], before: &[Statement]) -> Result<String, Error> {
        let named = part.iter().take_while(|t| !matters(t)).filter_map(|t| Some((t, name_in(t)?))).last();
        let place = named.as_ref().map_or(words[0], |(token, _)| token).span.start;
        let name = named.map_or_else(|| format!("q{}", before.len() + 1), |(_, name)| name);
        let fits = !name.is_empty()
            && name.chars().count() <= MAX_NAME
            && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
            && !name.starts_with(['-', '_']);
        if !fits {
            let cure = format!("write 1 to {MAX_NAME} letters, digits, - or _, starting with a letter or digit");
            return Err(self.wrong(Some(place), format!("the query name {name:?} is not usable; {cure}")));
        }
        if before.iter().any(|known| known.query.name == name) {
            let text = format!("two queries are called {name}; give each a name of its own");
            return Err(self.wrong(Some(place), text));
        }
        Ok(name)
    }

    /// What a statement wants, and of which query.
    fn purpose<'w, 't>(&self, words: &'w [&'t TokenWithSpan]) -> Result<(Purpose, &'w [&'t TokenWithSpan]), Error> {
        if let Some(body) = after(words, "EXPLAIN").filter(|body| !body.is_empty()) {
            return Ok((Purpose::Explain, body));
        }
        let Some(rest) = after(words, "COPY") else { return Ok((Purpose::Answer, words)) };
        let wrong = |place: &TokenWithSpan| {
            let text = "write COPY (SELECT …) TO 'file.csv', or COPY (SELECT …) TO 'file' (FORMAT csv)";
            self.wrong(Some(place.span.start), text.to_owned())
        };
        let inner = inside(rest).ok_or_else(|| wrong(rest.first().unwrap_or(&words[0])))?;
        let behind = &rest[inner.len() + 2..];
        let to = after(behind, "TO").ok_or_else(|| wrong(behind.first().unwrap_or(&words[0])))?;
        let [file, options @ ..] = to else { return Err(wrong(words[0])) };
        let Token::SingleQuotedString(path) = &file.token else { return Err(wrong(file)) };
        let options = after(options, "WITH").unwrap_or(options);
        let format = match options {
            [] => None,
            _ => match inside(options) {
                Some([key, value]) if is_word(key, "FORMAT") && options.len() == 4 => match &value.token {
                    Token::SingleQuotedString(name) => Some(name.to_lowercase()),
                    _ => name_of(value).map(|name| name.to_lowercase()),
                },
                _ => return Err(wrong(options[0])),
            },
        };
        Ok((Purpose::Copy { path: path.clone(), format }, inner))
    }

    /// A query's text at its place, behind the views that it names.
    fn with_views(&self, views: &[View<'_>], body: &[&TokenWithSpan]) -> String {
        let mut used: Vec<&View<'_>> = Vec::new();
        for view in views.iter().rev() {
            if view.is_named_in(body) || used.iter().any(|later| view.is_named_in(&later.body)) {
                used.insert(0, view);
            }
        }
        let mut sql = Placed::default();
        let own = after(body, "WITH").filter(|_| !used.is_empty());
        let is_recursive = own.is_some_and(|own| after(own, "RECURSIVE").is_some());
        for (index, view) in used.iter().enumerate() {
            sql.go_to(view.start);
            sql.push(match (index, is_recursive) {
                (0, false) => "WITH ",
                (0, true) => "WITH RECURSIVE ",
                _ => ", ",
            });
            sql.push(self.between(view.head[0], view.head[view.head.len() - 1]));
            sql.push(" AS (");
            sql.go_to(view.body[0].span.start);
            sql.push(self.between(view.body[0], view.body[view.body.len() - 1]));
            sql.push(")");
        }
        let body = match own {
            None => body,
            Some(own) => {
                sql.push(",");
                after(own, "RECURSIVE").unwrap_or(own)
            }
        };
        if let (Some(first), Some(last)) = (body.first(), body.last()) {
            sql.go_to(first.span.start);
            sql.push(self.between(first, last));
        }
        sql.text
    }
}

/// What stands inside of the parentheses that come first.
fn inside<'w, 't>(words: &'w [&'t TokenWithSpan]) -> Option<&'w [&'t TokenWithSpan]> {
    let mut depth = 0_usize;
    for (index, token) in words.iter().enumerate() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (index > 1).then(|| &words[1..index]);
        }
    }
    None
}

/// A text that is written from place to place.
#[derive(Default)]
struct Placed {
    text: String,
}

impl Placed {
    fn push(&mut self, more: &str) {
        self.text.push_str(more);
    }

    /// Blanks up to a place. Behind it there is one, and what follows stands to the right of its place.
    fn go_to(&mut self, place: Location) {
        let line = 1 + self.text.matches('\n').count() as u64;
        if line < place.line {
            self.text.push_str(&"\n".repeat((place.line - line) as usize));
        }
        let column = 1 + self.text.rsplit('\n').next().map_or(0, |line| line.chars().count()) as u64;
        let blanks = place.column.saturating_sub(column) as usize;
        let least = usize::from(!self.text.is_empty() && !self.text.ends_with(['\n', ' ']));
        self.text.push_str(&" ".repeat(blanks.max(least)));
    }
}

fn name_in(token: &TokenWithSpan) -> Option<String> {
    let Token::Whitespace(Whitespace::SingleLineComment { comment, .. }) = &token.token else { return None };
    let (word, name) = comment.split_once(':')?;
    word.trim().eq_ignore_ascii_case("name").then(|| name.trim().to_owned())
}

/// The query on one line, shortened.
fn title(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TITLE_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(String, String)> {
        let statements = split_statements("test", text).unwrap();
        statements.into_iter().map(|s| (s.query.name, s.query.sql.trim().to_owned())).collect()
    }

    #[test]
    fn queries_are_split_at_semicolons_outside_texts_and_comments() {
        let text =
            "SELECT ';', \"a;b\" -- not; here\n, 1 /* nor; /* here; */ */; ;\n-- name: best\nSELECT $$;$$, $x$;$x$ ;\n";
        let split = split(text);
        assert_eq!(split.len(), 2);
        assert_eq!(split[0].0, "q1");
        assert!(split[0].1.ends_with('1'), "{}", split[0].1);
        assert_eq!(split[1], ("best".to_owned(), "SELECT $$;$$, $x$;$x$".to_owned()));
    }

    #[test]
    fn a_query_keeps_its_place() {
        let text = "SELECT 1;\n  SELECT über,\n x";
        let statements = split_statements("test", text).unwrap();
        assert_eq!(statements[1].query.name, "q2");
        assert_eq!(statements[1].query.sql, "\n  SELECT über,\n x");
        assert_eq!(statements[1].query.title, "SELECT über, x");
    }

    #[test]
    fn texts_without_queries_have_none() {
        for text in ["", "  \n", ";;", "-- only a comment\n", "/* … */ ;", "CREATE VIEW v AS SELECT 1"] {
            assert!(split(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn unusable_names_and_texts_are_pointed_at() {
        let error = |text: &str| split_statements("f.sql", text).expect_err("a mistake").to_string();
        assert!(error("-- name: ../x\nSELECT 1").starts_with("f.sql:1:1: the query name \"../x\" is not usable"));
        assert!(error("SELECT 1;\n-- name: q1\nSELECT 2").starts_with("f.sql:2:1: two queries are called q1"));
        assert!(
            error("SELECT 1,\n 'open").starts_with("f.sql:2:2: Unterminated string"),
            "{}",
            error("SELECT 1,\n 'open")
        );
    }

    #[test]
    fn views_stand_before_the_queries_that_name_them_at_their_own_place() {
        let text = "CREATE VIEW v AS SELECT 1 AS x;\nCREATE OR REPLACE TEMP VIEW w (y) AS\n  SELECT x FROM v;\nSELECT y FROM W;\nSELECT 2;\n";
        let statements = split_statements("test", text).unwrap();
        let [first, second] = &statements[..] else { panic!("two queries: {statements:?}") };
        let expected = "WITH v AS (      SELECT 1 AS x)\n, w (y) AS (\n  SELECT x FROM v)\nSELECT y FROM W";
        assert_eq!(first.query.sql, expected);
        assert_eq!(first.query.title, "SELECT y FROM W");
        assert_eq!(second.query.sql, "\n\n\n\nSELECT 2", "a query that names no view has none");
    }

    #[test]
    fn queries_with_ctes_of_their_own_and_dropped_views_are_known() {
        let text = "CREATE VIEW v AS SELECT 1;WITH a AS (SELECT * FROM v) SELECT * FROM a;\
                    WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r, v; DROP VIEW IF EXISTS v; SELECT * FROM v";
        let split: Vec<String> = split(text).into_iter().map(|(_, sql)| sql).collect();
        assert_eq!(split[0], "WITH v AS (      SELECT 1),    a AS (SELECT * FROM v) SELECT * FROM a");
        assert!(split[1].starts_with("WITH RECURSIVE v AS ( SELECT 1), "), "{}", split[1]);
        assert!(split[1].ends_with("r AS (SELECT 1) SELECT * FROM r, v"), "{}", split[1]);
        assert_eq!(split[2], "SELECT * FROM v");
    }

    #[test]
    fn copies_and_explanations_are_wanted_of_the_query_inside() {
        let statements = split_statements(
            "test",
            "COPY (SELECT (1)) TO 'x.csv';EXPLAIN SELECT 2;COPY (SELECT 3) TO 'y' WITH (FORMAT TSV)",
        )
        .unwrap();
        let found: Vec<(&Purpose, &str)> = statements.iter().map(|s| (&s.purpose, s.query.sql.trim())).collect();
        let copy = |path: &str, format: Option<&str>| Purpose::Copy {
            path: path.to_owned(),
            format: format.map(str::to_owned),
        };
        assert_eq!(
            found,
            [
                (&copy("x.csv", None), "SELECT (1)"),
                (&Purpose::Explain, "SELECT 2"),
                (&copy("y", Some("tsv")), "SELECT 3"),
            ]
        );
        for text in [
            "COPY t TO 'x'",
            "COPY (SELECT 1) FROM 'x'",
            "COPY (SELECT 1) TO x",
            "COPY (SELECT 1) TO 'x' (HEADER)",
            "COPY (SELECT 1",
        ] {
            let error = split_statements("f.sql", text).expect_err(text).to_string();
            assert!(error.contains("write COPY (SELECT …) TO 'file.csv'"), "{error}");
        }
    }
}
