//! Options that say how files are written, where the guess is wrong.

use clap::{ArgAction, Args, ValueEnum};
use tenaz_infer::Reading;
use tenaz_source::{DateOrder, Escape, TextEncoding};

/// How the files are written. Whatever is not said is guessed from a sample.
#[derive(Debug, Args)]
#[command(next_help_heading = "How the files are written (guessed where not said)")]
pub(crate) struct ReadingArgs {
    /// Their encoding: utf-8, utf-16, windows-1252, iso-8859-15, …
    #[arg(long, value_name = "NAME", value_parser = encoding)]
    encoding: Option<TextEncoding>,
    /// The character between fields; `tab` is one.
    #[arg(long, value_name = "CHAR", value_parser = character)]
    delimiter: Option<u8>,
    /// The character around fields; `none`: there is none.
    #[arg(long, value_name = "CHAR", value_parser = character_or_none)]
    quote: Option<Mark>,
    /// How a quote inside quotes is written: twice, or behind a backslash.
    #[arg(long, value_name = "HOW")]
    escape: Option<EscapeArg>,
    /// The character that begins a comment line; `none`: there are no comments.
    #[arg(long, value_name = "CHAR", value_parser = character_or_none)]
    comment: Option<Mark>,
    /// Lines before the header.
    #[arg(long, value_name = "N")]
    skip: Option<u64>,
    /// Whether spaces around fields are data.
    #[arg(long, value_name = "KEEP|SKIP")]
    spaces: Option<KeepSkip>,
    /// Whether records that sum others up (Total, Summe, …) are data.
    #[arg(long, value_name = "KEEP|SKIP")]
    totals: Option<KeepSkip>,
    /// Whether records without any value, the blank rows of spreadsheets, are data.
    #[arg(long, value_name = "KEEP|SKIP")]
    blank: Option<KeepSkip>,
    /// Whether lines of text below the table are records (and then rejected, because they are too short).
    #[arg(long, value_name = "KEEP|SKIP")]
    footnotes: Option<KeepSkip>,
    /// Whether the first record names the columns.
    #[arg(long, value_name = "YES|NO")]
    header: Option<YesNo>,
    /// Spellings of null besides the empty field, separated by commas.
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',', allow_hyphen_values = true)]
    null: Vec<String>,
    /// Whether numbers have a decimal comma.
    #[arg(long, value_name = "YES|NO", num_args = 0..=1, default_missing_value = "yes")]
    decimal_comma: Option<YesNo>,
    /// The order of day, month and year: 31/12/2025, 12/31/2025 or 2025/12/31.
    #[arg(long, value_name = "ORDER")]
    date_order: Option<OrderArg>,
    /// Pad records with too few fields, cut those with too many, take stray quotes literally, and count them.
    #[arg(long)]
    lenient: bool,
    /// Files of a folder are one table, although their columns differ.
    #[arg(long, conflicts_with = "apart", action = ArgAction::SetTrue)]
    union: bool,
    /// Every file is a table of its own.
    #[arg(long, action = ArgAction::SetTrue)]
    apart: bool,
}

/// A character, or that there is none.
#[derive(Debug, Clone, Copy)]
struct Mark(Option<u8>);

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EscapeArg {
    Double,
    Backslash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeepSkip {
    Keep,
    Skip,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrderArg {
    Dmy,
    Mdy,
    Ymd,
}

impl ReadingArgs {
    pub(crate) fn reading(&self) -> Reading {
        let yes = |value: Option<YesNo>| value.map(|value| value == YesNo::Yes);
        let skip = |value: Option<KeepSkip>| value.map(|value| value == KeepSkip::Skip);
        Reading {
            encoding: self.encoding,
            delimiter: self.delimiter,
            quote: self.quote.map(|mark| mark.0),
            escape: self.escape.map(|escape| match escape {
                EscapeArg::Double => Escape::Doubled,
                EscapeArg::Backslash => Escape::Backslash,
            }),
            comment: self.comment.map(|mark| mark.0),
            skip_lines: self.skip,
            skip_spaces: skip(self.spaces),
            totals: skip(self.totals),
            blank: skip(self.blank),
            footnotes: skip(self.footnotes),
            header: yes(self.header),
            nulls: self.null.clone(),
            decimal_comma: yes(self.decimal_comma),
            date_order: self.date_order.map(|order| match order {
                OrderArg::Dmy => DateOrder::Dmy,
                OrderArg::Mdy => DateOrder::Mdy,
                OrderArg::Ymd => DateOrder::Ymd,
            }),
            lenient: self.lenient,
            union: if self.union { Some(true) } else { self.apart.then_some(false) },
        }
    }
}

fn encoding(text: &str) -> Result<TextEncoding, String> {
    TextEncoding::named(text).map_err(|error| error.to_string())
}

fn character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        b"tab" | b"\\t" => Ok(b'\t'),
        b"space" => Ok(b' '),
        _ => Err("write one plain character, such as ; or | (tab and space have names)".to_owned()),
    }
}

fn character_or_none(text: &str) -> Result<Mark, String> {
    if text == "none" { Ok(Mark(None)) } else { character(text).map(|byte| Mark(Some(byte))) }
}
