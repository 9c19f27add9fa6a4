//! `tenaz sql`

use std::io::{IsTerminal, Read, Write, stdin, stdout};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use indicatif::{HumanBytes, HumanCount};
use tenaz_engine::limits::MAX_SQL_BYTES;
use tenaz_engine::{JobPlan, Workload, split_statements};
use tenaz_infer::{Inferred, infer, overrule, workload_text};
use tenaz_local::statements::{StatementError, in_plain_sql, with_values};
use tenaz_runtime::format::Format;

use super::run::{Misfits, answer, tell_repairs};
use super::submit;
use crate::args::{OutputArgs, SqlArgs, SubmitArgs, sent_chunk_size};
use crate::copies::Copies;
use crate::outcome::{Usage, stdout_failed};
use crate::screen::Screen;
use crate::shell;

pub(crate) fn sql(args: &SqlArgs, screen: &Screen) -> Result<()> {
    let text = question(args)?;
    let text = match text {
        Some((origin, text)) => Some((origin, with_values(&text, &args.set).map_err(wrong)?)),
        None => None,
    };
    let spooled = if reads_standard_input(args) { Some(spool_standard_input(screen)?) } else { None };
    let data = spooled.as_ref().map_or(args.data.clone(), |dir| dir.path().join(STDIN_FILE));
    let mut inferred = infer(&data, &args.reading.reading())?;
    for list in &args.types {
        overrule(&mut inferred.workload, list)?;
    }
    for note in &inferred.notes {
        screen.note(note);
    }
    let (origin, text) = text.unwrap_or_default();
    if split_statements(&origin, &text)?.is_empty() {
        list(&inferred, args.output.format)?;
        if opens_a_shell(args) {
            return shell::run(args, &inferred, screen);
        }
        let (dir, table) = (inferred.dir.display(), &inferred.workload.tables[0].name);
        screen.say(&format!("\nNext: tenaz sql --data {dir} \"SELECT * FROM {table} LIMIT 10\""));
        return Ok(());
    }
    ask(args, &inferred, (&origin, &text), args.output.format, screen)
}

/// Whether somebody sits before the terminal and has not asked anything yet.
fn opens_a_shell(args: &SqlArgs) -> bool {
    let is_plain =
        args.sql.is_none() && args.file.is_none() && args.output.out.is_none() && args.output.output.is_none();
    is_plain && !reads_standard_input(args) && stdin().is_terminal() && stdout().is_terminal()
}

/// Answers the questions of a text, which is from `origin`.
pub(crate) fn ask(
    args: &SqlArgs,
    inferred: &Inferred,
    (origin, text): (&str, &str),
    format: Option<Format>,
    screen: &Screen,
) -> Result<()> {
    let mut statements = split_statements(origin, text)?;
    if statements.is_empty() {
        return Ok(());
    }
    let mut inferred = inferred.clone();
    args.time.fix(&mut inferred.workload);
    in_plain_sql(&mut statements, &inferred).map_err(wrong)?;
    let copies = Copies::of(&statements)?;
    let mut workload = inferred.workload;
    // Repairs are counted for each question.
    workload.tables.iter_mut().for_each(|table| table.format.repairs = Arc::default());
    workload.queries = statements.into_iter().map(|statement| statement.query).collect();
    let output = OutputArgs { format, ..args.output.clone() };
    if !args.gateway.is_empty() {
        return on_cluster(args, &output, &workload, &inferred.dir, copies, screen);
    }
    let answered = answer(&workload, &inferred.dir, &output, &copies, &args.engine, screen);
    tell_repairs(&workload, screen);
    match answered {
        Ok(answered) => {
            if let Some(hint) = hint(&answered.misfits) {
                screen.say(&hint);
            }
            for cure in answered.cures() {
                screen.say(cure);
            }
            if answered.not_utf8 {
                screen.say("some records are not UTF-8: --encoding windows-1252 (or another) reads them");
            }
            answered.verdict.conclude(args.output.accept_rejects, screen)
        }
        Err(error) => Err(with_hint(error)),
    }
}

/// A statement that makes no sense is wrong usage.
pub(crate) fn wrong(error: StatementError) -> anyhow::Error {
    match error {
        StatementError::Wrong(text) => Usage(text).into(),
        StatementError::Plan(error) => error.into(),
    }
}

/// Asks the gateways of a cluster, as `tenaz submit` does. What was guessed travels as the text of a workload file.
fn on_cluster(
    args: &SqlArgs,
    output: &OutputArgs,
    workload: &Workload,
    dir: &Path,
    copies: Copies,
    screen: &Screen,
) -> Result<()> {
    let chunk_size = args.engine.chunk_size.map(|bytes| sent_chunk_size(&bytes.to_string())).transpose();
    let args = SubmitArgs {
        data: Some(dir.to_owned()),
        gateway: args.gateway.clone(),
        token: args.token.clone(),
        token_file: args.token_file.clone(),
        transport: args.transport.clone(),
        time: args.time.clone(),
        output: output.clone(),
        strict: args.engine.strict,
        memory: args.engine.memory,
        chunk_size: chunk_size.map_err(|cure| Usage(format!("--chunk-size: {cure}")))?,
        partitions: args.engine.partitions,
        ..SubmitArgs::default()
    };
    // A mistake is told at its place in the text that was typed.
    JobPlan::new(workload)?;
    submit::ask(&args, workload_text(workload), copies, screen)
}

/// The table of data from standard input is called `stdin`.
const STDIN_FILE: &str = "stdin.csv";

fn reads_standard_input(args: &SqlArgs) -> bool {
    args.data.as_os_str() == "-"
}

