//! Makes a case that shows a difference smaller, as long as it still shows the same kind of difference.
//!
//! Every edit is tried, also such that make the SQL invalid: then everybody fails, which is no difference.

use std::time::{Duration, Instant};

use super::case::Case;
use super::judge::{Kind, Opinions};
use super::operations::{AGGREGATES, Operation};
use super::rng::Rng;
use super::runs::Settings;
use super::second_opinion::SecondOpinion;
use super::tree::{Body, By, Distinct, Expr, Grouping, Key, On, Query, Relation, Select, Test, Ties, Type, Window};

/// Time for one case.
const PATIENCE: Duration = Duration::from_secs(90);

pub struct Shrunk {
    pub case: Case,
    pub query: Query,
    pub opinions: Opinions,
}

/// `None` if the query alone shows nothing.
pub fn shrink(
    case: &Case,
    query: &Query,
    difference: &(Kind, String),
    settings: &[Settings],
    mut second: Option<&mut SecondOpinion>,
) -> Option<Shrunk> {
    let began = Instant::now();
    // A difference between runs may need luck.
    let mut tried = settings.to_vec();
    if difference.0 == Kind::OwnRuns {
        let mut rng = Rng::new(1);
        tried.extend((0..6).map(|_| Settings::random(&mut rng, case.bytes())));
    }
    let mut still = |case: &Case, query: &Query| {
        let opinions = case.ask_alone(query, &tried, second.as_deref_mut());
        (opinions.difference(query).as_ref() == Some(difference)).then_some(opinions)
    };
    let mut best = Shrunk { case: case.clone(), query: query.clone(), opinions: still(case, query)? };
    best.case.queries.clear();
    loop {
        let before = (size(&best.query), rows(&best.case));
        shrink_query(&mut best, &mut still, began);
        shrink_tables(&mut best, &mut still, began);
        if (size(&best.query), rows(&best.case)) == before || began.elapsed() > PATIENCE {
            return Some(best);
        }
    }
}

fn size(query: &Query) -> usize {
    super::sql_text::sql(query, super::sql_text::Dialect::Tenaz).map_or(0, |text| text.len())
}

fn rows(case: &Case) -> usize {
    case.tables.iter().map(|table| table.rows.len() * 100 + table.columns.len()).sum()
}

type Still<'s> = dyn FnMut(&Case, &Query) -> Option<Opinions> + 's;

fn shrink_query(best: &mut Shrunk, still: &mut Still<'_>, began: Instant) {
    let mut target = 0;
    while began.elapsed() < PATIENCE {
        let mut query = best.query.clone();
        let mut edit = Edit { target, seen: 0, done: false };
        edit.query(&mut query);
        if !edit.done {
            return;
        }
        match still(&best.case, &query) {
            Some(opinions) if size(&query) < size(&best.query) => {
                best.query = query;
                best.opinions = opinions;
            }
            _ => target += 1,
        }
    }
}

fn shrink_tables(best: &mut Shrunk, still: &mut Still<'_>, began: Instant) {
    for table in 0..best.case.tables.len() {
        let mut piece = best.case.tables[table].rows.len();
        while piece > 0 && began.elapsed() < PATIENCE {
            let mut start = 0;
            while start < best.case.tables[table].rows.len() && began.elapsed() < PATIENCE {
                let mut case = best.case.clone();
                let rows = &mut case.tables[table].rows;
                let end = (start + piece).min(rows.len());
                rows.drain(start..end);
                match still(&case, &best.query) {
                    Some(opinions) => (best.case, best.opinions) = (case, opinions),
                    None => start += piece,
                }
            }
            piece /= 2;
        }
        let mut column = 0;
        while column < best.case.tables[table].columns.len() && began.elapsed() < PATIENCE {
            let mut case = best.case.clone();
            // With one column a null would be an empty line, which is no record.
            if case.tables[table].columns.len() < 3 {
                break;
            }
            case.tables[table].columns.remove(column);
            case.tables[table].rows.iter_mut().for_each(|row| drop(row.remove(column)));
            match still(&case, &best.query) {
                Some(opinions) => (best.case, best.opinions) = (case, opinions),
                None => column += 1,
            }
        }
    }
}

/// Applies the edit with a certain number.
struct Edit {
    target: usize,
    seen: usize,
    done: bool,
}

impl Edit {
    /// Whether it is this edit's turn.
    fn turn(&mut self) -> bool {
        let turn = self.seen == self.target && !self.done;
        self.seen += 1;
        self.done |= turn;
        turn
    }

