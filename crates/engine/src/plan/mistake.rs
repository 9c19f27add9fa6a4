//! Mistakes in SQL, in the user's words: where, what, and the nearest names.

use datafusion::common::{Column, DataFusionError, SchemaError};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::text::{matters, tokens};
use crate::Error;
use crate::error::plain;
use crate::workload::{Query, Workload};
use tenaz_words::nearest;

/// Characters of the offending line that are shown.
const SHOWN_CHARS: usize = 100;
/// Names that are listed when none is near.
const SHOWN_NAMES: usize = 12;

/// Statements that are no questions.
const STATEMENTS: [&str; 45] = [
    "ALTER",
    "ANALYZE",
    "ATTACH",
    "BEGIN",
    "CALL",
    "CLOSE",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DETACH",
    "DISCARD",
    "DO",
    "DROP",
    "EXECUTE",
    "EXPLAIN",
    "EXPORT",
    "FETCH",
    "GRANT",
    "IMPORT",
    "INSERT",
    "KILL",
    "LOAD",
    "LOCK",
    "MERGE",
    "PRAGMA",
    "PREPARE",
    "REFRESH",
    "REPLACE",
    "RESET",
    "REVOKE",
    "ROLLBACK",
    "SET",
    "SHOW",
    "START",
    "TRUNCATE",
    "UNLOAD",
    "UPDATE",
    "USE",
    "VACUUM",
];

/// Words that other dialects have and this one spells differently.
const ELSEWHERE: [(&str, &str); 24] = [
    ("year", "extract(year FROM x)"),
    ("month", "extract(month FROM x)"),
    ("day", "extract(day FROM x)"),
    ("hour", "extract(hour FROM x)"),
    ("minute", "extract(minute FROM x)"),
    ("weekday", "extract(dow FROM x)"),
    ("strftime", "to_char(x, '%Y-%m')"),
    ("date_format", "to_char(x, '%Y-%m')"),
    ("ifnull", "coalesce(x, y)"),
    ("isnull", "x IS NULL"),
    ("iif", "CASE WHEN … THEN … ELSE … END"),
    ("if", "CASE WHEN … THEN … ELSE … END"),
    ("len", "length(x)"),
    ("group_concat", "string_agg(x, ',')"),
    ("listagg", "string_agg(x, ',')"),
    ("datediff", "a - b"),
    ("date_diff", "a - b"),
    ("age", "a - b"),
    ("mod", "a % b"),
    ("variance", "var_samp(x)"),
    ("approx_count_distinct", "count(DISTINCT x)"),
    ("last_day", "date_trunc('month', x) + INTERVAL '1 month' - INTERVAL '1 day'"),
    ("getdate", "a date such as DATE '2024-12-31'"),
    ("regexp_matches", "regexp_like(x, pattern)"),
];

/// Clauses of a query: a word near one of these, where the parser stumbles, is probably meant to be one.
const CLAUSES: [&str; 21] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "OUTER",
    "UNION",
    "WITH",
    "VALUES",
    "DISTINCT",
    "BETWEEN",
    "PARTITION",
];

