//! FROM and WHERE.

use super::{Generator, Scope, columns_of, numbered};
use crate::random::tree::{Expr, Join, On, Query, Relation, Select, Type};

/// Rows of a join without an equality, and of one with it.
const MOST_PAIRS: usize = 2_500;
const MOST_MATCHES: usize = 20_000;

/// The name of a column without its relation.
fn name_of(column: &Expr) -> Option<&str> {
    match column {
        Expr::Column { name, of } if of.is_plain() => name.split('.').nth(1),
        _ => None,
    }
}

impl Generator<'_> {
    /// A FROM clause, the columns it offers, and about how many rows it has at most.
    pub(super) fn from(&mut self, depth: usize) -> (Vec<Join>, Scope, usize) {
        let (first, own, mut rows) = self.relation(depth);
        let mut scope = Scope { own };
        let mut joins = vec![Join { kind: "", relation: first, on: On::Nothing }];
        for _ in 0..*self.rng.pick(&[0, 0, 0, 1, 1, 1, 2]) {
            let (relation, columns, count) = self.relation(depth);
            if rows * count / 2 > MOST_MATCHES {
                continue;
            }
            let few = rows * count <= MOST_PAIRS;
            // What is joined after a comma sees nothing of what is before it.
            let after_comma = joins.last().is_some_and(|join| join.kind == ",");
            if after_comma && !few {
                continue;
            }
            let kinds: &[&str] = if after_comma {
                &[","]
            } else if few && self.rng.one_in(6) {
                &["CROSS JOIN", ","]
            } else {
                &[
                    "JOIN",
                    "JOIN",
                    "LEFT JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                    "FULL JOIN",
                    "LEFT SEMI JOIN",
                    "LEFT ANTI JOIN",
                ]
            };
            let kind = *self.rng.pick(kinds);
            if kind == "CROSS JOIN" && depth > 0 && self.rng.one_in(4) {
                let (relation, columns) = self.lateral(&scope);
                joins.push(Join { kind, relation, on: On::Nothing });
                scope.own.extend(columns);
                rows *= count;
                continue;
            }
            let mut both = scope.clone();
            both.own.extend(columns.iter().cloned());
            let on = match kind {
                "CROSS JOIN" | "," => On::Nothing,
                _ => self.on(&scope, &columns, &both, few, &joins, &relation),
            };
            joins.push(Join { kind, relation, on });
            match kind {
                "LEFT SEMI JOIN" | "LEFT ANTI JOIN" => {}
                "CROSS JOIN" | "," => (scope, rows) = (both, rows * count),
                _ => (scope, rows) = (both, (rows * count / 2).max(rows + count)),
            }
        }
        (joins, scope, rows)
    }

    fn on(&mut self, left: &Scope, right: &[Expr], both: &Scope, few: bool, joins: &[Join], with: &Relation) -> On {
        let base = |relation: &Relation| matches!(relation, Relation::Named { name, .. } if name.len() == 1);
        if let [only] = joins
            && base(&only.relation)
            && base(with)
            && self.rng.one_in(8)
        {
            return On::Using("i1".to_owned());
        }
        let right = Scope { own: right.to_vec() };
        // Mostly columns with values in common.
        let theirs = self.rng.pick(&right.own).clone();
        let alike: Vec<&Expr> = left.own.iter().filter(|ours| name_of(ours) == name_of(&theirs)).collect();
        let ours = match alike.is_empty() || self.rng.one_in(3) {
            true => self.column(theirs.of(), left),
            false => (*self.rng.pick(&alike)).clone(),
        };
        let pair = vec![ours, theirs];
        let same = if self.rng.one_in(12) { "({0} IS NOT DISTINCT FROM {1})" } else { "({0} = {1})" };
        let equal = self.comparison(same, pair);
        On::Condition(match self.rng.below(8) {
            0 if few => self.predicate(both, 1),
            1 | 2 => Expr::Logic { word: "AND", parts: vec![equal, self.predicate(both, 1)] },
            _ => equal,
        })
    }

    /// A subquery in FROM that sees the relations before it.
    fn lateral(&mut self, scope: &Scope) -> (Relation, Vec<Expr>) {
        let query = self.correlated_aggregate(Type::Int, scope);
        let alias = self.fresh();
        let columns = columns_of(&alias, &numbered(&query.columns));
        (Relation::Derived { query: Box::new(query), alias, lateral: true }, columns)
    }

    pub(super) fn relation(&mut self, depth: usize) -> (Relation, Vec<Expr>, usize) {
        let alias = self.fresh();
        if !self.common.is_empty() && self.rng.one_in(2) {
            let source = self.rng.pick(&self.common).clone();
            let columns = columns_of(&alias, &source.columns);
            return (Relation::Named { name: source.name, alias }, columns, source.rows);
        }
        match self.rng.below(if depth > 0 { 14 } else { 11 }) {
            0 if self.rng.one_in(4) => self.series(alias),
            0 => self.values(alias),
            1 if self.rng.one_in(6) => self.unnested(alias),
            11.. => {
                let types: Vec<Type> = (0..1 + self.rng.below(3)).map(|_| self.any_type()).collect();
                let query: Query = self.query_of(&types, depth - 1).query;
                let columns = columns_of(&alias, &numbered(&query.columns));
                (Relation::Derived { query: Box::new(query), alias, lateral: false }, columns, 30)
            }
            _ => self.table(alias),
        }
    }

    pub(super) fn table(&mut self, alias: String) -> (Relation, Vec<Expr>, usize) {
        let index = *self.rng.pick(&[0, 0, 0, 1, 1, 2, 2, 3, 4]);
        let source = self.tables[index].clone();
        let columns = columns_of(&alias, &source.columns);
        (Relation::Named { name: source.name, alias }, columns, source.rows)
    }

    fn series(&mut self, alias: String) -> (Relation, Vec<Expr>, usize) {
        let (from, count) = (self.rng.below(4) as i64 - 2, self.rng.below(6));
        let columns = columns_of(&alias, &numbered(&[Type::Int]));
        (Relation::Series { from, to: from + count as i64, alias }, columns, count + 1)
    }

    /// A row for each element of a list.
    fn unnested(&mut self, alias: String) -> (Relation, Vec<Expr>, usize) {
        let inner = self.fresh();
        let (table, own, rows) = self.table(inner);
        let scope = Scope { own };
        let of = self.any_type();
        let (kept, list) = (self.column(of, &scope), self.value(Type::Ints, &scope, 2));
        let element = self.operation("unnest({0})", Type::Int, vec![list]);
        let select = Select::new(vec![kept, element], vec![Join { kind: "", relation: table, on: On::Nothing }]);
        let query = Query::select(select);
        let columns = columns_of(&alias, &numbered(&query.columns));
        (Relation::Derived { query: Box::new(query), alias, lateral: false }, columns, rows * 3)
    }

    fn values(&mut self, alias: String) -> (Relation, Vec<Expr>, usize) {
        let second = self.any_type();
        // One type for a whole column: an untyped null as well as a typed one.
        let rows: Vec<Vec<Expr>> = (0..1 + self.rng.below(4))
            .map(|row| {
                [Type::Int, second]
                    .map(|of| if row > 0 && self.rng.one_in(5) { Expr::literal("NULL", of) } else { self.literal(of) })
                    .to_vec()
            })
            .collect();
        let second = rows.iter().map(|row| row[1].of()).max().expect("a row");
        let columns = columns_of(&alias, &numbered(&[Type::Int, second]));
        let count = rows.len();
        (Relation::Values { rows, alias }, columns, count)
    }

    pub(super) fn condition(&mut self, scope: &Scope, depth: usize) -> Option<Expr> {
        let mut parts = Vec::new();
        if self.rng.one_in(3) {
            parts.push(self.predicate(scope, 2));
        }
        if self.rng.one_in(12) {
            // A column that is constant from here on.
            let column = self.rng.pick(&scope.own).clone();
            let literal = self.literal(column.of());
            parts.push(self.comparison("({0} = {1})", vec![column, literal]));
        }
        if self.rng.one_in(20) {
            parts.push(self.guarded_division(scope));
        }
        if depth > 0 && self.rng.one_in(5) {
            parts.push(self.subquery_condition(scope));
        }
        match parts.len() {
            0 => None,
            1 => parts.pop(),
            _ => Some(Expr::Logic { word: "AND", parts }),
        }
    }

    /// `b <> 0 AND a / b > 1`: the guard comes first.
    fn guarded_division(&mut self, scope: &Scope) -> Expr {
        let (over, under) = (self.column(Type::Int, scope), self.column(Type::Int, scope));
        let zero = Expr::literal("0", Type::Int);
        let guard = self.comparison("({0} <> {1})", vec![under.clone(), zero]);
        let quotient = self.operation("({0} / {1})", Type::Int, vec![over, under]);
        let bound = self.literal(Type::Int);
        let test = self.comparison("({0} >= {1})", vec![quotient, bound]);
        Expr::Logic { word: "AND", parts: vec![guard, test] }
    }
}
