//! Text to tokens, cut where TextBlob cuts.
//!
//! Three cuts, from the outside in:
//!
//! 1. at white space and around every quote mark (each quote is a token of its own, straight or
//!    curly), and before the `n` of `n't`; two line ends in a row also leave a [`Token::Break`];
//! 2. leading punctuation, one mark at a time, but never a full stop (`.5` stays whole);
//! 3. trailing punctuation and full stops, one at a time, except that three or more stops become
//!    one `...` and that an abbreviation (`Mr.`, `U.S.`, `etc.`) keeps its stop.
//!
//! Every token is a slice of the input. Marks inside a word stay (`well-known`, `a.b`, `o_O`), and
//! so do marks outside the list below, such as `/`, `<`, `%` and anything beyond ASCII.

/// A piece of the text, in text order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A word, a mark, or `...`; never empty and free of white space.
    Text(&'a str),
    /// An empty line: the sentence ends here.
    Break,
}

/// The word by which the reference marks an empty line inside its token list. A text that spells
/// it out is indistinguishable from an empty line there, hence here too.
const BREAK_WORD: &str = "END-OF-SENTENCE";

/// Marks that are cut off at both ends of a word.
const PUNCTUATION: &[u8] = b",;:!?()[]{}`'\"@#$^&*+-|=~_";

/// Words that keep their final stop, besides the single letters and `Mr.`-like ones that
/// [`is_abbreviation`] knows by shape.
const ABBREVIATIONS: [&str; 23] = [
    "Med.", "Mil.", "adj.", "adv.", "al.", "cf.", "comp.", "conf.", "def.", "ed.", "esp.", "etc.", "ex.", "fig.",
    "gen.", "id.", "int.", "orig.", "pl.", "pred.", "pres.", "ref.", "vs.",
];

/// Calls `emit` with every token of `text`, in order.
pub(super) fn tokenize<'a>(text: &'a str, mut emit: impl FnMut(Token<'a>)) {
    let bytes = text.as_bytes();
    let mut tail = Vec::new();
    let mut start = 0;
    let mut after_newline = false;
    for (at, c) in text.char_indices() {
        let kind = kind(c);
        if kind == Kind::Word {
            continue;
        }
        let chunk = &text[start..at];
        if !chunk.is_empty() {
            after_newline = false;
            match chunk.strip_suffix('n') {
                Some(stem) if bytes[at] == b'\'' && bytes.get(at + 1) == Some(&b't') => {
                    cut(stem, &mut tail, &mut emit);
                    emit(Token::Text("n"));
                }
                _ => cut(chunk, &mut tail, &mut emit),
            }
        }
        start = at + c.len_utf8();
        match c {
            '\n' if after_newline => emit(Token::Break),
            '\n' => after_newline = true,
            // A carriage return belongs to the line feed behind it.
            '\r' if bytes.get(at + 1) == Some(&b'\n') => {}
            _ => after_newline = false,
        }
        if kind == Kind::Quote {
            emit(Token::Text(&text[at..start]));
        }
    }
    cut(&text[start..], &mut tail, &mut emit);
}

/// What a character does to the chunk around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Space,
    Quote,
}

/// The class of every ASCII character.
const ASCII_KINDS: [Kind; 128] = {
    let mut kinds = [Kind::Word; 128];
    let mut c = 0;
    while c < 128 {
        kinds[c] = match c as u8 {
            // Python counts the four separators 0x1c to 0x1f as white space; Rust does not.
            b'\t'..=b'\r' | 0x1c..=0x1f | b' ' => Kind::Space,
            b'\'' | b'"' => Kind::Quote,
            _ => Kind::Word,
        };
        c += 1;
    }
    kinds
};

#[inline]
fn kind(c: char) -> Kind {
    match c {
        '\0'..='\x7f' => ASCII_KINDS[c as usize],
        '“' | '”' | '‘' | '’' => Kind::Quote,
        _ if c.is_whitespace() => Kind::Space,
        _ => Kind::Word,
    }
}

