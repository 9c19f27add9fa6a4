//! The one place through which the program speaks to people. Answers do not go through here.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;

use crate::messages::Message;

/// What the lines of standard error are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: a JSON record on every line, with progress, bad records, the summary, and places of errors.
    Json,
}

/// Standard error, as a place to talk.
#[derive(Debug)]
pub(crate) struct Screen {
    quiet: bool,
    terminal: bool,
    format: MessageFormat,
    /// A record could not be written: the program that reads them has gone.
    reader_gone: AtomicBool,
    /// Bars that must not be torn by a line of talk.
    bars: Mutex<Option<indicatif::MultiProgress>>,
}

impl Screen {
    pub(crate) fn new(quiet: bool) -> Self {
        Self::with_format(quiet, MessageFormat::Text)
    }

    pub(crate) fn with_format(quiet: bool, format: MessageFormat) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { quiet, terminal, format, reader_gone: AtomicBool::new(false), bars: Mutex::new(None) }
    }

    /// Whether nothing but errors may be said.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether progress may be drawn.
    pub(crate) fn shows_progress(&self) -> bool {
        self.terminal && !self.quiet && !self.writes_records()
    }

    /// Whether a program reads what is said.
    pub(crate) fn writes_records(&self) -> bool {
        self.format == MessageFormat::Json
    }

    /// Whether the program that read the records has gone: nobody waits for the job.
    pub(crate) fn is_reader_gone(&self) -> bool {
        self.reader_gone.load(Ordering::Relaxed)
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
            self.write(text, &Message::Text { text: text.trim_matches('\n') });
        }
    }

    /// A guess about the data, and how to overrule it.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.write(&format!("note: {text}"), &Message::Note { text });
        }
    }

    /// A line that must be seen, though nothing has failed.
    pub(crate) fn insist(&self, text: &str) {
        self.write(text, &Message::Warning { text });
    }

    /// A line that must be seen; programs get the record.
    pub(crate) fn error(&self, text: &str, record: &Message<'_>) {
        self.write(&format!("tenaz: {text}"), record);
    }

    /// A record for programs; people do not see it.
    pub(crate) fn record(&self, record: &Message<'_>) {
        if self.writes_records() {
            self.write("", record);
        }
    }

    fn write(&self, text: &str, record: &Message<'_>) {
        if self.writes_records() {
            if std::io::stderr().lock().write_all(record.line().as_bytes()).is_err() {
                self.reader_gone.store(true, Ordering::Relaxed);
            }
            return;
        }
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
