//! `Books_rating.csv`: runs of ratings of one edition of a book, the score in step with the words.

use crate::books::book::{Book, Books};
use crate::field::{minimal, number, two_digits};
use crate::popularity::Popularity;
use crate::rng::{Rng, mix};
use crate::sink::Sink;
use crate::words::{Moods, english, names};
use crate::{Error, Run, Written, parallel};

const HEADER: &str =
    "Id,Title,Price,User_id,profileName,review/helpfulness,review/score,review/time,review/summary,review/text";
const NAME: &str = "Books_rating.csv";
const ROWS_PER_BLOCK: u64 = 512;
/// Ratings of one edition that stand together: on average half of this.
const RUN_MAX: u64 = 9;
/// People who rate, per rating: a user is a function of a number below this share of the ratings.
const RATINGS_PER_USER: u64 = 3;
/// The most popular books come up again and again: so many are kept at hand.
const AT_HAND: u64 = 1024;

/// How often each score from 1 to 5 is given, by the quality of the book.
const SCORES: [[u16; 5]; 4] = [[25, 15, 18, 20, 22], [9, 7, 12, 24, 48], [5, 4, 7, 22, 62], [2, 1, 4, 17, 76]];
/// The mood of the words, by score.
const MOODS: [Moods; 5] = [[8, 25, 67], [20, 30, 50], [36, 36, 28], [56, 30, 14], [66, 28, 6]];
/// Lengths by sixteenth, as in the real data; a length lies between its entry and the next.
const LENGTHS: [u64; 17] = [50, 110, 160, 205, 250, 300, 350, 410, 480, 560, 650, 740, 850, 1_000, 1_250, 1_650, 2_600];
/// 1995-08-01 and 2013-02-01, between which the real ratings lie, in days from 1970-01-01.
const FIRST_DAY: u64 = 9_343;
const LAST_DAY: u64 = 15_737;

/// Writes `count` ratings.
pub(super) fn write(run: &Run<'_>, books: &Books, count: u64) -> Result<Written, Error> {
    let mut sink = Sink::create(run.out.join(NAME), HEADER, &run.progress)?;
    let popularity = Popularity::new(books.count);
    let at_hand: Vec<Book> = (0..books.count.min(AT_HAND)).map(|rank| books.at(rank)).collect();
    let users = (count / RATINGS_PER_USER).max(1);
    parallel::blocks(&mut sink, run.threads, count.div_ceil(ROWS_PER_BLOCK), |block, out| {
        let mut rng = Rng::named(run.seed, NAME, block);
        let records = ROWS_PER_BLOCK.min(count - block * ROWS_PER_BLOCK);
        let mut row = Row { seed: run.seed, users, out, text: Vec::new() };
        let mut left = records;
        while left > 0 {
            let ratings = rng.between(1, RUN_MAX).min(left);
            let rank = popularity.rank(&mut rng);
            match at_hand.get(rank as usize) {
                Some(book) => row.edition(&mut rng, book, ratings),
                None => row.edition(&mut rng, &books.at(rank), ratings),
            }
            left -= ratings;
        }
        records
    })?;
    sink.finish()
}

/// Writes ratings, quoting only what must be; `text` is scratch space.
struct Row<'a> {
    seed: u64,
    users: u64,
    out: &'a mut Vec<u8>,
    text: Vec<u8>,
}

