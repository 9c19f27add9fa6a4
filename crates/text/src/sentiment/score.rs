//! Words to a polarity: the mean over *assessments*.
//!
//! A known word opens an assessment ("good", 0.7). A known word behind a modifier takes over the
//! modifier's assessment, multiplied by its intensity ("very good" is one assessment of 0.91). A
//! negation turns the next known word to minus half ("not good", -0.35) and survives words of one
//! letter only; a modifier survives words of one or two. A `!` strengthens the last assessment by a
//! quarter, wherever that was; a face opens its own.
//!
//! Only the last assessment can still change, so the others are kept as their sum.

use super::lexicon::{Known, Lexicon, Meaning};

/// A polarity that later words may still change.
#[derive(Clone, Copy, Debug)]
struct Assessment {
    polarity: f64,
    intensity: f64,
    negated: bool,
}

impl Assessment {
    fn of(polarity: f64) -> Self {
        Self { polarity, intensity: 1.0, negated: false }
    }

    fn value(self) -> f64 {
        if self.negated { self.polarity * -0.5 } else { self.polarity }
    }
}

/// The last word, when it modifies the next one.
#[derive(Clone, Copy, Debug)]
struct Modifier {
    binds_negation: bool,
}

/// The running score of a text.
pub(super) struct Score {
    lexicon: &'static Lexicon,
    /// Whether all words are ASCII, so that none needs to be asked.
    ascii: bool,
    /// Sum and number of the assessments before `last`, added in text order.
    sum: f64,
    count: u64,
    last: Option<Assessment>,
    modifier: Option<Modifier>,
    negation: bool,
}

impl Score {
    /// The score of a text before its first word.
    pub(super) fn of(text: &str) -> Self {
        Self {
            lexicon: Lexicon::get(),
            ascii: text.is_ascii(),
            sum: 0.0,
            count: 0,
            last: None,
            modifier: None,
            negation: false,
        }
    }

    /// Takes the next word.
    #[inline]
    pub(super) fn word(&mut self, word: &str) {
        let (meaning, chars) =
            if self.ascii { (self.lexicon.look_up_ascii(word), word.len()) } else { self.lexicon.look_up(word) };
        match meaning {
            Some(Meaning::Known(known)) => self.known(*known),
            // Most words change nothing, and most of the time there is nothing to change.
            None if !self.negation && self.modifier.is_none() => {}
            _ => self.other(meaning, chars),
        }
    }

    /// The mean polarity; 0 when nothing was known.
    pub(super) fn polarity(mut self) -> f64 {
        self.close();
        self.sum / self.count.max(1) as f64
    }

    fn known(&mut self, known: Known) {
        let mut assessment = match (self.modifier, self.last) {
            (Some(_), Some(modified)) => {
                let polarity = clamp(known.polarity * modified.intensity);
                Assessment { polarity, intensity: known.intensity, ..modified }
            }
            _ => {
                self.close();
                Assessment { intensity: known.intensity, ..Assessment::of(known.polarity) }
            }
        };
        if self.negation {
            assessment.intensity = 1.0 / assessment.intensity;
            assessment.negated = true;
        }
        self.last = Some(assessment);
        self.negation = false;
        self.modifier = known.modifier.then_some(Modifier { binds_negation: known.ly });
    }

    /// A word outside the lexicon, of `chars` characters: it may end the reach of a negation or a
    /// modifier, and may have a role of its own.
    fn other(&mut self, meaning: Option<&Meaning>, chars: usize) {
        if meaning == Some(&Meaning::Negation) {
            self.negation = true;
        } else if chars > 1 {
            self.negation = false;
        }
        match (self.modifier, &mut self.last) {
            (Some(Modifier { binds_negation: true }), Some(modified)) if self.negation => {
                modified.negated = true;
                self.negation = false;
            }
            _ if chars > 2 => self.modifier = None,
            _ => {}
        }
        match meaning {
            Some(Meaning::Exclamation) => {
                if let Some(last) = &mut self.last {
                    last.polarity = clamp(last.polarity * 1.25);
                }
            }
            Some(Meaning::Irony) => self.open(0.0),
            Some(Meaning::Face(polarity)) => self.open(*polarity),
            _ => {}
        }
    }

    fn open(&mut self, polarity: f64) {
        self.close();
        self.last = Some(Assessment::of(polarity));
    }

    /// Adds the last assessment to the sum: nothing will change it any more.
    fn close(&mut self) {
        if let Some(last) = self.last.take() {
            self.sum += last.value();
            self.count += 1;
        }
    }
}

fn clamp(polarity: f64) -> f64 {
    polarity.clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::Score;

    fn polarity(words: &str) -> f64 {
        let mut score = Score::of(words);
        words.split(' ').for_each(|word| score.word(word));
        score.polarity()
    }

    #[test]
    fn the_mean_is_taken_over_known_words_only() {
        assert_eq!(polarity("good table"), 0.7);
        assert_eq!(polarity("good bad"), (0.7 + -0.699_999_999_999_999_8) / 2.0);
        assert_eq!(polarity("table"), 0.0);
    }

    #[test]
    fn a_modifier_scales_the_next_word_and_reaches_over_short_ones() {
        assert_eq!(polarity("very good"), 0.7 * 1.3);
        assert_eq!(polarity("very a good"), 0.7 * 1.3);
        assert_eq!(polarity("very the good"), (0.2 + 0.7) / 2.0);
    }

    #[test]
    fn a_negation_halves_and_inverts_and_reaches_over_single_letters() {
        assert_eq!(polarity("not good"), -0.35);
        assert_eq!(polarity("not a good"), -0.35);
        assert_eq!(polarity("not as good"), 0.7);
        assert_eq!(polarity("really not good"), -0.35);
    }

    #[test]
    fn exclamation_marks_raise_up_to_one() {
        assert_eq!(polarity("good !"), 0.7 * 1.25);
        assert_eq!(polarity("! good ! ! !"), 1.0);
    }

    #[test]
    fn faces_and_irony_count_for_themselves() {
        assert_eq!(polarity(":) table"), 0.5);
        assert_eq!(polarity("good (!)"), 0.35);
    }
}
