//! Answers to where the user wants them: `run` and `submit` hand out the same, byte for byte.

use std::collections::BTreeSet;
use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use indicatif::HumanCount;
use tenaz_engine::{EdgeInput, Workload};
use tenaz_runtime::format::{ChartWriter, DecimalMark, Format, RowWriter, TableWriter};
use tenaz_runtime::{Answer, Outcome, RejectLine, reject_schema};

use crate::args::OutputArgs;
use crate::bad_records::BadRecords;
use crate::copies::Copies;
use crate::messages::Message;
use crate::out_dir::OutDir;
use crate::outcome::{Usage, stdout_failed};
use crate::rejected::Rejected;
use crate::row_stream::RowStream;
use crate::screen::Screen;
use crate::summary::{Summary, closing_lines};
use crate::verdict::Verdict;

/// The bad records, beside the answers in a directory.
pub(crate) const REJECTS: &str = "rejects.csv";
/// What is to be known of the job, beside the answers in a directory.
pub(crate) const SUMMARY: &str = "summary.json";

/// Where answers go.
#[derive(Debug)]
pub(crate) enum Target {
    /// Files in a directory.
    Dir(PathBuf, Format),
    /// The only answer in a file.
    File(PathBuf, Format),
    /// Everything to standard output, at the end: so many rows of each answer, or all of them if that is 0.
    Screen(Format, u64),
    /// The rows to standard output, as soon as they are known; of several queries, each with the name of its own.
    Stream(Format),
    /// Everything to standard output, at the end, one stream behind the other.
    Streams(Format),
    /// Every answer has a file of its own ([`Copies`]).
    Elsewhere,
}

impl Target {
    /// Where the answers go that do not go to files of their own.
    pub(crate) fn new(workload: &Workload, args: &OutputArgs, copies: &Copies) -> Result<Self> {
        if workload.queries.is_empty() {
            let text =
                format!("workload {} asks nothing; add a [[query]] with name and sql to its file", workload.name);
            return Err(Usage(text).into());
        }
        if let Some(format) = args.format {
            takes_mark(format, args)?;
        }
        if let Some(dir) = &args.out {
            let taken = |name: &str| ["rejects", "summary"].iter().any(|file| file.eq_ignore_ascii_case(name));
            if let Some(query) = workload.queries.iter().find(|q| taken(&q.name)) {
                let text =
                    format!("a query cannot be called {0:?}: --out writes a file of that name; rename it", query.name);
                return Err(Usage(text).into());
            }
            return Ok(Self::Dir(dir.clone(), args.format.unwrap_or(Format::Csv)));
        }
        if let Some(file) = &args.output {
            return Self::file(workload, file, args);
        }
        let left = workload.queries.iter().filter(|query| !copies.has(&query.name)).count();
        if left == 0 {
            return Ok(Self::Elsewhere);
        }
        let format = args.format.unwrap_or(if args.chart { Format::Chart } else { Format::Table });
        if format.is_binary() && stdout().is_terminal() {
            let text = format!("{} is not for a terminal; add --out DIR or redirect standard output", format.name());
            return Err(Usage(text).into());
        }
        match format {
            Format::Table | Format::Markdown | Format::Chart => Ok(Self::Screen(format, args.rows)),
            _ if workload.queries.len() == 1 && !args.sorted => Ok(Self::Stream(format)),
            Format::Arrows => Ok(Self::Streams(format)),
            _ if workload.queries.len() == 1 => Ok(Self::Streams(format)),
            Format::Ndjson if left == workload.queries.len() => Ok(Self::Stream(format)),
            _ if left == 1 => {
                let text = "a query beside COPY statements is shown as a table, or goes to a directory with --out";
                Err(Usage(text.to_owned()).into())
            }
            _ => {
                let text = format!(
                    "{} answers do not fit into one {} stream; ask one query (of a workload: --query NAME), give a directory with \
                     --out, or write --format ndjson, where each row says its query",
                    workload.queries.len(),
                    format.name()
                );
                Err(Usage(text).into())
            }
        }
    }

