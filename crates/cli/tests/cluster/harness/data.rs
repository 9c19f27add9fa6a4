//! Small data sets, and what `tenaz run` makes of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A data set with the results of an undisturbed run on this machine.
pub struct DataSet {
    pub workload: &'static str,
    pub dir: PathBuf,
    pub expected: PathBuf,
    pub chunk_size: &'static str,
    _temp: tempfile::TempDir,
}

fn make(workload: &'static str, scale: &str, chunk_size: &'static str) -> DataSet {
    let temp = tempfile::tempdir().expect("a directory");
    let (dir, expected) = (temp.path().join("data"), temp.path().join("expected"));
    let run = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_tenaz")).args(arguments).output().expect("the program runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    let (data, out) = (dir.display().to_string(), expected.display().to_string());
    run(&["generate", workload, "--scale", scale, "--seed", "5", "--out", &data]);
    if workload == "coffee" {
        spoil(&dir);
    }
    run(&["run", workload, "--data", &data, "--out", &out]);
    DataSet { workload, dir, expected, chunk_size, _temp: temp }
}

/// Some records are bad, so that rejects travel, too.
fn spoil(dir: &Path) {
    let mut files: Vec<PathBuf> =
        walk(dir).into_iter().filter(|path| path.to_string_lossy().contains("items")).collect();
    files.sort();
    let file = files.iter().find(|path| path.to_string_lossy().contains("transaction_items")).expect("items");
    let text = std::fs::read_to_string(file).expect("text");
    let spoilt: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(n, line)| if n % 97 == 50 { format!("{line},too,many") } else { line.to_owned() })
        .collect();
    std::fs::write(file, spoilt.join("\n") + "\n").expect("the file can be written");
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

pub fn coffee() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    DATA.get_or_init(|| make("coffee", "0.001", "16K"))
}

pub fn steam() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    DATA.get_or_init(|| make("steam", "0.0005", "16K"))
}

pub fn books() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    DATA.get_or_init(|| make("books", "0.0005", "16K"))
}

/// A copy of the data with one value changed.
pub fn altered(data: &DataSet) -> DataSet {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("data");
    for path in walk(&data.dir) {
        let to = dir.join(path.strip_prefix(&data.dir).expect("a path below"));
        std::fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
        let mut bytes = std::fs::read(&path).expect("a file");
        if path.to_string_lossy().contains("transactions") {
            let last = bytes.iter().rposition(u8::is_ascii_digit).expect("a digit");
            bytes[last] = if bytes[last] == b'1' { b'2' } else { b'1' };
        }
        std::fs::write(to, bytes).expect("a file");
    }
    let expected = data.expected.clone();
    DataSet { workload: data.workload, dir, expected, chunk_size: data.chunk_size, _temp: temp }
}

/// The same files with the same bytes; in the summary the job's name and the time it took may differ.
pub fn assert_same_results(data: &DataSet, out: &Path) {
    let names = |dir: &Path| {
        let mut names: Vec<String> =
            walk(dir).iter().map(|p| p.file_name().expect("a name").to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let expected = names(&data.expected);
    assert_eq!(names(out), expected);
    assert!(expected.len() > 3, "{expected:?}");
    for name in expected {
        let read = |dir: &Path| std::fs::read(dir.join(&name)).expect("a file");
        if name == "summary.json" {
            let summary = |dir: &Path| {
                let mut summary: serde_json::Value = serde_json::from_slice(&read(dir)).expect("JSON");
                let fields = summary.as_object_mut().expect("an object");
                assert!(fields.remove("job").is_some() && fields.remove("elapsed_seconds").is_some());
                summary
            };
            assert_eq!(summary(out), summary(&data.expected));
        } else {
            assert!(read(out) == read(&data.expected), "{name} differs from what `tenaz run` wrote");
        }
    }
}
