//! One game, as far as both files must agree on it: id, name, genres and how much it is disliked.

use crate::rng::{Rng, mix};
use crate::shuffle::Shuffle;
use crate::steam::lists::{ENDINGS, FOREIGN_NAMES, NAME_ADJECTIVES, NAME_NOUNS, NAME_PLACES, ODD_NAMES};

/// The most popular games are complete, so that small data sets have answers too.
const COMPLETE_RANKS: u64 = 64;
/// The five most popular games are Action games with this share of negative reviews, per mille: together with their
/// popularity it takes them past 5,000 negative English reviews from scale 0.05 up.
const HEAD_NEGATIVE_PER_MILLE: [u64; 5] = [450, 480, 480, 780, 800];
/// One game in so many has reviews.
const GAMES_PER_REVIEWED: u64 = 10;

/// Genres in the order in which the real file lists them, and how common each is, per mille.
const GENRES: [(&str, u64); 16] = [
    ("Action", 420),
    ("Adventure", 380),
    ("Casual", 400),
    ("Free to Play", 80),
    ("Indie", 700),
    ("Massively Multiplayer", 25),
    ("RPG", 180),
    ("Racing", 35),
    ("Simulation", 200),
    ("Sports", 40),
    ("Strategy", 190),
    ("Early Access", 120),
    ("Education", 6),
    ("Utilities", 10),
    ("Violent", 9),
    ("Gore", 6),
];

/// All games of a run.
pub(super) struct Games {
    pub(super) count: u64,
    seed: u64,
    ids: Shuffle,
}

/// What both files say of one game.
pub(super) struct Game {
    pub(super) rank: u64,
    pub(super) app_id: u64,
    /// Empty for a few.
    pub(super) name: String,
    /// Whether reviews leave the name out.
    pub(super) nameless_in_reviews: bool,
    pub(super) negative_per_mille: u64,
    /// The stream for what only `games.csv` tells.
    pub(super) rng: Rng,
}

impl Games {
    pub(super) fn new(seed: u64, count: u64) -> Self {
        Self { count, seed, ids: Shuffle::new(count, mix(seed ^ 0x5345_4d41_4749_4453)) }
    }

    /// Games with reviews: the most popular ones.
    pub(super) fn reviewed(&self) -> u64 {
        (self.count / GAMES_PER_REVIEWED).max(1)
    }

    /// The game at `rank`, 0 being the most popular.
    pub(super) fn at(&self, rank: u64) -> Game {
        let mut rng = Rng::named(self.seed, "game", rank);
        // Ids are multiples of ten with gaps, as on the real platform.
        let app_id = 10 * (2 * self.ids.at(rank) + 1 + rng.below(2));
        let negative_per_mille =
            HEAD_NEGATIVE_PER_MILLE.get(rank as usize).copied().unwrap_or_else(|| rng.between(60, 280));
        let name = if rank >= COMPLETE_RANKS && rng.chance(4) { String::new() } else { name(&mut rng) };
        let nameless_in_reviews = rng.chance(40);
        Game { rank, app_id, name, nameless_in_reviews, negative_per_mille, rng }
    }
}

impl Game {
    /// True for the games that lack nothing.
    pub(super) fn is_complete(&self) -> bool {
        self.rank < COMPLETE_RANKS
    }

    /// `Action,Indie`; empty for one game in twenty, as in the real file.
    pub(super) fn genres(&mut self) -> String {
        if !self.is_complete() && self.rng.chance(45) {
            return String::new();
        }
        let disliked_head = (self.rank as usize) < HEAD_NEGATIVE_PER_MILLE.len();
        let mut genres = String::new();
        for (genre, per_mille) in GENRES {
            if self.rng.chance(per_mille) || (disliked_head && genre == "Action") {
                if !genres.is_empty() {
                    genres.push(',');
                }
                genres.push_str(genre);
            }
        }
        if genres.is_empty() { "Casual".to_owned() } else { genres }
    }
}

fn name(rng: &mut Rng) -> String {
    let (adjective, noun) = (rng.pick(NAME_ADJECTIVES), rng.pick(NAME_NOUNS));
    let mut name = match rng.below(20) {
        0..=5 => format!("{adjective} {noun}"),
        6..=9 => format!("{noun} of {}", rng.pick(NAME_PLACES)),
        10..=11 => format!("{}: {adjective} {noun}", rng.pick(NAME_PLACES)),
        12..=13 => format!("The {adjective} {noun}"),
        14 => noun.to_owned(),
        15 => format!("{noun} {}", rng.between(2, 9)),
        16 => format!("{noun}, {adjective} {noun}"),
        17 => rng.pick(FOREIGN_NAMES).to_owned(),
        18 => rng.pick(ODD_NAMES).to_owned(),
        _ => format!("{adjective} {noun} {}", rng.pick(NAME_PLACES)),
    };
    if rng.chance(120) {
        name.push_str(rng.pick(ENDINGS));
    }
    name
}