    fn file(workload: &Workload, file: &Path, args: &OutputArgs) -> Result<Self> {
        if workload.queries.len() != 1 {
            let many = workload.queries.len();
            return Err(Usage(format!("{many} answers do not fit into one file; give a directory with --out")).into());
        }
        let format = format_by_ending(file, args.format)?;
        takes_mark(format, args)?;
        Ok(Self::File(file.to_owned(), format))
    }

    /// Refuses to write over one of the files that the job reads.
    pub(crate) fn spare<'f>(
        &self,
        workload: &Workload,
        copies: &Copies,
        read: impl IntoIterator<Item = &'f Path>,
    ) -> Result<()> {
        let mut written: Vec<PathBuf> = match self {
            Self::Dir(dir, format) => {
                let answers = workload.queries.iter().map(|query| file_name(&query.name, *format));
                answers.chain([REJECTS.to_owned(), SUMMARY.to_owned()]).map(|name| dir.join(name)).collect()
            }
            Self::File(file, _) => vec![file.clone()],
            Self::Screen(..) | Self::Stream(_) | Self::Streams(_) | Self::Elsewhere => Vec::new(),
        };
        written.extend(copies.paths().map(Path::to_owned));
        let read: BTreeSet<PathBuf> = read.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
        match written.iter().find(|path| path.canonicalize().is_ok_and(|path| read.contains(&path))) {
            None => Ok(()),
            Some(path) => {
                let text =
                    format!("{} is read by this question and would be overwritten; write elsewhere", path.display());
                Err(Usage(text).into())
            }
        }
    }

    /// The directory to write into, if it is one: made and checked before any work is done.
    pub(crate) fn prepare(&self) -> Result<Option<OutDir>> {
        match self {
            Self::Dir(dir, _) => Ok(Some(OutDir::create(dir)?)),
            Self::File(file, _) => Ok(Some(OutDir::create(directory_of(file))?)),
            Self::Screen(..) | Self::Stream(_) | Self::Streams(_) | Self::Elsewhere => Ok(None),
        }
    }
}

/// A job's answers, and what is said about them.
pub(crate) struct HandOut<'a> {
    pub(crate) job: &'a str,
    pub(crate) workload: &'a Workload,
    pub(crate) target: &'a Target,
    pub(crate) copies: &'a Copies,
    pub(crate) mark: DecimalMark,
    pub(crate) stream: Option<&'a RowStream>,
    pub(crate) bad: &'a BadRecords<'a>,
    /// The answers that were handed out when they became final.
    pub(crate) delivered: BTreeSet<String>,
}

