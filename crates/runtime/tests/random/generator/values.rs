//! Expressions.

use super::{Generator, Scope};
use crate::random::operations::{self, COMPARISONS, Operation};
use crate::random::tree::{Expr, Type};
use crate::random::walk::walk_parts;

/// Digits behind the point that products may have.
const MOST_DIGITS: u8 = 12;

impl Generator<'_> {
    /// A column of the type, or a literal where there is none.
    pub(super) fn column(&mut self, of: Type, scope: &Scope) -> Expr {
        let fitting: Vec<&Expr> = scope.own.iter().filter(|column| column.of().is_like(of)).collect();
        if fitting.is_empty() { self.literal(of) } else { (*self.rng.pick(&fitting)).clone() }
    }

    pub(super) fn literal(&mut self, of: Type) -> Expr {
        if self.rng.one_in(25) {
            return null(of);
        }
        let text = match of {
            Type::Int => (*self.rng.pick(&["0", "1", "2", "3", "5", "7", "-1", "100"])).to_owned(),
            Type::Text => format!("'{}'", self.rng.pick(&["x", "y", "zz", "", "XY", "é", "ab c", "12"])),
            Type::Decimal(_) => {
                if self.rng.one_in(10) {
                    // Numbers with an exponent are decimals for tenaz (`plan/number.rs`), and floats for DuckDB.
                    let (tenaz, duck) = *self.rng.pick(&[("1e2", "100.0"), ("2.5e-1", "0.25")]);
                    let scale = duck.len() - 1 - duck.find('.').expect("a point");
                    let (tenaz, duck) = (tenaz.to_owned(), duck.to_owned());
                    return Expr::Literal { tenaz, duck, of: Type::Decimal(scale as u8) };
                }
                let text = *self.rng.pick(&["0.0", "0.25", "1.50", "2.75", "-3.00", "12.3456", "0.3"]);
                let scale = text.len() - 1 - text.find('.').expect("a point");
                return Expr::literal(text, Type::Decimal(scale as u8));
            }
            Type::Float | Type::Approximate => {
                let texts = ["CAST(0.5 AS DOUBLE)", "CAST(-2 AS DOUBLE)", "CAST(0 AS DOUBLE)", "CAST(1e2 AS DOUBLE)"];
                (*self.rng.pick(&texts)).to_owned()
            }
            Type::Bool => (*self.rng.pick(&["true", "false"])).to_owned(),
            Type::Date => {
                let days = ["2024-01-15", "1969-12-28", "2023-06-01", "2024-02-29"];
                let day = if self.rng.one_in(30) { "2300-01-01" } else { *self.rng.pick(&days) };
                format!("DATE '{day}'")
            }
            Type::Timestamp => {
                let times = ["2024-01-15 00:30:00", "1970-01-01 00:00:00", "2024-02-29 23:59:59.5"];
                let time = if self.rng.one_in(30) { "2500-01-01 00:00:00" } else { *self.rng.pick(&times) };
                format!("TIMESTAMP '{time}'")
            }
            Type::Ints => {
                return self.operation(
                    "make_array({0}, {1})",
                    of,
                    vec![Expr::literal("1", Type::Int), Expr::literal("2", Type::Int)],
                );
            }
            Type::Texts => {
                return self.operation(
                    "make_array({0}, {1})",
                    of,
                    vec![Expr::literal("'x'", Type::Text), Expr::literal("'y'", Type::Text)],
                );
            }
        };
        Expr::literal(text, of)
    }

    pub(super) fn value(&mut self, of: Type, scope: &Scope, depth: usize) -> Expr {
        if of.is_plain() && (depth == 0 || self.rng.one_in(2)) {
            return if self.rng.one_in(8) { self.literal(of) } else { self.column(of, scope) };
        }
        if depth == 0 {
            return self.literal(of);
        }
        match self.rng.below(14) {
            0 if of.is_plain() => self.case(of, scope, depth),
            _ if of == Type::Bool && self.rng.one_in(2) => self.predicate(scope, depth - 1),
            _ => self.call(of, scope, depth),
        }
    }

    fn call(&mut self, of: Type, scope: &Scope, depth: usize) -> Expr {
        let fitting: Vec<&'static Operation> = operations::scalars().filter(|o| o.gives_like(of)).collect();
        let mut operation = *self.rng.pick(&fitting);
        if operation.duck.is_none() && !self.rng.one_in(6) {
            // What DuckDB does not know costs the whole query its second opinion.
            operation = *self.rng.pick(&fitting);
        }
        let args = self.arguments(operation, of, scope, depth - 1);
        let result = operation.result(&args, of);
        if matches!(result, Type::Decimal(scale) if scale > MOST_DIGITS) {
            return self.column(of, scope);
        }
        Expr::call(operation, result, args)
    }

    fn case(&mut self, of: Type, scope: &Scope, depth: usize) -> Expr {
        let operand = if self.rng.one_in(4) { Some(self.any_type()) } else { None };
        let arms: Vec<(Expr, Expr)> = (0..1 + self.rng.below(2))
            .map(|_| {
                let when = match operand {
                    Some(of) => self.literal(of),
                    None => self.predicate(scope, 1),
                };
                (when, self.value(of, scope, depth - 1))
            })
            .collect();
        let operand = operand.map(|of| Box::new(self.column(of, scope)));
        let otherwise = if self.rng.one_in(4) { None } else { Some(Box::new(self.value(of, scope, depth - 1))) };
        let results = arms.iter().map(|(_, then)| then.of()).chain(otherwise.iter().map(|expr| expr.of()));
        let of = results.max().expect("a case has an arm");
        Expr::Case { of, operand, arms, otherwise }
    }

    pub(super) fn predicate(&mut self, scope: &Scope, depth: usize) -> Expr {
        if depth > 0 && self.rng.one_in(3) {
            let word = *self.rng.pick(&["AND", "OR", "NOT"]);
            let count = if word == "NOT" { 1 } else { 2 };
            let parts = (0..count).map(|_| self.predicate(scope, depth - 1)).collect();
            return Expr::Logic { word, parts };
        }
        let of = self.any_type();
        match self.rng.below(12) {
            0 => self.in_list(of, scope),
            1..4 => self.call(Type::Bool, scope, depth.max(1)),
            4 => self.column(Type::Bool, scope),
            _ => {
                let operation = self.rng.pick(COMPARISONS);
                let mut args = vec![self.value(of, scope, depth.min(1))];
                args.extend((1..operation.takes.len()).map(|_| self.value(of, scope, 0)));
                Expr::call(operation, Type::Bool, args)
            }
        }
    }

    fn in_list(&mut self, of: Type, scope: &Scope) -> Expr {
        let value = Box::new(self.value(of, scope, 1));
        let mut list: Vec<Expr> = (0..1 + self.rng.below(5)).map(|_| self.literal(of)).collect();
        if self.rng.one_in(5) {
            list.push(Expr::literal("NULL", of));
        }
        if self.rng.one_in(6) {
            list.push(self.column(of, scope));
        }
        Expr::InList { value, not: self.rng.one_in(3), list }
    }

    /// A call of the operation that is written so.
    pub(super) fn operation(&mut self, text: &str, of: Type, args: Vec<Expr>) -> Expr {
        let found = operations::all().find(|operation| {
            operation.tenaz == text && operation.takes.len() == args.len() && operation.gives_like(of)
        });
        let operation = found.unwrap_or_else(|| panic!("no operation is written {text:?}"));
        Expr::call(operation, operation.result(&args, of), args)
    }

    /// A comparison that is written so.
    pub(super) fn comparison(&mut self, text: &str, args: Vec<Expr>) -> Expr {
        let operation = COMPARISONS.iter().find(|operation| operation.tenaz == text);
        Expr::call(operation.unwrap_or_else(|| panic!("no comparison is written {text:?}")), Type::Bool, args)
    }
}

