//! The parts of an expression that must have one type.

use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// Functions whose result is one of their arguments, all of one type.
const CHOOSING: [&str; 6] = ["coalesce", "greatest", "least", "nullif", "nvl", "nvl2"];

/// Groups of expressions that are compared with each other, or of which one is chosen. Those of arithmetic are among them.
pub(super) fn alike(expr: &mut Expr) -> Vec<Vec<&mut Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => vec![vec![left, right]],
        Expr::Between(between) => vec![vec![&mut between.expr, &mut between.low, &mut between.high]],
        Expr::InList(list) => vec![std::iter::once(&mut *list.expr).chain(&mut list.list).collect()],
        Expr::Case(case) => {
            let (whens, mut thens): (Vec<_>, Vec<_>) =
                case.when_then_expr.iter_mut().map(|(when, then)| (&mut **when, &mut **then)).unzip();
            thens.extend(case.else_expr.as_deref_mut());
            match case.expr.as_deref_mut() {
                Some(compared) => vec![thens, std::iter::once(compared).chain(whens).collect()],
                None => vec![thens],
            }
        }
        Expr::ScalarFunction(call) if CHOOSING.contains(&call.func.name()) => {
            vec![call.args.iter_mut().collect()]
        }
        _ => Vec::new(),
    }
}

/// Whether an operator compares its sides.
pub(super) fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
