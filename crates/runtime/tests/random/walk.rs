//! Visiting every query and expression of a tree.

use std::collections::BTreeSet;

use super::tree::{Body, By, Distinct, Expr, On, Query, Relation, Test, Ties};

/// Calls `visit` for every expression, also inside subqueries, and `at_query` for every query.
pub fn walk(query: &Query, at_query: &mut dyn FnMut(&Query), visit: &mut dyn FnMut(&Expr)) {
    at_query(query);
    for table in &query.with {
        walk(&table.query, at_query, visit);
    }
    for key in &query.order {
        if let By::Expr(expr) = &key.by {
            walk_expr(expr, at_query, visit);
        }
    }
    let select = match &query.body {
        Body::Set { left, right, .. } => {
            walk(left, at_query, visit);
            walk(right, at_query, visit);
            return;
        }
        Body::Select(select) => select,
    };
    if let Distinct::On(keys) = &select.distinct {
        keys.iter().for_each(|expr| walk_expr(expr, at_query, visit));
    }
    for join in &select.from {
        if let On::Condition(condition) = &join.on {
            walk_expr(condition, at_query, visit);
        }
        match &join.relation {
            Relation::Named { .. } | Relation::Series { .. } => {}
            Relation::Derived { query, .. } => walk(query, at_query, visit),
            Relation::Values { rows, .. } => rows.iter().flatten().for_each(|expr| walk_expr(expr, at_query, visit)),
        }
    }
    let keys = select.group.iter().flat_map(|group| &group.keys);
    let conditions = select.filter.iter().chain(&select.having).chain(&select.qualify);
    select.list.iter().chain(keys).chain(conditions).for_each(|expr| walk_expr(expr, at_query, visit));
}

fn walk_expr(expr: &Expr, at_query: &mut dyn FnMut(&Query), visit: &mut dyn FnMut(&Expr)) {
    walk_parts(expr, &mut |part| {
        visit(part);
        if let Expr::Subquery { query, .. } = part {
            walk(query, at_query, visit);
        }
    });
}

/// Calls `visit` for an expression and all that it is made of, but not for what is inside of subqueries.
pub fn walk_parts(expr: &Expr, visit: &mut dyn FnMut(&Expr)) {
    visit(expr);
    let mut go = |expr: &Expr| walk_parts(expr, visit);
    match expr {
        Expr::Column { .. } | Expr::Literal { .. } => {}
        Expr::Call(call) => {
            let keys = call.order.iter().chain(call.over.iter().flat_map(|window| &window.order));
            for key in keys {
                if let By::Expr(expr) = &key.by {
                    go(expr);
                }
            }
            let partition = call.over.iter().flat_map(|window| &window.partition);
            call.args.iter().chain(&call.filter).chain(partition).for_each(go);
        }
        Expr::Case { operand, arms, otherwise, .. } => {
            operand.iter().chain(otherwise).for_each(|expr| go(expr));
            arms.iter().for_each(|(when, then)| {
                go(when);
                go(then);
            });
        }
        Expr::Logic { parts, .. } => parts.iter().for_each(go),
        Expr::InList { value, list, .. } => {
            go(value);
            list.iter().for_each(go);
        }
        Expr::Subquery { test, .. } => {
            if let Test::In { value, .. } | Test::Quantified { value, .. } = test {
                go(value);
            }
        }
    }
}

/// Whether SQL, and tenaz as well, leave the answer open; only runs of tenaz must agree then.
pub fn is_open(query: &Query) -> bool {
    let (mut open_query, mut open_call) = (false, false);
    walk(query, &mut |query| open_query |= query.ties == Ties::Open, &mut |expr| {
        open_call |= matches!(expr, Expr::Call(call) if call.open)
    });
    open_query || open_call
}

/// Whether the query has a `NOT IN` of a subquery that is tied to the row outside by more than equalities.
pub fn has_not_in_tied_by_more_than_equalities(query: &Query) -> bool {
    let mut found = false;
    walk(query, &mut |_| (), &mut |expr| {
        if let Expr::Subquery { test: Test::In { not: true, .. }, query, .. } = expr {
            found |= is_tied_by_more_than_equalities(query);
        }
    });
    found
}

fn is_tied_by_more_than_equalities(query: &Query) -> bool {
    let Body::Select(select) = &query.body else { return false };
    let own: BTreeSet<&str> = select.from.iter().map(|join| alias_of(&join.relation)).collect();
    let parts = match &select.filter {
        Some(Expr::Logic { word: "AND", parts }) => parts.iter().collect(),
        filter => filter.iter().collect::<Vec<_>>(),
    };
    parts.into_iter().any(|part| {
        let is_equality = matches!(part, Expr::Call(call) if call.operation.tenaz == "({0} = {1})");
        let mut is_tied = false;
        walk_parts(part, &mut |expr| {
            if let Expr::Column { name, .. } = expr {
                is_tied |= !name.split_once('.').is_some_and(|(alias, _)| own.contains(alias));
            }
        });
        is_tied && !is_equality
    })
}

fn alias_of(relation: &Relation) -> &str {
    match relation {
        Relation::Named { alias, .. }
        | Relation::Derived { alias, .. }
        | Relation::Values { alias, .. }
        | Relation::Series { alias, .. } => alias,
    }
}
