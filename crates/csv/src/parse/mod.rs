//! From the bytes of a field to a value: one module per kind.
//!
//! Every parser has two ways. `fast` knows the common shapes and may give up on anything; `slow` decides. They agree wherever
//! `fast` does not give up.

pub(crate) mod boolean;
pub(crate) mod decimal;
pub(crate) mod float;
pub(crate) mod int;
pub(crate) mod lanes;
mod swar;
pub(crate) mod timestamp;

use crate::Reason;
use lanes::{Lanes, Spans};

/// Parses the fields of one column.
pub(crate) trait Parser {
    /// What a field becomes.
    type Value: Copy + Default;

    /// The value of `data[start..end]`, a field as it stands in the file and not empty, if it has a common shape.
    fn fast(&mut self, data: &[u8], start: usize, end: usize) -> Option<Self::Value>;

    /// Whether `fast` has a value, for columns whose values nobody asks for.
    #[inline(always)]
    fn fast_check(&mut self, data: &[u8], start: usize, end: usize) -> bool {
        self.fast(data, start, end).is_some()
    }

    /// Whether [`Parser::several`] ever has values.
    const SEVERAL: bool = false;

    /// The values of several fields as they stand in the file, zero for those that are empty, if all have a common shape.
    #[inline(always)]
    fn several<L: Lanes>(&mut self, _data: &[u8], _spans: Spans<L>) -> Option<L> {
        None
    }

    /// Whether `several` has values.
    #[inline(always)]
    fn check_several<L: Lanes>(&mut self, data: &[u8], spans: Spans<L>) -> bool {
        self.several(data, spans).is_some()
    }

    /// The value that is a word of `several`.
    #[inline(always)]
    fn value(_word: u64) -> Self::Value {
        Self::Value::default()
    }

    /// The value of a field without quotes and surrounding spaces, not empty.
    fn slow(&self, text: &[u8]) -> Result<Self::Value, Reason>;
}

/// `text` without ASCII spaces around it.
pub(crate) fn trim_spaces(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] | [rest @ .., b' '] = text {
        text = rest;
    }
    text
}

/// Splits an optional sign off: whether the number is negative, and its digits.
fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    }
}

/// What both ways say of `text` must agree, whatever stands around it.
#[cfg(test)]
fn both_ways<P: Parser>(parser: &mut P, text: &str) -> Result<P::Value, Reason>
where
    P::Value: PartialEq + std::fmt::Debug,
{
    let slow = parser.slow(text.as_bytes());
    for (before, after) in [("", ""), ("1234567890,", ""), ("-1.5,99999999,", ",1234567890"), (",", ",")] {
        let data = format!("{before}{text}{after}");
        let (from, to) = (before.len(), before.len() + text.len());
        assert_eq!(
            from < to && parser.fast_check(data.as_bytes(), from, to),
            from < to && parser.fast(data.as_bytes(), from, to).is_some()
        );
        if let Some(value) = parser.fast(data.as_bytes(), before.len(), before.len() + text.len()) {
            assert_eq!(Ok(value), slow, "{text:?} in {data:?}");
        }
    }
    slow
}
