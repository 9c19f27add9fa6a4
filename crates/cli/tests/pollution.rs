//! A clean file, polluted as the Pollock benchmark pollutes its own (Vitagliano et al., VLDB 2023), at every row and column: every
//! polluted file is read as the clean one, or something is said. Wrong without a word is a failure.
#![allow(clippy::unwrap_used)]

mod program;

use std::collections::BTreeMap;

use program::Finished;

const HEADER: [&str; 5] = ["Id", "Day", "Product", "Qty", "Price"];

const ROWS: [[&str; 5]; 8] = [
    ["1", "2025-01-03", "Nuts, salted", "3", "0.166023"],
    ["2", "2025-01-04", "Tea", "12", "4.5"],
    ["3", "2025-01-05", "Coffee \"Roma\"", "7", "12.25"],
    ["4", "2025-02-01", "Bread", "1", "3"],
    ["5", "2025-02-14", "Milk", "22", "1.19"],
    ["6", "2025-03-01", "Sugar", "5", "0.99"],
    ["7", "2025-03-02", "Salt", "8", "0.45"],
    ["8", "2025-03-31", "Honey", "2", "7.8"],
];

/// The marks of a file.
#[derive(Clone, Copy)]
struct Marks {
    delimiter: &'static str,
    quote: char,
    escape: char,
}

const USUAL: Marks = Marks { delimiter: ",", quote: '"', escape: '"' };

fn field(text: &str, marks: Marks) -> String {
    let special = |c: char| c == marks.quote || c == marks.escape || marks.delimiter.contains(c) || c == ',';
    if !text.contains(special) {
        return text.to_owned();
    }
    let inside: String =
        text.chars().flat_map(|c| if c == marks.quote { vec![marks.escape, c] } else { vec![c] }).collect();
    format!("{0}{inside}{0}", marks.quote)
}

fn record(fields: &[&str], marks: Marks) -> String {
    fields.iter().map(|text| field(text, marks)).collect::<Vec<_>>().join(marks.delimiter)
}

/// The records of the clean file, the header first.
fn lines(marks: Marks) -> Vec<String> {
    std::iter::once(&HEADER).chain(&ROWS).map(|fields| record(fields, marks)).collect()
}

fn file(lines: &[String], end: &str) -> String {
    lines.iter().map(|line| format!("{line}{end}")).collect()
}

/// The polluted files by name, and what each of them holds besides or instead of the clean records, by their first field.
fn polluted() -> BTreeMap<String, String> {
    let clean = lines(USUAL);
    let mut files = BTreeMap::new();
    let mut put = |name: String, text: String| drop(files.insert(name, text));
    for (name, delimiter) in [("semicolon", ";"), ("tab", "\t"), ("bar", "|"), ("comma_space", ", "), ("two", "::")] {
        let marks = Marks { delimiter, ..USUAL };
        put(format!("file_delimiter_{name}"), file(&lines(marks), "\n"));
    }
    put("file_quote_single".into(), file(&lines(Marks { quote: '\'', escape: '\'', ..USUAL }), "\n"));
    put("file_escape_backslash".into(), file(&lines(Marks { escape: '\\', ..USUAL }), "\n"));
    for (name, end) in [("cr", "\r"), ("crlf", "\r\n"), ("lfcr", "\n\r"), ("two", "\n\n")] {
        put(format!("file_record_end_{name}"), file(&lines(USUAL), end));
    }
    put("file_no_last_end".into(), clean.join("\n"));
    put("file_no_header".into(), file(&clean[1..], "\n"));
    put("file_header_twice".into(), file(&[&clean[..1], &clean[..]].concat(), "\n"));
    put("file_header_only".into(), file(&clean[..1], "\n"));
    put("file_one_row".into(), file(&clean[..2], "\n"));
    put("file_empty".into(), String::new());
    put("file_utf_16".into(), "\u{feff}".to_owned() + &file(&clean, "\n"));
    for count in 1..4 {
        let preamble: Vec<String> = (1..=count).map(|n| format!("Report of shop {n}")).collect();
        put(format!("file_preamble_{count}"), file(&[&preamble[..], &clean[..]].concat(), "\n"));
        let wide: Vec<String> = (1..=count).map(|n| format!("Report of shop {n},,,,")).collect();
        put(format!("file_wide_preamble_{count}"), file(&[&wide[..], &clean[..]].concat(), "\n"));
        let feet: Vec<String> = (1..=count).map(|n| format!("* footnote {n}")).collect();
        put(format!("file_footnote_{count}"), file(&[&clean[..], &feet[..]].concat(), "\n"));
    }
    let second: Vec<String> = ["", "City,Country", "Rome,IT", "Oslo,NO"].map(str::to_owned).to_vec();
    put("file_second_table".into(), file(&[&clean[..], &second[..]].concat(), "\n"));
    let same: Vec<String> = ["", "A,B,C,D,E", "v,w,x,y,z", "w,x,y,z,v"].map(str::to_owned).to_vec();
    put("file_second_table_of_the_same_width".into(), file(&[&clean[..], &same[..]].concat(), "\n"));
    for column in 0..HEADER.len() {
        for (name, text) in
            [("empty", String::new()), ("long", "Name".repeat(40)), ("repeated", HEADER[(column + 1) % 5].into())]
        {
            let mut header = HEADER.map(str::to_owned);
            header[column] = text;
            let mut lines = clean.clone();
            lines[0] = header.join(",");
            put(format!("header_{name}_{column}"), file(&lines, "\n"));
        }
    }
    for row in 0..clean.len() {
        let mut change = |name: &str, line: String| {
            let mut lines = clean.clone();
            lines[row] = line;
            put(format!("row_{row}_{name}"), file(&lines, "\n"));
        };
        let fields: Vec<&str> = if row == 0 { HEADER.to_vec() } else { ROWS[row - 1].to_vec() };
        change("delimiter", record(&fields, Marks { delimiter: ";", ..USUAL }));
        change("quote", record(&fields, Marks { quote: '\'', ..USUAL }));
        change("blank_before", format!("\n{}", clean[row]));
        change("crlf", format!("{}\r", clean[row]));
        change("comment_before", format!("# a remark\n{}", clean[row]));
        for column in 0..fields.len() {
            let mut parts: Vec<String> = fields.iter().map(|text| field(text, USUAL)).collect();
            let whole = parts[column].clone();
            parts[column] = format!("{whole},");
            change(&format!("more_delimiters_{column}"), parts.join(","));
            parts[column] = format!("\"{whole}");
            change(&format!("open_quote_{column}"), parts.join(","));
            parts.remove(column);
            change(&format!("less_fields_{column}"), parts.join(","));
            if column + 1 < fields.len() {
                let mut parts: Vec<String> = fields.iter().map(|text| field(text, USUAL)).collect();
                let joined = parts[column].clone() + &parts[column + 1];
                parts.splice(column..column + 2, [joined]);
                change(&format!("less_delimiters_{column}"), parts.join(","));
            }
        }
    }
    files
}

