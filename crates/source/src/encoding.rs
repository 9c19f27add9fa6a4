//! The encoding of a text, and its way to UTF-8.

use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::limits::STEP_BYTES;
use crate::{Error, Repairs};

/// A character encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TextEncoding(&'static Encoding);

impl TextEncoding {
    /// UTF-8, with or without a mark.
    pub const UTF_8: Self = Self(UTF_8);
    /// UTF-16, low byte first.
    pub const UTF_16LE: Self = Self(UTF_16LE);
    /// UTF-16, high byte first.
    pub const UTF_16BE: Self = Self(UTF_16BE);

    /// The encoding of this name, in any of the spellings that browsers know (`latin1`, `cp1252`, `utf8`).
    ///
    /// # Errors
    /// [`Error::UnknownEncoding`]
    pub fn named(name: &str) -> Result<Self, Error> {
        let spelling = name.trim().to_ascii_lowercase().replace('_', "-");
        let known = Encoding::for_label(spelling.as_bytes()).or_else(|| {
            let spelling = spelling.strip_prefix("cp").map(|number| format!("windows-{number}"))?;
            Encoding::for_label(spelling.as_bytes())
        });
        known.map(Self).ok_or_else(|| Error::UnknownEncoding { name: name.to_owned() })
    }

    /// The usual name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Whether bytes are UTF-8 as they are.
    #[must_use]
    pub fn is_utf8(self) -> bool {
        self.0 == UTF_8
    }
}

impl fmt::Display for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.name() {
            // The usual names are written small; Big5 and the like are not.
            name if name == name.to_ascii_uppercase() || name.starts_with("ISO") => f.write_str(&name.to_lowercase()),
            name => f.write_str(name),
        }
    }
}

impl fmt::Debug for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The encoding of a text of which these are parts; the first one is its beginning.
///
/// UTF-16 shows by its mark or by its zeros, UTF-8 by being valid in all parts (characters that were cut at the ends of a part
/// do not count). Everything else is a guess among the encodings of one or two bytes.
#[must_use]
pub fn guess_encoding(parts: &[&[u8]]) -> TextEncoding {
    let head = parts.first().copied().unwrap_or_default();
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return TextEncoding(encoding);
    }
    if let Some(encoding) = utf16_without_mark(head) {
        return encoding;
    }
    let is_valid = |(index, part): (usize, &&[u8])| is_utf8_but_for_its_ends(part, index > 0);
    if parts.iter().enumerate().all(is_valid) {
        return TextEncoding::UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    for part in parts {
        detector.feed(part, false);
    }
    detector.feed(b"", true);
    TextEncoding(detector.guess(None, Utf8Detection::Deny))
}

/// Whether every other byte of the beginning is zero: text of western letters in UTF-16.
fn utf16_without_mark(head: &[u8]) -> Option<TextEncoding> {
    let pairs = head[..head.len().min(512)].chunks_exact(2);
    let (total, mut low_zero, mut high_zero) = (pairs.len(), 0, 0);
    for pair in pairs {
        low_zero += usize::from(pair[0] == 0);
        high_zero += usize::from(pair[1] == 0);
    }
    let most = |zeros: usize| total >= 4 && zeros * 10 >= total * 7;
    match (most(low_zero), most(high_zero)) {
        (false, true) if low_zero == 0 => Some(TextEncoding::UTF_16LE),
        (true, false) if high_zero == 0 => Some(TextEncoding::UTF_16BE),
        _ => None,
    }
}

/// Whether the bytes are UTF-8, apart from a character that begins before them or ends behind them.
fn is_utf8_but_for_its_ends(part: &[u8], begins_inside: bool) -> bool {
    let is_continuation = |byte: &u8| byte & 0xc0 == 0x80;
    let lead = if begins_inside { part.iter().take(3).take_while(|byte| is_continuation(byte)).count() } else { 0 };
    match simdutf8::compat::from_utf8(&part[lead..]) {
        Ok(_) => true,
        // No length: the bytes at the end may become a character.
        Err(error) => error.error_len().is_none(),
    }
}

/// Text in UTF-8, made of text in another encoding. A mark at its beginning is dropped.
pub(crate) struct Transcoder<R> {
    input: R,
    decoder: Decoder,
    raw: Vec<u8>,
    /// Bytes of `raw` that are still to be decoded.
    raw_from: usize,
    raw_to: usize,
    ended: bool,
    /// Text that did not fit into the reader's buffer.
    text: Vec<u8>,
    text_from: usize,
    repairs: Arc<Repairs>,
}

impl<R: Read> Transcoder<R> {
    pub(crate) fn new(input: R, encoding: TextEncoding, repairs: Arc<Repairs>) -> Self {
        Self {
            input,
            decoder: encoding.0.new_decoder_with_bom_removal(),
            raw: vec![0; STEP_BYTES],
            raw_from: 0,
            raw_to: 0,
            ended: false,
            text: Vec::new(),
            text_from: 0,
            repairs,
        }
    }

