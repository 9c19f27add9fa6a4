//! Small data sets, and what `tenaz run` makes of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A data set with the results of an undisturbed run on this machine.
pub struct DataSet {
    /// A bundled workload's name, or the path of a workload file.
    pub workload: String,
    pub dir: PathBuf,
    pub expected: PathBuf,
    pub chunk_size: &'static str,
    _temp: tempfile::TempDir,
}

fn make(workload: &'static str, scale: &str, chunk_size: &'static str, spoil: impl Fn(&Path)) -> DataSet {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("data");
    tenaz(&["generate", workload, "--scale", scale, "--seed", "5", "--out", &dir.display().to_string()]);
    spoil(&dir);
    DataSet::answered(temp, dir, workload.to_owned(), chunk_size)
}

fn tenaz(arguments: &[&str]) {
    tenaz_ends_with(0, arguments);
}

fn tenaz_ends_with(code: i32, arguments: &[&str]) {
    let done = Command::new(env!("CARGO_BIN_EXE_tenaz"))
        .env("TENAZ_ACCEPT_REJECTS", "true")
        .args(arguments)
        .output()
        .expect("the program runs");
    assert_eq!(done.status.code(), Some(code), "{}", String::from_utf8_lossy(&done.stderr));
}

impl DataSet {
    /// The data in `dir` with the answers of an undisturbed `tenaz run`.
    fn answered(temp: tempfile::TempDir, dir: PathBuf, workload: String, chunk_size: &'static str) -> Self {
        Self::answered_with(0, temp, dir, workload, chunk_size)
    }

    /// The same of a run that ends with this code.
    fn answered_with(
        code: i32,
        temp: tempfile::TempDir,
        dir: PathBuf,
        workload: String,
        chunk_size: &'static str,
    ) -> Self {
        let expected = temp.path().join("expected");
        let (data, out) = (dir.display().to_string(), expected.display().to_string());
        tenaz_ends_with(code, &["run", &workload, "--data", &data, "--out", &out]);
        Self { workload, dir, expected, chunk_size, _temp: temp }
    }
}

const PAIRS: &str = r#"
name = "pairs"

[[table]]
name = "t"
files = "t.csv"
columns = [{ name = "id", type = "int" }, { name = "amount", type = "int" }]

[[query]]
name = "pairs"
sql = '''
SELECT a.k, count(*) AS n
FROM (SELECT id % 200 AS k, amount FROM t) a JOIN (SELECT id % 200 AS k, amount FROM t) b ON a.k = b.k
WHERE a.amount + b.amount > 150
GROUP BY a.k
'''
"#;

const LONG_TEXTS: &str = r#"
name = "long-texts"

[[table]]
name = "t"
files = "t.csv"
columns = [{ name = "id", type = "int" }, { name = "note", type = "text" }]

[[query]]
name = "last"
sql = "SELECT id, max(note) AS note FROM t GROUP BY id"
"#;

/// Twelve megabytes of groups that cannot be made smaller: inner tasks with little memory have to use their disk.
pub fn long_texts() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    let line = |id: u64| format!("{id},{:0>200}\n", id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    DATA.get_or_init(|| own("long-texts", LONG_TEXTS, &(0..60_000).map(line).collect::<String>(), "id,note"))
}

const FAILING: &str = r#"
name = "failing"

[[table]]
name = "t"
files = "t.csv"
columns = [{ name = "id", type = "int" }, { name = "amount", type = "int" }]

[[query]]
name = "fine"
sql = "SELECT amount, count(*) AS n FROM t GROUP BY amount"

[[query]]
name = "leaf"
sql = "SELECT id, 1 / (id - 2500) AS q FROM t WHERE id > 1000"

[[query]]
name = "inner"
sql = "SELECT sum(q) AS q FROM (SELECT amount, 1 / (count(*) - 40) AS q FROM t GROUP BY amount) x"

[[query]]
name = "top"
sql = "SELECT id, amount FROM t ORDER BY amount DESC, id LIMIT 10"
"#;

/// Questions of which two can be answered: the others fail in the leaf work of a chunk, and in an inner task.
pub fn failing() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    DATA.get_or_init(|| {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = temp.path().join("data");
        std::fs::create_dir(&dir).expect("a directory");
        let lines: String = (0..4_000).map(|id| format!("{id},{}\n", id * 7 % 100)).collect();
        std::fs::write(dir.join("t.csv"), format!("id,amount\n{lines}")).expect("a file");
        let path = temp.path().join("failing.toml");
        std::fs::write(&path, FAILING).expect("a file");
        let path = path.display().to_string();
        DataSet::answered_with(1, temp, dir, path, "1K")
    })
}

/// A data set of one table `t`.
fn own(name: &str, workload: &str, lines: &str, header: &str) -> DataSet {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("data");
    std::fs::create_dir(&dir).expect("a directory");
    std::fs::write(dir.join("t.csv"), format!("{header}\n{lines}")).expect("a file");
    let path = temp.path().join(format!("{name}.toml"));
    std::fs::write(&path, workload).expect("a file");
    let path = path.display().to_string();
    DataSet::answered(temp, dir, path, "1M")
}

