//! Long chains of AND and OR as trees of small depth, and long chains of `x = 1 OR x = 2 OR …` as `x IN (1, 2, …)`.
//!
//! The parser makes a chain of n terms a tree of depth n, in which every pass of the planner goes down to the bottom from every
//! node: time by n², and a stack by n. AND and OR are associative, with SQL's nulls too, and terms stay in their order; so a
//! chain is taken apart and put together as a balanced tree. Other operators are not: `a + b + c` has one order of rounding and of overflow.

use std::collections::VecDeque;
use std::mem::replace;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Statement, Value, ValueWithSpan, VisitMut, VisitorMut};

use crate::limits::LONG_CHAIN;

/// Makes every long chain of AND or OR shallow. Shorter ones stay as they are.
pub(super) fn balance_chains(statement: &mut Statement) {
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut Chains);
}

struct Chains;

impl VisitorMut for Chains {
    type Break = ();

    /// From the top, so that a chain is met as a whole.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        balance(expr);
        ControlFlow::Continue(())
    }
}

fn balance(expr: &mut Expr) {
    let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr else { return };
    let op = op.clone();
    if chain_length(expr, &op) < LONG_CHAIN {
        return;
    }
    let mut terms = take_apart(replace(expr, nothing()), &op);
    if op == BinaryOperator::Or {
        terms = with_lists(terms);
    }
    *expr = put_together(terms, &op);
}

fn nothing() -> Expr {
    Expr::Value(Value::Null.into())
}

/// The number of terms to the left, as the parser nests them.
fn chain_length(mut expr: &Expr, chained: &BinaryOperator) -> usize {
    let mut length = 1;
    while let Expr::BinaryOp { left, op, .. } = expr
        && op == chained
    {
        length += 1;
        expr = left;
    }
    length
}

/// The terms of a chain, in their order. It does not recurse: a chain may be as long as the text.
fn take_apart(expr: Expr, chained: &BinaryOperator) -> Vec<Expr> {
    let mut terms = VecDeque::new();
    let mut rest = expr;
    loop {
        match rest {
            Expr::BinaryOp { left, op, right } if op == *chained => {
                terms.push_front(*right);
                rest = *left;
            }
            first => {
                terms.push_front(first);
                return terms.into();
            }
        }
    }
}

/// Terms in a row that compare the same expression with constants of one kind become one list.
fn with_lists(terms: Vec<Expr>) -> Vec<Expr> {
    let mut made: Vec<Expr> = Vec::new();
    for term in terms {
        match (made.last_mut(), term) {
            (
                Some(Expr::InList { expr, list, negated: false }),
                Expr::BinaryOp { left, op: BinaryOperator::Eq, right },
            ) if **expr == *left && list.first().and_then(kind) == kind(&right) && kind(&right).is_some() => {
                list.push(*right);
            }
            (_, Expr::BinaryOp { left, op: BinaryOperator::Eq, right }) if kind(&right).is_some() && is_name(&left) => {
                made.push(Expr::InList { expr: left, list: vec![*right], negated: false });
            }
            (_, term) => made.push(term),
        }
    }
    made.into_iter().map(without_list_of_one).collect()
}

fn without_list_of_one(term: Expr) -> Expr {
    match term {
        Expr::InList { expr, mut list, negated: false } if list.len() == 1 => {
            let right = Box::new(list.pop().unwrap_or_else(nothing));
            Expr::BinaryOp { left: expr, op: BinaryOperator::Eq, right }
        }
        term => term,
    }
}

fn is_name(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// Constants of one kind are compared in one type, alone as in a list.
#[derive(Debug, PartialEq, Eq)]
enum ConstantKind {
    Whole,
    Text,
}

fn kind(expr: &Expr) -> Option<ConstantKind> {
    let Expr::Value(ValueWithSpan { value, .. }) = expr else { return None };
    match value {
        // Longer ones have another type.
        Value::Number(digits, false) if digits.len() <= 18 && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(ConstantKind::Whole)
        }
        Value::SingleQuotedString(_) => Some(ConstantKind::Text),
        _ => None,
    }
}

fn put_together(terms: Vec<Expr>, op: &BinaryOperator) -> Expr {
    let mut level: Vec<Expr> = terms;
    while level.len() > 1 {
        let mut next = Vec::with_capacity(level.len().div_ceil(2));
        let mut terms = level.into_iter();
        while let Some(left) = terms.next() {
            next.push(match terms.next() {
                Some(right) => Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) },
                None => left,
            });
        }
        level = next;
    }
    level.pop().unwrap_or_else(nothing)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::plan::dialect::Sql;

    fn balanced(sql: &str) -> Expr {
        let mut expr = Parser::new(&Sql).try_with_sql(sql).unwrap().parse_expr().unwrap();
        balance(&mut expr);
        expr
    }

    fn chain(op: &str, terms: usize, term: impl Fn(usize) -> String) -> String {
        (0..terms).map(term).collect::<Vec<_>>().join(op)
    }

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                1 + depth(left).max(depth(right))
            }
            _ => 1,
        }
    }

    #[test]
    fn a_long_chain_is_shallow_and_reads_the_same() {
        for op in [" AND ", " OR "] {
            let sql = chain(op, 3000, |n| format!("c{n} < {n}"));
            let expr = balanced(&sql);
            assert!(depth(&expr) <= 13, "{}", depth(&expr));
            assert_eq!(expr.to_string(), sql);
        }
    }

    #[test]
    fn a_short_chain_stays_as_the_parser_made_it() {
        let sql = chain(" OR ", LONG_CHAIN - 1, |n| format!("id = {n}"));
        assert_eq!(depth(&balanced(&sql)), LONG_CHAIN - 1);
    }

    #[test]
    fn equalities_of_one_column_become_a_list() {
        let sql = chain(" OR ", 1900, |n| format!("id = {n}"));
        assert_eq!(balanced(&sql).to_string(), format!("id IN ({})", chain(", ", 1900, |n| n.to_string())));
        let mixed = chain(" OR ", 100, |n| if n < 50 { format!("id = {n}") } else { format!("name = 'n{n}'") });
        let lists = format!(
            "id IN ({}) OR name IN ({})",
            chain(", ", 50, |n| n.to_string()),
            chain(", ", 50, |n| format!("'n{}'", n + 50))
        );
        assert_eq!(balanced(&mixed).to_string(), lists);
    }

    #[test]
    fn constants_of_different_kinds_are_compared_each_in_its_own_type() {
        let sql = chain(" OR ", 100, |n| if n % 2 == 0 { format!("id = {n}") } else { format!("id = {n}.5") });
        assert_eq!(balanced(&sql).to_string(), sql);
    }
}