/// A null of the type.
pub(super) fn null(of: Type) -> Expr {
    let (tenaz, duck) = match of {
        Type::Bool => ("BOOLEAN", "BOOLEAN"),
        Type::Int => ("BIGINT", "BIGINT"),
        Type::Decimal(_) => return Expr::literal("CAST(NULL AS DECIMAL(8, 2))", Type::Decimal(2)),
        Type::Float | Type::Approximate => ("DOUBLE", "DOUBLE"),
        Type::Date => ("DATE", "DATE"),
        Type::Timestamp => ("TIMESTAMP", "TIMESTAMP"),
        Type::Text => ("VARCHAR", "VARCHAR"),
        Type::Ints => ("BIGINT[]", "BIGINT[]"),
        Type::Texts => ("VARCHAR[]", "VARCHAR[]"),
    };
    Expr::Literal { tenaz: format!("CAST(NULL AS {tenaz})"), duck: format!("CAST(NULL AS {duck})"), of }
}

/// Whether the expression, or one inside it, is such a one. What is in a subquery does not count.
fn any(expr: &Expr, is_such: fn(&Expr) -> bool) -> bool {
    let mut found = false;
    walk_parts(expr, &mut |expr| found |= is_such(expr));
    found
}

pub(super) fn has_subquery(expr: &Expr) -> bool {
    any(expr, |expr| matches!(expr, Expr::Subquery { .. }))
}

/// Whether it takes more than its own row: an aggregate or a window.
pub(super) fn is_computed_from_many(expr: &Expr) -> bool {
    any(expr, |expr| matches!(expr, Expr::Call(call) if call.operation.tenaz.contains("{f}")))
}
