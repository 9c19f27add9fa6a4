//! The fingerprints of steam and books do not know of threads, chunks or partitions.

mod staged;

use std::path::Path;

use staged::Nobody;
use tenaz_engine::{JobPlan, Workload};
use tenaz_generate::{Dataset, generate};
use tenaz_runtime::{DataSet, Options, Progress};

/// (rows, fingerprint) of every answer.
fn fingerprints(workload: &Workload, plan: &JobPlan, data: &Path, options: &Options) -> Vec<(u64, String)> {
    let files = DataSet::find(data, workload, plan).expect("the files");
    let progress = Progress::new(workload.tables.len());
    let outcome = tenaz_runtime::run(workload, plan, files, options, &progress, &Nobody).expect("answers");
    assert_eq!(outcome.failed, []);
    outcome.answers.iter().map(|answer| (answer.rows, answer.fingerprint.clone())).collect()
}

fn check(name: &str, dataset: Dataset, scale: f64, small: usize, large: usize) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    generate(dataset, dir.path(), &tenaz_generate::Options { scale, seed: 2, threads: 2 }, &|_| {}).expect("generate");
    let workload = Workload::load(name).expect("a bundled workload");
    let plan = JobPlan::new(&workload).expect("a plan");
    let plain = Options { threads: 1, partitions: Some(1), ..Options::default() };
    let expected = fingerprints(&workload, &plan, dir.path(), &plain);
    assert!(expected.iter().filter(|(rows, _)| *rows > 0).count() >= 3, "most questions have an answer: {expected:?}");
    for partitions in [1, 3, 8] {
        for (threads, chunk_bytes) in [(1, large), (3, small)] {
            let options = Options {
                threads,
                chunk_bytes: Some(chunk_bytes),
                block_bytes: Some(chunk_bytes / 4),
                partitions: Some(partitions),
                ..Options::default()
            };
            let found = fingerprints(&workload, &plan, dir.path(), &options);
            assert_eq!(found, expected, "P = {partitions}, {threads} threads, chunks of {chunk_bytes} bytes");
        }
    }
    // A query alone is answered as in company.
    for (index, query) in workload.queries.iter().enumerate() {
        let alone = workload.clone().select(std::slice::from_ref(&query.name)).expect("its query");
        let plan = JobPlan::new(&alone).expect("a plan");
        let options = Options { threads: 3, chunk_bytes: Some(large), partitions: Some(3), ..Options::default() };
        assert_eq!(fingerprints(&alone, &plan, dir.path(), &options), expected[index..=index], "{} alone", query.name);
    }
}

#[test]
fn steam_fingerprints_do_not_depend_on_how_the_work_is_cut_up() {
    check("steam", Dataset::Steam, 0.001, 9_000, 100_000);
}

#[test]
fn books_fingerprints_do_not_depend_on_how_the_work_is_cut_up() {
    check("books", Dataset::Books, 0.002, 60_000, 400_000);
}
