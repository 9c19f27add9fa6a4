//! Whether an order still means what is there, for the back-ends where lives are looked up before each order.

use std::collections::VecDeque;

use tenaz_core::Incarnation;

use super::{BackendError, Found};
use crate::limits::MAX_LINE_CHARS;

impl Found {
    /// Whether this life runs; an error if another does.
    pub(super) fn must_be(&self, incarnation: Incarnation) -> Result<bool, BackendError> {
        match (self.is_running(), self.incarnation == incarnation) {
            (false, _) => Ok(false),
            (true, true) => Ok(true),
            (true, false) => Err(self.out_of_date(incarnation)),
        }
    }

    /// An error if it runs, or had this life or a later one already.
    pub(super) fn may_start(&self, incarnation: Incarnation) -> Result<(), BackendError> {
        if self.is_running() || self.incarnation >= incarnation { Err(self.out_of_date(incarnation)) } else { Ok(()) }
    }

    fn out_of_date(&self, ordered: Incarnation) -> BackendError {
        let state = if self.is_running() { "runs" } else { "has ended" };
        let detail = format!("life {} {state}, the order was for {ordered}", self.incarnation);
        BackendError::OutOfDate { name: self.name.clone(), detail }
    }
}

/// The last lines, each cut where it gets too long to be quoted.
pub(super) fn last_of(lines: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut last = VecDeque::new();
    for line in lines {
        if last.len() == most {
            last.pop_front();
        }
        last.push_back(line);
    }
    // With `most` = 0 one line got in.
    last.truncate(most);
    last.into_iter().map(quoted).collect()
}

fn quoted(line: String) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tenaz_core::{Ending, ProcessRole};

    fn found(incarnation: u64, pid: Option<u32>) -> Found {
        Found {
            name: "worker-1".parse().unwrap(),
            role: ProcessRole::Worker,
            incarnation: Incarnation(incarnation),
            pid,
            ended: pid.is_none().then_some(Ending::Exited(0)),
            alias: None,
            log: None,
        }
    }

    #[test]
    fn orders_for_another_life_are_out_of_date() {
        assert!(found(7, Some(1)).must_be(Incarnation(7)).unwrap());
        assert!(!found(7, None).must_be(Incarnation(7)).unwrap());
        assert!(!found(8, None).must_be(Incarnation(7)).unwrap(), "what has ended need not be ended");
        let error = found(8, Some(1)).must_be(Incarnation(7)).unwrap_err();
        assert_eq!(error.to_string(), "the order for worker-1 is out of date: life 8 runs, the order was for 7");
    }

    #[test]
    fn a_start_must_be_a_new_life_of_something_that_does_not_run() {
        assert!(found(7, None).may_start(Incarnation(8)).is_ok());
        assert!(found(7, None).may_start(Incarnation(7)).is_err());
        assert!(found(7, Some(1)).may_start(Incarnation(8)).is_err());
    }

    #[test]
    fn last_lines_are_the_last_and_bounded() {
        let lines = |most| last_of(["a", "b", "c"].into_iter().map(str::to_owned), most);
        assert_eq!(lines(2), ["b", "c"]);
        assert_eq!(lines(5), ["a", "b", "c"]);
        assert!(lines(0).is_empty());
        let long = last_of(["ä".repeat(600)].into_iter(), 1);
        assert_eq!(long[0], format!("{}…", "ä".repeat(MAX_LINE_CHARS)));
    }
}
