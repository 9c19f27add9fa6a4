//! What is asked for is checked, progress is told, and failures say what and where.

mod made;

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use made::Made;
use tenaz_generate::{Dataset, Error, Options, SCALE_MAX, SCALE_MIN, expected_bytes, generate};

fn options(scale: f64) -> Options {
    Options { scale, seed: 1, threads: 2 }
}

#[test]
fn a_scale_out_of_range_is_refused_and_the_range_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for scale in [0.0, -1.0, SCALE_MIN / 2.0, SCALE_MAX * 1.01, f64::NAN] {
        let error = generate(Dataset::Books, dir.path(), &options(scale), &|_| {}).expect_err("out of range");
        assert!(matches!(error, Error::Scale { .. }));
        assert!(error.to_string().contains("expected a number from 0.0001 to 10"), "{error}");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 0, "nothing was written");
}

#[test]
fn a_file_in_place_of_the_directory_is_refused_and_kept() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("taken.csv");
    fs::write(&path, "mine").expect("write");
    let error = generate(Dataset::Coffee, &path, &options(SCALE_MIN), &|_| {}).expect_err("not a directory");
    assert!(matches!(error, Error::NotADirectory { .. }));
    assert!(error.to_string().contains("taken.csv: is a file, expected a directory"), "{error}");
    assert_eq!(fs::read(&path).expect("read"), b"mine");
}

#[test]
fn a_failure_names_the_path_and_leaves_no_half_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    // A directory where a file has to go: the rename at the end fails.
    let taken = dir.path().join("transactions/transactions_202401.csv");
    fs::create_dir_all(taken.join("inside")).expect("create");
    let error = generate(Dataset::Coffee, dir.path(), &options(SCALE_MIN), &|_| {}).expect_err("the name is taken");
    assert!(matches!(error, Error::Io { .. }));
    assert!(error.to_string().contains("transactions_202401.csv"), "{error}");
    let leftovers = fs::read_dir(dir.path().join("transactions"))
        .expect("list")
        .filter(|entry| entry.as_ref().expect("entry").path().extension().is_some_and(|end| end == "part"))
        .count();
    assert_eq!(leftovers, 0);
}

#[test]
fn progress_ends_at_the_bytes_written_which_were_foreseen() {
    for dataset in Dataset::ALL {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (most, calls) = (AtomicU64::new(0), Mutex::new(0));
        let written = generate(dataset, dir.path(), &options(0.002), &|bytes| {
            most.fetch_max(bytes, Ordering::Relaxed);
            *calls.lock().expect("not poisoned") += 1;
        })
        .expect("generate");
        assert_eq!(most.into_inner(), written.bytes, "{dataset}");
        assert!(*calls.lock().expect("not poisoned") > 1, "{dataset}");
        let expected = expected_bytes(dataset, 0.002);
        assert!(written.bytes.abs_diff(expected) < expected / 10, "{dataset}: {} of {expected}", written.bytes);
    }
}

#[test]
fn data_sets_are_called_by_their_names() {
    for dataset in Dataset::ALL {
        assert_eq!(dataset.to_string().parse::<Dataset>().expect("its own name"), dataset);
    }
    let error = "tea".parse::<Dataset>().expect_err("no such data set");
    assert_eq!(error.to_string(), "unknown data set 'tea': expected coffee, steam or books");
}

#[test]
fn written_counts_files_bytes_and_records() {
    for dataset in Dataset::ALL {
        let made = Made::new(dataset, SCALE_MIN, 1, 1);
        let files = made.files();
        assert_eq!(made.written.files, files.len() as u64, "{dataset}");
        assert_eq!(made.written.bytes, files.values().map(|bytes| bytes.len() as u64).sum::<u64>(), "{dataset}");
        let mut records = 0;
        for bytes in files.values() {
            let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes.as_slice());
            for record in reader.records() {
                record.expect("valid CSV and UTF-8");
                records += 1;
            }
        }
        assert_eq!(made.written.records, records, "{dataset}");
    }
}
