//! The refused records of a chunk, packed: a chunk may consist of millions of bad records of two bytes each.

use crate::reject::record_text;
use crate::{Reason, Reject};

/// So many of the last reasons are looked through for the same one.
const RECENT_REASONS: usize = 8;

/// The refused records of a chunk, in order. Each costs 24 bytes and its text; a reason that was given shortly before costs
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejects {
    entries: Vec<Entry>,
    reasons: Vec<Reason>,
    texts: String,
    /// Where the chunk begins in its file: byte and line.
    begin: (u64, u64),
}

/// Numbers within a chunk, which has fewer than 2^31 bytes, and so fewer columns at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    record: u32,
    byte: u32,
    line: u32,
    reason: u32,
    /// One more than the column; 0: none.
    column: u32,
    text_bytes: u32,
}

/// A refused record, as [`Rejects::iter`] shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectRef<'a> {
    /// Which record of its chunk, counted from 0 and including rejected ones.
    pub record: u64,
    /// The physical line in the file on which the record starts, counted from 1.
    pub line: u64,
    /// Where in the file the record starts.
    pub byte: u64,
    /// The column at fault, if it is one column's.
    pub column: Option<usize>,
    /// What is wrong.
    pub reason: &'a Reason,
    /// The record's raw text, shortened as in [`Reject::text`].
    pub text: &'a str,
}

impl RejectRef<'_> {
    /// The same with a text and a reason of its own.
    pub fn to_owned(&self) -> Reject {
        let Self { record, line, byte, column, reason, text } = *self;
        Reject { record, line, byte, column, reason: reason.clone(), text: text.to_owned() }
    }
}

/// Where a refused record is in its chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) record: u64,
    /// Its first byte, and the lines before it.
    pub(crate) start: usize,
    pub(crate) lines: u64,
    pub(crate) column: Option<usize>,
}

impl Rejects {
    /// None yet, of a chunk that begins at this byte and line of its file.
    pub(crate) fn new(byte: u64, line: u64) -> Self {
        Self { entries: Vec::new(), reasons: Vec::new(), texts: String::new(), begin: (byte, line) }
    }

    pub(crate) fn push(&mut self, spot: Spot, reason: Reason, record: &[u8]) {
        let text = record_text(record);
        self.texts.push_str(&text);
        let small = |number: u64| u32::try_from(number).expect("a chunk has fewer than 2^31 bytes");
        let reason = self.reason(reason);
        self.entries.push(Entry {
            record: small(spot.record),
            byte: small(spot.start as u64),
            line: small(spot.lines),
            reason,
            column: small(spot.column.map_or(0, |column| column as u64 + 1)),
            text_bytes: small(text.len() as u64),
        });
    }

    fn reason(&mut self, reason: Reason) -> u32 {
        let recent = self.reasons.iter().enumerate().rev().take(RECENT_REASONS);
        let known = recent.filter(|(_, known)| **known == reason).map(|(index, _)| index).next();
        let index = known.unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        u32::try_from(index).expect("there are no more reasons than records")
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first one.
    pub fn first(&self) -> Option<RejectRef<'_>> {
        self.iter().next()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = RejectRef<'_>> {
        let mut texts = self.texts.as_str();
        let (byte, line) = self.begin;
        self.entries.iter().map(move |entry| {
            let (text, rest) = texts.split_at(entry.text_bytes as usize);
            texts = rest;
            RejectRef {
                record: u64::from(entry.record),
                line: line + u64::from(entry.line),
                byte: byte + u64::from(entry.byte),
                column: (entry.column as usize).checked_sub(1),
                reason: &self.reasons[entry.reason as usize],
                text,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let mut rejects = Rejects::new(100, 7);
        let missing = || Reason::FieldCount { expected: 3, found: 1 };
        let spot = |record, start, lines, column| Spot { record, start, lines, column };
        rejects.push(spot(0, 0, 0, None), missing(), b"x");
        rejects.push(spot(2, 9, 3, Some(0)), Reason::NotInt { found: "y".to_owned() }, "yé\u{1d11e}".as_bytes());
        rejects.push(spot(3, 12, 4, Some(1)), Reason::Missing, b"");
        rejects.push(spot(4, 13, 5, None), missing(), b"\xff");
        let found: Vec<Reject> = rejects.iter().map(|reject| reject.to_owned()).collect();
        let reject = |record, line, byte, column, reason, text: &str| Reject {
            record,
            line,
            byte,
            column,
            reason,
            text: text.to_owned(),
        };
        let expected = [
            reject(0, 7, 100, None, missing(), "x"),
            reject(2, 10, 109, Some(0), Reason::NotInt { found: "y".to_owned() }, "yé\u{1d11e}"),
            reject(3, 11, 112, Some(1), Reason::Missing, ""),
            reject(4, 12, 113, None, missing(), "\u{fffd}"),
        ];
        assert_eq!(found, expected);
        assert_eq!(rejects.first().map(|first| first.line), Some(7));
    }

    #[test]
    fn a_short_bad_record_costs_little() {
        let mut rejects = Rejects::new(0, 1);
        for record in 0..10_000 {
            let reason = Reason::FieldCount { expected: 3, found: 1 + (record % 5) as usize };
            rejects.push(Spot { record, start: 2 * record as usize, lines: record, column: None }, reason, b"x");
        }
        assert_eq!(rejects.reasons.len(), 5);
        assert_eq!(size_of::<Entry>(), 24);
    }
}
