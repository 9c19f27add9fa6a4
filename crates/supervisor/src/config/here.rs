//! The text being read: turns a place in it into an error.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use tenaz_words::{nearest, parse_span, show_span};
use toml::Spanned;

use super::ConfigError;
use crate::limits::{MAX_NAME, TIMES};

pub(super) struct Here<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Here<'_> {
    pub(super) fn wrong(&self, at: Range<usize>, problem: impl Into<String>, cure: impl Into<String>) -> ConfigError {
        let end = self.text.floor_char_boundary(at.start.min(self.text.len()));
        let before = &self.text[..end];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        let file = self.file.to_owned();
        ConfigError::Wrong { file, line, column, problem: problem.into(), cure: cure.into() }
    }

    /// What the TOML reader says, with the nearest name that it knows.
    pub(super) fn syntax(&self, error: &toml::de::Error) -> ConfigError {
        let message = error.message().trim().replace('\n', ", ");
        let mut problem = message.clone();
        let cure = if let Some(rest) = message.split("unknown field `").nth(1) {
            let word = rest.split('`').next().unwrap_or_default();
            let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
            problem = format!("`{word}` is not known here");
            match nearest(word, known.iter().copied()).first() {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("remove it, or write one of {}", known.join(", ")),
            }
        } else if let Some(field) = message.strip_prefix("missing field `") {
            let field = field.trim_end_matches('`');
            problem = format!("`{field}` is missing");
            format!("add a line `{field} = …` here")
        } else {
            "correct it here".to_owned()
        };
        self.wrong(error.span().unwrap_or(0..0), problem, cure)
    }

    pub(super) fn name(&self, what: &str, name: &Spanned<String>) -> Result<String, ConfigError> {
        let text = name.get_ref();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(plain) {
            return Ok(text.clone());
        }
        let cure = format!("write 1 to {MAX_NAME} letters, digits, - or _");
        Err(self.wrong(name.span(), format!("{what} {text:?} is not usable"), cure))
    }

    /// A time within limits, or the default.
    pub(super) fn time(&self, time: Option<&Spanned<String>>, default: Duration) -> Result<Duration, ConfigError> {
        let Some(time) = time else { return Ok(default) };
        let text = time.get_ref();
        let Some(found) = parse_span(text) else {
            let problem = format!("{text:?} is no time");
            return Err(self.wrong(time.span(), problem, "write one such as 500ms, 90s, 10m or 2h"));
        };
        let (shortest, longest) = TIMES;
        if (shortest..=longest).contains(&found) {
            return Ok(found);
        }
        let cure = format!("write a time from {} to {}", show_span(shortest), show_span(longest));
        Err(self.wrong(time.span(), format!("{text:?} is not possible here"), cure))
    }

    /// A number of at least one, or the default.
    pub(super) fn count(&self, count: Option<&Spanned<u32>>, default: u32) -> Result<u32, ConfigError> {
        match count {
            None => Ok(default),
            Some(count) if *count.get_ref() == 0 => {
                Err(self.wrong(count.span(), "0 would forbid every start", "write 1 or more"))
            }
            Some(count) => Ok(*count.get_ref()),
        }
    }

    /// An address with a port that others can be told.
    pub(super) fn listen(&self, listen: &Spanned<String>) -> Result<SocketAddr, ConfigError> {
        let text = listen.get_ref();
        let cure = "write an address and a port such as 127.0.0.1:7400 or [::1]:7400";
        let Ok(found) = text.parse::<SocketAddr>() else {
            return Err(self.wrong(listen.span(), format!("{text:?} is no address"), cure));
        };
        if found.port() == 0 {
            let problem = format!("{text:?} would be another port after each restart");
            return Err(self.wrong(listen.span(), problem, "write a port that is free"));
        }
        Ok(found)
    }

    /// One of several known things.
    pub(super) fn one_of<'k>(
        &self,
        what: &str,
        word: &Spanned<String>,
        known: &[&'k str],
    ) -> Result<&'k str, ConfigError> {
        let text = word.get_ref().as_str();
        if let Some(found) = known.iter().find(|k| **k == text) {
            return Ok(found);
        }
        let cure = match nearest(text, known.iter().copied()).first() {
            Some(close) => format!("did you mean {close:?}?"),
            None => {
                let known: Vec<String> = known.iter().map(|k| format!("{k:?}")).collect();
                format!("write {}", known.join(" or "))
            }
        };
        Err(self.wrong(word.span(), format!("there is no {what} {text:?}"), cure))
    }
}
