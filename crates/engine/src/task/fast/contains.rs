//! `ILIKE '%text%'`, made ready once.
//!
//! DataFusion compiles a regular expression for every batch. That costs as much as looking through some thousand short texts.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::physical_expr::expressions::{LikeExpr, Literal};
use memchr::memchr2_iter;
use regex::{Regex, RegexBuilder};

use super::Expr;
use super::instead::Form;

/// Whether a text contains another, ignoring the case of letters.
#[derive(Debug)]
pub(super) struct Contains {
    needle: String,
    negated: bool,
    /// For texts that are not ASCII: a Kelvin sign is a k.
    regex: Regex,
}

impl Form for Contains {
    /// `[NOT] ILIKE '%text%'` with a text of ASCII that has no signs of a pattern.
    fn of(expr: &Expr) -> Option<(Self, Expr)> {
        let like = expr.downcast_ref::<LikeExpr>().filter(|like| like.case_insensitive())?;
        let pattern = like.pattern().downcast_ref::<Literal>()?.value().try_as_str()??;
        let needle = pattern.strip_prefix('%')?.strip_suffix('%')?;
        if needle.is_empty() || !needle.is_ascii() || needle.contains(['%', '_', '\\']) {
            return None;
        }
        let regex = RegexBuilder::new(&regex::escape(needle)).case_insensitive(true).build().ok()?;
        let contains = Self { needle: needle.to_owned(), negated: like.negated(), regex };
        Some((contains, Arc::clone(like.expr())))
    }

    fn of_all(&self, texts: &dyn Array) -> Option<ArrayRef> {
        let texts = texts.as_string_view_opt()?;
        // A copy has working memory of its own, which threads would fight for.
        let regex = self.regex.clone();
        let contains = |row| {
            // SAFETY: asked for rows of the array only.
            let text = unsafe { texts.value_unchecked(row) };
            let found =
                if text.is_ascii() { has(text.as_bytes(), self.needle.as_bytes()) } else { regex.is_match(text) };
            found != self.negated
        };
        let nulls = texts.nulls().cloned();
        Some(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(texts.len(), contains), nulls)))
    }
}

/// Whether the text contains the needle, which is not empty; both are ASCII.
fn has(text: &[u8], needle: &[u8]) -> bool {
    let first = needle[0];
    let Some(last_start) = text.len().checked_sub(needle.len()) else { return false };
    let starts = memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), &text[..=last_start]);
    starts.into_iter().any(|at| text[at..at + needle.len()].eq_ignore_ascii_case(needle))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::record_batch::RecordBatch;
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::{Column, lit};

    use super::*;
    use crate::task::fast::instead::Instead;

    fn like(negated: bool, case_insensitive: bool, pattern: &str) -> Expr {
        let pattern = lit(ScalarValue::Utf8View(Some(pattern.to_owned())));
        Arc::new(LikeExpr::new(negated, case_insensitive, Arc::new(Column::new("t", 0)), pattern))
    }

    #[test]
    fn answers_are_as_datafusion_says() {
        let texts = [
            Some("Indie"),
            None,
            Some(""),
            Some("indi"),
            Some("xxINDIE"),
            Some("an indie game"),
            Some("i\nnD\nindIE\n"),
            Some("iindie"),
            Some("ındie"),
            Some("İndie"),
            Some("Kiosk"),
            Some("\u{212a}io\u{17f}k"),
            Some("kio\u{17f}"),
            Some("a text of more than twelve bytes with kIoSk"),
            Some("ä INDIE"),
            Some("a.b"),
            Some("axb"),
            Some("k"),
        ];
        let column: ArrayRef = Arc::new(StringViewArray::from_iter(texts));
        let batch = RecordBatch::try_from_iter_with_nullable([("t", column, true)]).unwrap();
        // A slice, too: its nulls do not start at the first bit.
        for batch in [batch.clone(), batch.slice(1, 14)] {
            let answer = |expr: &dyn PhysicalExpr| expr.evaluate(&batch).unwrap().into_array(batch.num_rows()).unwrap();
            for needle in ["indie", "KIOSK", "k", "s", "a.b", "zzz", "a text of more"] {
                for negated in [false, true] {
                    let plain = like(negated, true, &format!("%{needle}%"));
                    let contains = Instead::<Contains>::of(&plain).expect(needle);
                    assert!(contains.form.of_all(batch.column(0)).is_some(), "not left to DataFusion");
                    assert_eq!(&answer(&contains), &answer(plain.as_ref()), "{plain}");
                }
            }
        }
    }

    #[test]
    fn other_patterns_stay_with_datafusion() {
        for pattern in ["indie", "indie%", "%indie", "%%", "%", "%in_ie%", "%in%ie%", "%in\\%ie%", "%ündie%"] {
            assert!(Contains::of(&like(false, true, pattern)).is_none(), "{pattern}");
        }
        assert!(Contains::of(&like(false, false, "%indie%")).is_none());
    }
}
