//! Mutates inputs until something breaks: for tests only, on stable Rust, without instrumentation.
//!
//! ```no_run
//! tenaz_fuzz::Target::new("numbers", env!("CARGO_MANIFEST_DIR")).seed(b"1,2").run(|input| {
//!     let text = String::from_utf8_lossy(input);
//!     text.split(',').map(|part| part.parse::<i64>().is_ok()).collect::<Vec<_>>()
//! });
//! ```
//!
//! A target panics if something is wrong. What it returns tells inputs apart: an input with an outcome that was not seen before is kept and
//! mutated further, which takes the place of a compiler's count of branches. So return what the code said, such as the kind of an
//! error, and not the input again.
//!
//! The corpus is `tests/corpus/NAME` of the crate; every file there is tried first. An input that breaks the target is written to
//! the build directory, and the panic names it: mend the fault, and put the file into the corpus.
//!
//! | variable | meaning |
//! |---|---|
//! | `TENAZ_FUZZ_SECONDS` | how long each target is tried; 2 unless it is set |
//! | `TENAZ_FUZZ_SEED` | another order of mutations; 1 unless it is set |
//!
//! This crate knows nothing about what it breaks.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod mutate;

pub use mutate::Mutator;

/// How long a target is tried unless somebody says otherwise.
const SECONDS: f64 = 2.0;
/// Every target is tried at least so often, however slow it is.
const LEAST_RUNS: usize = 64;
/// Inputs that are kept because their outcome was new.
const MAX_KEPT: usize = 4096;
/// No input may take longer: what hangs is broken, too.
const PATIENCE: Duration = Duration::from_secs(20);

/// Something to break.
#[derive(Debug)]
pub struct Target {
    name: String,
    corpus: PathBuf,
    inputs: Vec<Vec<u8>>,
    longest: usize,
}

impl Target {
    /// The target `name` of the crate in `manifest_dir`.
    pub fn new(name: &str, manifest_dir: &str) -> Self {
        let corpus = Path::new(manifest_dir).join("tests/corpus").join(name);
        Self { name: name.to_owned(), corpus, inputs: Vec::new(), longest: 1 << 14 }
    }

    /// Another input to begin with, for formats that only a program can write.
    #[must_use]
    pub fn seed(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.inputs.push(input.into());
        self
    }

    /// Inputs have at most so many bytes.
    #[must_use]
    pub fn up_to(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }

    /// Tries the corpus, then mutations of it, until the time is over. Returns how many inputs were tried.
    ///
    /// # Panics
    /// As the target does, after the input was written down; or if an input takes too long, or there is nothing to begin with.
    #[allow(clippy::print_stderr)]
    pub fn run<T: Debug>(mut self, target: impl Fn(&[u8]) -> T) -> usize {
        self.read_corpus();
        assert!(!self.inputs.is_empty(), "{} has no corpus: put files into {}", self.name, self.corpus.display());
        let until = Instant::now() + Duration::from_secs_f64(setting("TENAZ_FUZZ_SECONDS").unwrap_or(SECONDS));
        let mut mutator = Mutator::new(setting("TENAZ_FUZZ_SEED").unwrap_or(1.0) as u64);
        let (mut outcomes, mut runs) = (BTreeSet::new(), self.inputs.len());
        for input in self.inputs.clone() {
            outcomes.insert(self.try_one(&target, &input));
        }
        while Instant::now() < until || runs < LEAST_RUNS {
            let input = mutator.mutate(&self.inputs, self.longest);
            let outcome = self.try_one(&target, &input);
            runs += 1;
            if outcomes.insert(outcome) && self.inputs.len() < MAX_KEPT {
                self.inputs.push(input);
            }
        }
        eprintln!("{}: {runs} inputs, {} outcomes", self.name, outcomes.len());
        runs
    }

    fn read_corpus(&mut self) {
        let files = std::fs::read_dir(&self.corpus).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> = files.collect();
        files.sort();
        self.inputs.extend(files.iter().filter_map(|file| std::fs::read(file).ok()));
    }

    /// Tells the outcome from others.
    fn try_one<T: Debug>(&self, target: &impl Fn(&[u8]) -> T, input: &[u8]) -> u64 {
        let begun = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| target(input))) {
            Ok(outcome) => {
                assert!(begun.elapsed() < PATIENCE, "{}: {:?} for {}", self.name, begun.elapsed(), self.keep(input));
                hash(format!("{outcome:?}"))
            }
            Err(panic) => {
                let kept = self.keep(input);
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
                resume_unwind(Box::new(format!("{}: {text}; the input is {kept}", self.name)));
            }
        }
    }

    /// Writes an input down and names the file.
    #[allow(clippy::print_stderr)]
    fn keep(&self, input: &[u8]) -> String {
        let dir = std::env::temp_dir().join("tenaz-fuzz");
        let path = dir.join(format!("{}-{:016x}", self.name, hash(input)));
        let kept = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, input));
        let named = kept.map_or_else(|_| format!("{input:?}"), |()| path.display().to_string());
        eprintln!("{} is broken by {named}", self.name);
        named
    }
}

fn setting(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A parser with a fault behind three steps, each of which shows in its outcome.
    fn faulty(input: &[u8]) -> usize {
        let steps = [b'{', b'"', b'\\'];
        let passed = steps.iter().zip(input).take_while(|(step, byte)| step == byte).count();
        assert!(!(passed == 3 && input.len() > 3 && input[3] > 0x7f), "the planted fault");
        passed
    }

    #[test]
    fn a_planted_fault_is_found_and_its_input_kept() {
        let dir = tempfile::tempdir().unwrap();
        let corpus = dir.path().join("tests/corpus/planted");
        std::fs::create_dir_all(&corpus).unwrap();
        std::fs::write(corpus.join("one"), "{nothing}").unwrap();
        let target = Target::new("planted", dir.path().to_str().unwrap());
        let until = Instant::now() + PATIENCE;
        let hunt = || {
            let mut target = Target { inputs: Vec::new(), ..target };
            target.read_corpus();
            let mut mutator = Mutator::new(1);
            let mut outcomes = BTreeSet::new();
            while Instant::now() < until {
                let input = mutator.mutate(&target.inputs, 64);
                if outcomes.insert(target.try_one(&faulty, &input)) {
                    target.inputs.push(input);
                }
            }
        };
        let panic = catch_unwind(AssertUnwindSafe(hunt)).expect_err("the fault is found");
        let text = panic.downcast_ref::<String>().unwrap();
        let (said, file) = text.split_once("; the input is ").unwrap();
        assert_eq!(said, "planted: the planted fault");
        assert!(
            catch_unwind(|| faulty(&std::fs::read(file).unwrap())).is_err(),
            "the input that was kept breaks it again"
        );
    }

    #[test]
    fn a_target_without_a_corpus_is_a_mistake() {
        let run = || Target::new("nothing", "/no/such/crate").run(<[u8]>::len);
        assert!(catch_unwind(run).is_err());
    }
}
