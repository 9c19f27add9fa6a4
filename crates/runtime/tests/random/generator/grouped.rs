//! GROUP BY and aggregates.

use super::{Built, Generator, Scope};
use crate::random::operations::{AGGREGATES, Arg, ORDERED_AGGREGATES, Operation};
use crate::random::tree::{By, Call, Expr, Group, Grouping, Key, Query, Select, Type};

impl Generator<'_> {
    pub(super) fn grouped(&mut self, types: &[Type], depth: usize) -> Built {
        let (from, scope, _) = self.from(depth);
        let filter = self.condition(&scope, depth);
        let keys = self.group_keys(&scope);
        let group = self.group(&keys);
        let mut pool = keys.clone();
        for &of in types {
            if !keys.iter().any(|key| key.of().is_like(of)) || self.rng.one_in(2) {
                pool.push(self.any_aggregate(of, &scope, depth));
            }
        }
        if group.as_ref().is_some_and(|group| group.how != Grouping::Plain) && self.rng.one_in(3) {
            let key = self.rng.pick(&keys).clone();
            pool.push(self.operation("CAST(grouping({0}) AS BIGINT)", Type::Int, vec![key]));
        }
        let groups = Scope { own: pool };
        let list: Vec<Expr> = types.iter().map(|&of| self.of_groups(of, &groups)).collect();
        let order_by = Some(self.rng.pick(&groups.own).clone());
        let mut select = Select::new(list, from);
        select.filter = filter;
        select.having = self.rng.one_in(4).then(|| self.having(&groups, &scope));
        select.group = group;
        Built { query: Query::select(select), order_by }
    }

    /// A value made of keys and aggregates.
    fn of_groups(&mut self, of: Type, groups: &Scope) -> Expr {
        let fitting: Vec<&Expr> = groups.own.iter().filter(|expr| expr.of().is_like(of)).collect();
        let is_plain = of.is_plain();
        if fitting.is_empty() || (is_plain && self.rng.one_in(6)) {
            return self.value(of, groups, 1);
        }
        (*self.rng.pick(&fitting)).clone()
    }

    fn having(&mut self, groups: &Scope, scope: &Scope) -> Expr {
        if self.rng.one_in(2) {
            let count = self.aggregate_of(&AGGREGATES[..1], Type::Int, scope);
            let bound = Expr::literal(self.rng.below(3).to_string(), Type::Int);
            return self.comparison("({0} > {1})", vec![count, bound]);
        }
        self.predicate(groups, 1)
    }

    fn group_keys(&mut self, scope: &Scope) -> Vec<Expr> {
        let mut keys = Vec::new();
        for _ in 0..self.rng.below(4).min(2) {
            let key = if self.rng.one_in(4) {
                let of = self.any_type();
                self.value(of, scope, 1)
            } else {
                self.rng.pick(&scope.own).clone()
            };
            // A number alone would be the place of a column, and a text alone is no key to anybody but us.
            let is_new = keys.iter().all(|other| format!("{other:?}") != format!("{key:?}"));
            if is_new && !key.is_literal() && !super::values::has_subquery(&key) {
                keys.push(key);
            }
        }
        keys
    }

    fn group(&mut self, keys: &[Expr]) -> Option<Group> {
        if keys.is_empty() {
            return None;
        }
        let how = match self.rng.below(8) {
            0 => Grouping::Rollup,
            1 => Grouping::Cube,
            2 => Grouping::Sets,
            _ => Grouping::Plain,
        };
        let mut sets: Vec<Vec<usize>> = (0..keys.len()).map(|key| vec![key]).collect();
        if self.rng.one_in(2) {
            sets.push((0..keys.len()).collect());
        }
        if self.rng.one_in(2) {
            sets.push(Vec::new());
        }
        Some(Group { how, keys: keys.to_vec(), sets })
    }

    fn any_aggregate(&mut self, of: Type, scope: &Scope, depth: usize) -> Expr {
        let needs_order = matches!(of, Type::Ints | Type::Texts);
        let table = if needs_order || self.rng.one_in(8) { ORDERED_AGGREGATES } else { AGGREGATES };
        if depth > 0 && of == Type::Int && self.rng.one_in(40) {
            // A subquery as the argument.
            let argument = self.scalar_subquery(Type::Int, scope);
            return self.operation("max({0}){f}", Type::Int, vec![argument]);
        }
        self.aggregate_of(table, of, scope)
    }

    /// A call of one of these aggregates that gives such a type.
    pub(super) fn aggregate_of(&mut self, table: &'static [Operation], of: Type, scope: &Scope) -> Expr {
        let fitting: Vec<&'static Operation> = table.iter().filter(|operation| operation.gives_like(of)).collect();
        if fitting.is_empty() {
            return self.aggregate_of(AGGREGATES, of, scope);
        }
        let operation = *self.rng.pick(&fitting);
        let args = self.arguments(operation, of, scope, 1);
        let mut call = Call::new(operation, operation.result(&args, of), args);
        call.distinct = operation.tenaz.contains("{d}") && self.rng.one_in(6);
        if self.rng.one_in(7) {
            call.filter = Some(self.predicate(scope, 1));
        }
        if operation.tenaz.contains("{o}") {
            call.order = self.order_within(&call, scope);
            call.open = call.order.is_empty() && !call.args[0].is_literal();
        }
        call.open |= operation.tenaz.starts_with("any_value");
        Expr::Call(Box::new(call))
    }

    /// An order in which only equal values tie: the value itself is the last key.
    fn order_within(&mut self, call: &Call, scope: &Scope) -> Vec<Key> {
        if self.rng.one_in(8) {
            return Vec::new();
        }
        let mut keys = Vec::new();
        if !call.distinct && self.rng.one_in(2) {
            let column = self.rng.pick(&scope.own).clone();
            keys.push(self.key(By::Expr(column)));
        }
        // A constant orders nothing, and a number alone is taken for the place of a column.
        if !call.args[0].is_literal() || call.args[0].of() != Type::Int {
            keys.push(self.key(By::Expr(call.args[0].clone())));
        }
        keys
    }

    /// Arguments for a call.
    pub(super) fn arguments(
        &mut self,
        operation: &'static Operation,
        of: Type,
        scope: &Scope,
        depth: usize,
    ) -> Vec<Expr> {
        let argument = |arg: &Arg| match arg {
            Arg::Of(takes) => self.value(*takes, scope, depth),
            Arg::Same => self.value(of, scope, depth),
            Arg::Plain => {
                let of = self.any_type();
                self.value(of, scope, depth)
            }
            Arg::OneOf(texts) => Expr::literal(*self.rng.pick(texts), Type::Text),
            Arg::Pairs(pairs) => {
                let (tenaz, duck) = *self.rng.pick(pairs);
                Expr::Literal { tenaz: tenaz.to_owned(), duck: duck.to_owned(), of: Type::Text }
            }
        };
        operation.takes.iter().map(argument).collect()
    }
}
