//! A text that every process keeps and passes on, and that is therefore never long.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::limits::MAX_TEXT_BYTES;

/// A text of at most [`MAX_TEXT_BYTES`] bytes. A longer one is cut at a character, and its end says so.
///
/// Making one is the only way to put a text into a message that has this type, and reading a message makes one, too: what
/// another version wrote without a bound is cut when it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct BoundedText(String);

impl BoundedText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text in at most `limit` bytes, which is not more than [`MAX_TEXT_BYTES`] and has room for the note that it was cut.
    pub(crate) fn within(text: impl Into<String>, limit: usize) -> Self {
        let mut text = text.into();
        if text.len() > limit {
            let note = format!(" … (cut: the text has {} bytes)", text.len());
            text.truncate(text.floor_char_boundary(limit.min(MAX_TEXT_BYTES).saturating_sub(note.len())));
            text.push_str(&note);
            text.shrink_to_fit();
        }
        Self(text)
    }
}

impl From<String> for BoundedText {
    fn from(text: String) -> Self {
        Self::within(text, MAX_TEXT_BYTES)
    }
}

impl From<&str> for BoundedText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Deref for BoundedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoundedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_of_five_megabytes_is_cut_and_says_so() {
        let text = BoundedText::from("é".repeat(5 << 19));
        assert!(text.len() <= MAX_TEXT_BYTES && text.len() > MAX_TEXT_BYTES - 4);
        assert!(text.starts_with("éé"));
        assert!(text.ends_with("é … (cut: the text has 5242880 bytes)"), "{}", &text[text.len() - 60..]);
    }

    proptest! {
        #[test]
        fn what_is_short_stays_as_it_is_and_what_was_cut_is_not_cut_again(
            unit in ".{1,3}",
            times in 0..3 * MAX_TEXT_BYTES,
        ) {
            let whole = unit.repeat(times);
            let text = BoundedText::from(whole.clone());
            prop_assert!(text.len() <= MAX_TEXT_BYTES);
            prop_assert_eq!(whole.len() <= MAX_TEXT_BYTES, text.as_str() == whole);
            prop_assert_eq!(BoundedText::from(text.as_str()), text);
        }
    }
}
