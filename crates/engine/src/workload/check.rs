//! From the file's text to a [`Workload`], with every mistake named by line and cure.

use std::ops::Range;

use tenaz_csv::{Column, Header, Kind, Layout};
use toml::Spanned;

use super::file::{ColumnEntry, QueryEntry, TableEntry, WorkloadFile};
use super::{Query, Role, Table, Workload, parse_kind};
use crate::limits::{MAX_COLUMNS, MAX_NAME};
use crate::{Error, JobTime, NoTime};
use tenaz_words::nearest;

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
        if queries.iter().any(|q| q.name.eq_ignore_ascii_case(&query.name)) {
            // Result files are called after queries, and not every file system tells Q from q.
            let problem = format!("query {:?} is declared twice", query.name);
            return Err(here.wrong(entry.name.span(), problem, "give each query a name of its own"));
        }
        queries.push(query);
    }
    let time = parsed.now.as_ref().map(|now| here.time(now)).transpose()?;
    Ok(Workload { name: parsed.name.get_ref().clone(), title: parsed.title, tables, queries, time })
}

/// The text being read: turns a place in it into an error.
pub(super) struct Here<'a> {
    file: &'a str,
    text: &'a str,
}

impl Here<'_> {
    pub(super) fn wrong(&self, span: Range<usize>, problem: impl Into<String>, cure: impl Into<String>) -> Error {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        Error::Workload { file: self.file.to_owned(), line, problem: problem.into(), cure: cure.into() }
    }

    fn time(&self, now: &Spanned<String>) -> Result<JobTime, Error> {
        let wrong =
            |_| self.wrong(now.span(), format!("{:?} is no time", now.get_ref()), "write \"2025-06-30T12:00:00Z\"");
        now.get_ref().parse().map_err(|error: NoTime| wrong(error))
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

    pub(super) fn one_of<T: Copy>(
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
        let layout = Layout { columns, delimiter, header };
        let format = self.format(entry, &layout)?;
        let labels = entry.columns.get_ref().iter().map(ColumnEntry::label).collect();
        let trimmed = entry.columns.get_ref().iter().map(|column| column.trim_zeros).collect();
        Ok(Table { format, labels, trimmed, ..Table::new(name, files, role, layout) })
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
        if let (Some(yes), Some(no)) = (&column.yes, &column.no)
            && let Some(both) = yes.get_ref().iter().find(|word| no.get_ref().contains(word))
        {
            let problem = format!("{both:?} means yes and no");
            return Err(self.wrong(no.span(), problem, "give each spelling one meaning"));
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const NO_FILES: ReadSql<'_> = &|_| Err(std::io::ErrorKind::NotFound.into());

    fn table(columns: &str) -> String {
        format!("name = \"w\"\n[[table]]\nname = \"t\"\nfiles = \"t.csv\"\ncolumns = [\n{columns}\n]\n")
    }

    fn kinds(columns: &str) -> Vec<Kind> {
        let workload = parse("w.toml", &table(columns), NO_FILES).unwrap();
        workload.tables[0].layout.columns.iter().map(|column| column.kind.clone()).collect()
    }

    /// The line, the problem and the cure of a text that is wrong.
    fn mistake(text: &str) -> (usize, String, String) {
        match parse("w.toml", text, NO_FILES) {
            Err(Error::Workload { file, line, problem, cure }) => {
                assert_eq!(file, "w.toml");
                assert!(!problem.contains('\n') && !cure.is_empty());
                (line, problem, cure)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_type_has_its_kind() {
        let found = kinds(
            "{ name = \"a\", type = \"int\" }, { name = \"b\", type = \"int\", float_text = true },\n\
             { name = \"c\", type = \" decimal( 15 , 3 ) \" }, { name = \"d\", type = \"float\" },\n\
             { name = \"e\", type = \"timestamp\" }, { name = \"f\", type = \"date\" }, { name = \"g\", type = \"text\" }",
        );
        let expected = [
            Kind::Int { float_text: false },
            Kind::Int { float_text: true },
            Kind::Decimal { precision: 15, scale: 3 },
            Kind::Float,
            Kind::Timestamp,
            Kind::Date,
            Kind::Text,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_bool_has_common_spellings_unless_it_names_its_own() {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let usual = Kind::Bool { yes: words(&["True", "true", "TRUE"]), no: words(&["False", "false", "FALSE"]) };
        assert_eq!(kinds("{ name = \"a\", type = \"bool\" }"), [usual]);
        let own = Kind::Bool { yes: words(&["y"]), no: words(&["n", "-"]) };
        assert_eq!(kinds("{ name = \"a\", type = \"bool\", yes = [\"y\"], no = [\"n\", \"-\"] }"), [own]);
    }

    #[test]
    fn what_is_left_out_has_the_default_that_fits_most_exports() {
        let workload = parse("w.toml", &table("{ name = \"a\", type = \"int\" }"), NO_FILES).unwrap();
        let table = &workload.tables[0];
        assert_eq!((table.role, table.layout.header, table.layout.delimiter), (Role::Fact, Header::Check, b','));
        assert!(!table.layout.columns[0].required && table.layout.columns[0].nulls.is_empty());
        assert!(workload.queries.is_empty() && workload.title.is_empty());
    }

    #[test]
    fn decimals_have_1_to_38_digits_and_no_more_behind_the_point() {
        for good in ["decimal(1,0)", "decimal(38,38)", "decimal(38,0)"] {
            assert_eq!(kinds(&format!("{{ name = \"a\", type = \"{good}\" }}")).len(), 1);
        }
        for bad in ["decimal(0,0)", "decimal(39,1)", "decimal(5,6)", "decimal(5,-1)", "decimal(a,b)", "decimal(1,2,3)"]
        {
            let (line, problem, cure) = mistake(&table(&format!("{{ name = \"a\", type = \"{bad}\" }}")));
            assert_eq!(line, 6);
            assert!(problem.contains(bad) && cure.contains("from 1 to 38"), "{problem}; {cure}");
        }
    }

    #[test]
    fn the_line_is_that_of_the_mistake_also_after_wide_characters_and_crlf() {
        let text = "# é ñ 漢字\r\nname = \"w\"\r\n\r\n[[table]]\r\nname = \"t é\"\r\nfiles = \"t.csv\"\r\n\
                    columns = [{ name = \"a\", type = \"int\" }]\r\n";
        assert_eq!(mistake(text).0, 5);
    }

    #[test]
    fn names_have_a_limit_and_stay_safe_as_file_names() {
        let named = |name: &str| {
            format!("name = \"{name}\"\n{}", table("{ name = \"a\", type = \"int\" }").split_once('\n').unwrap().1)
        };
        for good in ["w", "7", "a-b_c", "été", &"x".repeat(MAX_NAME)] {
            parse("w.toml", &named(good), NO_FILES).unwrap();
        }
        for bad in ["", "-a", "_a", "a b", "a/b", "..", "a.b", &"x".repeat(MAX_NAME + 1)] {
            assert_eq!(mistake(&named(bad)).0, 1, "{bad}");
        }
    }

    #[test]
    fn sql_comes_from_the_text_or_from_a_file_but_not_from_both() {
        let query =
            |rest: &str| format!("{}[[query]]\nname = \"q\"\n{rest}\n", table("{ name = \"a\", type = \"int\" }"));
        let inline = parse("w.toml", &query("sql = \"SELECT a FROM t\""), NO_FILES).unwrap();
        assert_eq!((inline.queries[0].origin.as_str(), inline.queries[0].ordered), ("query q", None));
        let from_file: ReadSql<'_> = &|name| Ok(format!("-- {name}"));
        let file = parse("w.toml", &query("file = \"q.sql\"\nordered = true"), from_file).unwrap();
        assert_eq!((file.queries[0].sql.as_str(), file.queries[0].ordered), ("-- q.sql", Some(true)));
        let (line, problem, _) = mistake(&query("sql = \"SELECT 1\"\nfile = \"q.sql\""));
        assert_eq!(line, 9);
        assert!(problem.contains("exactly one of file and sql"), "{problem}");
    }

    #[test]
    fn a_misspelt_key_is_answered_with_the_nearest_one() {
        let (line, _, cure) = mistake(&table("{ nam = \"a\", type = \"int\" }"));
        assert_eq!((line, cure.as_str()), (6, "did you mean `name`?"));
    }

    #[test]
    fn a_table_has_columns_but_not_endlessly_many() {
        assert_eq!(mistake(&table("")).0, 5);
        let column = |n: usize| format!("{{ name = \"c{n}\", type = \"int\" }}");
        let most: Vec<String> = (0..MAX_COLUMNS).map(column).collect();
        assert_eq!(kinds(&most.join(",")).len(), MAX_COLUMNS);
        let more: Vec<String> = (0..=MAX_COLUMNS).map(column).collect();
        assert!(mistake(&table(&more.join(","))).1.contains("4097 columns"));
    }
}