impl HandOut<'_> {
    /// Writes the answers to their target and says how it went. What comes back is the caller's last word.
    pub(crate) fn hand_out(&self, outcome: &Outcome, out: Option<OutDir>, screen: &Screen) -> Result<Verdict> {
        if let Some(stream) = self.stream {
            stream.finish(outcome)?;
        }
        let mut notes = self.copies.write(outcome, self.mark)?;
        match (self.target, out) {
            (Target::Dir(_, format), Some(out)) => notes.extend(self.write_files(out, *format, outcome)?),
            (Target::File(file, format), Some(out)) => {
                notes.extend(write_file(out, file, (*format, self.mark), outcome)?);
            }
            (Target::Screen(format, rows), _) => self.show(outcome, *format, *rows)?,
            (Target::Streams(format), _) => self.stream_all(outcome, *format, screen)?,
            _ => {}
        }
        if screen.writes_records() {
            self.record(outcome, screen)?;
        }
        notes.iter().for_each(|note| screen.say(&format!("note: {note}")));
        if !outcome.answers.is_empty() {
            self.tell(outcome, screen);
        }
        let rejected = Rejected::of(outcome, matches!(self.target, Target::Dir(..)));
        Ok(Verdict { failed: outcome.failed.clone(), rejected })
    }

    fn write_files(&self, mut out: OutDir, format: Format, outcome: &Outcome) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for answer in self.kept(outcome) {
            let name = file_name(&answer.name, format);
            out.write(&name, |file| {
                let said = write_answer(answer, &mut *format.writer_with(file, self.mark))?;
                notes.extend(said.into_iter().map(|note| format!("{name}: {note}")));
                Ok(())
            })?;
        }
        for failed in &outcome.failed {
            // An answer of an earlier run would look like one of this.
            out.remove(&file_name(&failed.name, format));
        }
        match &outcome.rejects {
            None => out.remove(REJECTS),
            Some(rejects) => out.write(REJECTS, |file| {
                let mut writer = Format::Csv.writer(file);
                writer.begin(&reject_schema())?;
                for batch in rejects.batches() {
                    writer.rows(&batch?)?;
                }
                Ok(writer.end()?)
            })?,
        }
        let summary = Summary::new(self.job, self.workload, outcome)?;
        out.write(SUMMARY, |file| {
            serde_json::to_writer_pretty(&mut *file, &summary)?;
            Ok(writeln!(file)?)
        })?;
        out.commit()?;
        Ok(notes)
    }

    /// The bad records and the summary, for programs.
    fn record(&self, outcome: &Outcome, screen: &Screen) -> Result<()> {
        for batch in outcome.rejects.iter().flat_map(|rejects| rejects.batches()) {
            RejectLine::from_rows(&batch?).for_each(|line| screen.record(&Message::reject(&line)));
        }
        screen.record(&Message::Summary(&Summary::new(self.job, self.workload, outcome)?));
        Ok(())
    }

    /// Every answer as a stream of its own, one behind the other. Programs are told which one comes next.
    fn stream_all(&self, outcome: &Outcome, format: Format, screen: &Screen) -> Result<()> {
        for answer in self.kept(outcome) {
            screen.record(&Message::answer(answer));
            let out = BufWriter::with_capacity(1 << 16, stdout());
            write_answer(answer, &mut *format.writer_with(out, self.mark)).map_err(not_written)?;
        }
        Ok(())
    }

    fn tell(&self, outcome: &Outcome, screen: &Screen) {
        let out: Option<&Path> = match self.target {
            Target::Dir(path, _) | Target::File(path, _) => Some(path),
            Target::Screen(..) | Target::Stream(_) | Target::Streams(_) | Target::Elsewhere => None,
        };
        self.bad.tell_rest(matches!(self.target, Target::Dir(..)));
        screen.say(&format!("\n{}", closing_lines(outcome)));
        if self.stream.is_some_and(|stream| stream.is_unordered() && !stream.has_several()) {
            screen.say(
                "rows were written as they became known; the fingerprint is that of the sorted answer (--out DIR)",
            );
        }
        for path in out.into_iter().chain(self.copies.paths()) {
            screen.say(&format!("results are in {}", path.display()));
        }
    }

    /// The answers that do not go to files of their own, and were not handed out before.
    fn kept<'o>(&self, outcome: &'o Outcome) -> impl Iterator<Item = &'o Answer> {
        let is_left = |answer: &&Answer| !self.copies.has(&answer.name) && !self.delivered.contains(&answer.name);
        outcome.answers.iter().filter(is_left)
    }

    fn show(&self, outcome: &Outcome, format: Format, rows: u64) -> Result<()> {
        for (index, answer) in self.kept(outcome).enumerate() {
            let is_first = index == 0 && self.delivered.is_empty();
            show_answer(answer, (format, self.mark), rows, is_first, outcome.elapsed)?;
        }
        Ok(())
    }
}

/// An answer that did not get to standard output: because of that, or of its own rows.
fn not_written(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<std::io::Error>() {
        Ok(io) => stdout_failed(io),
        Err(other) => other,
    }
}

