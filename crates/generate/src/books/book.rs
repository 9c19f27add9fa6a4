//! One book, as far as both files must agree on it, and what the questions need of the most popular ones.

use crate::books::lists::{CATEGORIES, CLASSIC_AUTHORS, COMPUTERS, DISTRIBUTED, FICTION, SERIES, SUBTITLES};
use crate::books::titles;
use crate::rng::{Rng, mix};
use crate::shuffle::Shuffle;

/// The most popular books have a date, every second one from the nineties, so that small data sets have answers too.
const DATED_RANKS: u64 = 1024;
/// Every so many ranks there is a book of a classic author: often enough for scale 0.01 to have two complete ones.
const RANKS_PER_CLASSIC: u64 = 89;
const FIRST_CLASSIC_RANK: u64 = 44;
/// Decades in which a classic author is published, from this one on.
const CLASSIC_DECADES: u64 = 11;
const FIRST_CLASSIC_DECADE: u64 = 1910;

/// Spans of years in which books come out: first year and length.
const YEARS: [(u64, u64); 10] = [
    (1830, 70),
    (1900, 50),
    (1950, 10),
    (1960, 10),
    (1970, 10),
    (1980, 10),
    (1990, 10),
    (2000, 10),
    (2010, 10),
    (2020, 4),
];
/// How many books come out in each span, as in the real data.
const YEAR_WEIGHTS: [u16; 10] = [20, 12, 18, 28, 62, 85, 182, 270, 243, 25];

/// All books of a run.
pub(super) struct Books {
    pub(super) count: u64,
    seed: u64,
    cores: Shuffle,
}

/// What both files say of one book, and what follows from its rank.
pub(super) struct Book {
    pub(super) rank: u64,
    pub(super) title: String,
    /// Index into [`CATEGORIES`].
    pub(super) category: Option<usize>,
    pub(super) year: u64,
    pub(super) classic_author: Option<&'static str>,
    /// From 0, bad, to 3, excellent: decides the scores.
    pub(super) quality: usize,
    /// The stream for what only the catalogue tells.
    pub(super) rng: Rng,
}

impl Books {
    pub(super) fn new(seed: u64, count: u64) -> Self {
        assert!(count <= titles::CAPACITY, "there are {} titles", titles::CAPACITY);
        Self { count, seed, cores: Shuffle::new(titles::CAPACITY, mix(seed ^ 0x5449_544c_4553)) }
    }

    /// The book at `rank`, 0 being the most popular.
    pub(super) fn at(&self, rank: u64) -> Book {
        let mut rng = Rng::named(self.seed, "book", rank);
        let classic = classic(rank);
        let category = if rank >= DATED_RANKS && rng.chance(175) {
            None
        } else if classic.is_some() {
            Some(FICTION)
        } else {
            Some(rng.weighted(&CATEGORIES.map(|(_, weight)| weight)))
        };
        let title = title(&mut rng, titles::core(self.cores, rank), category);
        let year = match classic {
            Some((_, decade)) => decade + rng.below(10),
            None if rank < DATED_RANKS && rank.is_multiple_of(2) => 1990 + rng.below(10),
            None => {
                let (start, years) = YEARS[rng.weighted(&YEAR_WEIGHTS)];
                start + rng.below(years)
            }
        };
        let quality = rng.weighted(&[10, 25, 40, 25]);
        Book { rank, title, category, year, classic_author: classic.map(|(author, _)| author), quality, rng }
    }
}

impl Book {
    /// True for the books whose date and category are never missing or odd.
    pub(super) fn is_dated(&self) -> bool {
        self.rank < DATED_RANKS || self.classic_author.is_some()
    }
}

/// The classic author of a rank and the decade of the book. Two authors at a time fill their decades in turn.
fn classic(rank: u64) -> Option<(&'static str, u64)> {
    let nth = rank.checked_sub(FIRST_CLASSIC_RANK)?;
    if !nth.is_multiple_of(RANKS_PER_CLASSIC) {
        return None;
    }
    let nth = nth / RANKS_PER_CLASSIC;
    let (pair, within) = (nth / (2 * CLASSIC_DECADES), nth % (2 * CLASSIC_DECADES));
    let author = CLASSIC_AUTHORS.get((2 * pair + within % 2) as usize)?;
    Some((author, FIRST_CLASSIC_DECADE + 10 * (within / 2)))
}

fn title(rng: &mut Rng, mut title: String, category: Option<usize>) -> String {
    if category == Some(COMPUTERS) && rng.chance(80) {
        title.push_str(rng.pick(DISTRIBUTED));
        return title;
    }
    match rng.below(100) {
        0..12 => title.push_str(rng.pick(SERIES)),
        12..24 => title.push_str(rng.pick(SUBTITLES)),
        24 => title = format!("\"{title}.\""),
        25 => title.push('!'),
        _ => {}
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn two_classic_authors_have_ten_decades_at_a_hundredth_of_the_volume() {
        let mut decades: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for (author, decade) in (0..2124).filter_map(classic) {
            decades.entry(author).or_default().insert(decade);
        }
        assert!(decades.values().filter(|decades| decades.len() >= 10).count() >= 2, "{decades:?}");
    }
}
