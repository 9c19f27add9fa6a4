//! From the file's text to a [`Workload`], with every mistake named by line and cure.

use std::ops::Range;
use std::sync::Arc;

use tenaz_csv::{Column, Header, Kind, Layout};
use toml::Spanned;

use super::file::{ColumnEntry, QueryEntry, TableEntry, WorkloadFile};
use super::{Query, Role, Table, Workload, parse_kind};
use crate::limits::{MAX_COLUMNS, MAX_NAME};
use crate::{Error, nearest};

type ReadSql<'a> = &'a dyn Fn(&str) -> std::io::Result<String>;

pub(super) fn parse(file: &str, text: &str, read_sql: ReadSql<'_>) -> Result<Workload, Error> {
    let here = Here { file, text };
    let parsed: WorkloadFile = toml::from_str(text).map_err(|e| here.syntax(&e))?;
    here.name("workload", &parsed.name)?;
    if parsed.table.is_empty() {
        return Err(here.wrong(0..0, "there is no table", "add a [[table]] with name, files and columns"));
    }
    let mut tables: Vec<Table> = Vec::new();
    for entry in &parsed.table {
        let table = here.table(entry)?;
        if tables.iter().any(|t| t.name == table.name) {
            let problem = format!("table {:?} is declared twice", table.name);
            return Err(here.wrong(entry.name.span(), problem, "rename one, or give it several files: files = [..]"));
        }
        tables.push(table);
    }
    let mut queries: Vec<Query> = Vec::new();
    for entry in &parsed.query {
        let query = here.query(entry, read_sql)?;
        if queries.iter().any(|q| q.name == query.name) {
            let problem = format!("query {:?} is declared twice", query.name);
            return Err(here.wrong(entry.name.span(), problem, "give each query a name of its own"));
        }
        queries.push(query);
    }
    Ok(Workload { name: parsed.name.get_ref().clone(), title: parsed.title, tables, queries })
}

/// The text being read: turns a place in it into an error.
struct Here<'a> {
    file: &'a str,
    text: &'a str,
}