/// Shows an answer on standard output.
pub(crate) fn show_answer(
    answer: &Answer,
    (format, mark): (Format, DecimalMark),
    rows: u64,
    is_first: bool,
    elapsed: Duration,
) -> Result<()> {
    let limit = (rows > 0).then_some(rows);
    let mut out = BufWriter::new(stdout());
    let title = if answer.title.is_empty() { &answer.name } else { &answer.title };
    let (space, heading) = (if is_first { "" } else { "\n" }, if format == Format::Markdown { "## " } else { "" });
    let shown = (|| -> Result<()> {
        writeln!(out, "{space}{heading}{}: {title}", answer.name)?;
        match format {
            Format::Table => write_answer(answer, &mut TableWriter::new(&mut out, limit).with_mark(mark))?,
            Format::Chart => write_answer(answer, &mut ChartWriter::new(&mut out, limit))?,
            _ => {
                writeln!(out)?;
                write_answer(answer, &mut *format.writer_with(&mut out, mark))?
            }
        };
        if format == Format::Table {
            let plural = if answer.rows == 1 { "row" } else { "rows" };
            writeln!(out, "{} {plural}, {:.2} s", HumanCount(answer.rows), elapsed.as_secs_f64())?;
        }
        Ok(out.flush()?)
    })();
    shown.map_err(not_written)
}

/// Refuses a decimal comma for a format whose numbers have none.
fn takes_mark(format: Format, args: &OutputArgs) -> Result<()> {
    if args.write_decimal_comma && !format.takes_decimal_comma() {
        let text = format!("numbers of {} have no decimal comma; leave --write-decimal-comma out", format.name());
        return Err(Usage(text).into());
    }
    Ok(())
}

/// The format of a file: as said, or as its ending says.
pub(crate) fn format_by_ending(file: &Path, format: Option<Format>) -> Result<Format> {
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    let by_ending = Format::ALL.iter().copied().find(|format| match *format {
        Format::Markdown => ending == "md" || ending == "markdown",
        Format::Table => ending == "txt",
        Format::Chart => false,
        Format::Ndjson => ending == "ndjson" || ending == "jsonl",
        format => ending == format.name(),
    });
    let Some(format) = format.or(by_ending) else {
        let file = file.display();
        let text = match ending.as_str() {
            "parquet" => format!(
                "{file}: this tenaz was built without Parquet; write .arrow or .csv, or build with --features parquet"
            ),
            _ => format!(
                "{file}: its ending says no format; write .csv, .json, .ndjson, .tsv, .md, .xlsx or .arrow, or add --format"
            ),
        };
        return Err(Usage(text).into());
    };
    Ok(format)
}

/// The first answer, under the name that the user gave.
fn write_file(out: OutDir, file: &Path, form: (Format, DecimalMark), outcome: &Outcome) -> Result<Vec<String>> {
    outcome.answers.first().map_or(Ok(Vec::new()), |answer| answers_in(out, file, form, answer))
}

/// An answer in a file of this directory.
pub(crate) fn answers_in(
    mut out: OutDir,
    file: &Path,
    (format, mark): (Format, DecimalMark),
    answer: &Answer,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Usage(format!("{} is no name of a file", file.display())))?;
    out.write(name, |file| {
        let said = write_answer(answer, &mut *format.writer_with(file, mark))?;
        notes.extend(said.into_iter().map(|note| format!("{name}: {note}")));
        Ok(())
    })?;
    out.commit()?;
    Ok(notes)
}

/// The directory that a file is in.
pub(crate) fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes an answer, and gives back what is not as the answer has it.
pub(crate) fn write_answer(answer: &Answer, writer: &mut dyn RowWriter) -> Result<Vec<String>> {
    writer.begin(&answer.schema)?;
    for batch in answer.batches() {
        writer.rows(&batch?)?;
    }
    writer.end()?;
    Ok(writer.notes())
}

/// The file of an answer in a directory.
pub(crate) fn file_name(query: &str, format: Format) -> String {
    format!("{query}.{}", format.name())
}