/// An error with the offending line below, and a caret under the place.
pub(super) fn pointed(origin: &str, sql: &str, place: Option<Location>, message: String) -> Error {
    let Some(place) = place.filter(|place| place.line > 0) else {
        return Error::Sql { query: origin.to_owned(), place: String::new(), message };
    };
    let (line, column) = (place.line, place.column.max(1));
    let text = sql.lines().nth(line as usize - 1).unwrap_or_default();
    let width = width_at(sql, place);
    // Of a long line the part around the place is shown.
    let at = column as usize - 1;
    let skip = if at > SHOWN_CHARS * 3 / 4 { at - SHOWN_CHARS / 2 } else { 0 };
    let shown: String =
        text.chars().skip(skip).take(SHOWN_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let (dots, caret) = (if skip > 0 { "…" } else { "" }, at - skip + usize::from(skip > 0));
    let margin = " ".repeat(line.to_string().len());
    let carets = "^".repeat(width.clamp(1, SHOWN_CHARS.saturating_sub(at - skip).max(1)));
    let message = format!("{message}\n  {line} | {dots}{shown}\n  {margin} | {}{carets}", " ".repeat(caret));
    Error::Sql { query: origin.to_owned(), place: format!(":{line}:{column}"), message }
}

/// The characters of the token that starts at a place.
fn width_at(sql: &str, place: Location) -> usize {
    let found = tokens(sql).ok().and_then(|all| all.into_iter().find(|t| t.span.start == place && matters(t)));
    let Some(token) = found.filter(|t| t.span.end.line == t.span.start.line) else { return 1 };
    (token.span.end.column - token.span.start.column) as usize
}

/// Refuses what is no single question, before it is planned.
pub(super) fn check_statement(query: &Query) -> Result<(), Error> {
    let wrong = |place, message: String| Err(pointed(&query.origin, &query.sql, place, message));
    let all = match tokens(&query.sql) {
        Ok(all) => all,
        Err(e) => return wrong(Some(e.location), e.message),
    };
    let mut rest = all.iter().filter(|t| matters(t));
    let Some(first) = rest.next() else { return wrong(None, "there is no query".to_owned()) };
    if let Token::Word(word) = &first.token {
        let word = word.value.to_uppercase();
        if STATEMENTS.contains(&word.as_str()) {
            let cure = match word.as_str() {
                "EXPLAIN" | "ANALYZE" => "; `tenaz explain WORKLOAD` shows how a workload's queries are answered",
                "SHOW" | "DESC" | "DESCRIBE" => "; `tenaz sql --data DIR` without a query lists tables and columns",
                _ => "",
            };
            let what = "only queries can be asked (SELECT …, WITH … or VALUES …), and nothing is changed by them";
            return wrong(Some(first.span.start), format!("{word} is not possible: {what}{cure}"));
        }
        if !["SELECT", "WITH", "VALUES", "FROM", "TABLE"].contains(&word.as_str()) {
            let cure = match nearest(&word, ["SELECT", "WITH", "VALUES"]).first() {
                Some(close) => format!("; did you mean {close}?"),
                None => String::new(),
            };
            let what = format!("a query starts with SELECT, WITH or VALUES, not with {}", first.token);
            return wrong(Some(first.span.start), format!("{what}{cure}"));
        }
    }
    let mut behind = rest.skip_while(|t| t.token != Token::SemiColon).skip_while(|t| t.token == Token::SemiColon);
    match behind.next() {
        Some(second) => {
            let message = "a second query starts here; this place has room for one".to_owned();
            wrong(Some(second.span.start), message)
        }
        None => Ok(()),
    }
}

/// A planning error in the user's words.
pub(super) fn wrong(context: &SessionContext, workload: &Workload, query: &Query, error: &DataFusionError) -> Error {
    let tokens: Vec<TokenWithSpan> = tokens(&query.sql).unwrap_or_default().into_iter().filter(matters).collect();
    let case = Case { context, workload, tokens: &tokens };
    let text = plain(error);
    let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
    let span = span.map(|span| Location::new(span.start.line, span.start.column));
    let (place, message) = case
        .syntax(&text)
        .or_else(|| case.schema(error))
        .or_else(|| case.table(&text))
        .or_else(|| case.function(&text))
        .unwrap_or_else(|| case.other(&text));
    pointed(&query.origin, &query.sql, place.or(span), message)
}

/// All that is known about a mistake.
struct Case<'a> {
    context: &'a SessionContext,
    workload: &'a Workload,
    /// Those that matter.
    tokens: &'a [TokenWithSpan],
}

/// A place, where there is one better than the planner's, and a text.
type Told = (Option<Location>, String);