impl Here<'_> {
    fn wrong(&self, span: Range<usize>, problem: impl Into<String>, cure: impl Into<String>) -> Error {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        Error::Workload { file: self.file.to_owned(), line, problem: problem.into(), cure: cure.into() }
    }

    fn syntax(&self, error: &toml::de::Error) -> Error {
        let message = error.message().trim().replace('\n', ", ");
        let cure = if let Some(rest) = message.split("unknown field `").nth(1) {
            let word = rest.split('`').next().unwrap_or_default();
            let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
            match nearest(word, known).first() {
                Some(close) => format!("did you mean `{close}`?"),
                None => "remove it or correct its name".to_owned(),
            }
        } else if let Some(field) = message.strip_prefix("missing field `") {
            format!("add a line `{} = …` here", field.trim_end_matches('`'))
        } else {
            "correct the TOML here".to_owned()
        };
        self.wrong(error.span().unwrap_or(0..0), message, cure)
    }

    fn name(&self, what: &str, name: &Spanned<String>) -> Result<String, Error> {
        let text = name.get_ref();
        let fits = !text.is_empty()
            && text.chars().count() <= MAX_NAME
            && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
            && !text.starts_with(['-', '_']);
        if fits {
            return Ok(text.clone());
        }
        let problem = format!("the {what} name {text:?} is not usable");
        let cure = format!("write 1 to {MAX_NAME} letters, digits, - or _, starting with a letter or digit");
        Err(self.wrong(name.span(), problem, cure))
    }

    /// Column names may be anything SQL can quote, within the limit.
    fn column_name(&self, name: &Spanned<String>) -> Result<String, Error> {
        let text = name.get_ref();
        if text.trim().is_empty() || text.chars().count() > MAX_NAME || text.chars().any(char::is_control) {
            let problem = format!("the column name {text:?} is not usable");
            return Err(self.wrong(name.span(), problem, format!("write 1 to {MAX_NAME} printable characters")));
        }
        Ok(text.clone())
    }

    fn one_of<T: Copy>(
        &self,
        what: &str,
        value: Option<&Spanned<String>>,
        default: T,
        known: &[(&str, T)],
    ) -> Result<T, Error> {
        let Some(value) = value else { return Ok(default) };
        let found = known.iter().find(|(name, _)| name == value.get_ref());
        found.map(|(_, t)| *t).ok_or_else(|| {
            let names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
            let problem = format!("{what} {:?} is not known", value.get_ref());
            self.wrong(value.span(), problem, format!("write one of {}", names.join(", ")))
        })
    }

    fn table(&self, entry: &TableEntry) -> Result<Table, Error> {
        let name = self.name("table", &entry.name)?;
        let role = self.one_of(
            "role",
            entry.role.as_ref(),
            Role::Fact,
            &[("fact", Role::Fact), ("dimension", Role::Dimension)],
        )?;
        let header = self.one_of(
            "header",
            entry.header.as_ref(),
            Header::Check,
            &[("check", Header::Check), ("skip", Header::Skip), ("none", Header::Absent)],
        )?;
        let files = entry.files.get_ref().to_vec();
        for pattern in &files {
            let absolute = std::path::Path::new(pattern).is_absolute();
            if pattern.is_empty() || absolute || pattern.split('/').any(|part| part == "..") {
                let problem = format!("the file pattern {pattern:?} does not stay inside the data directory");
                return Err(self.wrong(entry.files.span(), problem, "write a relative path such as \"orders/*.csv\""));
            }
            if let Err(e) = glob::Pattern::new(pattern) {
                let problem = format!("the file pattern {pattern:?} is wrong: {e}");
                return Err(self.wrong(
                    entry.files.span(),
                    problem,
                    "write a path with * or ? such as \"orders/*.csv\"",
                ));
            }
        }
        if files.is_empty() {
            return Err(self.wrong(entry.files.span(), "no file is named", "write files = \"orders/*.csv\""));
        }
        let delimiter = match &entry.delimiter {
            None => b',',
            Some(text) => match text.get_ref().as_bytes() {
                [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => *byte,
                _ => {
                    let problem = format!("the delimiter {:?} is not a single plain character", text.get_ref());
                    return Err(self.wrong(text.span(), problem, "write \",\" or \";\" or \"\\t\""));
                }
            },
        };
        let columns = self.columns(entry)?;
        Ok(Table { name, files, role, layout: Arc::new(Layout { columns, delimiter, header }) })
    }

    fn columns(&self, entry: &TableEntry) -> Result<Vec<Column>, Error> {
        let entries = entry.columns.get_ref();
        if entries.is_empty() || entries.len() > MAX_COLUMNS {
            let problem = format!("table {:?} has {} columns", entry.name.get_ref(), entries.len());
            return Err(self.wrong(entry.columns.span(), problem, format!("declare 1 to {MAX_COLUMNS} columns")));
        }
        let mut columns: Vec<Column> = Vec::new();
        for column in entries {
            let name = self.column_name(&column.name)?;
            if columns.iter().any(|c| c.name == name) {
                let problem = format!("column {name:?} is declared twice in table {:?}", entry.name.get_ref());
                return Err(self.wrong(column.name.span(), problem, "give each column a name of its own"));
            }
            let kind = self.kind(column)?;
            columns.push(Column { name, kind, required: column.required, nulls: column.nulls.clone() });
        }
        Ok(columns)
    }

    fn kind(&self, column: &ColumnEntry) -> Result<Kind, Error> {
        let kind =
            parse_kind(column.kind.get_ref().trim()).map_err(|e| self.wrong(column.kind.span(), e.problem, e.cure))?;
        if let (Some(flag), false) = (&column.float_text, matches!(kind, Kind::Int { .. })) {
            return Err(self.wrong(flag.span(), "float_text is only for type = \"int\"", "remove float_text"));
        }
        let spelling = column.yes.as_ref().or(column.no.as_ref());
        if let (Some(words), false) = (spelling, matches!(kind, Kind::Bool { .. })) {
            return Err(self.wrong(words.span(), "yes and no are only for type = \"bool\"", "remove them"));
        }
        let given = |words: &Option<Spanned<Vec<String>>>, usual| words.as_ref().map_or(usual, |w| w.get_ref().clone());
        Ok(match kind {
            Kind::Int { .. } => Kind::Int { float_text: column.float_text.as_ref().is_some_and(|f| *f.get_ref()) },
            Kind::Bool { yes, no } => Kind::Bool { yes: given(&column.yes, yes), no: given(&column.no, no) },
            kind => kind,
        })
    }

    fn query(&self, entry: &QueryEntry, read_sql: ReadSql<'_>) -> Result<Query, Error> {
        let name = self.name("query", &entry.name)?;
        let (origin, sql) = match (&entry.file, &entry.sql) {
            (Some(file), None) => {
                let sql = read_sql(file.get_ref()).map_err(|e| {
                    let problem = format!("the query file {:?} cannot be read: {e}", file.get_ref());
                    self.wrong(file.span(), problem, "write a path relative to this workload file")
                })?;
                (file.get_ref().clone(), sql)
            }
            (None, Some(sql)) => (format!("query {name}"), sql.get_ref().clone()),
            _ => {
                let problem = format!("query {name:?} needs exactly one of file and sql");
                return Err(self.wrong(entry.name.span(), problem, "write file = \"name.sql\" or sql = \"SELECT …\""));
            }
        };
        let ordered = entry.ordered.as_ref().map(|o| *o.get_ref());
        Ok(Query { name, title: entry.title.clone(), origin, sql, ordered })
    }
}
