//! What each known word means. The table is `lexicon.tsv` (see `LEXICON.md`) plus the faces and
//! the few words with a grammar of their own, read once and then only looked up.

use std::collections::HashMap;
use std::sync::OnceLock;

use foldhash::fast::FixedState;

use super::sentence::{EMOTICONS, IRONY};

/// The meaning of one lower-case word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A word of the lexicon.
    Known(Known),
    /// A face such as `:)`, with its polarity.
    Face(f64),
    /// `no`, `not`, `never`. (`n't` never arrives: the tokeniser cuts it at the apostrophe.)
    Negation,
    /// `!`
    Exclamation,
    /// `(!)`
    Irony,
}

/// The scores of a lexicon word, averaged over its senses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    /// From -1 (bad) to 1 (good).
    pub(super) polarity: f64,
    /// By how much it strengthens the word behind it, if it is a modifier: 1 to 2.
    pub(super) intensity: f64,
    /// Whether it can be an adverb, and so modify the word behind it.
    pub(super) modifier: bool,
    /// Whether it ends in `ly`: such a modifier also binds a negation ("really not good").
    pub(super) ly: bool,
}

/// Longest form in the table, in bytes; longer words are unknown without a look.
const LONGEST: usize = 24;

/// The table of all meanings.
pub(super) struct Lexicon {
    meanings: HashMap<Box<[u8]>, Meaning, FixedState>,
    /// The shapes of all keys, as a set of bits.
    shapes: [u64; SHAPES / 64],
}

/// How many shapes there are.
const SHAPES: usize = 1 << 15;

/// A word's length and first, second and last byte in fifteen bits, the same in upper and lower
/// case. Four words in five are told by it to be unknown, and need not be hashed.
#[inline]
fn shape(word: &[u8]) -> usize {
    let letter = |byte: Option<&u8>| usize::from(byte.map_or(0, |byte| byte & 31));
    let letters = letter(word.first()) | letter(word.get(1)) << 5 | letter(word.last()) << 10;
    (letters ^ word.len().wrapping_mul(0x9e5)) % SHAPES
}

impl Lexicon {
    /// The one lexicon, built at the first call.
    pub(super) fn get() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(Self::build)
    }

    /// The meaning of `word` in any case, and its length in characters once in lower case.
    #[inline]
    pub(super) fn look_up(&self, word: &str) -> (Option<&Meaning>, usize) {
        if word.is_ascii() { (self.look_up_ascii(word), word.len()) } else { self.look_up_unicode(word) }
    }

    /// The meaning of a word known to be ASCII.
    #[inline]
    pub(super) fn look_up_ascii(&self, word: &str) -> Option<&Meaning> {
        let shape = shape(word.as_bytes());
        if self.shapes[shape / 64] & 1 << (shape % 64) == 0 {
            return None;
        }
        let mut lower = [0; LONGEST];
        lower.get_mut(..word.len())?.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        self.meanings.get(&lower[..word.len()])
    }

    #[cold]
    fn look_up_unicode(&self, word: &str) -> (Option<&Meaning>, usize) {
        let lower = word.to_lowercase();
        (self.meanings.get(lower.as_bytes()), lower.chars().count())
    }

    fn build() -> Self {
        let faces = EMOTICONS.iter().flat_map(|&(polarity, faces)| faces.iter().map(move |face| (polarity, face)));
        // An all-letter face is not searched for by the reference: `XD` is a plain word.
        let faces = faces.filter(|(_, face)| !face.chars().all(char::is_alphabetic));
        let faces = faces.map(|(polarity, face)| (face.to_lowercase(), Meaning::Face(polarity)));
        let special = [
            ("no", Meaning::Negation),
            ("not", Meaning::Negation),
            ("never", Meaning::Negation),
            ("!", Meaning::Exclamation),
            (IRONY, Meaning::Irony),
        ];
        let special = special.map(|(word, meaning)| (word.to_owned(), meaning));
        let known = lines().map(|(form, known)| (form.to_owned(), Meaning::Known(known)));
        let all = faces.chain(special).chain(known);
        let meanings: HashMap<Box<[u8]>, _, _> =
            all.map(|(word, meaning)| (word.into_bytes().into(), meaning)).collect();
        let mut shapes = [0; SHAPES / 64];
        for shape in meanings.keys().map(|word| shape(word)) {
            shapes[shape / 64] |= 1 << (shape % 64);
        }
        Self { meanings, shapes }
    }
}

/// The lines of the shipped table.
fn lines() -> impl Iterator<Item = (&'static str, Known)> {
    let lines = include_str!("lexicon.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).expect("lexicon.tsv is generated, and every line is read by a test"))
}

fn parse(line: &str) -> Option<(&str, Known)> {
    let mut fields = line.split('\t');
    let form = fields.next()?;
    let known = Known {
        polarity: fields.next()?.parse().ok()?,
        intensity: fields.next()?.parse().ok()?,
        modifier: fields.next()? == "1",
        ly: form.ends_with("ly"),
    };
    Some((form, known))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Lexicon, Meaning, lines};

    #[test]
    fn every_form_is_found_in_any_case_and_none_hides_another() {
        let lexicon = Lexicon::get();
        assert_eq!(lines().count(), 2840);
        for (form, known) in lines() {
            assert!(form.len() <= LONGEST, "{form}");
            let meaning = Meaning::Known(known);
            let found = Some(&meaning);
            assert_eq!(lexicon.look_up(form), (found, form.len()), "{form}");
            assert_eq!(lexicon.look_up(&form.to_uppercase()).0, found, "{form}");
        }
    }

    #[test]
    fn scores_are_in_range_and_no_intensity_is_zero() {
        for (form, known) in lines() {
            assert!((-1.0..=1.0).contains(&known.polarity), "{form}");
            assert!((1.0..=2.0).contains(&known.intensity), "{form}");
        }
    }

    #[test]
    fn faces_are_known_in_lower_case_and_lengths_are_characters() {
        let lexicon = Lexicon::get();
        assert_eq!(lexicon.look_up(":-D"), (Some(&Meaning::Face(1.0)), 3));
        assert_eq!(lexicon.look_up("°O°"), (Some(&Meaning::Face(0.05)), 3));
        assert_eq!(lexicon.look_up("XD"), (None, 2));
        assert_eq!(lexicon.look_up("\u{212a}ind").1, 4);
        assert!(matches!(lexicon.look_up("\u{212a}ind").0, Some(Meaning::Known(_))), "the Kelvin sign is a k");
        assert_eq!(lexicon.look_up("İ").1, 2);
    }
}
