//! The one place through which the program speaks to people. Answers do not go through here.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

/// Standard error, as a place to talk.
#[derive(Debug)]
pub(crate) struct Screen {
    quiet: bool,
    terminal: bool,
    /// Bars that must not be torn by a line of talk.
    bars: Mutex<Option<indicatif::MultiProgress>>,
}

impl Screen {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stderr().is_terminal(), bars: Mutex::new(None) }
    }

    /// Whether nothing but errors may be said.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether progress may be drawn.
    pub(crate) fn shows_progress(&self) -> bool {
        self.terminal && !self.quiet
    }

    /// From now on lines go above these bars.
    pub(crate) fn use_bars(&self, bars: Option<indicatif::MultiProgress>) {
        if let Ok(mut slot) = self.bars.lock() {
            *slot = bars;
        }
    }

    /// A line that a user may do without.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// A line that must be seen, though nothing has failed.
    pub(crate) fn insist(&self, text: &str) {
        self.line(text);
    }

    /// A line that must be seen.
    pub(crate) fn error(&self, text: &str) {
        self.line(&format!("tenaz: {text}"));
    }

    fn line(&self, text: &str) {
        self.beside_bars(|| {
            // Nobody is left to be told when standard error is closed.
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        });
    }

    /// Does something that writes to the terminal, so that bars are not torn.
    pub(crate) fn beside_bars<T>(&self, write: impl FnOnce() -> T) -> T {
        match self.bars.lock() {
            Ok(bars) => match bars.as_ref() {
                Some(bars) => bars.suspend(write),
                None => write(),
            },
            Err(_) => write(),
        }
    }
}

/// Text from files as one line of printable text: a terminal would act upon control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\n' {
                '⏎'
            } else if c.is_control() {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}
