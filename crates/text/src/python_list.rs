//! Python lists of strings, as `repr` writes them: `['Arno Puder', "Nena O'Neill"]`.
//!
//! ```text
//! list    = ws '[' ws [ string ws { ',' ws string ws } [ ',' ws ] ] ']' ws
//! string  = a run of characters and escapes between two ' or two "
//! ws      = blanks, tabs, form feeds, line ends
//! ```
//!
//! Where this accepts a text, `ast.literal_eval` reads it the same. The reverse is not meant: what
//! `repr` never writes gives `None` (prefixes such as `b''`, triple quotes, two strings without a
//! comma, comments, parentheses, `\N{name}`), because in these files it is damage, not a list.

use std::borrow::Cow;

/// The elements of a Python list of strings; `None` if the text is anything else.
///
/// All elements must be strings: a number or a `None` among them makes the whole text `None`, since
/// dropping an element would change which titles have a single author. An escape that no Rust
/// string can hold (a lone surrogate, `\ud800`) does so too. As in Python, a backslash before a
/// character without meaning (`\d`) stays.
///
/// ```
/// use tenaz_text::python_list;
///
/// let authors = python_list(r#"['Arno Puder', "Nena O'Neill", 'Smith, J. \'Jr\'']"#);
/// assert_eq!(authors.expect("a list"), ["Arno Puder", "Nena O'Neill", "Smith, J. 'Jr'"]);
/// assert_eq!(python_list("[]"), Some(vec![]));
/// assert_eq!(python_list("Arno Puder"), None);
/// assert_eq!(python_list("['a', 1]"), None);
/// ```
#[must_use]
pub fn python_list(text: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut rest = text.trim_matches(BLANK).strip_prefix('[')?.strip_suffix(']')?.trim_start_matches(BLANK);
    let mut elements = Vec::new();
    while !rest.is_empty() {
        let (element, after) = string(rest)?;
        elements.push(element);
        let after = after.trim_start_matches(BLANK);
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start_matches(BLANK),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(elements)
}

/// What may stand between the parts of a list.
const BLANK: [char; 5] = [' ', '\t', '\n', '\r', '\x0c'];

/// Reads the string that `text` begins with; gives it and what follows.
fn string(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut rest = &text[1..];
    let mut value = Cow::Borrowed("");
    loop {
        let (at, found) = rest.char_indices().find(|&(_, c)| c == quote || matches!(c, '\\' | '\n' | '\r' | '\0'))?;
        append(&mut value, &rest[..at]);
        rest = &rest[at + 1..];
        match found {
            '\\' => rest = escape(rest, value.to_mut())?,
            // A string ends on its own line.
            '\n' | '\r' | '\0' => return None,
            _ => return Some((value, rest)),
        }
    }
}

/// Appends without a copy as long as there is nothing to append to.
fn append<'a>(value: &mut Cow<'a, str>, part: &'a str) {
    match value {
        Cow::Borrowed("") => *value = Cow::Borrowed(part),
        _ => value.to_mut().push_str(part),
    }
}

/// Reads the escape behind a backslash into `value`; gives what follows.
fn escape<'a>(text: &'a str, value: &mut String) -> Option<&'a str> {
    let escaped = text.chars().next()?;
    let rest = &text[escaped.len_utf8()..];
    let plain = match escaped {
        '\\' | '\'' | '"' => escaped,
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '0'..='7' => return octal(text, value),
        'x' => return hexadecimal(rest, 2, value),
        'u' => return hexadecimal(rest, 4, value),
        'U' => return hexadecimal(rest, 8, value),
        'N' | '\0' => return None,
        // A line end behind a backslash joins the two lines.
        '\n' => return Some(rest),
        '\r' => return Some(rest.strip_prefix('\n').unwrap_or(rest)),
        _ => {
            value.push('\\');
            escaped
        }
    };
    value.push(plain);
    Some(rest)
}

/// One to three octal digits.
fn octal<'a>(text: &'a str, value: &mut String) -> Option<&'a str> {
    let digits = text.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    code_point(text, digits, 8, value)
}

/// Exactly `digits` hexadecimal digits.
fn hexadecimal<'a>(text: &'a str, digits: usize, value: &mut String) -> Option<&'a str> {
    let all = text.bytes().take(digits).filter(u8::is_ascii_hexdigit).count() == digits;
    all.then(|| code_point(text, digits, 16, value))?
}

/// The character whose number is written in the first `digits` bytes.
fn code_point<'a>(text: &'a str, digits: usize, radix: u32, value: &mut String) -> Option<&'a str> {
    let (number, rest) = text.split_at(digits);
    value.push(char::from_u32(u32::from_str_radix(number, radix).ok()?)?);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::python_list;
    use std::borrow::Cow;

    #[test]
    fn elements_keep_commas_brackets_and_the_other_quote() {
        let list = python_list(r#" [ 'a, b' , "it's",'[x]' , '"' , ] "#);
        assert_eq!(list.expect("a list"), ["a, b", "it's", "[x]", "\""]);
    }

    #[test]
    fn escapes_are_resolved() {
        let list = python_list(r"['\'\\\n\t', '\x41\u00e9\U0001F600', '\101\0\7x', '\d']");
        assert_eq!(list.expect("a list"), ["'\\\n\t", "Aé😀", "A\0\u{7}x", "\\d"]);
    }

    #[test]
    fn elements_without_escapes_are_borrowed() {
        let list = python_list("['Kay Römer', 'a\\tb']").expect("a list");
        assert!(matches!(list[..], [Cow::Borrowed(_), Cow::Owned(_)]));
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            " ",
            "[",
            "]",
            "[]]",
            "[[]]",
            "()",
            "('a',)",
            "{'a'}",
            "'a'",
            "['a'",
            "'a']",
            "['a]",
            "[a]",
            "[1]",
            "[None]",
            "['a', None]",
            "['a' 'b']",
            "[,]",
            "['a',,]",
            "[b'a']",
            "['''a''']",
            "['a'] # x",
            "['a']x",
            "['a\nb']",
            r"['\x4']",
            r"['\u12']",
            r"['\ud800']",
            r"['\U00110000']",
            r"['\N{BULLET}']",
            "['\\']",
            "['a\0']",
            "\u{a0}['a']",
            "['a';'b']",
        ] {
            assert_eq!(python_list(text), None, "{text:?}");
        }
    }
}
