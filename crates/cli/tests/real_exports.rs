//! Exports in the bytes of the programs that write them (`real_exports/`: banks of eight countries, shops, ledgers, weather stations,
//! logs, spreadsheets), each asked at the first try: the answer is right, or what is not sure is said. The workload file that `tenaz
//! init` writes for it gives the same answer.
#![allow(clippy::unwrap_used)]

mod program;

use std::path::Path;

use program::Finished;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    file: String,
    question: String,
    /// The answer as CSV; none: what is said counts.
    want: Option<String>,
    said: Vec<String>,
    code: i32,
}

fn sql(data: &Path, question: &str) -> Finished {
    let arguments = ["sql", "--data", data.to_str().unwrap(), "--format", "csv", question];
    Finished::new(program::command(arguments).env_remove("TENAZ_ACCEPT_REJECTS").output().unwrap())
}

/// The answer that the workload file of `tenaz init` gives.
fn by_workload_file(dir: &Path, question: &str) -> Finished {
    let file = dir.join("w.toml");
    let dir = dir.to_str().unwrap();
    program::tenaz(["init", dir, "--out", file.to_str().unwrap()]).must(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let tables = text.split("\n[[query]]").next().unwrap();
    let question = toml::Value::String(question.to_owned());
    std::fs::write(&file, format!("{tables}\n[[query]]\nname = \"q1\"\nsql = {question}\n")).unwrap();
    let arguments = ["run", file.to_str().unwrap(), "--data", dir, "--format", "csv"];
    Finished::new(program::command(arguments).env_remove("TENAZ_ACCEPT_REJECTS").output().unwrap())
}

/// What is wrong with the answer to a case.
fn judged(case: &Case) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let ending = case.file.rsplit_once('.').unwrap().1;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_exports").join(&case.file);
    let data = dir.path().join(format!("t.{ending}"));
    std::fs::copy(source, &data).unwrap();
    let done = sql(&data, &case.question);
    let found = String::from_utf8_lossy(&done.out).into_owned();
    let unsaid: Vec<&String> = case.said.iter().filter(|text| !done.err.contains(*text)).collect();
    let is_right = case.want.as_ref().is_none_or(|want| *want == found);
    if !is_right || !unsaid.is_empty() || done.code != Some(case.code) {
        return Some(format!(
            "{}: code {:?}, not said: {unsaid:?}\n{found:?}\n{:?}\n{}",
            case.name, done.code, case.want, done.err
        ));
    }
    // In a directory only files with the ending of CSV are read.
    std::fs::rename(&data, dir.path().join("t.csv")).unwrap();
    if case.code != 0 {
        return None;
    }
    let again = by_workload_file(dir.path(), &case.question);
    (again.out != done.out).then(|| format!("{}: the workload file gives {}\n{}", case.name, again.text(), again.err))
}

#[test]
fn exports_are_answered_or_explained_at_the_first_try() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_exports/cases.json");
    let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(cases.len() >= 50, "{}", cases.len());
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let halves: Vec<_> = cases
            .chunks(cases.len().div_ceil(2))
            .map(|half| scope.spawn(move || half.iter().filter_map(judged).collect::<Vec<_>>()))
            .collect();
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
