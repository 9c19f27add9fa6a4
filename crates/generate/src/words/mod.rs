//! Made-up prose with a language and a mood: small grammars, one per language, written for this crate.
//!
//! A sentence is a template in which `%` and a letter stand for something chosen at random, possibly with slots of its
//! own. Moods matter in every language; English also has intensifiers and negations ("not very good"), since the
//! sentiment of English texts is computed downstream.

#[rustfmt::skip]
pub(crate) mod english;
#[rustfmt::skip]
pub(crate) mod languages;
#[rustfmt::skip]
pub(crate) mod names;
#[rustfmt::skip]
pub(crate) mod symbols;

use crate::rng::Rng;

/// What one writer has to say, in one language, on one topic. The lists are templates unless noted.
pub(crate) struct Voice {
    /// `%s`: what sentences are about, such as "the ending".
    pub(crate) subjects: &'static [&'static str],
    /// `%k`: the thing itself, such as "game".
    pub(crate) kinds: &'static [&'static str],
    /// `%p`: praise that follows "is".
    pub(crate) praise: &'static [&'static str],
    /// `%n`: blame that follows "is".
    pub(crate) blame: &'static [&'static str],
    /// `%g`: good adjectives (plain words).
    pub(crate) good: &'static [&'static str],
    /// `%b`: bad adjectives (plain words).
    pub(crate) bad: &'static [&'static str],
    /// `%i`: intensifiers (plain words).
    pub(crate) intensifiers: &'static [&'static str],
    /// Whole sentences by mood: positive, neutral, negative.
    pub(crate) sentences: [&'static [&'static str]; 3],
    /// The same in a few words, for the many reviews that are no longer than that.
    pub(crate) exclamations: [&'static [&'static str]; 3],
    /// Whether words are separated by spaces.
    pub(crate) spaced: bool,
}

/// How often a writer is positive, neutral, negative: shares of their sum.
pub(crate) type Moods = [u16; 3];

/// The longest sentence any grammar yields, in bytes (a test holds the grammars to it).
pub(crate) const SENTENCE_MAX: usize = 320;
/// Slots within slots end here; the grammars need three levels.
const DEPTH_MAX: u8 = 4;
/// Shorter texts are exclamations.
const EXCLAMATION_BELOW: usize = 32;

impl Voice {
    /// Appends a text of about `length` bytes and never more than `length` + [`SENTENCE_MAX`].
    pub(crate) fn write(&self, rng: &mut Rng, out: &mut Vec<u8>, moods: &Moods, length: usize) {
        if length < EXCLAMATION_BELOW {
            let mood = rng.weighted(moods);
            return self.sentence(rng, out, self.exclamations[mood]);
        }
        let end = out.len() + length;
        loop {
            let mood = rng.weighted(moods);
            self.sentence(rng, out, self.sentences[mood]);
            if out.len() >= end {
                return;
            }
            if self.spaced {
                out.push(b' ');
            }
        }
    }

    /// Appends a few words of one mood, without the full stop, for titles and summaries.
    pub(crate) fn headline(&self, rng: &mut Rng, out: &mut Vec<u8>, moods: &Moods) {
        let mood = rng.weighted(moods);
        self.sentence(rng, out, self.exclamations[mood]);
        if out.last() == Some(&b'.') {
            out.pop();
        }
    }

    /// Appends one of `templates`, filled in, with a capital letter.
    fn sentence(&self, rng: &mut Rng, out: &mut Vec<u8>, templates: &[&'static str]) {
        let start = out.len();
        let template = rng.pick(templates);
        self.expand(rng, out, template, DEPTH_MAX);
        if let Some(first) = out.get_mut(start) {
            first.make_ascii_uppercase();
        }
    }

    fn expand(&self, rng: &mut Rng, out: &mut Vec<u8>, template: &str, depth: u8) {
        assert!(depth > 0, "slots are nested too deeply in {template}");
        let mut parts = template.split('%');
        out.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
        for part in parts {
            let (slot, rest) = part.split_at(1);
            let choice = rng.pick(self.slot(slot.as_bytes()[0]));
            mend_article(out, choice);
            self.expand(rng, out, choice, depth - 1);
            out.extend_from_slice(rest.as_bytes());
        }
    }

    fn slot(&self, slot: u8) -> &[&'static str] {
        match slot {
            b's' => self.subjects,
            b'k' => self.kinds,
            b'p' => self.praise,
            b'n' => self.blame,
            b'g' => self.good,
            b'b' => self.bad,
            b'i' => self.intensifiers,
            _ => unreachable!("no grammar has the slot %{}", char::from(slot)),
        }
    }
}

/// Makes "a" into "an" before a vowel. Only English has a slot after a lone "a".
fn mend_article(out: &mut Vec<u8>, next: &str) {
    let vowel = next.bytes().next().is_some_and(|first| b"aeio".contains(&first));
    let article =
        [b" a ", b" A ", b".A ", b"!A ", b"\"A "].iter().any(|article| out.ends_with(*article)) || out == b"A ";
    if vowel && article {
        out.pop();
        out.extend_from_slice(b"n ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voices() -> Vec<&'static Voice> {
        let mut voices = vec![&english::GAMES, &english::BOOKS, &english::BLURBS, &english::PITCHES];
        voices.extend(languages::OTHERS.iter().map(|(_, voice)| *voice));
        voices
    }

    #[test]
    fn every_template_can_be_filled_in_and_stays_below_the_limit() {
        for (index, voice) in voices().into_iter().enumerate() {
            let mut rng = Rng::from_key(index as u64);
            for mood in 0..3 {
                for template in voice.sentences[mood].iter().chain(voice.exclamations[mood]) {
                    for _ in 0..50 {
                        let mut out = Vec::new();
                        voice.expand(&mut rng, &mut out, template, DEPTH_MAX);
                        assert!(!out.is_empty() && out.len() < SENTENCE_MAX, "{template}");
                        assert!(String::from_utf8(out).is_ok(), "{template}");
                    }
                }
            }
        }
    }

    #[test]
    fn texts_have_about_the_length_asked_for() {
        for voice in voices() {
            let mut rng = Rng::from_key(5);
            for length in [40, 400, 7_000] {
                let mut out = Vec::new();
                voice.write(&mut rng, &mut out, &[1, 1, 1], length);
                assert!((length..length + SENTENCE_MAX).contains(&out.len()));
            }
        }
    }
}
