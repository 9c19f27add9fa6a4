//! Truth values in the file's own spelling.

use super::Parser;
use crate::Reason;
use crate::reject::found;

/// Parses [`Kind::Bool`](crate::Kind::Bool).
pub(crate) struct BoolParser {
    pub(crate) yes: Vec<String>,
    pub(crate) no: Vec<String>,
}

impl BoolParser {
    #[inline(always)]
    fn known(&self, text: &[u8]) -> Option<bool> {
        if self.yes.iter().any(|spelling| spelling.as_bytes() == text) {
            Some(true)
        } else if self.no.iter().any(|spelling| spelling.as_bytes() == text) {
            Some(false)
        } else {
            None
        }
    }
}

impl Parser for BoolParser {
    type Value = bool;

    #[inline(always)]
    fn fast(&mut self, data: &[u8], start: usize, end: usize) -> Option<bool> {
        // Quotes and spaces around a value are the slow way's.
        let text = &data[start..end];
        if matches!(text, [b'"' | b' ', ..] | [.., b' ']) { None } else { self.known(text) }
    }

    fn slow(&self, text: &[u8]) -> Result<bool, Reason> {
        self.known(text).ok_or_else(|| Reason::NotBool {
            found: found(text),
            expected: self
                .yes
                .iter()
                .chain(&self.no)
                .map(|spelling| format!("\"{spelling}\""))
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::both_ways;
    use super::*;

    #[test]
    fn only_the_given_spellings_are_truth_values() {
        let mut parser = BoolParser { yes: vec!["True".into(), "1".into()], no: vec!["False".into()] };
        assert_eq!(both_ways(&mut parser, "True"), Ok(true));
        assert_eq!(both_ways(&mut parser, "1"), Ok(true));
        assert_eq!(both_ways(&mut parser, "False"), Ok(false));
        let reason = both_ways(&mut parser, "true").expect_err("case matters");
        assert_eq!(reason.to_string(), "\"true\" is not one of \"True\", \"1\", \"False\"");
    }
}