    fn query(&mut self, query: &mut Query) {
        if !query.with.is_empty() && self.turn() {
            query.with.clear();
        }
        let sides = match &query.body {
            Body::Set { left, right, .. } => vec![left.clone(), right.clone()],
            Body::Select(_) => Vec::new(),
        };
        for side in sides {
            if self.turn() {
                *query = Query { with: query.with.clone(), ..*side };
                return;
            }
        }
        if query.limit.is_some() && self.turn() {
            query.limit = None;
        }
        if query.offset.is_some() && self.turn() {
            query.offset = None;
        }
        let before = self.done;
        if !query.order.is_empty() && self.turn() {
            query.order.clear();
        }
        self.keys(&mut query.order);
        if self.done && !before && query.ties == Ties::None {
            query.ties = Ties::Open;
        }
        if let Body::Select(select) = &mut query.body
            && let [only] = select.from.as_slice()
            && let Relation::Derived { query: inner, .. } = &only.relation
            && self.turn()
        {
            *query = Query { with: query.with.clone(), ..(**inner).clone() };
            return;
        }
        if query.columns.len() > 1 {
            for column in 0..query.columns.len() {
                if self.turn() {
                    remove_column(query, column);
                    return;
                }
            }
        }
        for table in &mut query.with {
            self.query(&mut table.query);
        }
        match &mut query.body {
            Body::Set { left, right, .. } => {
                self.query(left);
                self.query(right);
            }
            Body::Select(select) => self.select(select),
        }
    }

    fn keys(&mut self, keys: &mut Vec<Key>) {
        for index in 0..keys.len() {
            if keys.len() > 1 && self.turn() {
                keys.remove(index);
                return;
            }
            let key = &mut keys[index];
            if key.nulls_first.is_some() && self.turn() {
                key.nulls_first = None;
            }
            if key.descending && self.turn() {
                key.descending = false;
            }
            if let By::Expr(expr) = &mut key.by {
                self.expr(expr);
            }
        }
    }

    fn select(&mut self, select: &mut Select) {
        if !matches!(select.distinct, Distinct::No) && self.turn() {
            select.distinct = Distinct::No;
        }
        for condition in [&mut select.filter, &mut select.having, &mut select.qualify] {
            if condition.is_some() && self.turn() {
                *condition = None;
            }
        }
        if let Some(group) = &mut select.group {
            if group.how != Grouping::Plain && self.turn() {
                group.how = Grouping::Plain;
            }
            if group.how == Grouping::Sets {
                for index in 0..group.sets.len() {
                    if self.turn() {
                        group.sets.remove(index);
                        break;
                    }
                }
            } else {
                for index in 0..group.keys.len() {
                    if self.turn() {
                        group.keys.remove(index);
                        break;
                    }
                }
            }
            group.keys.iter_mut().for_each(|key| self.expr(key));
            if group.keys.is_empty() {
                select.group = None;
            }
        }
        for index in 1..select.from.len() {
            if self.turn() {
                select.from.remove(index);
                return;
            }
        }
        if select.from.len() == 2 && self.turn() {
            select.from.remove(0);
            select.from[0].kind = "";
            select.from[0].on = On::Nothing;
        }
        for join in &mut select.from {
            if let On::Condition(condition) = &mut join.on {
                self.expr(condition);
            }
            match &mut join.relation {
                Relation::Named { .. } | Relation::Series { .. } => {}
                Relation::Derived { query, .. } => self.query(query),
                Relation::Values { rows, .. } => {
                    for index in 0..rows.len() {
                        if rows.len() > 1 && self.turn() {
                            rows.remove(index);
                            break;
                        }
                    }
                }
            }
        }
        if let Distinct::On(keys) = &mut select.distinct {
            keys.iter_mut().for_each(|key| self.expr(key));
        }
        let conditions = select.filter.iter_mut().chain(&mut select.having).chain(&mut select.qualify);
        select.list.iter_mut().chain(conditions).for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &mut Expr) {
        let of = expr.of();
        let mut parts = Vec::new();
        collect_parts(expr, &mut parts);
        for part in parts.into_iter().filter(|part| part.of().is_like(of)) {
            if self.turn() {
                *expr = part;
                return;
            }
        }
        if !matches!(expr, Expr::Literal { .. } | Expr::Column { .. }) && self.turn() {
            *expr = simplest(of);
            return;
        }
        match expr {
            Expr::Column { .. } => {
                if self.turn() {
                    *expr = simplest(of);
                }
            }
            Expr::Literal { .. } => {}
            Expr::Call(call) => {
                if call.filter.is_some() && self.turn() {
                    call.filter = None;
                }
                if call.distinct && self.turn() {
                    call.distinct = false;
                }
                if call.ignore_nulls && self.turn() {
                    call.ignore_nulls = false;
                }
                let before = self.done;
                self.keys(&mut call.order);
                let mut lost_order = self.done && !before && !call.order.is_empty();
                if let Some(window) = &mut call.over {
                    if window.frame.is_some() && self.turn() {
                        window.frame = None;
                    }
                    for index in 0..window.partition.len() {
                        if self.turn() {
                            window.partition.remove(index);
                            return;
                        }
                    }
                    let before = self.done;
                    if !window.order.is_empty() && self.turn() {
                        window.order.clear();
                    }
                    self.keys(&mut window.order);
                    lost_order |= self.done && !before && depends_on_order(call.operation, window);
                    window.partition.iter_mut().for_each(|key| self.expr(key));
                }
                // What was settled by a longer order is open now.
                call.open |= lost_order;
                let before = self.done;
                call.args.iter_mut().chain(&mut call.filter).for_each(|arg| self.expr(arg));
                call.open |= self.done && !before && !call.order.is_empty();
            }
            Expr::Case { operand, arms, otherwise, .. } => {
                if arms.len() > 1 && self.turn() {
                    arms.pop();
                }
                operand.iter_mut().chain(otherwise).for_each(|expr| self.expr(expr));
                arms.iter_mut().for_each(|(when, then)| {
                    self.expr(when);
                    self.expr(then);
                });
            }
            Expr::Logic { parts, .. } => parts.iter_mut().for_each(|part| self.expr(part)),
            Expr::InList { value, list, .. } => {
                for index in 0..list.len() {
                    if list.len() > 1 && self.turn() {
                        list.remove(index);
                        break;
                    }
                }
                self.expr(value);
                list.iter_mut().for_each(|item| self.expr(item));
            }
            Expr::Subquery { test, query, .. } => {
                if let Test::In { value, .. } | Test::Quantified { value, .. } = test {
                    self.expr(value);
                }
                self.query(query);
            }
        }
    }
}

