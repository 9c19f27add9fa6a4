//! The header record.

use crate::fields::unquote;
use crate::limits::MAX_REJECT_CHARS;
use crate::{Error, Layout};

/// The header as it is shown to users.
pub(crate) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text.strip_suffix(b"\r").unwrap_or(text)).into_owned()
}

/// Whether the header names the columns of `layout`. `delimiters` are positions in `text`.
pub(crate) fn check(layout: &Layout, text: &[u8], delimiters: &[usize]) -> Result<(), Error> {
    let names = names(text, delimiters);
    let problem = if names.len() == layout.columns.len() {
        let differs = |(name, column): (&String, &str)| name.to_lowercase() != column.trim().to_lowercase();
        let columns = || layout.columns.iter().map(|column| column.name.as_str());
        match names.iter().zip(columns()).position(differs) {
            None => return Ok(()),
            Some(i) => {
                let expected = &layout.columns[i].name;
                format!("column {} is named \"{}\", expected \"{expected}\"", i + 1, names[i])
            }
        }
    } else {
        format!("it names {} columns, expected {}", names.len(), layout.columns.len())
    };
    let found = shown(text);
    let found = match found.char_indices().nth(MAX_REJECT_CHARS) {
        None => found,
        Some((cut, _)) => format!("{}…", &found[..cut]),
    };
    Err(Error::Header { problem, found })
}

fn names(text: &[u8], delimiters: &[usize]) -> Vec<String> {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let delimiters = delimiters.iter().copied().filter(|at| *at < text.len());
    let mut start = 0;
    let mut names = Vec::new();
    for end in delimiters.chain([text.len()]) {
        let name = unquote(&text[start..end]);
        names.push(String::from_utf8_lossy(&name).trim().to_owned());
        start = end + 1;
    }
    names
}
