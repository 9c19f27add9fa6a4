//! Any text as a Python list: no panic, and what is read can be written and read again.
#![allow(missing_docs)]

use tenaz_fuzz::Target;
use tenaz_text::python_list;

#[test]
fn python_lists_are_read_or_refused() {
    Target::new("python_list", env!("CARGO_MANIFEST_DIR")).run(|input| {
        let text = String::from_utf8_lossy(input);
        let found = python_list(&text)?;
        let quoted = |item: &str| {
            format!(
                "'{}'",
                item.replace('\\', "\\\\")
                    .replace('\'', "\\'")
                    .replace('\n', "\\n")
                    .replace('\r', "\\r")
                    .replace('\0', "\\x00")
            )
        };
        let written = format!("[{}]", found.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "));
        let again = python_list(&written);
        assert_eq!(again.as_ref(), Some(&found), "{written}");
        Some((found.len().min(4), found.iter().take(4).map(|item| item.len().min(4)).collect::<Vec<_>>()))
    });
}