    /// Decodes the next step into `text`. False: there is no more.
    fn step(&mut self) -> std::io::Result<bool> {
        if self.ended && self.raw_from == self.raw_to {
            return Ok(false);
        }
        if self.raw_from == self.raw_to {
            self.raw_to = read_some(&mut self.input, &mut self.raw)?;
            self.raw_from = 0;
            self.ended = self.raw_to == 0;
        }
        self.text.resize(4 * STEP_BYTES, 0);
        let raw = &self.raw[self.raw_from..self.raw_to];
        let (result, read, written, replaced) = self.decoder.decode_to_utf8(raw, &mut self.text, self.ended);
        self.raw_from += read;
        self.text.truncate(written);
        self.text_from = 0;
        if replaced {
            self.repairs.replaced_characters.fetch_add(1, Ordering::Relaxed);
        }
        // A full output has more to come, even if all input is taken.
        Ok(written > 0 || result == CoderResult::OutputFull || !self.ended)
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        while self.text_from == self.text.len() {
            if buf.is_empty() || !self.step()? {
                return Ok(0);
            }
        }
        let some = (self.text.len() - self.text_from).min(buf.len());
        buf[..some].copy_from_slice(&self.text[self.text_from..self.text_from + some]);
        self.text_from += some;
        Ok(some)
    }
}

/// One read that is not interrupted.
pub(crate) fn read_some(input: &mut impl Read, buf: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match input.read(buf) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn transcoded(bytes: &[u8], encoding: TextEncoding) -> String {
        let mut text = String::new();
        Transcoder::new(bytes, encoding, Arc::default()).read_to_string(&mut text).unwrap();
        text
    }

    fn utf16(text: &str, little: bool) -> Vec<u8> {
        text.encode_utf16().flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
    }

    #[test]
    fn utf16_is_known_by_its_mark_and_without_it_by_its_zeros() {
        let text = "id;Größe;名前\n1;5;x\n2;6;y\n";
        for little in [true, false] {
            let expected = if little { TextEncoding::UTF_16LE } else { TextEncoding::UTF_16BE };
            let marked = utf16(&format!("\u{feff}{text}"), little);
            assert_eq!(guess_encoding(&[&marked]), expected);
            assert_eq!(transcoded(&marked, expected), text);
            let bare = utf16(&format!("id;name;amount of things\n{text}"), little);
            assert_eq!(guess_encoding(&[&bare]), expected);
        }
    }

    #[test]
    fn text_is_utf8_if_all_parts_are_and_else_a_guess() {
        let valid = "stadt,größe\nKöln,5\n".as_bytes();
        assert_eq!(guess_encoding(&[valid]), TextEncoding::UTF_8);
        // Cut inside of a character at both ends.
        let at = valid.iter().position(|byte| !byte.is_ascii()).unwrap();
        assert_eq!(guess_encoding(&[&valid[..=at], &valid[at + 1..]]), TextEncoding::UTF_8);
        let (latin, ..) = encoding_rs::WINDOWS_1252.encode("stadt,größe\nKöln,5\nMünchen,7\nZürich,8 €\n");
        let guess = guess_encoding(&[b"stadt,", &latin]);
        assert_eq!(guess.name(), "windows-1252");
        assert_eq!(transcoded(&latin, guess), "stadt,größe\nKöln,5\nMünchen,7\nZürich,8 €\n");
        let text = "город,сумма\nМосква,5\nСанкт-Петербург,7\nНовосибирск,12\n";
        let (cyrillic, ..) = encoding_rs::WINDOWS_1251.encode(text);
        assert_eq!(transcoded(&cyrillic, guess_encoding(&[&cyrillic])), text);
    }

    #[test]
    fn names_of_encodings_are_known_in_their_common_spellings() {
        for (spelling, name) in [
            ("latin1", "windows-1252"),
            ("ISO-8859-1", "windows-1252"),
            ("cp1252", "windows-1252"),
            ("UTF8", "utf-8"),
            ("utf_16", "utf-16le"),
            ("shift_jis", "Shift_JIS"),
        ] {
            assert_eq!(
                TextEncoding::named(spelling).unwrap().to_string().to_lowercase(),
                name.to_lowercase(),
                "{spelling}"
            );
        }
        assert!(TextEncoding::named("klingon").is_err());
    }

    #[test]
    fn long_texts_are_transcoded_whole_whatever_the_readers_buffer() {
        let text: String = (0..100_000).map(|n| format!("zeile {n};größe\n")).collect();
        let (latin, ..) = encoding_rs::WINDOWS_1252.encode(&text);
        let mut reader = Transcoder::new(&latin[..], TextEncoding::named("latin1").unwrap(), Arc::default());
        let (mut read, mut buf) = (Vec::new(), [0; 777]);
        loop {
            match reader.read(&mut buf).unwrap() {
                0 => break,
                some => read.extend_from_slice(&buf[..some]),
            }
        }
        assert!(read == text.as_bytes());
    }
}
