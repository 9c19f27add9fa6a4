//! `games.csv`: 40 fields per row under a header that names 39.

use crate::field::{hex, number, quoted};
use crate::rng::{Rng, mix};
use crate::shuffle::Shuffle;
use crate::sink::Sink;
use crate::steam::game::{Game, Games};
use crate::steam::lists::{CATEGORIES, LANGUAGES, MONTHS, NOTES, OWNERS, PRICES, STUDIOS, TAGS};
use crate::words::{english, names};
use crate::{Error, Run, Written, parallel};

/// The real header: `DiscountDLC count` is two columns glued together.
const HEADER: &str = "AppID,Name,Release date,Estimated owners,Peak CCU,Required age,Price,DiscountDLC count,\
About the game,Supported languages,Full audio languages,Reviews,Header image,Website,Support url,Support email,\
Windows,Mac,Linux,Metacritic score,Metacritic url,User score,Positive,Negative,Score rank,Achievements,\
Recommendations,Notes,Average playtime forever,Average playtime two weeks,Median playtime forever,\
Median playtime two weeks,Developers,Publishers,Categories,Genres,Tags,Screenshots,Movies";

const NAME: &str = "games.csv";
const ROWS_PER_BLOCK: u64 = 128;
/// Share of games that lack a value in each of a few number columns.
const NULL_NUMBER_PER_MILLE: u64 = 1;
/// Positive reviews of the most popular game, as the file tells.
const POSITIVE_AT_HEAD: u64 = 900_000;

/// Writes the file. Rows are not in the order of ids or of popularity.
pub(super) fn write(run: &Run<'_>, games: &Games) -> Result<Written, Error> {
    let mut sink = Sink::create(run.out.join(NAME), HEADER, &run.progress)?;
    let order = Shuffle::new(games.count, mix(run.seed ^ 0x524f_5753));
    parallel::blocks(&mut sink, run.threads, games.count.div_ceil(ROWS_PER_BLOCK), |block, out| {
        let rows = block * ROWS_PER_BLOCK..games.count.min((block + 1) * ROWS_PER_BLOCK);
        let mut text = Vec::new();
        let records = rows.end - rows.start;
        for row in rows {
            Row { out, text: &mut text }.game(games.at(order.at(row)));
        }
        records
    })?;
    sink.finish()
}

/// Writes one row. As in the real file, texts are always quoted and numbers never; `text` is scratch space.
struct Row<'a> {
    out: &'a mut Vec<u8>,
    text: &'a mut Vec<u8>,
}

impl Row<'_> {
    fn game(&mut self, mut game: Game) {
        let genres = game.genres();
        let complete = game.is_complete();
        number(self.out, game.app_id);
        self.string(game.name.as_bytes());
        let (rank, app_id, negative_per_mille) = (game.rank, game.app_id, game.negative_per_mille);
        let rng = &mut game.rng;
        self.text_of(|text| release_date(rng, text, complete));
        self.string(OWNERS[(u64::ilog2(rank + 1) as usize).min(OWNERS.len() - 1)].as_bytes());
        self.number(200_000 / (rank + 1));
        self.number(if rng.chance(30) { 16 } else { 0 });
        self.out.push(b',');
        self.out.extend_from_slice(rng.pick(PRICES).as_bytes());
        self.number(0);
        self.number(if rng.chance(120) { rng.between(1, 12) } else { 0 });
        self.text_of(|text| about(rng, text));
        self.languages(rng, 350);
        self.languages(rng, 60);
        self.text_of(|text| press(rng, text));
        self.links(rng, app_id);
        self.boolean(!rng.chance(1));
        self.boolean(rng.chance(190));
        self.boolean(rng.chance(132));
        self.scores(rng, rank, negative_per_mille, complete);
        self.text_of(|text| {
            if rng.chance(200) {
                text.extend_from_slice(rng.pick(NOTES).as_bytes())
            }
        });
        self.playtimes(rng, complete);
        self.companies(rng);
        self.list(rng, CATEGORIES, 300);
        self.string(genres.as_bytes());
        let tagged = !rng.chance(130);
        self.list(rng, TAGS, if tagged { 350 } else { 0 });
        self.screenshots(rng, app_id);
        self.text_of(|text| movies(rng, text));
        self.out.push(b'\n');
    }

    fn string(&mut self, text: &[u8]) {
        self.out.push(b',');
        quoted(self.out, text);
    }

    fn text_of(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.text.clear();
        write(self.text);
        self.out.push(b',');
        quoted(self.out, self.text);
    }

    fn number(&mut self, value: u64) {
        self.out.push(b',');
        number(self.out, value);
    }

    /// A number that is missing now and then.
    fn nullable(&mut self, rng: &mut Rng, complete: bool, value: u64) {
        if !complete && rng.chance(NULL_NUMBER_PER_MILLE) { self.out.push(b',') } else { self.number(value) }
    }

    fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(if value { b",True" } else { b",False" });
    }

    /// `['English', 'French']`, or `[]`.
    fn languages(&mut self, rng: &mut Rng, per_mille: u64) {
        self.text_of(|text| {
            text.push(b'[');
            if rng.chance(per_mille * 2 + 250) {
                text.extend_from_slice(b"'English'");
                for language in LANGUAGES {
                    if rng.chance(per_mille) {
                        text.extend_from_slice(b", '");
                        text.extend_from_slice(language.as_bytes());
                        text.push(b'\'');
                    }
                }
            }
            text.push(b']');
        });
    }

    fn links(&mut self, rng: &mut Rng, app_id: u64) {
        self.text_of(|text| {
            store_url(text, app_id);
            text.extend_from_slice(b"header.jpg");
            version(rng, text);
        });
        self.text_of(|text| {
            if rng.chance(500) {
                site(rng, text, "http://www.", ".com/")
            }
        });
        self.text_of(|text| {
            if rng.chance(500) {
                site(rng, text, "https://", ".com/support")
            }
        });
        self.text_of(|text| {
            if rng.chance(800) {
                site(rng, text, "support@", ".com")
            }
        });
    }

    /// Metacritic to Recommendations.
    fn scores(&mut self, rng: &mut Rng, rank: u64, negative_per_mille: u64, complete: bool) {
        let rated = rng.chance(60);
        self.number(if rated { rng.between(30, 96) } else { 0 });
        self.text_of(|text| {
            if rated {
                site(rng, text, "https://www.metacritic.com/game/pc/", "?ftag=MCD-06-10aaa1f")
            }
        });
        self.number(0);
        let positive = POSITIVE_AT_HEAD / (rank + 1) * rng.between(50, 150) / 100;
        let negative = positive * negative_per_mille / (1000 - negative_per_mille);
        self.nullable(rng, complete, positive);
        self.nullable(rng, complete, negative);
        self.string(b"");
        self.number(if rng.chance(500) { rng.between(1, 99) } else { 0 });
        self.number(if positive > 100 { positive * 4 / 5 } else { 0 });
    }

    /// The four playtimes: most games were hardly played.
    fn playtimes(&mut self, rng: &mut Rng, complete: bool) {
        let played = complete || rng.chance(200);
        let most = 1 << rng.between(4, 14);
        let average = if played { rng.between(1, most) } else { 0 };
        self.nullable(rng, complete, average);
        self.number(average / 9);
        self.number(average * 2 / 3);
        self.number(average / 12);
    }

    fn companies(&mut self, rng: &mut Rng) {
        let mut developer = Vec::new();
        names::last(rng, &mut developer);
        developer.push(b' ');
        developer.extend_from_slice(rng.pick(STUDIOS).as_bytes());
        self.string(&developer);
        if rng.chance(700) {
            self.string(&developer);
        } else {
            self.text_of(|text| {
                names::last(rng, text);
                text.extend_from_slice(b" Publishing");
            });
        }
    }

    fn list(&mut self, rng: &mut Rng, choices: &[&'static str], per_mille: u64) {
        self.text_of(|text| {
            for choice in choices {
                if rng.chance(per_mille) {
                    if !text.is_empty() {
                        text.push(b',');
                    }
                    text.extend_from_slice(choice.as_bytes());
                }
            }
        });
    }

    fn screenshots(&mut self, rng: &mut Rng, app_id: u64) {
        self.text_of(|text| {
            for shot in 0..rng.between(4, 15) {
                if shot > 0 {
                    text.push(b',');
                }
                store_url(text, app_id);
                text.extend_from_slice(b"ss_");
                hex(text, rng.bits(), 16);
                hex(text, rng.bits(), 16);
                hex(text, rng.bits(), 8);
                text.extend_from_slice(b".1920x1080.jpg");
                version(rng, text);
            }
        });
    }
}

