//! The guess written down: a workload file to start from.

use std::collections::BTreeMap;
use std::fmt::Write;

use tenaz_core::WorkloadText;
use tenaz_csv::{Column, Header, Kind};
use tenaz_engine::limits::MAX_NAME;
use tenaz_engine::{Role, Table, Workload};
use tenaz_source::{DateOrder, Dialect, Escape, FileFormat, ValueForm};

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
#   decimal_mark = ","    numbers such as 1.234,56 (with group_mark = ".")
#   date_order = "dmy"    dates such as 31.12.2025
#   trim_zeros = true     decimals are shown without zeros at their end
#   header = "ProdType"   its name in the files; answers show it if it is the name in other letters
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

/// The text of a workload, from which any other process can make the same: its tables as they were guessed, and its queries.
#[must_use]
pub fn workload_text(workload: &Workload) -> WorkloadText {
    let mut toml = format!("name = {}\n", quoted(&workload.name));
    for table in &workload.tables {
        put_table(&mut toml, table);
    }
    let mut sql = BTreeMap::new();
    for query in &workload.queries {
        let file = format!("{}.sql", query.name);
        put(&mut toml, format_args!("\n[[query]]\nname = {}\n", quoted(&query.name)));
        put(&mut toml, format_args!("title = {}\nfile = {}\n", quoted(&query.title), quoted(&file)));
        sql.insert(file, query.sql.clone());
    }
    WorkloadText { file: "workload.toml".to_owned(), toml, sql, now: workload.time.map(|time| time.to_string()) }
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
    put_format(text, &table.format);
    text.push_str("columns = [\n");
    let names = table.format.columns_by_name.as_deref().unwrap_or_default();
    for (index, column) in table.layout.columns.iter().enumerate() {
        let label = table.labels.get(index).and_then(Option::as_ref);
        let header = label.or_else(|| names.get(index).filter(|name| **name != column.name));
        let trim_zeros = table.trimmed.get(index).copied().unwrap_or(false);
        put_column(text, column, header, trim_zeros, table.format.values.get(index).copied().flatten());
    }
    text.push_str("]\n");
}

/// What is not usual about the files.
fn put_format(text: &mut String, format: &FileFormat) {
    let mark = |byte: u8| quoted(&char::from(byte).to_string());
    let (dialect, usual) = (&format.dialect, Dialect::with_delimiter(format.dialect.delimiter));
    if let Some(encoding) = format.encoding {
        put(text, format_args!("encoding = {}\n", quoted(encoding.name())));
    }
    if dialect.quote != usual.quote {
        put(text, format_args!("quote = {}\n", dialect.quote.map_or_else(|| quoted("none"), mark)));
    }
    if dialect.escape == Escape::Backslash {
        text.push_str("escape = \"backslash\"\n");
    }
    if let Some(comment) = dialect.comment {
        put(text, format_args!("comment = {}\n", mark(comment)));
    }
    if dialect.skip_lines > 0 {
        put(text, format_args!("skip = {}\n", dialect.skip_lines));
    }
    let flags = [
        ("skip_spaces = true", dialect.skip_spaces),
        ("ruled = true", dialect.ruled),
        ("framed = true", dialect.framed),
        ("doubled_delimiter = true", dialect.doubled),
        ("line_end = \"cr\"", dialect.cr_ends_records),
        ("columns_by_name = true", format.columns_by_name.is_some()),
        ("drop_repeated_headers = true", format.drop_repeated_headers),
        ("drop_totals = true", format.drop_totals),
        ("drop_unlabelled = true", format.drop_unlabelled),
        ("drop_blank = true", format.drop_blank),
        ("drop_footnotes = true", format.drop_footnotes),
        ("lenient = true", format.lenient),
    ];
    for (line, _) in flags.iter().filter(|(_, is_so)| *is_so) {
        put(text, format_args!("{line}\n"));
    }
}

fn put_column(text: &mut String, column: &Column, header: Option<&String>, trim_zeros: bool, form: Option<ValueForm>) {
    put(text, format_args!("    {{ name = {}, type = \"{}\"", quoted(&column.name), column.kind));
    if column.kind == (Kind::Int { float_text: true }) {
        text.push_str(", float_text = true");
    }
    if !column.nulls.is_empty() {
        let nulls: Vec<String> = column.nulls.iter().map(|null| quoted(null)).collect();
        put(text, format_args!(", nulls = [{}]", nulls.join(", ")));
    }
    if let Kind::Bool { yes, no } = &column.kind
        && Ok(&column.kind) != tenaz_engine::parse_kind("bool").as_ref()
    {
        let list = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
        put(text, format_args!(", yes = [{}], no = [{}]", list(yes), list(no)));
    }
    if trim_zeros {
        text.push_str(", trim_zeros = true");
    }
    if let Some(header) = header {
        put(text, format_args!(", header = {}", quoted(header)));
    }
    match form {
        None => {}
        Some(ValueForm::Date(order)) => {
            let order = match order {
                DateOrder::Dmy => "dmy",
                DateOrder::Mdy => "mdy",
                DateOrder::Ymd => "ymd",
            };
            put(text, format_args!(", date_order = \"{order}\""));
        }
        Some(ValueForm::Format(format)) => {
            put(text, format_args!(", date_format = {}", quoted(format.text())));
        }
        Some(ValueForm::Formula) => text.push_str(", formulas = true"),
        Some(ValueForm::Number(form)) => {
            put(text, format_args!(", decimal_mark = {}", quoted(&char::from(form.decimal).to_string())));
            if let Some(group) = form.group {
                put(text, format_args!(", group_mark = {}", quoted(&char::from(group).to_string())));
            }
        }
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
