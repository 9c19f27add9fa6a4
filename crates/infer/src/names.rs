//! Names that SQL takes without quotes.

use std::collections::HashSet;

use tenaz_engine::limits::MAX_NAME;
use tenaz_engine::needs_quotes;

/// Gives out names, each once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// `wanted` in lower case, with `_` for all but letters and digits: `review/score` is `review_score`. A name that starts with a
    /// digit gets `prefix` in front, a word of SQL's own `_` behind, and a name that is taken a number.
    pub(crate) fn give(&mut self, wanted: &str, prefix: &str) -> Option<String> {
        let plain = friendly(wanted, prefix)?;
        let mut name = plain.clone();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            let suffix = format!("_{number}");
            name = format!("{}{suffix}", cut(&plain, MAX_NAME - suffix.len()));
        }
        Some(name)
    }
}

/// None: nothing of the name is left.
fn friendly(wanted: &str, prefix: &str) -> Option<String> {
    let mut name = String::new();
    for c in wanted.chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_alphanumeric() => name.push(c),
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_end_matches('_');
    if name.is_empty() {
        return None;
    }
    let name = if name.starts_with(char::is_numeric) { format!("{prefix}_{name}") } else { name.to_owned() };
    let name = cut(&name, MAX_NAME - 1).trim_end_matches('_').to_owned();
    Some(if needs_quotes(&name) { format!("{name}_") } else { name })
}

fn cut(name: &str, chars: usize) -> &str {
    name.char_indices().nth(chars).map_or(name, |(at, _)| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_words() {
        for (wanted, name) in [
            ("review/score", "review_score"),
            ("Average playtime forever", "average_playtime_forever"),
            ("AppID", "appid"),
            (" Größe (cm) ", "größe_cm"),
            ("2019 sales", "c_2019_sales"),
            ("a--b", "a_b"),
            ("order", "order"),
            ("User", "user_"),
            ("from", "from_"),
            ("date", "date"),
            ("name", "name"),
            ("__x__", "x"),
        ] {
            assert_eq!(friendly(wanted, "c").as_deref(), Some(name), "{wanted}");
        }
        assert_eq!(friendly(" -/- ", "c"), None);
        assert_eq!(friendly("", "c"), None);
    }

    #[test]
    fn a_name_is_given_once_and_never_too_long() {
        let mut names = Names::default();
        let mut give = |wanted: &str| names.give(wanted, "c").expect("no mistake");
        assert_eq!(give("a"), "a");
        assert_eq!(give("A"), "a_2");
        assert_eq!(give("a"), "a_3");
        assert_eq!(give("a 2"), "a_2_2");
        let long = "ü".repeat(100);
        let (first, second) = (give(&long), give(&long));
        assert_ne!(first, second);
        assert!(first.chars().count() <= MAX_NAME && second.chars().count() <= MAX_NAME);
    }
}
