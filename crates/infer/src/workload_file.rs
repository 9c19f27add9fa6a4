//! The guess written down: a workload file to start from.

use std::fmt::Write;

use tenaz_csv::{Column, Header, Kind};
use tenaz_engine::limits::MAX_NAME;
use tenaz_engine::{Role, Table};

use crate::Inferred;

const INTRODUCTION: &str = r#"# Written by `tenaz init` from a look at the CSV files; now it is yours to edit.
#
#   tenaz run WORKLOAD.toml --data DIR        answers all queries below in one pass over the files
#
# Types: int, decimal(P,S) (exact: P digits, S of them behind the point), float, timestamp, date, bool, text.
# They were guessed from a sample. A record that does not fit is rejected and reported: then give its column
# a wider type here, "text" if need be. More about columns:
#   float_text = true     an int that may be written as 29454.0
#   nulls = ["NA"]        spellings of null besides the empty field
#   required = true       a record without this value is rejected
"#;

const TABLES: &str = r#"
# Tables. `files` are patterns relative to the data directory. A "dimension" is small and loaded first, a "fact" is large.
# header = "check": the first record must name the columns; "skip": it is not looked at; "none": there is no header.
"#;

const QUERIES: &str = r#"
# Queries. Put longer ones into files of their own and name them with file = "best_sellers.sql". Others to try:
#   SELECT * FROM some_table LIMIT 10
#   SELECT some_column, count(*) AS records FROM some_table GROUP BY some_column ORDER BY records DESC LIMIT 10
"#;

/// The text of a workload file with these tables, and a first query for each.
#[must_use]
pub fn workload_file(inferred: &Inferred) -> String {
    let mut text = String::from(INTRODUCTION);
    put(&mut text, format_args!("\nname = {}\n", quoted(&inferred.workload.name)));
    if !inferred.notes.is_empty() {
        text.push_str("\n# What was noticed:\n");
        for note in &inferred.notes {
            put(&mut text, format_args!("# - {}\n", note.replace(char::is_control, " ")));
        }
    }
    text.push_str(TABLES);
    for table in &inferred.workload.tables {
        put_table(&mut text, table);
    }
    text.push_str(QUERIES);
    let mut names: Vec<String> = Vec::new();
    for table in &inferred.workload.tables {
        let name = query_name(&table.name, &names);
        put(&mut text, format_args!("\n[[query]]\nname = {}\n", quoted(&name)));
        put(&mut text, format_args!("title = {}\n", quoted(&format!("How many records {} has", table.name))));
        put(&mut text, format_args!("sql = {}\n", quoted(&format!("SELECT count(*) AS records FROM {}", table.name))));
        names.push(name);
    }
    text
}

fn put_table(text: &mut String, table: &Table) {
    let files = match table.files.as_slice() {
        [one] => quoted(one),
        many => format!("[{}]", many.iter().map(|file| quoted(file)).collect::<Vec<_>>().join(", ")),
    };
    let role = match table.role {
        Role::Fact => "fact",
        Role::Dimension => "dimension",
    };
    let header = match table.layout.header {
        Header::Check => "check",
        Header::Skip => "skip",
        Header::Absent => "none",
    };
    put(text, format_args!("\n[[table]]\nname = {}\nfiles = {files}\n", quoted(&table.name)));
    put(text, format_args!("role = \"{role}\"\nheader = \"{header}\"\n"));
    if table.layout.delimiter != b',' {
        let delimiter = char::from(table.layout.delimiter).to_string();
        put(text, format_args!("delimiter = {}\n", quoted(&delimiter)));
    }
    text.push_str("columns = [\n");
    for column in &table.layout.columns {
        put_column(text, column);
    }
    text.push_str("]\n");
}

fn put_column(text: &mut String, column: &Column) {
    put(text, format_args!("    {{ name = {}, type = \"{}\"", quoted(&column.name), column.kind));
    if column.kind == (Kind::Int { float_text: true }) {
        text.push_str(", float_text = true");
    }
    if !column.nulls.is_empty() {
        let nulls: Vec<String> = column.nulls.iter().map(|null| quoted(null)).collect();
        put(text, format_args!(", nulls = [{}]", nulls.join(", ")));
    }
    text.push_str(" },\n");
}

/// `records_of_` and the table's name, within the limit and unlike the others.
fn query_name(table: &str, taken: &[String]) -> String {
    let whole = format!("records_of_{table}");
    let cut = |chars: usize| whole.chars().take(chars).collect::<String>();
    let mut name = cut(MAX_NAME);
    let mut number = 1;
    while taken.contains(&name) {
        number += 1;
        name = format!("{}_{number}", cut(MAX_NAME - 8));
    }
    name
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes everything");
}