fn ask(text: &str, more: &[&str]) -> Finished {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    let question = "SELECT * FROM t";
    let arguments = [&["sql", "--data", path.to_str().unwrap(), "--format", "csv", question], more].concat();
    Finished::new(program::command(arguments).env_remove("TENAZ_ACCEPT_REJECTS").output().unwrap())
}

/// The rows of an answer, sorted, without the header.
fn rows(text: &str) -> Vec<String> {
    let mut rows: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    rows
}

/// Whether something is said that a user would look at.
fn is_said(done: &Finished) -> bool {
    let words = ["note: ", "rejected: ", "tenaz: ", "left out: ", "padded: ", "cut: ", "literally: "];
    done.err.lines().any(|line| words.iter().any(|word| line.contains(word)))
}

#[test]
fn every_pollution_is_read_right_or_said() {
    let clean = ask(&file(&lines(USUAL), "\n"), &[]).must(0);
    let expected = rows(clean.text());
    assert_eq!(expected.len(), ROWS.len());
    assert!(!is_said(&clean), "a clean file needs no word: {}", clean.err);
    let files: Vec<(String, String)> = polluted().into_iter().collect();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = files
            .chunks(files.len().div_ceil(2))
            .map(|part| {
                let expected = &expected;
                scope.spawn(move || {
                    part.iter().filter_map(|(name, text)| judged(name, text, expected)).collect::<Vec<_>>()
                })
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(files.len() > 200, "{} files", files.len());
    assert!(wrong.is_empty(), "{} of {} are wrong without a word:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

/// What is wrong without a word, if anything is.
fn judged(name: &str, text: &str, expected: &[String]) -> Option<String> {
    let expected: &[String] = match name {
        "file_header_only" | "file_empty" => &[],
        "file_one_row" => &expected[..1],
        _ => expected,
    };
    let done = ask(text, &[]);
    let found = rows(&String::from_utf8_lossy(&done.out));
    let is_right = done.code == Some(0) && found == expected;
    (!is_right && !is_said(&done)).then(|| format!("{name}: {found:?}\n  of {text:?}\n  {}", done.err))
}

#[test]
fn lenient_reading_counts_every_record_that_it_repairs() {
    let clean = lines(USUAL);
    for row in 1..clean.len() {
        let mut lines = clean.clone();
        let fields = ROWS[row - 1];
        for (line, count) in [
            (record(&fields[..4], USUAL), "records with too few fields, padded: 1"),
            (format!("{},x", clean[row]), "records with too many fields, cut: 1"),
            (format!("{},\"x\"y,1,1", fields[0..2].join(",")), "records with stray quotes, taken literally: 1"),
        ] {
            lines[row] = line;
            let done = ask(&file(&lines, "\n"), &["--lenient"]).must(0);
            assert_eq!(rows(done.text()).len(), ROWS.len());
            assert!(done.err.contains(count), "row {row}: {count}: {}", done.err);
        }
    }
}
