//! Whole directories, from files to tables.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // A test may panic, and says so when it is skipped.

use std::path::Path;

use tempfile::TempDir;
use tenaz_csv::{Header, Kind};
use tenaz_engine::{Role, Table, Workload};
use tenaz_infer::{Inferred, Reading, infer, workload_file};

fn dir(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

fn inferred(files: &[(&str, &str)]) -> Inferred {
    let dir = dir(files);
    let inferred = infer(dir.path(), &Reading::default()).unwrap();
    is_written_down_truly(&inferred);
    inferred
}

/// What `tenaz init` writes means the same tables.
fn is_written_down_truly(inferred: &Inferred) {
    let text = workload_file(inferred);
    let no_files = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let parsed = Workload::parse("workload.toml", &text, &no_files).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let shape = |t: &Table| {
        let shown = (t.labels.clone(), t.trimmed.clone());
        (t.name.clone(), t.files.clone(), t.role, t.layout.clone(), format!("{:?}", t.format), shown)
    };
    let expected: Vec<_> = inferred.workload.tables.iter().map(shape).collect();
    assert_eq!(parsed.tables.iter().map(shape).collect::<Vec<_>>(), expected);
    assert_eq!(parsed.queries.len(), expected.len());
    assert_eq!(parsed.name, inferred.workload.name);
}

fn names(inferred: &Inferred) -> Vec<&str> {
    inferred.workload.tables.iter().map(|t| t.name.as_str()).collect()
}

fn columns(table: &Table) -> Vec<String> {
    table.layout.columns.iter().map(|c| format!("{} {}", c.name, c.kind)).collect()
}

#[test]
fn a_file_is_a_table_and_so_is_a_folder_of_files_of_the_same_shape() {
    let found = inferred(&[
        ("Orders 2024.csv", "id,total\n1,2.50\n"),
        ("items/a.csv", "id,name\n1,x\n"),
        ("items/b.csv", "ID,Name\n2,y\n"),
        ("mixed/a.csv", "id,name\n1,x\n"),
        ("mixed/b.csv", "id,other\n1,x\n"),
        ("deep/er/a.csv", "id\n1\n"),
        ("readme.txt", "not a table"),
        (".hidden.csv", "id\n1\n"),
    ]);
    assert_eq!(names(&found), ["orders_2024", "deep_er", "items", "mixed_a", "mixed_b"]);
    let files: Vec<_> = found.workload.tables.iter().map(|t| t.files.join(" ")).collect();
    assert_eq!(files, ["Orders 2024.csv", "deep/er/*.csv", "items/*.csv", "mixed/a.csv", "mixed/b.csv"]);
    assert_eq!(found.sources[2].files, 2);
    let apart = "the 2 files of mixed are a table each: their columns differ (--union makes one table of them)";
    assert!(found.notes[0].starts_with("readme.txt is not read: in a directory only .csv"), "{:?}", found.notes);
    assert_eq!(found.notes[1..], [apart]);
}

#[test]
fn names_are_unlike_each_other() {
    let found =
        inferred(&[("orders.csv", "a b,A-B,a_b\n1,2,3\n"), ("Orders.csv", "x\n1\n"), ("orders/x.csv", "x\n1\n")]);
    assert_eq!(names(&found), ["orders", "orders_2", "orders_3"]);
    let with_columns = found.workload.tables.iter().find(|t| t.layout.columns.len() == 3).unwrap();
    assert_eq!(columns(with_columns), ["a_b int", "a_b_2 int", "a_b_3 int"]);
}

#[test]
fn a_wrong_header_does_not_matter() {
    let found = inferred(&[
        ("few.csv", "id,name\n1,x,2.5\n2,y,3.5\n"),
        ("many.csv", "id,name,more\n1,x\n2,y\n"),
        ("none.csv", "1,x\n2,y\n"),
        ("trailing.csv", "id,name,\n1,x,True\n"),
    ]);
    let tables = &found.workload.tables;
    assert_eq!(columns(&tables[0]), ["id int", "name text", "c3 decimal(15,1)"]);
    assert_eq!(columns(&tables[1]), ["id int", "name text"]);
    assert_eq!(columns(&tables[2]), ["c1 int", "c2 text"]);
    assert_eq!(columns(&tables[3]), ["id int", "name text", "c3 bool"]);
    let headers: Vec<Header> = tables.iter().map(|t| t.layout.header).collect();
    assert_eq!(headers, [Header::Skip, Header::Skip, Header::Absent, Header::Skip]);
    assert_eq!(found.notes.len(), 3, "{:?}", found.notes);
    assert!(found.notes[0].starts_with("none.csv: no names of columns were found"));
    assert!(found.notes[1].starts_with("few.csv: the header has 2 names, but the records have 3 fields"));
}

#[test]
fn all_files_of_a_folder_contribute_to_the_types() {
    let found = inferred(&[("t/a.csv", "id,v\n1,1\n"), ("t/b.csv", "id,v\n2,2.25\n"), ("t/c.csv", "id,v\n3,\n")]);
    assert_eq!(columns(&found.workload.tables[0]), ["id int", "v decimal(15,2)"]);
}

#[test]
fn delimiters_byte_order_marks_and_line_ends_are_seen() {
    let found = inferred(&[("s.csv", "\u{feff}a;b\r\n1;2,5\r\n3;4,5\r\n"), ("t.tsv", "a\tb\n1\tx,y\n")]);
    let [s, t] = &found.workload.tables[..] else { panic!() };
    assert_eq!((s.layout.delimiter, t.layout.delimiter), (b';', b'\t'));
    assert_eq!(
        (columns(s), columns(t)),
        (vec!["a int".into(), "b decimal(18,1)".into()], vec!["a int".into(), "b text".into()])
    );
    assert_eq!(s.layout.header, Header::Check);
}

#[test]
fn small_tables_are_dimensions_but_never_the_largest() {
    let found = inferred(&[("small.csv", "id\n1\n"), ("large.csv", "id\n1\n2\n")]);
    let roles: Vec<_> = found.workload.tables.iter().map(|t| (t.name.as_str(), t.role)).collect();
    assert_eq!(roles, [("large", Role::Fact), ("small", Role::Dimension)]);
    assert_eq!(inferred(&[("only.csv", "id\n1\n")]).workload.tables[0].role, Role::Fact);
}

#[test]
fn values_far_inside_a_large_file_are_seen() {
    let mut text = String::from("id,note,v\n");
    for id in 0..200_000 {
        let v = if id > 199_000 { "2.75" } else { "1" };
        text.push_str(&format!("{id},\"line one, with a comma\nline two, {id}\",{v}\n"));
    }
    let found = inferred(&[("big.csv", &text)]);
    assert_eq!(columns(&found.workload.tables[0]), ["id int", "note text", "v decimal(15,2)"]);
}

#[test]
fn a_file_alone_can_be_named() {
    let dir = dir(&[("a.csv", "x\n1\n"), ("b.csv", "y\n1\n")]);
    let found = infer(&dir.path().join("b.csv"), &Reading::default()).unwrap();
    assert_eq!(names(&found), ["b"]);
    assert_eq!(found.dir, dir.path());
}

#[test]
fn names_with_pattern_characters_mean_themselves() {
    let dir = dir(&[("a[1]*.csv", "x\n1\n"), ("a1.csv", "x\n2\n")]);
    let found = infer(dir.path(), &Reading::default()).unwrap();
    is_written_down_truly(&found);
    for table in &found.workload.tables {
        let pattern = format!("{}/{}", glob::Pattern::escape(&dir.path().to_string_lossy()), table.files[0]);
        assert_eq!(glob::glob(&pattern).unwrap().count(), 1, "{pattern}");
    }
}

#[test]
fn what_cannot_be_used_is_left_out_with_a_note() {
    let dir = dir(&[("good.csv", "x\n1\n"), ("empty.csv", ""), ("blank.csv", "\n\n"), ("t/a.csv", "x\n1\n")]);
    std::fs::write(dir.path().join("zip.csv"), b"PK\0\0\0").unwrap();
    std::fs::write(dir.path().join("t/b.csv"), b"\0\0").unwrap();
    let found = infer(dir.path(), &Reading::default()).unwrap();
    assert_eq!(names(&found), ["blank", "empty", "good", "t"]);
    assert_eq!(found.workload.tables[3].files, ["t/a.csv"]);
    let expected = [
        "zip.csv is left out: this is a file with NUL bytes, not CSV; export it as text",
        "t/b.csv is left out: this is a file with NUL bytes, not CSV; export it as text",
        "blank.csv is empty: a table without records, with one column",
        "empty.csv is empty: a table without records, with one column",
    ];
    assert_eq!(found.notes, expected);
}

#[test]
fn a_directory_without_tables_is_a_clear_error() {
    let text = |path: &Path| {
        infer(path, &Reading::default()).unwrap_err().to_string().replace(&path.display().to_string(), "DIR")
    };
    assert_eq!(
        text(dir(&[]).path()),
        "there are no CSV files in DIR: files are looked for by their endings .csv, .tsv, .tab and .psv, also compressed (.csv.gz)"
    );
    assert_eq!(text(dir(&[("a.md", "x")]).path()), text(dir(&[]).path()));
    let other = text(dir(&[("a.txt", "x")]).path());
    assert!(other.contains("a.txt is not read") && other.contains("--data DIR/a.txt reads one file"), "{other}");
    assert_eq!(text(Path::new("/no/such/place")), "there is no directory DIR");
}

#[test]
fn an_empty_file_adds_nothing_to_a_series_and_is_a_table_where_it_is_alone() {
    let found = inferred(&[("s_01.csv", "id\n1\n"), ("s_02.csv", ""), ("s_03.csv", "id\n2\n"), ("alone.csv", "")]);
    assert_eq!(names(&found), ["alone", "s"]);
    assert_eq!(columns(&found.workload.tables[0]), ["c1 text"]);
    assert_eq!(found.sources[1].files, 2);
    assert!(found.notes.contains(&"s_02.csv is empty: it adds no records".to_owned()), "{:?}", found.notes);
}

#[test]
fn names_in_other_letters_and_unlike_scales_are_kept_for_answers() {
    let found = inferred(&[(
        "t.csv",
        "ProductType,Price,Money,Order Date\nA,0.166023,1.50,2025-01-01\nB,12,2.00,2025-01-02\n",
    )]);
    let table = &found.workload.tables[0];
    let label = |name: &str| Some(name.to_owned());
    assert_eq!(table.labels, [label("ProductType"), label("Price"), label("Money"), label("Order Date")]);
    assert_eq!(table.trimmed, [false, true, false, false]);
}

#[test]
fn totals_repeated_headers_and_drawn_tables_are_written_down() {
    let found = inferred(&[
        (
            "sap.csv",
            "------------\n|Mat  |Menge|\n------------\n|A-1  | 1,0-|\n|A-2  | 2,0 |\n|*    | 1,0 |\n------------\n",
        ),
        ("twice.csv", "id,n\n1,2\nid,n\n2,3\n"),
    ]);
    let formats: Vec<_> = found.workload.tables.iter().map(|table| &table.format).collect();
    assert!(formats[0].drop_totals && formats[0].dialect.ruled && formats[0].dialect.framed);
    assert!(formats[1].drop_repeated_headers && !formats[1].drop_totals);
    assert_eq!(columns(&found.workload.tables[1]), ["id int", "n int"]);
}

#[test]
fn a_header_alone_is_a_table_without_records() {
    let found = inferred(&[("h.csv", "id,name\n")]);
    assert_eq!(columns(&found.workload.tables[0]), ["id text", "name text"]);
    assert!(matches!(found.workload.tables[0].layout.columns[0].kind, Kind::Text));
}
