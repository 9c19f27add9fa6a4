//! A query's text to the parser's tree, in which everything is written as DataFusion understands it.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Diagnostic, Result, Span, plan_datafusion_err};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Fetch, Ident, LimitClause, Query, Select, SetExpr, Statement as SqlStatement, TableFactor,
    UnaryOperator, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::chains::balance_chains;
use super::dialect::Sql;
use super::number::{Number, read_number};
use super::size_limits::{check_size, check_tokens};
use super::text::{matters, tokens};

/// Parses a text with one query. Places in the tree are places in the text.
pub(super) fn parse(sql: &str, recursion_limit: usize) -> Result<Statement> {
    if let Ok(tokens) = tokens(sql) {
        check_tokens(tokens.iter().filter(|token| matters(token)).count())?;
    }
    let mut parser = DFParserBuilder::new(sql).with_dialect(&Sql).with_recursion_limit(recursion_limit).build()?;
    let mut statements = parser.parse_statements()?;
    let statement = statements.pop_front().filter(|_| statements.is_empty());
    let mut statement = statement.ok_or_else(|| plan_datafusion_err!("one query is expected here"))?;
    if let Statement::Statement(statement) = &mut statement {
        balance_chains(statement);
        check_size(statement)?;
        in_plain_words(statement)?;
    }
    Ok(statement)
}

fn in_plain_words(statement: &mut SqlStatement) -> Result<()> {
    match VisitMut::visit(statement, &mut PlainWords) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Rewrites numbers, FETCH FIRST and IN of several columns.
struct PlainWords;

fn refused(message: &str) -> ControlFlow<Box<DataFusionError>> {
    ControlFlow::Break(Box::new(DataFusionError::Plan(message.to_owned())))
}

impl VisitorMut for PlainWords {
    type Break = Box<DataFusionError>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr } = expr
            && matches!(**expr, Expr::BinaryOp { op: BinaryOperator::PGExp, .. })
        {
            return refused("-a ^ b would be -(a ^ b) here and (-a) ^ b elsewhere; put into parentheses what is meant");
        }
        let Expr::Value(ValueWithSpan { value: Value::Number(text, _), span }) = expr else {
            return ControlFlow::Continue(());
        };
        match read_number(text) {
            Ok(Number::Plain) => {}
            Ok(Number::Decimal(plain)) => *text = plain,
            Ok(Number::Float) => {
                let digits = Value::SingleQuotedString(std::mem::take(text)).with_span(*span);
                *expr = float(digits);
            }
            Err(message) => {
                let place = Span::try_from_sqlparser_span(*span);
                let diagnostic = Diagnostic::new_error(message.clone(), place);
                return ControlFlow::Break(Box::new(DataFusionError::Plan(message).with_diagnostic(diagnostic)));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
            limit.iter_mut().for_each(make_whole);
            offset.iter_mut().for_each(|offset| make_whole(&mut offset.value));
        }
        match query.fetch.take() {
            Some(Fetch { with_ties: false, percent: false, quantity }) if may_have_limit(query) => {
                let one = || Expr::Value(Value::Number("1".to_owned(), false).into());
                let offset = match query.limit_clause.take() {
                    Some(LimitClause::LimitOffset { offset, .. }) => offset,
                    _ => None,
                };
                let limit = Some(quantity.unwrap_or_else(one));
                query.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
            }
            Some(_) => {
                let message =
                    "FETCH FIRST takes a number of rows and ONLY: FETCH FIRST 10 ROWS ONLY, or write LIMIT 10";
                return ControlFlow::Break(Box::new(DataFusionError::Plan(message.to_owned())));
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for condition in [&mut select.selection, &mut select.having].into_iter().flatten() {
            match_rows(condition);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => refused(
                "TABLESAMPLE would make the answer differ from run to run; filter by a column instead: id % 10 = 0",
            ),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// `(a, b) IN (SELECT x, y …)` where all that counts is whether it is true: `EXISTS (SELECT … WHERE x = a AND y = b)`.
fn match_rows(condition: &mut Expr) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            match_rows(left);
            match_rows(right);
        }
        Expr::Nested(inner) => match_rows(inner),
        Expr::InSubquery { expr, subquery, negated: false } => {
            if let Expr::Tuple(values) = expr.as_ref()
                && let Some(exists) = exists_row(values, subquery)
            {
                *condition = exists;
            }
        }
        _ => {}
    }
}

fn exists_row(values: &[Expr], rows: &Query) -> Option<Expr> {
    let names: Vec<String> = (1..=values.len()).map(|column| format!("__column_{column}")).collect();
    let exists = format!("EXISTS (SELECT 1 FROM (SELECT 1) AS __rows({}))", names.join(", "));
    let mut exists = Parser::new(&Sql).try_with_sql(&exists).ok()?.parse_expr().ok()?;
    let Expr::Exists { subquery, .. } = &mut exists else { return None };
    let SetExpr::Select(select) = subquery.body.as_mut() else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else { return None };
    **subquery = rows.clone();
    let both = |left, op, right| Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) };
    let equal = names.into_iter().zip(values).map(|(name, value)| {
        both(Expr::Identifier(Ident::new(name)), BinaryOperator::Eq, Expr::Nested(Box::new(value.clone())))
    });
    select.selection = equal.reduce(|all, next| both(all, BinaryOperator::And, next));
    Some(exists)
}

/// `1e3` as a number of rows.
fn make_whole(expr: &mut Expr) {
    if let Expr::Value(ValueWithSpan { value: Value::Number(text, _), .. }) = expr
        && let Ok(Number::Decimal(plain)) = read_number(text)
        && let Some(whole) = plain.strip_suffix(".0")
    {
        *text = whole.to_owned();
    }
}

/// Whether nothing is said about the number of rows but perhaps OFFSET.
fn may_have_limit(query: &Query) -> bool {
    match &query.limit_clause {
        None => true,
        Some(LimitClause::LimitOffset { limit, limit_by, .. }) => limit.is_none() && limit_by.is_empty(),
        Some(LimitClause::OffsetCommaLimit { .. }) => false,
    }
}

/// `CAST('1e300' AS DOUBLE)`
fn float(digits: ValueWithSpan) -> Expr {
    use datafusion::sql::sqlparser::ast::{CastKind, DataType, ExactNumberInfo};
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Value(digits)),
        data_type: DataType::Double(ExactNumberInfo::None),
        array: false,
        format: None,
    }
}
