//! A look at records whose layout is not known yet.

use std::borrow::Cow;

use memchr::memchr_iter;

use crate::fields::unquote;
use crate::index::scalar::{Exact, Scan};
use crate::limits::MAX_RECORD_BYTES;

/// Walks the records of a piece of a file and takes them apart, by the rules that chunker and decoder have. It is slow and asks for no
/// layout: it is meant for a sample, from which a layout can be guessed.
///
/// An item is a record's fields without quotes, or `None` for a record that no layout could accept.
///
/// ```
/// use tenaz_csv::Records;
///
/// let mut records = Records::new(b"1;\"a;b\"\n2;x", b';', true);
/// assert_eq!(records.next(), Some(Some(vec!["1".into(), "a;b".into()])));
/// assert_eq!(records.next(), Some(Some(vec!["2".into(), "x".into()])));
/// assert_eq!(records.next(), None);
/// ```
#[derive(Debug, Clone)]
pub struct Records<'a> {
    data: &'a [u8],
    whole: bool,
    at: usize,
    exact: Exact,
}

impl<'a> Records<'a> {
    /// The records of `data`, which starts where a record does. `whole`: the file ends with `data`, so the last record needs no
    /// line end; otherwise a record that is cut short is left out.
    #[must_use]
    pub fn new(data: &'a [u8], delimiter: u8, whole: bool) -> Self {
        Self { data, whole, at: 0, exact: Exact::new(delimiter, MAX_RECORD_BYTES) }
    }

    /// Where the next record starts.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    fn fields(&self, start: usize, newline: usize, delimiters: &[usize]) -> Option<Vec<Cow<'a, str>>> {
        let ends_line = newline < self.data.len() && newline > start && self.data[newline - 1] == b'\r';
        let end = if ends_line { newline - 1 } else { newline };
        let text = std::str::from_utf8(&self.data[start..end]).ok()?;
        let mut fields = Vec::with_capacity(delimiters.len() + 1);
        let mut from = 0;
        for to in delimiters.iter().map(|at| at - start).filter(|at| *at < text.len()).chain([text.len()]) {
            fields.push(match unquote(&text.as_bytes()[from..to]) {
                Cow::Borrowed(field) => Cow::Borrowed(std::str::from_utf8(field).ok()?),
                Cow::Owned(field) => Cow::Owned(String::from_utf8(field).ok()?),
            });
            from = to + 1;
        }
        Some(fields)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Option<Vec<Cow<'a, str>>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut delimiters = Vec::new();
        while self.at < self.data.len() {
            delimiters.clear();
            let start = self.at;
            match self.exact.scan(self.data, start, self.whole, |at| delimiters.push(at)) {
                Scan::NeedMore => return None,
                Scan::Blank { next, .. } => self.at = next,
                Scan::Record { newline, next } => {
                    self.at = next;
                    return Some(self.fields(start, newline, &delimiters));
                }
                Scan::Faulty { next, .. } => {
                    self.at = next.unwrap_or(self.data.len());
                    return Some(None);
                }
            }
        }
        None
    }
}

/// Every position in `data` at which a line starts, after the first.
pub fn line_starts(data: &[u8]) -> impl Iterator<Item = usize> {
    memchr_iter(b'\n', data).map(|newline| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, whole: bool) -> Vec<Option<Vec<String>>> {
        let records = Records::new(text.as_bytes(), b',', whole);
        records.map(|r| r.map(|fields| fields.into_iter().map(Cow::into_owned).collect())).collect()
    }

    fn record(fields: &[&str]) -> Option<Vec<String>> {
        Some(fields.iter().map(|f| (*f).to_owned()).collect())
    }

    #[test]
    fn records_are_taken_apart_as_the_decoder_does() {
        let text = "a,b\r\n\n\"x\ny\",\"say \"\"hi\"\"\"\n,\n\"bad\"x,1\nlast,one";
        let expected =
            [record(&["a", "b"]), record(&["x\ny", "say \"hi\""]), record(&["", ""]), None, record(&["last", "one"])];
        assert_eq!(all(text, true), expected);
        assert_eq!(all(text, false), expected[..4]);
    }

    #[test]
    fn a_record_that_is_not_utf8_is_none() {
        let records: Vec<_> = Records::new(b"a,\xff\nb,c\n", b',', true).collect();
        assert_eq!(records, [None, Some(vec!["b".into(), "c".into()])]);
    }
}