/// Whether a call over a window depends on the order of rows that tie.
fn depends_on_order(operation: &Operation, window: &Window) -> bool {
    let counts_rows = window.frame.as_ref().is_some_and(|frame| frame.unit == "ROWS");
    let ranks = ["rank()", "cume_dist()"].iter().any(|name| operation.tenaz.contains(name));
    counts_rows || !(ranks || AGGREGATES.iter().any(|aggregate| std::ptr::eq(aggregate, operation)))
}

/// What an expression is made of, without subqueries.
fn collect_parts(expr: &Expr, parts: &mut Vec<Expr>) {
    match expr {
        Expr::Column { .. } | Expr::Literal { .. } | Expr::Subquery { .. } => {}
        Expr::Call(call) => parts.extend(call.args.iter().cloned()),
        Expr::Case { arms, otherwise, .. } => {
            parts.extend(arms.iter().map(|(_, then)| then.clone()));
            parts.extend(otherwise.iter().map(|expr| (**expr).clone()));
        }
        Expr::Logic { parts: inner, .. } => parts.extend(inner.iter().cloned()),
        Expr::InList { .. } => {}
    }
}

fn simplest(of: Type) -> Expr {
    let text = match of {
        Type::Bool => "true",
        Type::Int => "1",
        Type::Decimal(_) => return Expr::literal("1.0", Type::Decimal(1)),
        Type::Float | Type::Approximate => "CAST(1 AS DOUBLE)",
        Type::Text => "'x'",
        Type::Date => "DATE '2024-01-15'",
        Type::Timestamp => "TIMESTAMP '2024-01-15 00:00:00'",
        Type::Ints => "CAST(NULL AS BIGINT[])",
        Type::Texts => "CAST(NULL AS VARCHAR[])",
    };
    Expr::literal(text, of)
}

fn remove_column(query: &mut Query, column: usize) {
    query.columns.remove(column);
    query.order.retain(|key| !matches!(key.by, By::Output(c) | By::Ordinal(c) if c == column));
    for key in &mut query.order {
        if let By::Output(c) | By::Ordinal(c) = &mut key.by
            && *c > column
        {
            *c -= 1;
        }
    }
    match &mut query.body {
        Body::Select(select) => {
            select.star = false;
            select.list.remove(column);
        }
        Body::Set { left, right, .. } => {
            remove_column(left, column);
            remove_column(right, column);
        }
    }
}
