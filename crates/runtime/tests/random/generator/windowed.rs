//! Window functions.

use super::{Built, Generator, Scope, columns_of, numbered};
use crate::random::operations::{AGGREGATES, NAVIGATION, Operation, RANKING};
use crate::random::tree::{By, Call, Expr, Frame, Join, Key, On, Query, Relation, Select, Type, Window};

/// Ranks that are the same for rows that tie.
const SAFE_RANKS: [&str; 4] = ["rank(", "dense_rank(", "percent_rank(", "cume_dist("];

fn is_column(key: &Expr, expr: &Expr) -> bool {
    matches!((key, expr), (Expr::Column { name: one, .. }, Expr::Column { name: other, .. }) if one == other)
}

impl Generator<'_> {
    pub(super) fn windowed(&mut self, types: &[Type], depth: usize) -> Built {
        let (from, scope, _) = self.from(depth);
        let filter = self.condition(&scope, depth);
        let window = self.window(&scope);
        let mut total = None;
        let list: Vec<Expr> = types
            .iter()
            .map(|&of| {
                let window = if self.rng.one_in(4) { self.window(&scope) } else { window.clone() };
                if self.rng.one_in(3) {
                    self.value(of, &scope, 1)
                } else {
                    self.window_call(of, &scope, window, &mut total)
                }
            })
            .collect();
        let mut select = Select::new(list, from);
        select.filter = filter;
        if self.rng.one_in(6) {
            let call = self.window_call(Type::Int, &scope, window, &mut total);
            let bound = self.literal(Type::Int);
            select.qualify = Some(self.comparison("({0} <= {1})", vec![call, bound]));
        }
        let of = self.any_type();
        let order_by = Some(self.value(of, &scope, 1));
        Built { query: Query::select(select), order_by }
    }

    /// PARTITION BY and ORDER BY.
    fn window(&mut self, scope: &Scope) -> Window {
        let partition = match self.rng.below(5) {
            0 | 1 => vec![self.rng.pick(&scope.own).clone()],
            2 => {
                let of = self.any_type();
                let key = self.value(of, scope, 1);
                if key.is_literal() { Vec::new() } else { vec![key] }
            }
            _ => Vec::new(),
        };
        let order = match self.rng.below(4) {
            0 => Vec::new(),
            1 => {
                let of = self.any_type();
                let key = self.value(of, scope, 1);
                if key.is_literal() { Vec::new() } else { vec![self.key(By::Expr(key))] }
            }
            _ => {
                let column = self.rng.pick(&scope.own).clone();
                vec![self.key(By::Expr(column))]
            }
        };
        Window { partition, order, frame: None }
    }

    /// A window function. All of a SELECT that tell equal rows apart share one order, the `total` one: of two copies of a row one is the
    /// first in an order and may be the second in another, and SQL leaves open which.
    fn window_call(&mut self, of: Type, scope: &Scope, mut window: Window, total: &mut Option<Window>) -> Expr {
        let table = match self.rng.below(6) {
            0 | 1 => NAVIGATION,
            2 | 3 => RANKING,
            _ => AGGREGATES,
        };
        let in_a_window =
            |operation: &&Operation| !operation.tenaz.contains("WITHIN") && !operation.tenaz.contains('[');
        let gives = |table: &'static [Operation]| table.iter().filter(|o| o.gives_like(of)).filter(in_a_window);
        let mut fitting: Vec<&'static Operation> = gives(table).collect();
        if fitting.is_empty() {
            fitting = gives(AGGREGATES).chain(gives(NAVIGATION)).collect();
        }
        let Some(&operation) = (!fitting.is_empty()).then(|| self.rng.pick(&fitting)) else {
            return self.value(of, scope, 1);
        };
        let args = self.arguments(operation, of, scope, 1);
        let mut call = Call::new(operation, operation.result(&args, of), args);
        let has_frame = AGGREGATES.iter().any(|a| std::ptr::eq(a, operation)) || operation.tenaz.contains("_value(");
        if has_frame && self.rng.one_in(2) {
            window.frame = self.frame(&window.order);
        }
        let is_aggregate = AGGREGATES.iter().any(|a| std::ptr::eq(a, operation));
        if is_aggregate && self.rng.one_in(10) {
            call.filter = Some(self.predicate(scope, 1));
        }
        call.ignore_nulls = operation.tenaz.contains("{n}") && self.rng.one_in(5);
        let counts_rows = window.frame.as_ref().is_some_and(|frame| {
            frame.unit == "ROWS" && (frame.from != "UNBOUNDED PRECEDING" || frame.to != "UNBOUNDED FOLLOWING")
        });
        let ranks_safely = SAFE_RANKS.iter().any(|name| operation.tenaz.contains(name));
        if counts_rows || !(is_aggregate || ranks_safely) {
            if self.rng.one_in(6) {
                call.open = true;
            } else {
                if window.frame.as_ref().is_some_and(|frame| frame.unit == "RANGE") {
                    // A range of values needs its only key.
                    window.frame = None;
                }
                let shared = total.get_or_insert_with(|| self.total_window(&window, scope)).clone();
                window = Window { frame: window.frame, ..shared };
            }
        }
        call.over = Some(window);
        Expr::Call(Box::new(call))
    }

    /// A window whose order is extended so that only equal rows tie.
    fn total_window(&mut self, window: &Window, scope: &Scope) -> Window {
        let first: Vec<Expr> = window
            .order
            .iter()
            .filter_map(|key| match &key.by {
                By::Expr(expr) => Some(expr.clone()),
                _ => None,
            })
            .collect();
        let mut total = Window { frame: None, ..window.clone() };
        total.order.extend(self.total_order(&first, scope).split_off(first.len()));
        total
    }

    /// ORDER BY these, then all columns.
    pub(super) fn total_order(&mut self, first: &[Expr], scope: &Scope) -> Vec<Key> {
        let mut exprs = first.to_vec();
        let mut rest = scope.own.clone();
        if !self.rng.one_in(20) {
            // The same key twice changes nothing.
            rest.retain(|expr| !first.iter().any(|key| is_column(key, expr)));
        }
        while !rest.is_empty() {
            let next = self.rng.below(rest.len());
            exprs.push(rest.swap_remove(next));
        }
        exprs.into_iter().map(|expr| self.key(By::Expr(expr))).collect()
    }

    fn frame(&mut self, order: &[Key]) -> Option<Frame> {
        let offset = match order {
            [Key { by: By::Expr(expr), .. }] => match expr.of() {
                Type::Int | Type::Decimal(_) | Type::Float => Some(["1", "2", "5"]),
                Type::Date | Type::Timestamp => Some(["INTERVAL '1' DAY", "INTERVAL '31' DAY", "INTERVAL '1' YEAR"]),
                _ => None,
            },
            _ => None,
        };
        let unit = match self.rng.below(4) {
            0 | 1 => "ROWS",
            2 if !order.is_empty() => "GROUPS",
            _ if !order.is_empty() => "RANGE",
            _ => "ROWS",
        };
        let offsets = match unit {
            "RANGE" => offset,
            _ => Some(["0", "1", "2"]),
        };
        let (from, from_place) = self.bound(offsets, 0);
        let (mut to, to_place) = self.bound(offsets, from_place);
        if from_place == to_place && !self.rng.one_in(10) {
            // Otherwise it may end before it begins.
            to.clone_from(&from);
        }
        Some(Frame { unit, from, to })
    }

    /// An end of a frame that is not before the given place; and its place.
    fn bound(&mut self, offsets: Option<[&'static str; 3]>, least: usize) -> (String, usize) {
        let is_end = least > 0;
        let choices: Vec<usize> = match (is_end, offsets.is_some()) {
            (false, true) => vec![1, 1, 2, 2, 3, 4],
            (false, false) => vec![1, 1, 3],
            (true, true) => [2, 3, 3, 4, 5, 5].into_iter().filter(|&place| place >= least).collect(),
            (true, false) => [3, 3, 5].into_iter().filter(|&place| place >= least).collect(),
        };
        let place = *self.rng.pick(&choices);
        let offset = offsets.map_or("0", |offsets| *self.rng.pick(&offsets));
        let text = match place {
            1 => "UNBOUNDED PRECEDING".to_owned(),
            2 => format!("{offset} PRECEDING"),
            3 => "CURRENT ROW".to_owned(),
            4 => format!("{offset} FOLLOWING"),
            _ => "UNBOUNDED FOLLOWING".to_owned(),
        };
        (text, place)
    }

    /// The first rows of each key: every column decides, so that only equal rows tie.
    pub(super) fn best_of_each(&mut self, types: &[Type], depth: usize) -> Built {
        let mut inner = self.plain(types, depth).query;
        inner.order.clear();
        inner.limit = None;
        inner.offset = None;
        let inner_alias = self.fresh();
        let columns = columns_of(&inner_alias, &numbered(&inner.columns));
        let scope = Scope { own: columns.clone() };
        let relation = Relation::Derived { query: Box::new(inner), alias: inner_alias, lateral: false };
        let partition = if self.rng.one_in(3) { Vec::new() } else { vec![columns[0].clone()] };
        let rank = *self.rng.pick(&[&RANKING[2], &RANKING[2], &RANKING[0], &RANKING[1]]);
        let order = if rank.tenaz.contains("row_number") {
            self.total_order(&[], &scope)
        } else {
            let column = self.rng.pick(&columns).clone();
            vec![self.key(By::Expr(column))]
        };
        let mut call = Call::new(rank, Type::Int, Vec::new());
        call.over = Some(Window { partition, order, frame: None });
        let mut list = columns;
        list.push(Expr::Call(Box::new(call)));
        let ranked = Query::select(Select::new(list, vec![Join { kind: "", relation, on: On::Nothing }]));
        let alias = self.fresh();
        let mut columns = columns_of(&alias, &numbered(&ranked.columns));
        let place = columns.pop().expect("the rank");
        let relation = Relation::Derived { query: Box::new(ranked), alias, lateral: false };
        let mut select = Select::new(columns, vec![Join { kind: "", relation, on: On::Nothing }]);
        let most = Expr::literal((1 + self.rng.below(3)).to_string(), Type::Int);
        let operator = *self.rng.pick(&["({0} <= {1})", "({0} <= {1})", "({0} = {1})", "({0} < {1})"]);
        select.filter = Some(self.comparison(operator, vec![place, most]));
        Built { query: Query::select(select), order_by: None }
    }
}