/// Keeps standard input in a temporary file: types are guessed from its beginning, middle and end, and then it is read.
fn spool_standard_input(screen: &Screen) -> Result<tempfile::TempDir> {
    if stdin().is_terminal() {
        screen.say("reading data from standard input; end it with Ctrl-D");
    }
    let dir = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut file = std::fs::File::create(dir.path().join(STDIN_FILE)).context("cannot write a temporary file")?;
    std::io::copy(&mut stdin().lock(), &mut file).context("cannot keep standard input in a temporary file")?;
    Ok(dir)
}

/// The queries' text and where it is from; none if nobody gave one.
fn question(args: &SqlArgs) -> Result<Option<(String, String)>> {
    let is_dash = |path: &Path| path.as_os_str() == "-";
    match (&args.sql, &args.file) {
        (Some(text), _) if text != "-" => Ok(Some(("query".to_owned(), text.clone()))),
        (None, Some(file)) if !is_dash(file) => {
            let text = std::fs::File::open(file).and_then(limited);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            Ok(Some((file.display().to_string(), text)))
        }
        (None, None) if stdin().is_terminal() || reads_standard_input(args) => Ok(None),
        _ if reads_standard_input(args) => {
            anyhow::bail!("standard input holds the data (--data -): write the question as an argument or in a file")
        }
        _ => {
            let text = limited(stdin().lock()).context("cannot read standard input")?;
            Ok(Some(("standard input".to_owned(), text)))
        }
    }
}

/// A text as long as a query may be, and a byte more, so that a longer one is noticed.
fn limited(reader: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    reader.take(MAX_SQL_BYTES + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// What to do about records that do not fit the guessed types.
fn hint(misfits: &Misfits) -> Option<String> {
    if misfits.is_empty() {
        return None;
    }
    let records: u64 = misfits.values().sum();
    let mut columns: Vec<(&(String, String), &u64)> = misfits.iter().collect();
    columns.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let types: Vec<String> = columns.iter().map(|((table, column), _)| format!("{table}.{column}=text")).collect();
    let (what, verb) = if records == 1 { ("record", "does") } else { ("records", "do") };
    Some(format!(
        "{} {what} {verb} not fit the types, which are guessed from a sample where --types says nothing, and {} left out of the answers; \
         to keep them add --types {}",
        HumanCount(records),
        if records == 1 { "is" } else { "are" },
        types.join(",")
    ))
}

/// A strict run stops at the first record that does not fit: the cure is the same.
fn with_hint(error: anyhow::Error) -> anyhow::Error {
    let Some(tenaz_runtime::Error::Strict(line)) = error.downcast_ref() else { return error };
    let Some(column) = &line.column else { return error };
    let cure =
        format!("types are guessed from a sample where --types says nothing; add --types {}.{column}=text", line.table);
    let text = format!("{error}; {cure}");
    error.context(text)
}

/// The tables and their columns.
pub(crate) fn list(inferred: &Inferred, format: Option<Format>) -> Result<()> {
    let mut out = stdout();
    match format {
        None | Some(Format::Table) => {
            out.write_all(listing(inferred).as_bytes()).and_then(|()| out.flush()).map_err(stdout_failed)?;
        }
        Some(format) => {
            let batch = listing_rows(inferred)?;
            let mut writer = format.writer(&mut out);
            let written = writer.begin(&batch.schema()).and_then(|()| writer.rows(&batch)).and_then(|()| writer.end());
            written.map_err(stdout_failed)?;
        }
    }
    Ok(())
}

fn listing(inferred: &Inferred) -> String {
    let mut text = String::new();
    for (index, (table, source)) in inferred.workload.tables.iter().zip(&inferred.sources).enumerate() {
        let files = match (source.files, table.files.as_slice()) {
            (1, [file]) => file.clone(),
            (files, [pattern]) => format!("{pattern}, {files} files"),
            (files, _) => format!("{files} files"),
        };
        let space = if index > 0 { "\n" } else { "" };
        text.push_str(&format!("{space}{} ({files}, {})\n", table.name, HumanBytes(source.bytes)));
        let width = table.layout.columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
        for column in &table.layout.columns {
            text.push_str(&format!("  {:width$}  {}\n", column.name, column.kind));
        }
    }
    text
}

fn listing_rows(inferred: &Inferred) -> Result<RecordBatch> {
    let tables = || inferred.workload.tables.iter().flat_map(|t| t.layout.columns.iter().map(move |c| (t, c)));
    let column = |values: StringArray| Arc::new(values) as ArrayRef;
    let names = column(tables().map(|(table, _)| Some(table.name.as_str())).collect());
    let columns = column(tables().map(|(_, column)| Some(column.name.as_str())).collect());
    let kinds = column(tables().map(|(_, column)| Some(column.kind.to_string())).collect());
    let files = column(tables().map(|(table, _)| Some(table.files.join(" "))).collect());
    let field = |name| Field::new(name, DataType::Utf8, false);
    let schema = Schema::new(vec![field("table"), field("column"), field("type"), field("files")]);
    Ok(RecordBatch::try_new(Arc::new(schema), vec![names, columns, kinds, files])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_columns_with_most_misfits_first() {
        let misfit = |table: &str, column: &str, count| ((table.to_owned(), column.to_owned()), count);
        assert_eq!(hint(&Misfits::new()), None);
        let hint = hint(&[misfit("a", "x", 1), misfit("b", "y", 2000)].into_iter().collect()).expect("no mistake");
        assert!(hint.starts_with("2,001 records do not fit"), "{hint}");
        assert!(hint.ends_with("add --types b.y=text,a.x=text"), "{hint}");
    }
}
