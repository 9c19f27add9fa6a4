//! Subqueries in expressions, correlated or not.

use super::{Generator, Scope};
use crate::random::operations::AGGREGATES;
use crate::random::tree::{By, Expr, Query, Select, Test, Ties, Type};

impl Generator<'_> {
    /// EXISTS, IN, a comparison with a value, or with any or all of them.
    pub(super) fn subquery_condition(&mut self, scope: &Scope) -> Expr {
        let outer = columns_only(scope);
        let not = self.rng.one_in(3);
        match self.rng.below(9) {
            0..3 => {
                let query = self.rows_of(&[Type::Int], &outer, true);
                Expr::Subquery { of: Type::Bool, test: Test::Exists { not }, query: Box::new(query) }
            }
            3..6 => {
                let of = self.any_type();
                let value = Box::new(self.column(of, scope));
                let correlated = self.rng.one_in(3);
                let query = self.rows_of(&[of], &outer, correlated);
                Expr::Subquery { of: Type::Bool, test: Test::In { value, not }, query: Box::new(query) }
            }
            6 if self.rng.one_in(3) => {
                let of = self.any_type();
                let value = Box::new(self.column(of, scope));
                let operator = *self.rng.pick(&["=", "<", ">=", "<>"]);
                let word = *self.rng.pick(&["ANY", "ALL"]);
                let query = self.rows_of(&[of], &outer, false);
                Expr::Subquery {
                    of: Type::Bool,
                    test: Test::Quantified { value, operator, word },
                    query: Box::new(query),
                }
            }
            _ => {
                let of = *self.rng.pick(&[Type::Int, Type::Int, Type::Decimal(2), Type::Text, Type::Date]);
                let (left, right) = (self.column(of, scope), self.scalar_subquery(of, scope));
                let operator = *self.rng.pick(&["({0} = {1})", "({0} < {1})", "({0} >= {1})", "({0} <> {1})"]);
                self.comparison(operator, vec![left, right])
            }
        }
    }

    /// One value of another relation.
    pub(super) fn scalar_subquery(&mut self, of: Type, scope: &Scope) -> Expr {
        let outer = columns_only(scope);
        let query = match self.rng.below(5) {
            0 => self.first_row(of),
            1..3 => self.correlated_aggregate(of, &outer),
            _ => self.correlated_aggregate(of, &Scope::default()),
        };
        Expr::Subquery { of: query.columns[0], test: Test::Scalar, query: Box::new(query) }
    }

    /// `SELECT aggregate FROM … WHERE own = outer`: always one row.
    pub(super) fn correlated_aggregate(&mut self, of: Type, outer: &Scope) -> Query {
        let (from, scope, _) = self.from(0);
        let list = vec![self.aggregate_of(AGGREGATES, of, &scope)];
        let mut select = Select::new(list, from);
        select.filter = self.correlation(&scope, outer);
        Query::select(select)
    }

    fn first_row(&mut self, of: Type) -> Query {
        let (from, scope, _) = self.from(0);
        let value = self.value(of, &scope, 1);
        let mut query = Query::select(Select::new(vec![value], from));
        query.order = vec![self.key(By::Output(0))];
        query.limit = Some(1);
        query.ties = Ties::None;
        query
    }

    /// Rows of another relation, of which some belong to a row outside.
    fn rows_of(&mut self, types: &[Type], outer: &Scope, correlated: bool) -> Query {
        let (from, scope, _) = self.from(0);
        if !correlated && self.rng.one_in(4) {
            return self.grouped(types, 0).query;
        }
        let list = types.iter().map(|&of| self.value(of, &scope, 1)).collect();
        let mut select = Select::new(list, from);
        select.filter = if correlated { self.correlation(&scope, outer) } else { self.condition(&scope, 0) };
        Query::select(select)
    }

    /// A condition that ties the rows inside to the row outside, if there is one.
    fn correlation(&mut self, scope: &Scope, outer: &Scope) -> Option<Expr> {
        let mut parts = Vec::new();
        if !outer.own.is_empty() {
            let theirs = self.rng.pick(&outer.own).clone();
            let ours = self.column(theirs.of(), scope);
            let operator = if self.rng.one_in(8) { "({0} < {1})" } else { "({0} = {1})" };
            parts.push(self.comparison(operator, vec![ours, theirs]));
        }
        if self.rng.one_in(3) {
            parts.push(self.predicate(scope, 1));
        }
        match parts.len() {
            0 => None,
            1 => parts.pop(),
            _ => Some(Expr::Logic { word: "AND", parts }),
        }
    }
}

/// What a subquery may see of the query around it.
fn columns_only(scope: &Scope) -> Scope {
    let own = scope.own.iter().filter(|expr| matches!(expr, Expr::Column { .. })).cloned().collect();
    Scope { own }
}
