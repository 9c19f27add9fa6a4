//! Titles that are unique without anybody remembering them.
//!
//! A rank is shuffled within 0..2^22 and its bits choose an adjective, a noun, a place and a pattern. Every pattern
//! shows all three words and no two patterns can be confused, so different ranks have different titles; endings and
//! quotation marks are added around that core and never look like a part of it.

use crate::books::lists::{TITLE_ADJECTIVES, TITLE_NOUNS, TITLE_PLACES};
use crate::shuffle::Shuffle;

/// Number of different cores.
pub(super) const CAPACITY: u64 = 1 << 22;

/// The core of the title at `rank`.
pub(super) fn core(cores: Shuffle, rank: u64) -> String {
    let mut bits = cores.at(rank) as usize;
    let mut take = |count: usize| {
        let chosen = bits % count;
        bits /= count;
        chosen
    };
    let adjective = TITLE_ADJECTIVES[take(TITLE_ADJECTIVES.len())];
    let noun = TITLE_NOUNS[take(TITLE_NOUNS.len())];
    let place = TITLE_PLACES[take(TITLE_PLACES.len())];
    let mut title = match take(8) {
        0 => format!("The {adjective} {noun} of {place}"),
        1 => format!("{} {adjective} {noun} in {place}", article(adjective)),
        2 => format!("{adjective} {noun}, {place}"),
        3 => format!("{place} and the {adjective} {noun}"),
        4 => format!("{adjective} {noun}: From {place} and Back"),
        5 => format!("My {adjective} {noun} & {place}"),
        6 => format!("The {noun}'s {adjective} Road to {place}"),
        _ => format!("How the {adjective} {noun} Came to {place}"),
    };
    // Places such as "the North" can stand first. All of it is ASCII up to there.
    title[..1].make_ascii_uppercase();
    title
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['A', 'E', 'I', 'O']) { "An" } else { "A" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_words_fill_the_capacity_and_are_all_different() {
        let lists: [&[&str]; 3] = [&TITLE_ADJECTIVES, &TITLE_NOUNS, &TITLE_PLACES];
        assert_eq!(lists.iter().map(|list| list.len() as u64).product::<u64>() * 8, CAPACITY);
        for list in lists {
            assert_eq!(list.iter().collect::<HashSet<_>>().len(), list.len());
        }
    }

    #[test]
    fn two_hundred_thousand_titles_are_all_different() {
        let cores = Shuffle::new(CAPACITY, 9);
        let titles: HashSet<String> = (0..200_000).map(|rank| core(cores, rank)).collect();
        assert_eq!(titles.len(), 200_000);
    }
}
