//! Sentiment by lexicon, equal to TextBlob's default analyser.
//!
//! ```text
//! text ──tokenize──▶ tokens ──sentence──▶ words ──score + lexicon──▶ polarity
//! ```
//!
//! One pass, no regular expressions: the reference's rewriting of the text by a series of
//! substitutions was worked out into what it does to the sequence of words. The quirks are kept,
//! because equality with the reference is the promise.

mod lexicon;
mod score;
mod sentence;
mod tokenize;

use score::Score;
use sentence::Sentences;

/// How many units of [`sentiment_nano`] make one.
const NANO: f64 = 1e9;

/// The polarity of an English text, from -1 (bad) to 1 (good); 0 when no word is known.
///
/// ```
/// use tenaz_text::sentiment;
///
/// assert_eq!(sentiment("A very good book"), 0.9099999999999999);
/// assert_eq!(sentiment("This is not a good book."), -0.35);
/// assert_eq!(sentiment(""), 0.0);
/// ```
#[must_use]
pub fn sentiment(text: &str) -> f64 {
    let mut score = Score::of(text);
    let mut sentences = Sentences::default();
    let mut word = |text: &str| score.word(text);
    tokenize::tokenize(text, |token| sentences.push(token, &mut word));
    sentences.flush(&mut word);
    score.polarity()
}

/// [`sentiment`] in billionths, rounded half to even, so that sums over reviews are exact and do
/// not depend on their order.
///
/// ```
/// assert_eq!(tenaz_text::sentiment_nano("A very good book"), 910_000_000);
/// ```
#[must_use]
pub fn sentiment_nano(text: &str) -> i64 {
    nano(sentiment(text))
}

fn nano(polarity: f64) -> i64 {
    let product = polarity * NANO;
    // A product that was itself rounded to a half is no tie: what was lost decides.
    if product.fract().abs() == 0.5 {
        let lost = polarity.mul_add(NANO, -product);
        if lost != 0.0 {
            return (product + 0.5f64.copysign(lost)) as i64;
        }
    }
    product.round_ties_even() as i64
}

#[cfg(test)]
mod tests {
    use super::nano;

    #[test]
    fn nano_rounds_the_exact_value() {
        assert_eq!(nano(1.0), 1_000_000_000);
        assert_eq!(nano(-0.35), -350_000_000);
        assert_eq!(nano(1.0 / 3.0), 333_333_333);
        assert_eq!(nano(0.5f64.powi(10)), 976_562, "976562.5 exactly: to even");
        assert_eq!(nano(3.0 * 0.5f64.powi(10)), 2_929_688, "2929687.5 exactly: to even");
        // Neither is a tie: the nearest doubles to these decimals lie a little off.
        assert_eq!(nano(0.000_000_000_5), 1);
        assert_eq!(nano(-0.000_000_001_5), -1);
        assert_eq!(nano(0.0), 0);
    }
}
