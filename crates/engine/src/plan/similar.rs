//! `SIMILAR TO` with the standard's patterns, and `LIKE … ESCAPE` with any character.
//!
//! DataFusion takes the pattern of a SIMILAR TO for a regular expression that may match anywhere, and knows no escape
//! character but the backslash.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::Like;
use datafusion::logical_expr::{Expr, not};

use crate::functions::{like_pattern, similar_to};

/// The same comparison by means that understand it, if it is such a one.
pub(super) fn standard_pattern(expr: Expr) -> Result<Expr, Expr> {
    match expr {
        Expr::SimilarTo(Like { negated, expr, pattern, escape_char, .. }) => {
            let is_similar = similar_to(*expr, *pattern, escape_char);
            Ok(if negated { not(is_similar) } else { is_similar })
        }
        Expr::Like(Like { negated, expr, pattern, escape_char: Some(escape), case_insensitive }) if escape != '\\' => {
            let pattern = Box::new(like_pattern(text(*pattern), escape));
            Ok(Expr::Like(Like { negated, expr, pattern, escape_char: None, case_insensitive }))
        }
        other => Err(other),
    }
}

/// An untyped null is a text here.
fn text(pattern: Expr) -> Expr {
    match pattern {
        Expr::Literal(ScalarValue::Null, metadata) => Expr::Literal(ScalarValue::Utf8(None), metadata),
        other => other,
    }
}
