//! `reviews.csv`: mostly English, mostly short, mostly kind.

use crate::field::{minimal, number};
use crate::popularity::Popularity;
use crate::rng::Rng;
use crate::sink::Sink;
use crate::steam::game::{Game, Games};
use crate::words::{Moods, SENTENCE_MAX, english, languages, symbols};
use crate::{Error, Run, Written, parallel};

const HEADER: &str = "app_id,app_name,review_text,review_score,review_votes";
const NAME: &str = "reviews.csv";
const ROWS_PER_BLOCK: u64 = 1024;

/// The text of every seventh real review or so.
const EARLY_ACCESS: &[u8] = b" Early Access Review";
const EARLY_ACCESS_PER_MILLE: u64 = 120;
/// Of the texts that are written out.
const ENGLISH_PER_MILLE: u64 = 920;
const SYMBOLS_PER_MILLE: u64 = 20;
/// Longest text in bytes, and so in characters at most, before its last sentence ends.
const LENGTH_MAX: u64 = 8_000 - SENTENCE_MAX as u64;
/// Lengths by sixteenth, as in the real data; a length lies between its entry and the next.
const LENGTHS: [u64; 17] = [8, 16, 24, 32, 44, 58, 75, 95, 120, 155, 200, 260, 350, 480, 700, 1_050, 2_000];

const KIND: Moods = [62, 30, 8];
const UNKIND: Moods = [12, 30, 58];

/// The most popular games come up again and again: so many are kept at hand.
const AT_HAND: u64 = 1024;

/// Writes `count` reviews.
pub(super) fn write(run: &Run<'_>, games: &Games, count: u64) -> Result<Written, Error> {
    let mut sink = Sink::create(run.out.join(NAME), HEADER, &run.progress)?;
    let popularity = Popularity::new(games.reviewed());
    let at_hand: Vec<Game> = (0..games.reviewed().min(AT_HAND)).map(|rank| games.at(rank)).collect();
    parallel::blocks(&mut sink, run.threads, count.div_ceil(ROWS_PER_BLOCK), |block, out| {
        let mut rng = Rng::named(run.seed, NAME, block);
        let records = ROWS_PER_BLOCK.min(count - block * ROWS_PER_BLOCK);
        let mut text = Vec::new();
        for _ in 0..records {
            let rank = popularity.rank(&mut rng);
            match at_hand.get(rank as usize) {
                Some(game) => review(&mut rng, out, &mut text, game),
                None => review(&mut rng, out, &mut text, &games.at(rank)),
            }
        }
        records
    })?;
    sink.finish()
}

fn review(rng: &mut Rng, out: &mut Vec<u8>, text: &mut Vec<u8>, game: &Game) {
    number(out, game.app_id);
    out.push(b',');
    if !game.nameless_in_reviews && !rng.chance(10) {
        minimal(out, game.name.as_bytes());
    }
    out.push(b',');
    let negative = rng.chance(game.negative_per_mille);
    text.clear();
    write_text(rng, text, if negative { &UNKIND } else { &KIND });
    minimal(out, text);
    out.extend_from_slice(if negative { b",-1," } else { b",1," });
    out.extend_from_slice(if rng.chance(160) { b"1\n" } else { b"0\n" });
}

fn write_text(rng: &mut Rng, text: &mut Vec<u8>, moods: &Moods) {
    if rng.chance(EARLY_ACCESS_PER_MILLE) {
        return text.extend_from_slice(EARLY_ACCESS);
    }
    match rng.below(1000) {
        // Two in 1,500 real reviews say nothing.
        0 => {}
        1..SYMBOLS_PER_MILLE => symbols::write(rng, text),
        choice => {
            let voice = if choice < SYMBOLS_PER_MILLE + ENGLISH_PER_MILLE {
                &english::GAMES
            } else {
                let shares: [u16; languages::OTHERS.len()] = languages::OTHERS.map(|(share, _)| share);
                languages::OTHERS[rng.weighted(&shares)].1
            };
            let length = length(rng);
            voice.write(rng, text, moods, length);
            decorate(rng, text);
        }
    }
}

fn length(rng: &mut Rng) -> usize {
    let length = match rng.below(1000) {
        0 => LENGTH_MAX - 16,
        1..10 => rng.between(2_000, 5_000),
        _ => {
            let step = rng.below(16) as usize;
            rng.between(LENGTHS[step], LENGTHS[step + 1])
        }
    };
    length as usize
}

/// What people add: censored curses, escaped hearts, and very seldom a line break or a quotation.
fn decorate(rng: &mut Rng, text: &mut Vec<u8>) {
    let addition = match rng.below(400) {
        0..8 => " ♥♥♥♥",
        8..12 => " &lt;3",
        12..16 => " 10/10",
        16..18 => "  Edit: still true &amp; still here.",
        18 => "\nEdit: typo.",
        19 => " \"Just one more turn\", they said.",
        _ => return,
    };
    if text.len() + addition.len() < LENGTH_MAX as usize {
        text.extend_from_slice(addition.as_bytes());
    }
}