impl Case<'_> {
    /// The parser's complaint. It puts the place at the end of its text, and none if the text ends too early.
    fn syntax(&self, text: &str) -> Option<Told> {
        let text =
            text.trim_start_matches("sql parser error: ").trim_start_matches("ParserError(\"").trim_end_matches("\")");
        let (what, place) = match text.split_once(" at Line: ") {
            Some((what, rest)) => {
                let (line, column) = rest.split_once(", Column: ")?;
                let column: String = column.chars().take_while(char::is_ascii_digit).collect();
                (what, Location::new(line.parse().ok()?, column.parse().ok()?))
            }
            None if text.ends_with("found: EOF") => (text, self.tokens.last()?.span.end),
            None => return None,
        };
        let expectation = what.strip_prefix("Expected: ").or_else(|| what.strip_prefix("Expected "));
        let Some((expected, found)) = expectation.and_then(|rest| rest.rsplit_once(", found: ")) else {
            return Some((Some(place), what.to_owned()));
        };
        // Sometimes the parser has gone one token too far.
        let at = self.tokens.iter().position(|t| t.span.start == place);
        let before = at.and_then(|at| at.checked_sub(1)).map(|before| &self.tokens[before]);
        let too_far = at.is_some_and(|at| self.tokens[at].token.to_string() != found);
        let place = before.filter(|t| too_far && t.token.to_string() == found).map_or(place, |t| t.span.start);
        let found = if found == "EOF" { "but the query ends here".to_owned() } else { format!("found {found}") };
        Some((Some(place), format!("expected {expected}, {found}{}", self.meant_clause(place))))
    }

    /// A misspelt word of SQL stands where the parser stumbles, or one or two words before: `a FORM t` reads like an alias.
    fn meant_clause(&self, place: Location) -> String {
        let known: Vec<&str> = self
            .workload
            .tables
            .iter()
            .flat_map(|t| t.layout.columns.iter().map(|c| c.name.as_str()).chain([t.name.as_str()]))
            .collect();
        let before = self.tokens.iter().filter(|t| t.span.start <= place).rev().take(3);
        for token in before {
            let Token::Word(word) = &token.token else { continue };
            let upper = word.value.to_uppercase();
            let is_name = known.contains(&word.value.as_str()) || word.quote_style.is_some() || upper.len() < 3;
            if is_name || CLAUSES.contains(&upper.as_str()) {
                continue;
            }
            if let Some(close) = nearest(&upper, CLAUSES).first() {
                return format!("; did you mean {close} instead of {}?", word.value);
            }
        }
        String::new()
    }

    fn schema(&self, error: &DataFusionError) -> Option<Told> {
        let DataFusionError::SchemaError(schema_error, _) = error.find_root() else { return None };
        match schema_error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => Some(self.missing_column(field, valid_fields)),
            SchemaError::AmbiguousReference { field } => Some(self.ambiguous(field)),
            SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
                let text = format!("two columns are called {name:?}; give one another name with AS");
                Some((self.word(name, |_, _| true), text))
            }
        }
    }

    fn missing_column(&self, field: &Column, valid: &[Column]) -> Told {
        let qualifier = field.relation.as_ref().map(|relation| relation.table().to_owned());
        let of = |column: &Column| column.relation.as_ref().map(|relation| relation.table().to_owned());
        let mut tables: Vec<String> = valid.iter().filter_map(of).collect();
        tables.sort();
        tables.dedup();
        if let Some(qualifier) = qualifier.as_ref().filter(|q| !tables.contains(q)) {
            let names: Vec<&str> = tables.iter().map(String::as_str).collect();
            let place = self.word(qualifier, |_, after| after == Some(&Token::Period));
            let cure = if names.is_empty() { "there is no FROM".to_owned() } else { cure(qualifier, &names) };
            return (place, format!("there is no table or alias {qualifier:?} here; {cure}"));
        }
        let place = self.word(&field.name, |before, _| (before == Some(&Token::Period)) == qualifier.is_some());
        let candidates = valid.iter().filter(|column| qualifier.is_none() || of(column) == qualifier);
        let names: Vec<&str> = candidates.map(|column| column.name.as_str()).collect();
        let inside = qualifier.as_ref().map(|q| format!(" in {q}")).unwrap_or_default();
        let mut text = format!("there is no column {:?}{inside}", field.name);
        let elsewhere = valid.iter().find(|column| qualifier.is_some() && column.name == field.name);
        let quoted = self
            .tokens
            .iter()
            .any(|t| matches!(&t.token, Token::Word(w) if w.quote_style == Some('"') && w.value == field.name));
        if let Some(column) = elsewhere {
            text.push_str(&format!("; it is in {}", of(column).unwrap_or_default()));
        } else if quoted && nearest(&field.name, names.iter().copied()).is_empty() {
            text.push_str(&format!("; for a text write single quotes: '{}'", field.name));
        } else if names.is_empty() {
            text.push_str("; there is no FROM");
        } else {
            text.push_str(&format!("; {}", cure(&field.name, &names)));
        }
        (place, text)
    }

    fn ambiguous(&self, field: &Column) -> Told {
        let used = |name: &str| self.word(name, |_, _| true).is_some();
        let tables = self.workload.tables.iter().filter(|t| t.layout.columns.iter().any(|c| c.name == field.name));
        let choices: Vec<String> =
            tables.filter(|t| used(&t.name)).map(|t| format!("{}.{}", self.alias_of(&t.name), field.name)).collect();
        let cure = match choices.as_slice() {
            [] | [_] => format!("say which with the table's name or alias in front: t.{}", field.name),
            choices => format!("write {}", choices.join(" or ")),
        };
        let place = self.word(&field.name, |before, _| before != Some(&Token::Period));
        (place, format!("the column {:?} is in more than one table; {cure}", field.name))
    }

    /// What a table is called in the query: the word after it, if that is an alias.
    fn alias_of(&self, table: &str) -> String {
        use datafusion::sql::sqlparser::keywords::Keyword;
        let at =
            self.tokens.iter().position(|t| matches!(&t.token, Token::Word(w) if w.value.eq_ignore_ascii_case(table)));
        let mut after = self.tokens.iter().skip(at.map_or(usize::MAX, |at| at + 1)).map(|t| &t.token);
        let mut next = after.next();
        if matches!(next, Some(Token::Word(w)) if w.keyword == Keyword::AS) {
            next = after.next();
        }
        match next {
            Some(Token::Word(w)) if w.keyword == Keyword::NoKeyword => w.value.clone(),
            _ => table.to_owned(),
        }
    }

    fn table(&self, text: &str) -> Option<Told> {
        let rest = text.split("table '").nth(1)?;
        let name = rest.split('\'').next()?.rsplit('.').next()?;
        if !text.contains("not found") {
            return None;
        }
        let names: Vec<&str> = self.workload.tables.iter().map(|t| t.name.as_str()).collect();
        Some((None, format!("there is no table {name:?}; {}", cure(name, &names))))
    }

    fn function(&self, text: &str) -> Option<Told> {
        let name = text.strip_prefix("Invalid function '")?.split('\'').next()?;
        let place = self.word(name, |_, after| after == Some(&Token::LParen));
        if let Some((_, here)) = ELSEWHERE.iter().find(|(there, _)| there.eq_ignore_ascii_case(name)) {
            return Some((place, format!("there is no function {name:?}; write {here}")));
        }
        let state = self.context.state();
        if state.window_functions().contains_key(&name.to_lowercase()) {
            let text = format!("the function {name:?} needs a window: {name}(…) OVER (PARTITION BY … ORDER BY …)");
            return Some((place, text));
        }
        let names = state
            .scalar_functions()
            .keys()
            .chain(state.aggregate_functions().keys())
            .chain(state.window_functions().keys());
        let mut names: Vec<&str> = names.map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let cure = match nearest(name, names) {
            close if close.is_empty() => String::new(),
            close => format!("; did you mean {}?", close.join(" or ")),
        };
        Some((place, format!("there is no function {name:?}{cure}")))
    }

    /// Everything else, with types named as workload files name them; the place is that of the function or operator at fault.
    fn other(&self, text: &str) -> Told {
        let text = text.split("\tCandidate functions:").next().unwrap_or(text).trim();
        let text = shortened(&named_types(text));
        let quoted = text.split('\'').nth(1).and_then(|call| call.split('(').next()).filter(|name| !name.is_empty());
        let place = quoted
            .and_then(|name| self.word(name, |_, after| after == Some(&Token::LParen)))
            .or_else(|| self.operator(&text));
        (place, text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
    }

    /// The only operator of the kind that the text is about.
    fn operator(&self, text: &str) -> Option<Location> {
        let words: Vec<&str> = text.split(' ').collect();
        let mut found = self.tokens.iter().filter(|t| {
            !matches!(t.token, Token::Word(_) | Token::Comma | Token::Period | Token::Number(..))
                && words.contains(&t.token.to_string().as_str())
        });
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only.span.start),
            _ => None,
        }
    }

    /// The first place of a word whose neighbours are right.
    fn word(&self, name: &str, fits: impl Fn(Option<&Token>, Option<&Token>) -> bool) -> Option<Location> {
        let neighbour = |at: Option<usize>| at.and_then(|at| self.tokens.get(at)).map(|t| &t.token);
        let is_here = |(at, token): &(usize, &TokenWithSpan)| {
            let same = matches!(&token.token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
            same && fits(neighbour(at.checked_sub(1)), neighbour(Some(at + 1)))
        };
        self.tokens.iter().enumerate().find(is_here).map(|(_, token)| token.span.start)
    }
}

