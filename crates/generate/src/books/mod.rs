//! Books and their ratings. Everything about a book follows from its rank in popularity, so that ratings can name books
//! without a table of them.

mod book;
mod catalogue;
#[rustfmt::skip]
mod lists;
mod ratings;
mod titles;

use crate::{Error, Run, Written};
use book::Books;

/// Measured; see [`crate::expected_bytes`].
pub(crate) const BYTES_AT_SCALE_ONE: u64 = 2_790_000_000;

/// Books at scale 1.
const BOOKS: u64 = 212_404;
/// Ratings at scale 1.
const RATINGS: u64 = 3_000_000;

/// Writes `books_data.csv` and `Books_rating.csv`.
pub(crate) fn generate(run: &Run<'_>) -> Result<Written, Error> {
    let books = Books::new(run.seed, run.scale.count(BOOKS));
    let mut written = catalogue::write(run, &books)?;
    written.add(ratings::write(run, &books, run.scale.count(RATINGS))?);
    Ok(written)
}
