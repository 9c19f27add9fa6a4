//! Test data that looks like three public data sets: same files, same columns, same quirks, made-up content.
//!
//! The real exports are too large to ship, so tenaz is tested and measured on data made here. A data set is a pure
//! function of its name, a scale and a seed: the same bytes come out on every machine, whatever the number of threads.
//! Every file (and every block of a large file) draws from its own random stream, named after it, so that nothing
//! depends on the order in which the work is done.
//!
//! This crate never reads data, never holds a table in memory, never asks the clock or the system for randomness,
//! never lets a float near the data (counts are multiplied by the scale once, exactly), and knows nothing of tenaz's queries or formats.
//!
//! ```
//! use tenaz_generate::{Dataset, Options, generate};
//!
//! let out = tempfile::tempdir()?;
//! let options = Options { scale: 0.0001, seed: 7, threads: 2 };
//! let written = generate(Dataset::Coffee, out.path(), &options, &|_bytes| {})?;
//! assert_eq!(written.files, 76);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod books;
mod calendar;
mod coffee;
mod error;
mod field;
mod parallel;
mod popularity;
mod rng;
mod scale;
mod shuffle;
mod sink;
mod steam;
mod words;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

pub use error::Error;
pub use scale::{SCALE_MAX, SCALE_MIN};

use scale::Scale;
use sink::Progress;

/// One of the three data sets that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dataset {
    /// A chain of coffee shops: seven tables, 76 files, one per month where the table grows.
    Coffee,
    /// Games and their reviews: `games.csv` with its wrong header, `reviews.csv`.
    Steam,
    /// Books and their ratings: `books_data.csv`, `Books_rating.csv`.
    Books,
}

impl Dataset {
    /// Every data set, in the order in which help texts name them.
    pub const ALL: [Self; 3] = [Self::Coffee, Self::Steam, Self::Books];

    fn name(self) -> &'static str {
        match self {
            Self::Coffee => "coffee",
            Self::Steam => "steam",
            Self::Books => "books",
        }
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dataset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|dataset| dataset.name() == name)
            .ok_or_else(|| Error::UnknownDataset { found: name.to_owned() })
    }
}

/// How much to make, which variant of it, and with how many hands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Share of the real volume, from [`SCALE_MIN`] to [`SCALE_MAX`].
    pub scale: f64,
    /// Another seed gives other data of the same shape.
    pub seed: u64,
    /// Threads that make data; 0 counts as 1. Never changes the bytes.
    pub threads: usize,
}

/// What a finished run left on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Number of files.
    pub files: u64,
    /// Their size together.
    pub bytes: u64,
    /// Data records, headers not counted.
    pub records: u64,
}

impl Written {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.records += other.records;
    }
}

/// Writes `dataset` below the directory `out`, which is made if absent; files of the same names are replaced.
///
/// `progress` is called with the bytes written so far, from any of the threads. A file appears under its own name only
/// when it is complete: until then it is called `<name>.part`.
///
/// # Errors
/// When the scale is out of range, `out` is not a directory, or the file system refuses.
pub fn generate(
    dataset: Dataset,
    out: &Path,
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Written, Error> {
    let scale = Scale::new(options.scale)?;
    if out.exists() && !out.is_dir() {
        return Err(Error::NotADirectory { path: out.to_owned() });
    }
    std::fs::create_dir_all(out).map_err(|source| Error::io("create the directory", out, source))?;
    let run =
        Run { out, scale, seed: options.seed, threads: options.threads.max(1), progress: Progress::new(progress) };
    match dataset {
        Dataset::Coffee => coffee::generate(&run),
        Dataset::Steam => steam::generate(&run),
        Dataset::Books => books::generate(&run),
    }
}

/// About how many bytes [`generate`] will write, for a progress bar. Within a few per cent from scale 0.001 up.
#[must_use]
pub fn expected_bytes(dataset: Dataset, scale: f64) -> u64 {
    let at_scale_one = match dataset {
        Dataset::Coffee => coffee::BYTES_AT_SCALE_ONE,
        Dataset::Steam => steam::BYTES_AT_SCALE_ONE,
        Dataset::Books => books::BYTES_AT_SCALE_ONE,
    };
    (at_scale_one as f64 * scale.clamp(SCALE_MIN, SCALE_MAX)) as u64
}

/// What every part of one run shares.
struct Run<'a> {
    out: &'a Path,
    scale: Scale,
    seed: u64,
    threads: usize,
    progress: Progress<'a>,
}
