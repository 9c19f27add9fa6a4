//! Games and their reviews. Everything about a game follows from its rank in popularity, so that reviews can name games
//! without a table of them.

mod game;
mod games;
#[rustfmt::skip]
mod lists;
mod reviews;

use crate::{Error, Run, Written};
use game::Games;

/// Measured; see [`crate::expected_bytes`].
pub(crate) const BYTES_AT_SCALE_ONE: u64 = 2_460_000_000;

/// Games at scale 1.
const GAMES: u64 = 97_410;
/// Reviews at scale 1.
const REVIEWS: u64 = 6_417_106;

/// Writes `games.csv` and `reviews.csv`.
pub(crate) fn generate(run: &Run<'_>) -> Result<Written, Error> {
    let games = Games::new(run.seed, run.scale.count(GAMES));
    let mut written = games::write(run, &games)?;
    written.add(reviews::write(run, &games, run.scale.count(REVIEWS))?);
    Ok(written)
}