impl Row<'_> {
    /// Ratings of one edition: they share everything up to the price.
    fn edition(&mut self, rng: &mut Rng, book: &Book, ratings: u64) {
        // Popular books have several editions, each with an id and a price of its own.
        let edition = rng.below(1 + 24 / (book.rank + 1));
        let mut traits = Rng::named(self.seed, "edition", book.rank << 8 | edition);
        self.text.clear();
        edition_id(&mut traits, &mut self.text);
        self.text.push(b',');
        minimal(&mut self.text, book.title.as_bytes());
        self.text.push(b',');
        if traits.chance(320) {
            number(&mut self.text, traits.between(3, 60));
            self.text.push(b'.');
            two_digits(&mut self.text, traits.below(20) * 5);
        }
        let start = std::mem::take(&mut self.text);
        for _ in 0..ratings {
            self.out.extend_from_slice(&start);
            self.rating(rng, book.quality);
        }
        self.text = start;
    }

    fn rating(&mut self, rng: &mut Rng, quality: usize) {
        let score = rng.weighted(&SCORES[quality]);
        self.user(rng);
        self.out.push(b',');
        helpfulness(rng, self.out);
        self.out.push(b',');
        self.out.push(b'1' + score as u8);
        self.out.extend_from_slice(b".0,");
        number(self.out, rng.between(FIRST_DAY, LAST_DAY) * 86_400);
        self.field(|text| {
            if !rng.chance(1) {
                english::BOOKS.headline(rng, text, &MOODS[score])
            }
        });
        self.field(|text| {
            if !rng.chance(1) {
                review(rng, text, &MOODS[score])
            }
        });
        self.out.push(b'\n');
    }

    /// User and profile name, or neither.
    fn user(&mut self, rng: &mut Rng) {
        if rng.chance(150) {
            return self.out.extend_from_slice(b",,");
        }
        let user = rng.below(self.users);
        let mut traits = Rng::from_key(mix(self.seed) ^ user);
        self.out.extend_from_slice(b",A");
        for _ in 0..traits.between(12, 13) {
            self.out.push(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[traits.below(36) as usize]);
        }
        self.field(|text| profile_name(&mut traits, text));
    }

    fn field(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        write(&mut text);
        self.out.push(b',');
        minimal(self.out, &text);
        self.text = text;
    }
}

/// An ISBN of ten, the last digit sometimes an X, or one of the shop's own ids.
fn edition_id(rng: &mut Rng, text: &mut Vec<u8>) {
    if rng.chance(250) {
        text.extend_from_slice(b"B000");
        for _ in 0..6 {
            text.push(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[rng.below(36) as usize]);
        }
    } else {
        text.push(if rng.chance(700) { b'0' } else { b'1' });
        for _ in 0..8 {
            text.push(b'0' + rng.below(10) as u8);
        }
        text.push(b"0123456789X"[rng.below(11) as usize]);
    }
}

fn profile_name(rng: &mut Rng, text: &mut Vec<u8>) {
    match rng.below(10) {
        0..5 => names::person(rng, text),
        5 => names::first(rng, text),
        6 => text.extend_from_slice(b"A Customer"),
        7 => {
            names::first(rng, text);
            text.make_ascii_lowercase();
            number(text, rng.below(100));
        }
        _ => {
            names::person(rng, text);
            text.extend_from_slice(
                rng.pick(&[" \"book lover\"", " \"avid reader\"", " \"Mom of 3, NJ\"", " \"jim-of-oz\""]).as_bytes(),
            );
        }
    }
}

fn helpfulness(rng: &mut Rng, out: &mut Vec<u8>) {
    let most = 1 << rng.below(5);
    let votes = if rng.chance(350) { 0 } else { rng.between(1, most) };
    let helpful = votes - rng.below(votes / 2 + 1);
    number(out, helpful);
    out.push(b'/');
    number(out, votes);
}

/// A text as the export has it: paragraphs run together without a space, quotes as they are or as entities.
fn review(rng: &mut Rng, text: &mut Vec<u8>, moods: &Moods) {
    let length = match rng.below(1000) {
        0 => rng.between(8_000, 20_000),
        1..12 => rng.between(2_600, 7_000),
        _ => {
            let step = rng.below(16) as usize;
            rng.between(LENGTHS[step], LENGTHS[step + 1])
        }
    };
    let paragraphs = 1 + length / 700;
    for _ in 0..paragraphs {
        english::BOOKS.write(rng, text, moods, (length / paragraphs) as usize);
    }
    match rng.below(20) {
        0..3 => text.extend_from_slice(b" As the narrator says, \"it is never too late.\""),
        3 => text.extend_from_slice(b" I call it &quot;a winter book&quot; -- you will see why."),
        _ => {}
    }
}