const HUNGRY: &str = r#"
name = "hungry"

[[table]]
name = "t"
files = "t.csv"
columns = [{ name = "id", type = "int" }, { name = "amount", type = "int" }]

[[query]]
name = "small"
sql = "SELECT amount, count(*) AS n FROM t GROUP BY amount"

[[query]]
name = "large"
sql = "SELECT length(string_agg(repeat(CAST(id % 10 AS VARCHAR), 4000000), ',' ORDER BY id)) AS n FROM t WHERE id < 24"
"#;

/// One of the questions needs more than the 64 MB that a task may have at least.
pub fn hungry() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    let line = |id: u64| format!("{id},{}\n", id * 7 % 100);
    DATA.get_or_init(|| own("hungry", HUNGRY, &(0..4_000).map(line).collect::<String>(), "id,amount"))
}

/// A table joined with itself: one chunk, and every partition has an inner task with rows of its own.
pub fn pairs() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    let line = |id: u64| format!("{id},{}\n", id * 7 % 100);
    DATA.get_or_init(|| own("pairs", PAIRS, &(0..4_000).map(line).collect::<String>(), "id,amount"))
}

/// The first file of the transactions' items.
fn items(dir: &Path) -> PathBuf {
    let mut files = walk(dir);
    files.sort();
    files.into_iter().find(|path| path.to_string_lossy().contains("transaction_items")).expect("items")
}

/// Some records are bad, so that rejects travel, too.
fn spoil(dir: &Path) {
    let file = items(dir);
    let text = std::fs::read_to_string(&file).expect("text");
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
    DATA.get_or_init(|| make("coffee", "0.001", "16K", spoil))
}

pub fn steam() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    DATA.get_or_init(|| make("steam", "0.0005", "16K", |_| {}))
}

pub fn books() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    DATA.get_or_init(|| make("books", "0.0005", "16K", |_| {}))
}

/// One file is 300,000 bytes of bad records of two bytes each.
pub fn short_bad_records() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    let spoil = |dir: &Path| {
        let file = items(dir);
        let text = std::fs::read_to_string(&file).expect("text");
        let header = text.lines().next().expect("a header");
        std::fs::write(file, format!("{header}\n{}", "x\n".repeat(150_000))).expect("the file can be written");
    };
    DATA.get_or_init(|| make("coffee", "0.0002", "256K", spoil))
}

/// One chunk of eight megabytes, all of it bad records of eight bytes.
pub fn megabytes_of_bad_records() -> &'static DataSet {
    static DATA: OnceLock<DataSet> = OnceLock::new();
    DATA.get_or_init(|| {
        let data = own("bad", PAIRS, &"x,y,z,0\n".repeat((8 << 20) / 8 - 2), "id,amount");
        DataSet { chunk_size: "8M", ..data }
    })
}

/// A copy of the data with one byte changed in the middle of the first file of the transactions' items.
pub fn altered_in_the_middle(data: &DataSet) -> DataSet {
    let first = items(&data.dir);
    copied(data, |path, bytes| {
        if path == first {
            let middle = bytes.len() / 2;
            let at = middle + bytes[middle..].iter().position(u8::is_ascii_lowercase).expect("a letter");
            bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
        }
    })
}

/// A copy of the data with one value changed.
pub fn altered(data: &DataSet) -> DataSet {
    copied(data, |path, bytes| {
        if path.to_string_lossy().contains("transactions") {
            let last = bytes.iter().rposition(u8::is_ascii_digit).expect("a digit");
            bytes[last] = if bytes[last] == b'1' { b'2' } else { b'1' };
        }
    })
}

fn copied(data: &DataSet, change: impl Fn(&Path, &mut Vec<u8>)) -> DataSet {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("data");
    for path in walk(&data.dir) {
        let to = dir.join(path.strip_prefix(&data.dir).expect("a path below"));
        std::fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
        let mut bytes = std::fs::read(&path).expect("a file");
        change(&path, &mut bytes);
        std::fs::write(to, bytes).expect("a file");
    }
    let expected = data.expected.clone();
    DataSet { workload: data.workload.clone(), dir, expected, chunk_size: data.chunk_size, _temp: temp }
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
    assert!(expected.len() > 1, "{expected:?}");
    for name in expected {
        let read = |dir: &Path| std::fs::read(dir.join(&name)).expect("a file");
        if name == "summary.json" {
            let summary = |dir: &Path| {
                let mut summary: serde_json::Value = serde_json::from_slice(&read(dir)).expect("JSON");
                let fields = summary.as_object_mut().expect("an object");
                assert!(
                    fields.remove("job").is_some()
                        && fields.remove("elapsed_seconds").is_some()
                        && fields.remove("final_at").is_some()
                        && fields.remove("now").is_some()
                );
                summary
            };
            assert_eq!(summary(out), summary(&data.expected));
        } else {
            assert!(read(out) == read(&data.expected), "{name} differs from what `tenaz run` wrote");
        }
    }
}
