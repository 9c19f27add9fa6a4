//! The user knows better: `--types orders.zip=text,price=decimal(12,2),day=date:%d.%m.%Y`.

use std::sync::Arc;

use tenaz_csv::Kind;
use tenaz_engine::{Workload, parse_kind};
use tenaz_source::{DateFormat, NumberForm, ValueForm};
use tenaz_words::nearest;

use crate::Error;

/// What stands for every column.
const ALL_COLUMNS: &str = "*";

/// Gives columns the types of a list: `table.column=type` for one column, `column=type` for every column of that name, `*=type`
/// for all columns. Later entries overrule earlier ones. Behind a type and a colon stands how values are written:
/// `date:%d.%m.%Y`, `timestamp:%s`, `decimal(12,2):comma` (or `point`), `bool:ja/nein`.
///
/// # Errors
/// [`Error::Types`] names the part of the list, what is wrong with it, and the nearest names.
pub fn overrule(workload: &mut Workload, list: &str) -> Result<(), Error> {
    for entry in entries(list) {
        apply(workload, &entry)?;
    }
    Ok(())
}

/// The parts of the list: commas inside parentheses belong to a type, and what has no `=` behind a format to the format.
fn entries(list: &str) -> Vec<String> {
    let mut depth = 0i32;
    let parts = list.split(move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth <= 0
    });
    let mut entries: Vec<String> = Vec::new();
    for part in parts {
        match entries.last_mut().filter(|last| last.contains(":%") && !part.contains('=')) {
            Some(last) => last.extend([",", part]),
            None => entries.push(part.trim_start().to_owned()),
        }
    }
    entries.into_iter().map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect()
}

/// How values are written, where the entry says so.
enum Spelling {
    Unsaid,
    Form(ValueForm),
    Truths(Vec<String>, Vec<String>),
}

/// The type of an entry, and the spelling behind it.
fn kind_and_spelling(text: &str) -> Result<(Kind, Spelling), (String, String)> {
    let (kind, spelling) = match text.split_once(':') {
        Some((kind, spelling)) => (kind.trim(), Some(spelling.trim())),
        None => (text, None),
    };
    let kind = match parse_kind(kind).map_err(|e| (e.problem, e.cure))? {
        // Whoever asks for whole numbers means 29454.0, too.
        Kind::Int { .. } => Kind::Int { float_text: true },
        kind => kind,
    };
    let Some(text) = spelling else { return Ok((kind, Spelling::Unsaid)) };
    let number = |decimal: u8, group: u8| Spelling::Form(ValueForm::Number(NumberForm { decimal, group: Some(group) }));
    let spelling = match (&kind, text) {
        (Kind::Date | Kind::Timestamp, text) => {
            let usage = "write date:%d.%m.%Y or timestamp:%d.%m.%Y %H:%M".to_owned();
            let format = DateFormat::parse(text).map_err(|problem| (problem, usage.clone()))?;
            if format.has_time() != (kind == Kind::Timestamp) {
                let problem = if format.has_time() { "a date has no time" } else { "the format has no time" };
                return Err((problem.to_owned(), usage));
            }
            Spelling::Form(ValueForm::Format(format))
        }
        (Kind::Int { .. } | Kind::Decimal { .. } | Kind::Float, "comma") => number(b',', b'.'),
        (Kind::Int { .. } | Kind::Decimal { .. } | Kind::Float, "point") => number(b'.', b','),
        (Kind::Bool { .. }, text) => match text.split_once('/') {
            Some((yes, no)) if !yes.is_empty() && !no.is_empty() && yes != no => {
                Spelling::Truths(vec![yes.to_owned()], vec![no.to_owned()])
            }
            _ => return Err(("truth values are two words".to_owned(), "write bool:ja/nein".to_owned())),
        },
        _ => {
            let problem = format!("{kind} has no spelling {text:?}");
            return Err((problem, "write decimal(12,2):comma, date:%d.%m.%Y or bool:ja/nein".to_owned()));
        }
    };
    Ok((kind, spelling))
}