/// Emits the marks before the word, the word, and the marks behind it. `tail` is scratch space:
/// the trailing marks are found from the end and emitted from the front.
fn cut<'a>(chunk: &'a str, tail: &mut Vec<&'a str>, emit: &mut impl FnMut(Token<'a>)) {
    let lead = chunk.bytes().take_while(|&byte| is_punctuation(byte)).count();
    for at in 0..lead {
        emit(Token::Text(&chunk[at..=at]));
    }
    let mut word = &chunk[lead..];
    while let Some((rest, mark)) = last_mark(word) {
        tail.push(mark);
        word = rest;
    }
    match word {
        "" => {}
        BREAK_WORD => emit(Token::Break),
        _ => emit(Token::Text(word)),
    }
    while let Some(mark) = tail.pop() {
        emit(Token::Text(mark));
    }
}

/// Splits the last mark off `word`, if it ends in one that may go.
#[inline]
fn last_mark(word: &str) -> Option<(&str, &str)> {
    let last = *word.as_bytes().last()?;
    let cut = word.len() - 1;
    if is_punctuation(last) {
        return Some(word.split_at(cut));
    }
    if last != b'.' {
        return None;
    }
    if word.ends_with("...") {
        return Some((word.trim_end_matches('.'), &word[word.len() - 3..]));
    }
    (!is_abbreviation(word)).then(|| word.split_at(cut))
}

#[inline]
fn is_punctuation(byte: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut at = 0;
        while at < PUNCTUATION.len() {
            table[PUNCTUATION[at] as usize] = true;
            at += 1;
        }
        table
    };
    TABLE[byte as usize]
}

/// Whether `word`, which ends in a full stop, keeps it: letters that alternate with stops (`U.S.`),
/// a capital and then only consonants (`Mr.`, `Phd.`), or a word of the list.
///
/// Both shapes are read from the end, where a miss shows after a character or two. Read from the
/// front, a long word with many trailing marks would cost its length once per mark.
fn is_abbreviation(word: &str) -> bool {
    let bytes = word.as_bytes();
    let alternating = bytes.rchunks(2).all(|pair| matches!(pair, [b'A'..=b'Z' | b'a'..=b'z', b'.']));
    alternating || is_consonants(&bytes[..bytes.len() - 1]) || ABBREVIATIONS.contains(&word)
}

/// A capital and then at least one consonant. The bar is no slip: it is in the reference's class.
fn is_consonants(word: &[u8]) -> bool {
    let consonants = word.iter().rev().take_while(|byte| b"bcdfghjklmnpqrstvwxz|".contains(byte)).count();
    consonants > 0 && word.len() == consonants + 1 && word[0].is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::{Token, tokenize};

    /// Tokens joined by blanks, `¶` for an empty line.
    fn cut(text: &str) -> String {
        let mut words = Vec::new();
        tokenize(text, |token| {
            words.push(match token {
                Token::Text(word) => word,
                Token::Break => "¶",
            });
        });
        words.join(" ")
    }

    #[test]
    fn quotes_stand_alone_and_nt_is_split_off() {
        assert_eq!(cut("I don't \"know\" it’s n't"), "I do n ' t \" know \" it ’ s n ' t");
        assert_eq!(cut("can’t DON'T (n't"), "can ’ t DON ' T ( n ' t");
    }

    #[test]
    fn marks_leave_both_ends_but_stay_inside() {
        assert_eq!(cut("(well-known), a.b! .5 --x--"), "( well-known ) , a.b ! .5 - - x - -");
        assert_eq!(cut("50% a/b <3 été!"), "50% a/b <3 été !");
    }

    #[test]
    fn stops_are_split_unless_they_abbreviate() {
        assert_eq!(cut("Mr. Smith etc. end. U.S. A|. Phd. yes.."), "Mr. Smith etc. end . U.S. A|. Phd. yes . .");
        assert_eq!(cut("wait..... what...?!"), "wait ... what ... ? !");
        assert_eq!(cut("a.m., Dr.) i.e.."), "a.m. , Dr. ) i.e. .");
    }

    #[test]
    fn empty_lines_break_and_single_line_ends_do_not() {
        assert_eq!(cut("a\nb\n\nc\r\n\r\nd\n \ne\n\r\r\nf"), "a b ¶ c ¶ d e f");
        assert_eq!(cut("a\n'\nb END-OF-SENTENCE. c"), "a ' b ¶ . c");
    }

    #[test]
    fn white_space_is_pythons() {
        assert_eq!(cut("a\u{1c}b\u{a0}c\u{3000}d\u{85}e\u{200b}f"), "a b c d e\u{200b}f");
    }
}
