//! Standard error for programs: with `--message-format json` every line is one of these records.
//!
//! A job's records come in this order: texts, notes and progress while it runs; then what it rejected, the names of the answers as
//! they are written, and the summary; errors come last. Readers skip records and fields that they do not know.

use serde::Serialize;
use tenaz_core::FaultClass;
use tenaz_runtime::{Answer, RejectLine};

use crate::summary::Summary;

/// One line of standard error.
#[derive(Debug, Serialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub(crate) enum Message<'a> {
    /// A line that a reader may do without.
    Text { text: &'a str },
    /// A guess about the data, with the option that overrules it.
    Note { text: &'a str },
    /// A line that must be seen, though nothing has failed.
    Warning { text: &'a str },
    /// How far the job is. `total_bytes` is missing where nobody knows it.
    Progress {
        bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total_bytes: Option<u64>,
        records: u64,
    },
    /// A bad record, in the order of the data.
    Reject {
        table: &'a str,
        file: &'a str,
        line: u64,
        byte: u64,
        column: Option<&'a str>,
        reason: &'a str,
        text: &'a str,
    },
    /// The next answer on standard output.
    Answer { name: &'a str, title: &'a str, rows: u64, fingerprint: &'a str, ordered: bool },
    /// What `summary.json` says.
    Summary(&'a Summary),
    /// What went wrong, with its place where it has one.
    Error(&'a ErrorRecord),
}

/// An error for programs.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ErrorRecord {
    /// The exit code of the program, if this is its only error.
    pub(crate) exit: u8,
    /// Whose fault it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<FaultClass>,
    /// What a person would read: place, problem and cure.
    pub(crate) text: String,
    #[serde(flatten)]
    pub(crate) place: Place,
}

/// Where something is wrong; each part only where it is known.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    /// The query, by its name or as its file and number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) query: Option<String>,
    /// The table of a bad record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<String>,
    /// The file of data, or the workload file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// 1-based line in the file, or in the text of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u64>,
    /// 1-based character in that line of SQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) character: Option<u64>,
    /// The column of data at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<String>,
}

impl Place {
    /// A place in SQL: `:LINE:COLUMN` as errors write it, or nothing.
    pub(crate) fn in_sql(query: &str, place: &str) -> Self {
        let mut numbers = place.split(':').skip(1).map(|number| number.parse().ok());
        let (line, character) = (numbers.next().flatten(), numbers.next().flatten());
        Self { query: Some(query.to_owned()), line, character, ..Self::default() }
    }

    /// A bad record.
    pub(crate) fn of_record(line: &RejectLine) -> Self {
        Self {
            table: Some(line.table.clone()),
            file: Some(line.file.clone()),
            line: Some(line.line),
            column: line.column.clone(),
            ..Self::default()
        }
    }
}

impl<'a> Message<'a> {
    /// The record of a bad record.
    pub(crate) fn reject(line: &'a RejectLine) -> Self {
        Self::Reject {
            table: &line.table,
            file: &line.file,
            line: line.line,
            byte: line.byte,
            column: line.column.as_deref(),
            reason: &line.reason,
            text: &line.text,
        }
    }

    /// The record of an answer whose rows come next.
    pub(crate) fn answer(answer: &'a Answer) -> Self {
        Self::Answer {
            name: &answer.name,
            title: &answer.title,
            rows: answer.rows,
            fingerprint: &answer.fingerprint,
            ordered: answer.ordered,
        }
    }

    /// The record as one line.
    pub(crate) fn line(&self) -> String {
        // Texts, numbers and names only: there is nothing that could not be written.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_that_says_first_what_it_is() {
        assert_eq!(Message::Text { text: "a\nb" }.line(), "{\"message\":\"text\",\"text\":\"a\\nb\"}\n");
        let place = Place::in_sql("query", ":2:14");
        let error = ErrorRecord { exit: 1, class: Some(FaultClass::Query), text: "no".to_owned(), place };
        let expected = "{\"message\":\"error\",\"exit\":1,\"class\":\"query\",\"text\":\"no\",\"query\":\"query\",\"line\":2,\"character\":14}\n";
        assert_eq!(Message::Error(&error).line(), expected);
    }

    #[test]
    fn what_is_not_known_of_a_place_is_left_out() {
        assert_eq!(Place::in_sql("q1", "").line, None);
        assert_eq!(Place::in_sql("q1", ":7").line, Some(7));
        assert_eq!(Place::in_sql("q1", ":7").character, None);
    }
}
