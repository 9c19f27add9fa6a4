//! Errors of the program itself, and how any error is told: as a sentence for people or a record for programs, with an exit code.

use std::io;
use std::process::ExitCode;

use tenaz_core::{FailedQuery, FaultClass};

use crate::ends::{End, Exit, end_of};
use crate::messages::{ErrorRecord, Message, Place};
use crate::screen::{MessageFormat, Screen, printable};

/// The user's command cannot mean anything.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Whoever read our standard output has gone: nothing is wrong, and nothing is left to do.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for ReaderGone {}

/// The command has done what it should, and found that not all is well.
#[derive(Debug)]
pub(crate) struct NotWell(pub(crate) String);

impl std::fmt::Display for NotWell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotWell {}

/// Some questions could not be answered. The others were.
#[derive(Debug)]
pub(crate) struct QuestionsFailed(pub(crate) Vec<FailedQuery>);

impl QuestionsFailed {
    /// An error, if there are any.
    pub(crate) fn check(failed: Vec<FailedQuery>) -> Result<(), Self> {
        if failed.is_empty() { Ok(()) } else { Err(Self(failed)) }
    }
}

impl std::fmt::Display for QuestionsFailed {
    /// One line for each.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.0.iter().map(|failed| format!("{}: {}", failed.name, failed.text)).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for QuestionsFailed {}

/// The command ended before its job: the user must know how to go on with it, or how to end it.
#[derive(Debug)]
pub(crate) struct JobLeft {
    pub(crate) error: anyhow::Error,
    pub(crate) hint: String,
}

impl std::fmt::Display for JobLeft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", sentence(&self.error), self.hint)
    }
}

impl std::error::Error for JobLeft {}

/// Standard output cannot be written, not even if it is a full disk: where it goes is the user's choice.
#[derive(Debug)]
pub(crate) struct StdoutFailed(io::Error);

impl std::fmt::Display for StdoutFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write to standard output: {}", self.0)
    }
}

impl std::error::Error for StdoutFailed {}

/// Why standard output could not be written, in the user's words.
pub(crate) fn stdout_failed(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => StdoutFailed(error).into(),
    }
}

/// Says what went wrong in one line and gives the exit code.
pub(crate) fn report(error: &anyhow::Error, screen: &Screen) -> ExitCode {
    let End { exit, class, place } = end_of(error);
    if exit == Exit::Success {
        return ExitCode::SUCCESS;
    }
    if let Some(QuestionsFailed(failed)) = error.downcast_ref() {
        failed.iter().for_each(|failed| report_question(failed, exit, screen));
        return ExitCode::from(exit.code());
    }
    let text = sentence(error);
    let shown = match error.downcast_ref::<tenaz_engine::Error>() {
        // The line of SQL in question stands below, with a mark under the place.
        Some(tenaz_engine::Error::Sql { .. }) => text.lines().map(printable).collect::<Vec<_>>().join("\n"),
        _ => printable(&text),
    };
    screen.error(&shown, &Message::Error(&ErrorRecord { exit: exit.code(), class, text, place }));
    ExitCode::from(exit.code())
}

fn report_question(failed: &FailedQuery, exit: Exit, screen: &Screen) {
    let text = format!("{}: {}", failed.name, failed.text);
    let place = Place { query: Some(failed.name.clone()), ..Place::default() };
    let record = ErrorRecord { exit: exit.code(), class: Some(failed.class), text, place };
    screen.error(&printable(&record.text), &Message::Error(&record));
}

/// Says what is wrong with a command line, or shows the help that it asks for. A program that has asked for records gets one.
pub(crate) fn report_usage(error: &clap::Error, mut args: impl Iterator<Item = String>) -> ExitCode {
    let mut asks_for_json = || {
        let mut is_value = false;
        args.any(|arg| {
            let is_json = arg == "--message-format=json" || (is_value && arg == "json");
            is_value = arg == "--message-format";
            is_json
        })
    };
    if !error.use_stderr() || !asks_for_json() {
        error.exit();
    }
    let exit = Exit::Usage.code();
    let rendered = error.to_string();
    let text = rendered.strip_prefix("error: ").unwrap_or(&rendered).trim_end().to_owned();
    let record = ErrorRecord { exit, class: Some(FaultClass::Query), text, place: Place::default() };
    Screen::with_format(false, MessageFormat::Json).record(&Message::Error(&record));
    ExitCode::from(exit)
}

/// The error and its causes in one line; a cause that is already part of the text is not said again.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) && !cause.contains(&text) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
