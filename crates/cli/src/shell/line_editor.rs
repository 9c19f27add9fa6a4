//! One line, typed on a terminal, with a history and completion.
//!
//! The terminal is raw only while a line is typed, so that Ctrl-C is a signal again while a question runs.

use std::io::{self, Write, stderr};

use crossterm::cursor::{MoveToColumn, MoveUp};
use crossterm::style::Print;
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode, size};
use crossterm::{QueueableCommand, queue};
use unicode_width::UnicodeWidthStr;

use super::completion::{Words, common_beginning};
use super::history::History;
use super::keys::{Key, Keys};

/// Candidates that are shown.
const MAX_SHOWN: usize = 60;

/// What came of a line.
pub(super) enum Line {
    /// It was typed to its end.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal has gone.
    End,
}

pub(super) struct LineEditor {
    history: History,
    words: Words,
    keys: Keys,
}

/// The terminal gives every key as it is typed, until this goes.
struct RawMode;

impl RawMode {
    fn new() -> io::Result<Self> {
        enable_raw_mode()?;
        Ok(Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that has gone needs no mode.
        let _ = disable_raw_mode();
    }
}

/// What a key did to the line.
enum After {
    Typing,
    Done(Line),
}

/// The line being typed.
struct Typed<'p> {
    prompt: &'p str,
    text: String,
    /// Bytes before the cursor.
    cursor: usize,
    /// The row of the cursor below that of the prompt.
    row: u16,
    /// The line of the history that is shown; its length: none.
    place: usize,
    /// What was typed before the history was asked.
    draft: String,
}

impl LineEditor {
    pub(super) fn new(history: History, words: Words) -> Self {
        Self { history, words, keys: Keys::default() }
    }

    /// The next line.
    pub(super) fn read(&mut self, prompt: &str) -> io::Result<Line> {
        let _raw = RawMode::new()?;
        let place = self.history.len();
        let mut typed = Typed { prompt, text: String::new(), cursor: 0, row: 0, place, draft: String::new() };
        typed.draw()?;
        loop {
            let after = match self.keys.next()? {
                Some(key) => self.key(&mut typed, key)?,
                None => After::Done(Line::End),
            };
            match after {
                After::Typing => typed.draw()?,
                After::Done(line) => {
                    typed.leave()?;
                    if let Line::Text(text) = &line {
                        self.history.add(text);
                    }
                    return Ok(line);
                }
            }
        }
    }

    fn key(&self, typed: &mut Typed<'_>, key: Key) -> io::Result<After> {
        match key {
            Key::Enter => return Ok(After::Done(Line::Text(typed.text.clone()))),
            Key::Control(b'C') => return Ok(After::Done(Line::Interrupted)),
            Key::Control(b'D') if typed.text.is_empty() => return Ok(After::Done(Line::End)),
            Key::Control(b'D') | Key::Delete => typed.remove(typed.cursor, typed.next()),
            Key::Control(b'A') | Key::Home => typed.cursor = 0,
            Key::Control(b'E') | Key::End => typed.cursor = typed.text.len(),
            Key::Control(b'B') | Key::Left => typed.cursor = typed.previous(),
            Key::Control(b'F') | Key::Right => typed.cursor = typed.next(),
            Key::Control(b'U') => typed.remove(0, typed.cursor),
            Key::Control(b'K') => typed.remove(typed.cursor, typed.text.len()),
            Key::Control(b'W') => typed.remove(typed.word_begin(), typed.cursor),
            Key::Control(b'L') => typed.clear_screen()?,
            Key::Control(b'P') | Key::Up => self.earlier(typed),
            Key::Control(b'N') | Key::Down => self.later(typed),
            Key::Char(c) => typed.insert(&c.to_string()),
            Key::Backspace => typed.remove(typed.previous(), typed.cursor),
            Key::Tab => self.complete(typed)?,
            Key::Control(_) | Key::Unknown => {}
        }
        Ok(After::Typing)
    }

    fn earlier(&self, typed: &mut Typed<'_>) {
        let Some(place) = typed.place.checked_sub(1) else { return };
        if typed.place == self.history.len() {
            typed.draft = typed.text.clone();
        }
        typed.show(place, self.history.line(place).unwrap_or_default().to_owned());
    }

    fn later(&self, typed: &mut Typed<'_>) {
        if typed.place == self.history.len() {
            return;
        }
        let place = typed.place + 1;
        let text = self.history.line(place).map_or_else(|| typed.draft.clone(), str::to_owned);
        typed.show(place, text);
    }

    fn complete(&self, typed: &mut Typed<'_>) -> io::Result<()> {
        let (begin, candidates) = self.words.candidates(&typed.text[..typed.cursor]);
        let shared = common_beginning(&candidates);
        if shared.len() > typed.cursor - begin || candidates.len() == 1 {
            typed.remove(begin, typed.cursor);
            typed.insert(shared);
        } else if candidates.len() > 1 {
            let more = if candidates.len() > MAX_SHOWN { " …" } else { "" };
            let shown = candidates.iter().take(MAX_SHOWN).map(|word| word.trim_end()).collect::<Vec<_>>().join("  ");
            typed.leave()?;
            stderr().queue(Print(format!("{shown}{more}\r\n")))?.flush()?;
            typed.row = 0;
        }
        Ok(())
    }
}

impl Typed<'_> {
    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn show(&mut self, place: usize, text: String) {
        (self.place, self.cursor, self.text) = (place, text.len(), text);
    }

    fn previous(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }

    fn word_begin(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + 1)
    }

    /// Draws prompt and line anew, which may take several rows.
    fn draw(&mut self) -> io::Result<()> {
        let columns = size().map_or(80, |(columns, _)| columns.max(10)) as usize;
        let width = |text: &str| UnicodeWidthStr::width(text);
        let mut out = stderr();
        if self.row > 0 {
            queue!(out, MoveUp(self.row))?;
        }
        queue!(out, MoveToColumn(0), Clear(ClearType::FromCursorDown), Print(self.prompt), Print(&self.text))?;
        let end = width(self.prompt) + width(&self.text);
        if end > 0 && end % columns == 0 {
            // The terminal waits with the next row until something is written there.
            queue!(out, Print("\r\n"))?;
        }
        let place = width(self.prompt) + width(&self.text[..self.cursor]);
        let up = (end / columns - place / columns) as u16;
        if up > 0 {
            queue!(out, MoveUp(up))?;
        }
        queue!(out, MoveToColumn((place % columns) as u16))?;
        self.row = (place / columns) as u16;
        out.flush()
    }

    fn clear_screen(&mut self) -> io::Result<()> {
        self.row = 0;
        queue!(stderr(), Clear(ClearType::All), crossterm::cursor::MoveTo(0, 0))
    }

    /// Leaves the line as it stands, and goes below it.
    fn leave(&mut self) -> io::Result<()> {
        self.cursor = self.text.len();
        self.draw()?;
        stderr().queue(Print("\r\n"))?.flush()
    }
}
