//! Keys, from the bytes that a terminal sends for them.

use std::collections::VecDeque;
use std::io::{self, Read, stdin};

/// Bytes that are read at once: what was pasted comes in one piece.
const STEP_BYTES: usize = 4_096;

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    /// A letter, held down with Ctrl.
    Control(u8),
    /// One that means nothing here.
    Unknown,
}

/// Reads keys from standard input.
#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: VecDeque<u8>,
}

impl Keys {
    /// The next key; none: the terminal has gone.
    pub(super) fn next(&mut self) -> io::Result<Option<Key>> {
        self.next_of(&mut stdin().lock())
    }

    fn next_of(&mut self, input: &mut impl Read) -> io::Result<Option<Key>> {
        let Some(first) = self.byte(input)? else { return Ok(None) };
        Ok(Some(match first {
            b'\r' | b'\n' => Key::Enter,
            b'\t' => Key::Tab,
            0x7f | 0x08 => Key::Backspace,
            // A lone escape means nothing; what begins with one comes in one piece.
            0x1b if self.bytes.is_empty() => Key::Unknown,
            0x1b => self.sequence(input)?,
            control @ 1..=26 => Key::Control(control + b'A' - 1),
            0..=31 => Key::Unknown,
            _ => self.character(first, input)?,
        }))
    }

    fn byte(&mut self, input: &mut impl Read) -> io::Result<Option<u8>> {
        while self.bytes.is_empty() {
            let mut step = [0; STEP_BYTES];
            match input.read(&mut step) {
                Ok(0) => return Ok(None),
                Ok(read) => self.bytes.extend(&step[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.bytes.pop_front())
    }

    /// What follows an escape: `[A`, `OH`, `[3~`, `[1;5C`.
    fn sequence(&mut self, input: &mut impl Read) -> io::Result<Key> {
        let introducer = self.byte(input)?;
        if !matches!(introducer, Some(b'[' | b'O')) {
            return Ok(Key::Unknown);
        }
        let mut number = None;
        while let Some(byte) = self.byte(input)? {
            match byte {
                b'0'..=b'9' | b';' => number = number.or(Some(byte)),
                b'A' => return Ok(Key::Up),
                b'B' => return Ok(Key::Down),
                b'C' => return Ok(Key::Right),
                b'D' => return Ok(Key::Left),
                b'H' => return Ok(Key::Home),
                b'F' => return Ok(Key::End),
                b'~' => {
                    return Ok(match number {
                        Some(b'1' | b'7') => Key::Home,
                        Some(b'4' | b'8') => Key::End,
                        Some(b'3') => Key::Delete,
                        _ => Key::Unknown,
                    });
                }
                _ => return Ok(Key::Unknown),
            }
        }
        Ok(Key::Unknown)
    }

    /// A character of one or more bytes.
    fn character(&mut self, first: u8, input: &mut impl Read) -> io::Result<Key> {
        let length = match first {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        let mut bytes = vec![first];
        while bytes.len() < length {
            let Some(byte) = self.byte(input)? else { break };
            bytes.push(byte);
        }
        let text = std::str::from_utf8(&bytes).ok();
        Ok(text.and_then(|text| text.chars().next()).map_or(Key::Unknown, Key::Char))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_terminal_are_keys() {
        let mut keys = Keys::default();
        let mut input = "aß€\r\t\u{7f}\u{3}\u{1b}[A\u{1b}OH\u{1b}[3~\u{1b}[1;5C\u{1b}[200~x\n".as_bytes();
        let mut all = Vec::new();
        while let Some(key) = keys.next_of(&mut input).unwrap() {
            all.push(key);
        }
        let (c, up) = (Key::Char, Key::Up);
        let expected = [
            c('a'),
            c('ß'),
            c('€'),
            Key::Enter,
            Key::Tab,
            Key::Backspace,
            Key::Control(b'C'),
            up,
            Key::Home,
            Key::Delete,
            Key::Right,
            Key::Unknown,
            c('x'),
            Key::Enter,
        ];
        assert_eq!(all, expected);
    }
}
