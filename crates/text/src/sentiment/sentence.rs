//! Tokens to words: sentences, and the emoticons that the tokeniser took apart.
//!
//! The tokeniser cuts `:)` into `:` and `)`. Here they come together again, within a sentence:
//!
//! ```text
//! tokens ──▶ open ──terminator──▶ closing ──anything else──▶ open (next sentence)
//!                                  │   ▲
//!                                  └───┘ more stops, `)`, `”`, `’`
//! ```
//!
//! An emoticon is recognised where a token *ends* in its beginning and the tokens behind it are
//! exactly its rest. The reference searches for it anywhere, so `Max D` becomes `MaxD` and `1998 )`
//! becomes `1998)`. Such words are then unknown to the lexicon, which is why the quirk is kept.

use super::tokenize::Token;

/// Faces and their polarity. Where one face begins another (`:o` and `:o)`), the longer comes first.
pub(super) const EMOTICONS: [(f64, &[&str]); 9] = [
    (1.0, &["<3", "♥"]),
    (1.0, &[">:D", ":-D", ":D", "=-D", "=D", "X-D", "x-D", "XD", "xD", "8-D"]),
    (0.75, &[">:P", ":-P", ":P", ":-p", ":p", ":-b", ":b", ":c)", ":o)", ":^)"]),
    (0.5, &[">:)", ":-)", ":)", "=)", "=]", ":]", ":}", ":>", ":3", "8)", "8-)"]),
    (0.25, &[">;]", ";-)", ";)", ";-]", ";]", ";D", ";^)", "*-)", "*)"]),
    (0.05, &[">:o", ":-O", ":O", ":o", ":-o", "o_O", "o.O", "°O°", "°o°"]),
    (-0.25, &[">:/", ":-/", ":/", ":\\", ">:\\", ":-.", ":-s", ":s", ":S", ":-S", ">.>"]),
    (-0.75, &[">:[", ":-(", ":(", "=(", ":-[", ":[", ":{", ":-<", ":c", ":-c", "=/"]),
    (-1.0, &[":'(", ":'''(", ";'("]),
];

/// An exclamation mark in parentheses: irony.
pub(super) const IRONY: &str = "(!)";

/// The longest face has this many characters.
const FACE_CHARS: usize = 5;

/// Collects tokens into sentences and hands out their words.
#[derive(Default)]
pub(super) struct Sentences<'a> {
    tokens: Vec<&'a str>,
    closing: bool,
    joined: String,
}

impl<'a> Sentences<'a> {
    /// Takes the next token; when it begins a new sentence, the words of the last one go to `word`.
    #[inline]
    pub(super) fn push(&mut self, token: Token<'a>, word: &mut impl FnMut(&str)) {
        match token {
            Token::Break => self.closing = true,
            Token::Text(text) => {
                let ends = matches!(text, "." | "!" | "?" | "...");
                if self.closing && !ends && !matches!(text, ")" | "”" | "’") {
                    self.flush(word);
                }
                self.closing |= ends;
                self.append(text);
            }
        }
    }

    /// Ends the sentence: all words still held go to `word`.
    pub(super) fn flush(&mut self, word: &mut impl FnMut(&str)) {
        let mut at = 0;
        while at < self.tokens.len() {
            let rest = &self.tokens[at..];
            let taken = if may_join(rest) { face_length(rest) } else { 1 };
            if taken == 1 {
                word(rest[0]);
            } else {
                self.joined.clear();
                self.joined.extend(rest[..taken].iter().copied());
                word(&self.joined);
            }
            at += taken;
        }
        self.tokens.clear();
        self.closing = false;
    }

    fn append(&mut self, text: &'a str) {
        if text == ")" && self.tokens.ends_with(&["(", "!"]) {
            self.tokens.truncate(self.tokens.len() - 2);
            self.tokens.push(IRONY);
        } else {
            self.tokens.push(text);
        }
    }
}

/// For each byte, the set of bytes that follow it in some face.
const FOLLOWERS: [u128; 256] = {
    let mut sets = [0; 256];
    let mut group = 0;
    while group < EMOTICONS.len() {
        let faces = EMOTICONS[group].1;
        let mut face = 0;
        while face < faces.len() {
            let bytes = faces[face].as_bytes();
            let mut at = 1;
            while at < bytes.len() {
                // Bytes beyond ASCII share a place: this set only says "look closer".
                sets[bytes[at - 1] as usize] |= 1 << (bytes[at] & 0x7f);
                at += 1;
            }
            face += 1;
        }
        group += 1;
    }
    sets
};

/// Whether the first two tokens meet like two neighbours in a face. Almost no words do, which
/// spares them the search.
#[inline]
fn may_join(tokens: &[&str]) -> bool {
    let [first, second, ..] = tokens else { return false };
    let (Some(last), Some(next)) = (first.bytes().last(), second.bytes().next()) else { return false };
    FOLLOWERS[last as usize] & (1 << (next & 0x7f)) != 0
}

/// How many tokens the leftmost face that begins in the first token covers; 1 if there is none.
#[cold]
fn face_length(tokens: &[&str]) -> usize {
    let first = tokens[0];
    let ends = first.char_indices().rev().take(FACE_CHARS);
    let starts: Vec<usize> = ends.map(|(at, _)| at).collect();
    let faces = || EMOTICONS.iter().flat_map(|(_, faces)| faces.iter());
    let mut covered = starts.iter().rev().flat_map(|&at| faces().filter_map(move |face| covers(face, at, tokens)));
    covered.next().unwrap_or(1)
}

/// How many tokens spell `face` exactly, from byte `start` of the first.
fn covers(face: &str, start: usize, tokens: &[&str]) -> Option<usize> {
    let mut rest = face.strip_prefix(&tokens[0][start..])?;
    let mut taken = 1;
    while !rest.is_empty() {
        rest = rest.strip_prefix(tokens.get(taken)?)?;
        taken += 1;
    }
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::super::tokenize::tokenize;
    use super::{EMOTICONS, FACE_CHARS, Sentences};

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut sink = |word: &str| words.push(word.to_owned());
        let mut sentences = Sentences::default();
        tokenize(text, |token| sentences.push(token, &mut sink));
        sentences.flush(&mut sink);
        words
    }

    #[test]
    fn faces_come_together_again() {
        assert_eq!(words("good :) :'( ok"), ["good", ":)", ":'(", "ok"]);
        assert_eq!(words(": o ) 8 - D °o°"), [":o)", "8-D", "°o°"]);
        assert_eq!(words(":)good x:("), [":)", "good", "x", ":("]);
    }

    #[test]
    fn a_word_that_ends_like_a_face_swallows_its_rest() {
        assert_eq!(words("Max D (1998)"), ["MaxD", "(", "1998)"]);
    }

    #[test]
    fn a_face_never_spans_two_sentences() {
        assert_eq!(words("o . O"), ["o", ".", "O"]);
        assert_eq!(words(":-. :"), [":-.", ":"]);
        assert_eq!(words(":\n\n)"), [":)"]);
        assert_eq!(words(":\n\n-)"), [":", "-", ")"]);
    }

    #[test]
    fn irony_is_one_word() {
        assert_eq!(words("great ( ! ) (\n\n!) (!!)"), ["great", "(!)", "(!)", "(", "!", "!", ")"]);
    }

    #[test]
    fn no_face_is_longer_than_the_window() {
        for face in EMOTICONS.iter().flat_map(|(_, faces)| faces.iter()) {
            assert!(face.chars().count() <= FACE_CHARS, "{face}");
        }
    }
}
