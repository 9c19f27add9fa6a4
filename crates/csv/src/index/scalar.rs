//! Where one record ends: the exact rules, a record at a time.
//!
//! This is the definition that the block scanners in [`super`] are a shortcut for. From a record's first byte `p` and with the
//! limit `L`:
//!
//! 1. Fields are walked from `p`. The record ends at the first newline outside quotes that is at most `L` bytes away.
//! 2. If a quoted field is open after `L` bytes, or at the end of the data, the record is *never closed*: only its first physical
//!    line is the record, and reading restarts at the next line.
//! 3. Otherwise, a record that has not ended after `L` bytes is *too large*. It ends at the first newline from there, quoted or
//!    not, so that nothing after the limit can make it run on.
//!
//! Rule 2 could read the same bytes again for every line. [`Open`] remembers one such failure: whoever is inside quotes at the
//! start of one of the lines it covers is still inside at its end, so the bytes are walked once.

use memchr::{memchr, memchr2, memrchr};

/// What stands at a record's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The end of the record depends on bytes that are not there yet.
    NeedMore,
    /// A blank line, which is no record; `next` follows it.
    Blank { newline: usize, next: usize },
    /// A well-formed record. `newline` is the position of its newline, or the length of the data.
    Record { newline: usize, next: usize },
    /// A record to reject. `next` is `None` if its end lies beyond the data at hand.
    Faulty { fault: Fault, next: Option<usize> },
}

/// A fault in a record's structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    NeverClosed,
    TooLarge,
    TextAfterQuote,
}

/// Inside quotes at a line start in `first..=last` means inside quotes at `until`.
#[derive(Debug, Clone, Copy)]
struct Open {
    first: usize,
    last: usize,
    until: usize,
}

/// Scans records of one buffer exactly.
#[derive(Debug, Clone)]
pub(crate) struct Exact {
    delimiter: u8,
    limit: usize,
    open: Option<Open>,
}

impl Exact {
    pub(crate) fn new(delimiter: u8, limit: usize) -> Self {
        Self { delimiter, limit, open: None }
    }

    /// Forgets what was learnt about a buffer. To be called whenever the bytes change or move.
    pub(crate) fn forget(&mut self) {
        self.open = None;
    }

    /// Scans the record that starts at `start`, reporting the position of every delimiter outside quotes. `eof`: no bytes follow `data`.
    pub(crate) fn scan(&mut self, data: &[u8], start: usize, eof: bool, delimiter_at: impl FnMut(usize)) -> Scan {
        if let Some(scan) = blank(data, start, eof) {
            return scan;
        }
        // The jump leaves fields out, so it only finds out whether the record is never closed. If it is closed it is walked again;
        // then it is also done with.
        if let Some(open) = self.open.take_if(|open| start <= open.last) {
            let scan = self.walk(data, start, eof, Some(open), |_| ());
            if matches!(scan, Scan::Faulty { fault: Fault::NeverClosed, .. }) {
                return scan;
            }
            self.open = Some(open);
        }
        self.walk(data, start, eof, None, delimiter_at)
    }

    fn walk(
        &mut self,
        data: &[u8],
        start: usize,
        eof: bool,
        open: Option<Open>,
        mut delimiter_at: impl FnMut(usize),
    ) -> Scan {
        let stop = data.len().min(start.saturating_add(self.limit));
        let mut at = start;
        let mut text_after_quote = false;
        loop {
            if at < stop && data[at] == b'"' {
                match closing_quote(data, at + 1, stop, open) {
                    Some(after) => at = after,
                    None if stop == data.len() && stop - start < self.limit && !eof => return Scan::NeedMore,
                    None => return self.never_closed(data, start, stop, eof),
                }
                text_after_quote |= !closes_field(data, at, self.delimiter);
            }
            match memchr2(self.delimiter, b'\n', &data[at..stop]) {
                Some(distance) if data[at + distance] == b'\n' => {
                    return ended(at + distance, at + distance + 1, text_after_quote);
                }
                Some(distance) => {
                    delimiter_at(at + distance);
                    at += distance + 1;
                }
                None => return self.unquoted_stop(data, stop, start, eof, text_after_quote),
            }
        }
    }

    fn never_closed(&mut self, data: &[u8], start: usize, stop: usize, eof: bool) -> Scan {
        let next = line_end(data, start, eof);
        if let (Some(first), Some(last)) = (next, memrchr(b'\n', &data[start..stop]))
            && first <= start + last + 1
        {
            self.open = Some(Open { first, last: start + last + 1, until: stop });
        }
        Scan::Faulty { fault: Fault::NeverClosed, next }
    }

