//! SQL as text: tokens and their places, several queries in one text, words that SQL keeps for itself.

use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, SetExpr, Statement, TableFactor};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace};

use super::dialect::Sql;
use super::mistake::pointed;
use crate::Error;
use crate::limits::{MAX_NAME, MAX_SQL_BYTES};
use crate::workload::Query;

/// Characters of a query that make its title.
const TITLE_CHARS: usize = 100;

/// All tokens of a text, comments and spaces included.
pub(super) fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    Tokenizer::new(&Sql, sql).tokenize_with_location()
}

/// Whether the token is more than a space or a comment.
pub(super) fn matters(token: &TokenWithSpan) -> bool {
    !matches!(token.token, Token::Whitespace(_) | Token::EOF)
}

/// Where a place is in the text, in bytes.
pub(super) fn byte_of(sql: &str, place: Location) -> usize {
    let line_start = match place.line {
        0 | 1 => 0,
        line => sql.match_indices('\n').nth(line as usize - 2).map_or(sql.len(), |(at, _)| at + 1),
    };
    let column = (place.column as usize).saturating_sub(1);
    sql[line_start..].char_indices().nth(column).map_or(sql.len(), |(at, _)| line_start + at)
}

/// The queries of a text, which are separated by `;`. They are called q1, q2, … unless a comment in front of one names it:
/// `-- name: best_sellers`. A text without any query gives none.
///
/// The text in front of a query is kept as blanks, so that places in it are places in the whole text.
///
/// # Errors
/// The text cannot be taken apart, or a name cannot be used. `origin` says where the text is from.
pub fn split_queries(origin: &str, text: &str) -> Result<Vec<Query>, Error> {
    let wrong = |place: Option<Location>, message: String| pointed(origin, text, place, message);
    if text.len() as u64 > MAX_SQL_BYTES {
        return Err(wrong(None, format!("the text has {} bytes, and the limit is {MAX_SQL_BYTES}", text.len())));
    }
    let tokens = tokens(text).map_err(|e| wrong(Some(e.location), e.message))?;
    let mut queries: Vec<Query> = Vec::new();
    for part in tokens.split(|token| token.token == Token::SemiColon) {
        let (Some(first), Some(last)) = (part.iter().find(|t| matters(t)), part.iter().rfind(|t| matters(t))) else {
            continue;
        };
        let named = part.iter().take_while(|t| !matters(t)).filter_map(|t| Some((t, name_in(t)?))).last();
        let name = match &named {
            Some((_, name)) => name.clone(),
            None => format!("q{}", queries.len() + 1),
        };
        let place = named.map_or(first, |(token, _)| token).span.start;
        let fits = !name.is_empty()
            && name.chars().count() <= MAX_NAME
            && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
            && !name.starts_with(['-', '_']);
        if !fits {
            let cure = format!("write 1 to {MAX_NAME} letters, digits, - or _, starting with a letter or digit");
            return Err(wrong(Some(place), format!("the query name {name:?} is not usable; {cure}")));
        }
        if queries.iter().any(|q| q.name == name) {
            return Err(wrong(Some(place), format!("two queries are called {name}; give each a name of its own")));
        }
        let body = &text[byte_of(text, first.span.start)..byte_of(text, last.span.end)];
        let before = first.span.start;
        let blanks = "\n".repeat(before.line as usize - 1) + &" ".repeat(before.column as usize - 1);
        queries.push(Query { name, title: title(body), origin: origin.to_owned(), sql: blanks + body, ordered: None });
    }
    Ok(queries)
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

/// Whether SQL needs quotes around this name, because the parser takes it for something else (`user` is a function) or for no word
/// at all. Most key words are understood where a name is expected, so the parser is asked, not a list.
pub fn needs_quotes(name: &str) -> bool {
    let column = format!(
        "SELECT {name}, t.{name}, count(DISTINCT {name}) AS {name}, \
         sum({name}) OVER (PARTITION BY {name} ORDER BY {name} DESC), CASE WHEN {name} > 1 THEN {name} ELSE {name} END, \
         -{name} + {name} * 2 FROM (SELECT DISTINCT {name} FROM t) AS t \
         WHERE {name} = 1 AND 1 < {name} AND {name} IN (1) AND {name} IS NOT NULL AND NOT {name} OR {name} BETWEEN {name} AND {name} \
         GROUP BY x, {name} HAVING {name} > 1 ORDER BY {name}, {name} DESC LIMIT 1"
    );
    let table = format!("SELECT {name}.x, {name}.* FROM {name} JOIN {name} ON true");
    let aliased = format!("SELECT a.x FROM t LEFT JOIN {name} a ON true, {name} AS b WHERE {name}.x = 1");
    !(is_column(&column, name) && is_table(&table, name) && select(&aliased).is_some())
}

fn is_column(sql: &str, name: &str) -> bool {
    let Some(select) = select(sql) else { return false };
    let is_name = |ident: &Ident| ident.value == name && ident.quote_style.is_none();
    matches!(select.projection.first(), Some(SelectItem::UnnamedExpr(Expr::Identifier(ident))) if is_name(ident))
        && select.projection.len() == 6
}

fn is_table(sql: &str, name: &str) -> bool {
    let Some(select) = select(sql) else { return false };
    let [from] = select.from.as_slice() else { return false };
    let is_name = |factor: &TableFactor| matches!(factor, TableFactor::Table { name: found, alias: None, .. } if found.to_string() == name);
    is_name(&from.relation) && from.joins.len() == 1 && is_name(&from.joins[0].relation)
}

fn select(sql: &str) -> Option<Box<datafusion::sql::sqlparser::ast::Select>> {
    let statement = Parser::parse_sql(&Sql, sql).ok()?.pop()?;
    let Statement::Query(query) = statement else { return None };
    match *query.body {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(String, String)> {
        let queries = split_queries("test", text).expect("queries");
        queries.into_iter().map(|q| (q.name, q.sql.trim().to_owned())).collect()
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
        let queries = split_queries("test", text).expect("queries");
        assert_eq!(queries[1].name, "q2");
        assert_eq!(queries[1].sql, "\n  SELECT über,\n x");
        assert_eq!(queries[1].title, "SELECT über, x");
    }

    #[test]
    fn texts_without_queries_have_none() {
        for text in ["", "  \n", ";;", "-- only a comment\n", "/* … */ ;"] {
            assert!(split(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn unusable_names_and_texts_are_pointed_at() {
        let error = |text: &str| split_queries("f.sql", text).expect_err("a mistake").to_string();
        assert!(error("-- name: ../x\nSELECT 1").starts_with("f.sql:1:1: the query name \"../x\" is not usable"));
        assert!(error("SELECT 1;\n-- name: q1\nSELECT 2").starts_with("f.sql:2:1: two queries are called q1"));
        assert!(
            error("SELECT 1,\n 'open").starts_with("f.sql:2:2: Unterminated string"),
            "{}",
            error("SELECT 1,\n 'open")
        );
    }

    #[test]
    fn words_of_sql_need_quotes() {
        for word in
            ["user", "from", "current_date", "table", "distinct", "not", "null", "true", "interval", "a b", "1a", ""]
        {
            assert!(needs_quotes(word), "{word}");
        }
        for word in ["name", "date", "year", "order", "desc", "größe", "value", "type", "title", "_x"] {
            assert!(!needs_quotes(word), "{word}");
        }
    }
}
