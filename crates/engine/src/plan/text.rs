//! SQL as text: tokens and their places, words that SQL keeps for itself.

use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, SetExpr, Statement, TableFactor};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError};

use super::dialect::Sql;

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