fn apply(workload: &mut Workload, entry: &str) -> Result<(), Error> {
    let wrong = |problem: String, cure: String| Error::Types { entry: entry.to_owned(), problem, cure };
    let Some((name, kind)) = entry.split_once('=') else {
        return Err(wrong("there is no =".to_owned(), "write column=type or table.column=type".to_owned()));
    };
    let (mut kind, spelling) = kind_and_spelling(kind.trim()).map_err(|(problem, cure)| wrong(problem, cure))?;
    let form = match spelling {
        Spelling::Unsaid => None,
        Spelling::Form(form) => Some(form),
        Spelling::Truths(yes, no) => {
            kind = Kind::Bool { yes, no };
            None
        }
    };
    let name = name.trim().to_lowercase();
    let (table, column) = match name.split_once('.') {
        Some((table, column)) => (Some(table.trim()), column.trim()),
        None => (None, name.as_str()),
    };
    if let Some(table) = table
        && workload.tables.iter().all(|t| t.name != table)
    {
        let names: Vec<&str> = workload.tables.iter().map(|t| t.name.as_str()).collect();
        return Err(wrong(format!("there is no table {table:?}"), cure(table, &names)));
    }
    let chosen = |name: &str| table.is_none_or(|table| table == name);
    let mut found = false;
    for table in workload.tables.iter_mut().filter(|t| chosen(&t.name)) {
        for index in 0..table.layout.columns.len() {
            let given = &mut Arc::make_mut(&mut table.layout).columns[index];
            if column != ALL_COLUMNS && given.name.to_lowercase() != column {
                continue;
            }
            found = true;
            given.kind = kind.clone();
            if kind == Kind::Text {
                // Text is what stands in the file.
                given.nulls.clear();
            }
            if kind == Kind::Text || form.is_some() {
                let columns = table.layout.columns.len();
                table.format.values.resize(columns, None);
                table.format.values[index] = form;
            }
        }
    }
    if found {
        return Ok(());
    }
    let tables = workload.tables.iter().filter(|t| chosen(&t.name));
    let mut names: Vec<&str> = tables.flat_map(|t| t.layout.columns.iter().map(|c| c.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    Err(wrong(format!("there is no column {column:?}"), cure(column, &names)))
}

fn cure(word: &str, names: &[&str]) -> String {
    const SHOWN: usize = 12;
    match nearest(word, names.iter().copied()) {
        close if close.is_empty() && names.len() > SHOWN => format!("there are {}, …", names[..SHOWN].join(", ")),
        close if close.is_empty() => format!("there are {}", names.join(", ")),
        close => format!("did you mean {}?", close.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenaz_csv::{Column, Layout};
    use tenaz_engine::{Role, Table};

    fn workload() -> Workload {
        let table = |name: &str, columns: &[&str]| {
            let layout = Layout::new(columns.iter().map(|c| Column::new(*c, Kind::Date)).collect());
            Table::new(name.to_owned(), vec![format!("{name}.csv")], Role::Fact, layout)
        };
        let tables = vec![table("orders", &["id", "zip"]), table("customers", &["id", "name"])];
        Workload { name: "w".to_owned(), title: String::new(), tables, queries: Vec::new(), time: None }
    }

    fn kinds(list: &str) -> Result<String, String> {
        let mut workload = workload();
        overrule(&mut workload, list).map_err(|e| e.to_string())?;
        let columns = workload.tables.iter().flat_map(|t| t.layout.columns.iter());
        Ok(columns.map(|c| c.kind.to_string()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_column_is_overruled_in_one_table_or_in_all() {
        assert_eq!(kinds("zip=text").expect("no mistake"), "date text date date");
        assert_eq!(kinds("id=int").expect("no mistake"), "int date int date");
        assert_eq!(kinds("Orders.ID=int, name=decimal(12,2)").expect("no mistake"), "int date date decimal(12,2)");
        assert_eq!(kinds("").expect("no mistake"), "date date date date");
        assert_eq!(kinds("*=text,id=int").expect("no mistake"), "int text int text");
        assert_eq!(kinds("orders.*=text").expect("no mistake"), "text text date date");
    }

    #[test]
    fn a_type_may_say_how_values_are_written() {
        let mut workload = workload();
        overrule(&mut workload, "zip=date:%b %d, %Y,name=decimal(12,2):comma,orders.id=bool:ja/nein").expect("formats");
        let format = DateFormat::parse("%b %d, %Y").expect("a format");
        assert_eq!(workload.tables[0].format.values, [None, Some(ValueForm::Format(format))]);
        let comma = NumberForm { decimal: b',', group: Some(b'.') };
        assert_eq!(workload.tables[1].format.values, [None, Some(ValueForm::Number(comma))]);
        assert!(matches!(&workload.tables[0].layout.columns[0].kind, Kind::Bool { yes, .. } if yes[0] == "ja"));
        for (list, text) in [
            ("zip=date:%d.%m", "a date needs a year"),
            ("zip=date:%Y-%m-%d %H:%M", "a date has no time"),
            ("zip=text:comma", "text has no spelling \"comma\""),
            ("zip=bool:x", "truth values are two words"),
        ] {
            assert!(kinds(list).expect_err("a mistake").contains(text), "{list}");
        }
    }

    #[test]
    fn mistakes_name_the_nearest() {
        for (list, text) in [
            ("zp=text", "--types zp=text: there is no column \"zp\"; did you mean zip?"),
            ("order.id=text", "--types order.id=text: there is no table \"order\"; did you mean orders?"),
            ("orders.name=text", "--types orders.name=text: there is no column \"name\"; there are id, zip"),
            ("zip", "--types zip: there is no =; write column=type or table.column=type"),
            ("zip=txt", "--types zip=txt: the type \"txt\" is not known; did you mean \"text\"?"),
        ] {
            assert_eq!(kinds(list).expect_err("a mistake"), text);
        }
        assert!(kinds("zip=decimal(99,2)").expect_err("a mistake").contains("impossible numbers"));
    }
}