/// The nearest names, or all.
fn cure(word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        close if !close.is_empty() => format!("did you mean {}?", close.join(" or ")),
        _ => {
            let mut all: Vec<&str> = Vec::new();
            names.iter().for_each(|name| {
                if !all.contains(name) {
                    all.push(name)
                }
            });
            let more = if all.len() > SHOWN_NAMES { ", …" } else { "" };
            all.truncate(SHOWN_NAMES);
            format!("there are {}{more}", all.join(", "))
        }
    }
}

/// DataFusion's longer texts, said in fewer words.
fn shortened(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("Column in SELECT must be in GROUP BY or an aggregate function")
        && let Some(column) = rest.split('"').nth(1)
    {
        return format!("{column} must be in GROUP BY, or inside an aggregate function such as max({column})");
    }
    if let Some(rest) = text.strip_prefix("Physical plan does not support logical expression ") {
        let what = rest.split('(').next().unwrap_or(rest);
        return match what {
            "ScalarSubquery" | "Exists" | "InSubquery" | "OuterReferenceColumn" => {
                "a subquery that asks for columns of the query around it is tied to it \
                by equalities only (inner.a = outer.b), without LIMIT or OFFSET; write it as a join"
                    .to_owned()
            }
            other => format!("{other} cannot stand here"),
        };
    }
    // What the parser made of it is not for the user.
    if let Some((what, _)) = text.split_once(['(', '{']).filter(|_| text.contains("Span(Location")) {
        let what = what.trim_start_matches("Unsupported ast node in sqltorel: ").trim();
        return format!("{what} is not understood");
    }
    if text == "invalid digit found in string" {
        return "ORDER BY and GROUP BY take a column, its number, or an expression, not a number with a point"
            .to_owned();
    }
    if text.starts_with("Unsupported LIMIT expression") || text.starts_with("Unsupported OFFSET expression") {
        return "LIMIT and OFFSET take a number that is known without reading any data".to_owned();
    }
    if let Some((function, rest)) = text.split_once(" user-defined coercion failed with")
        && rest.contains("Fail to find the coerced type")
        && let Some(types) = rest.split(" argument types '").nth(1).and_then(|types| types.split('\'').next())
    {
        let name = function.strip_prefix("Function ").unwrap_or(function);
        return format!("the function {name} does not take these types together: {types}; cast them to one");
    }
    let Some((function, errors)) = text.split_once(" failed to match any signature, errors: ") else {
        return text.to_owned();
    };
    let name = function.rsplit("Function ").next().unwrap_or(function);
    let first = errors.split(".,").next().unwrap_or(errors);
    if let Some((_, rest)) = first.split_once("(DataType: ") {
        let found = rest.split_once(").").map_or(rest, |(found, _)| found).trim_end_matches([')', '.']);
        return format!("the function {name} does not take a value of type {found}");
    }
    match first.split_once(" expects ") {
        Some((_, counts)) => {
            let counts = counts.split(',').next().unwrap_or(counts).trim_end_matches('.');
            format!("the function {name} expects {}", counts.replace(" but received ", ", not "))
        }
        None => format!("the function {name} does not take these arguments"),
    }
}

/// Arrow's names of types, replaced by those that workload files use.
fn named_types(text: &str) -> String {
    const NAMES: [(&str, &str); 12] = [
        ("Timestamp(µs)", "timestamp"),
        ("Timestamp(Microsecond, None)", "timestamp"),
        ("Timestamp(ns)", "timestamp"),
        ("Utf8View", "text"),
        ("LargeUtf8", "text"),
        ("Utf8", "text"),
        ("Int64", "int"),
        ("Float64", "float"),
        ("Boolean", "bool"),
        ("Date32", "date"),
        ("Decimal128(", "decimal("),
        ("Interval(MonthDayNano)", "interval"),
    ];
    NAMES.iter().fold(text.to_owned(), |text, (arrow, ours)| text.replace(arrow, ours))
}