    /// The data or the limit is reached outside quotes.
    fn unquoted_stop(&self, data: &[u8], stop: usize, start: usize, eof: bool, text_after_quote: bool) -> Scan {
        match data.get(stop) {
            Some(b'\n') => ended(stop, stop + 1, text_after_quote),
            Some(_) => {
                debug_assert_eq!(stop - start, self.limit);
                Scan::Faulty { fault: Fault::TooLarge, next: line_end(data, stop, eof) }
            }
            None if eof => ended(stop, stop, text_after_quote),
            None => Scan::NeedMore,
        }
    }
}

/// The position after the quote that closes the field whose text starts at `at`.
fn closing_quote(data: &[u8], mut at: usize, stop: usize, open: Option<Open>) -> Option<usize> {
    loop {
        let quote = memchr(b'"', &data[at..stop]).map(|distance| at + distance);
        if let Some(open) = open
            && let Some(newline) = memchr(b'\n', &data[at..quote.unwrap_or(stop)])
            && (open.first..=open.last).contains(&(at + newline + 1))
        {
            at = open.until;
            continue;
        }
        let after = quote? + 1;
        if after < stop && data[after] == b'"' {
            at = after + 1;
        } else {
            return Some(after);
        }
    }
}

fn ended(newline: usize, next: usize, text_after_quote: bool) -> Scan {
    if text_after_quote {
        Scan::Faulty { fault: Fault::TextAfterQuote, next: Some(next) }
    } else {
        Scan::Record { newline, next }
    }
}

/// Whether a field may end at `at`, just after a closing quote.
fn closes_field(data: &[u8], at: usize, delimiter: u8) -> bool {
    match data.get(at) {
        None | Some(b'\n') => true,
        Some(b'\r') if delimiter != b'\r' => data.get(at + 1) == Some(&b'\n'),
        Some(&byte) => byte == delimiter,
    }
}

fn blank(data: &[u8], start: usize, eof: bool) -> Option<Scan> {
    let blank = |newline, next| Some(Scan::Blank { newline, next });
    match &data[start..] {
        [b'\n', ..] => blank(start, start + 1),
        [b'\r', b'\n', ..] => blank(start + 1, start + 2),
        [] | [b'\r'] if eof => blank(data.len(), data.len()),
        [] | [b'\r'] => Some(Scan::NeedMore),
        _ => None,
    }
}

/// The position after the first newline from `from`.
fn line_end(data: &[u8], from: usize, eof: bool) -> Option<usize> {
    match memchr(b'\n', &data[from..]) {
        Some(distance) => Some(from + distance + 1),
        None => eof.then_some(data.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(data: &[u8], limit: usize, eof: bool) -> (Scan, Vec<usize>) {
        let mut delimiters = Vec::new();
        let scan = Exact::new(b',', limit).scan(data, 0, eof, |at| delimiters.push(at));
        (scan, delimiters)
    }

    #[test]
    fn records_end_at_the_first_newline_outside_quotes() {
        assert_eq!(scan(b"a,b\nc", 100, false), (Scan::Record { newline: 3, next: 4 }, vec![1]));
        assert_eq!(scan(b"a,\"x\n,\"\"\"\nc", 100, false), (Scan::Record { newline: 9, next: 10 }, vec![1]));
        assert_eq!(scan(b"a,b", 100, false).0, Scan::NeedMore);
        assert_eq!(scan(b"a,b", 100, true).0, Scan::Record { newline: 3, next: 3 });
    }

    #[test]
    fn the_limit_is_the_longest_good_record() {
        assert_eq!(scan(b"abcd\n", 4, false).0, Scan::Record { newline: 4, next: 5 });
        assert_eq!(scan(b"abcde\nx", 4, false).0, Scan::Faulty { fault: Fault::TooLarge, next: Some(6) });
        assert_eq!(scan(b"abcde", 4, false).0, Scan::Faulty { fault: Fault::TooLarge, next: None });
        assert_eq!(scan(b"\"a\nbcd\n", 4, false).0, Scan::Faulty { fault: Fault::NeverClosed, next: Some(3) });
    }

    #[test]
    fn many_lines_that_open_a_quote_are_read_once() {
        // Every line leaves a quote open whether or not it starts inside one.
        let data = b"a\",\"\n".repeat(40_000);
        let mut exact = Exact::new(b',', 1 << 20);
        let (mut at, mut lines) = (0, 0);
        while at < data.len() {
            match exact.scan(&data, at, true, |_| ()) {
                Scan::Faulty { fault: Fault::NeverClosed, next: Some(next) } => at = next,
                other => panic!("{other:?}"),
            }
            lines += 1;
        }
        assert_eq!(lines, 40_000);
    }
}