/// `Oct 21, 2008`, sometimes `May 2020`, seldom nothing.
fn release_date(rng: &mut Rng, text: &mut Vec<u8>, complete: bool) {
    if !complete && rng.chance(2) {
        return;
    }
    text.extend_from_slice(rng.pick(MONTHS).as_bytes());
    text.push(b' ');
    if !rng.chance(10) {
        number(text, rng.between(1, 28));
        text.extend_from_slice(b", ");
    }
    // Of three draws the latest: the shelves fill up over the years.
    let year = (0..3).map(|_| rng.between(1998, 2024)).max().expect("three draws");
    number(text, year);
}

fn about(rng: &mut Rng, text: &mut Vec<u8>) {
    if rng.chance(30) {
        return;
    }
    let paragraphs = rng.between(1, 4);
    for paragraph in 0..paragraphs {
        if paragraph > 0 {
            text.extend_from_slice(if rng.chance(150) { b"\n\n".as_slice() } else { b" " });
        }
        let length = if rng.chance(50) { rng.between(800, 1600) } else { rng.between(100, 800) };
        english::PITCHES.write(rng, text, &[3, 5, 2], length as usize);
    }
}

fn press(rng: &mut Rng, text: &mut Vec<u8>) {
    if rng.chance(100) {
        number(text, rng.between(4, 10));
        text.extend_from_slice("/10 – The Daily Player “".as_bytes());
        english::GAMES.write(rng, text, &[9, 1, 0], 80);
        text.extend_from_slice("” Rock, Paper, Gamepad".as_bytes());
    }
}

fn movies(rng: &mut Rng, text: &mut Vec<u8>) {
    for movie in 0..rng.below(3) {
        if movie > 0 {
            text.push(b',');
        }
        text.extend_from_slice(b"http://cdn.akamai.steamstatic.com/steam/apps/");
        number(text, rng.between(2_000_000, 256_900_000));
        text.extend_from_slice(b"/movie_max.mp4");
        version(rng, text);
    }
}

fn store_url(text: &mut Vec<u8>, app_id: u64) {
    text.extend_from_slice(b"https://cdn.akamai.steamstatic.com/steam/apps/");
    number(text, app_id);
    text.push(b'/');
}

fn version(rng: &mut Rng, text: &mut Vec<u8>) {
    text.extend_from_slice(b"?t=");
    number(text, rng.between(1_447_360_110, 1_679_999_999));
}

fn site(rng: &mut Rng, text: &mut Vec<u8>, before: &str, after: &str) {
    text.extend_from_slice(before.as_bytes());
    hex(text, rng.bits(), 10);
    text.extend_from_slice(after.as_bytes());
}
