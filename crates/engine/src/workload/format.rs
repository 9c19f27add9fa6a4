//! How the files of a table are written, as a workload file says it.

use tenaz_csv::{Header, Layout};
use tenaz_source::{DateFormat, DateOrder, Dialect, Escape, FileFormat, NumberForm, TextEncoding, ValueForm};
use toml::Spanned;

use super::check::Here;
use super::file::{ColumnEntry, TableEntry};
use crate::Error;

impl Here<'_> {
    /// The format of the files of a table with this layout.
    pub(super) fn format(&self, entry: &TableEntry, layout: &Layout) -> Result<FileFormat, Error> {
        let encoding = match &entry.encoding {
            Some(name) => Some(TextEncoding::named(name.get_ref()).map_err(|e| {
                self.wrong(name.span(), e.to_string(), "leave encoding out to have it found in the files")
            })?),
            None => None,
        };
        let usual = Dialect::with_delimiter(layout.delimiter);
        let escape = self.one_of(
            "escape",
            entry.escape.as_ref(),
            Escape::Doubled,
            &[("double", Escape::Doubled), ("backslash", Escape::Backslash)],
        )?;
        let ends = [("lf", false), ("crlf", false), ("cr", true)];
        let dialect = Dialect {
            quote: self.mark("quote", entry.quote.as_ref(), usual.quote)?,
            escape,
            comment: self.mark("comment", entry.comment.as_ref(), None)?,
            skip_lines: entry.skip.unwrap_or(0),
            cr_ends_records: self.one_of("line_end", entry.line_end.as_ref(), false, &ends)?,
            skip_spaces: entry.skip_spaces.unwrap_or(false),
            ruled: entry.ruled.unwrap_or(false),
            framed: entry.framed.unwrap_or(false),
            doubled: entry.doubled_delimiter.unwrap_or(false),
            ..usual
        };
        dialect.check().map_err(|e| self.wrong(entry.name.span(), e.to_string(), "correct the marks of this table"))?;
        let columns = entry.columns.get_ref();
        let names = || columns.iter().map(|c| c.header.clone().unwrap_or_else(|| c.name.get_ref().clone())).collect();
        let values = columns.iter().map(|column| self.value_form(column)).collect::<Result<Vec<_>, _>>()?;
        Ok(FileFormat {
            encoding,
            dialect,
            has_header: layout.header != Header::Absent,
            columns_by_name: entry.columns_by_name.unwrap_or(false).then(names),
            values,
            drop_repeated_headers: entry.drop_repeated_headers.unwrap_or(false),
            drop_totals: entry.drop_totals.unwrap_or(false),
            drop_unlabelled: entry.drop_unlabelled.unwrap_or(false),
            drop_blank: entry.drop_blank.unwrap_or(false),
            drop_footnotes: entry.drop_footnotes.unwrap_or(false),
            lenient: entry.lenient.unwrap_or(false),
            ..FileFormat::default()
        })
    }

    /// A character, or `none`.
    fn mark(&self, what: &str, value: Option<&Spanned<String>>, usual: Option<u8>) -> Result<Option<u8>, Error> {
        let Some(value) = value else { return Ok(usual) };
        match value.get_ref().as_bytes() {
            b"none" => Ok(None),
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(Some(*byte)),
            _ => {
                let problem = format!("{what} {:?} is not a single plain character", value.get_ref());
                Err(self.wrong(value.span(), problem, "write one character, or \"none\""))
            }
        }
    }

    fn value_form(&self, column: &ColumnEntry) -> Result<Option<ValueForm>, Error> {
        let orders = [("dmy", DateOrder::Dmy), ("mdy", DateOrder::Mdy), ("ymd", DateOrder::Ymd)];
        if column.date_order.is_some() {
            let order = self.one_of("date_order", column.date_order.as_ref(), DateOrder::Dmy, &orders)?;
            return Ok(Some(ValueForm::Date(order)));
        }
        if let Some(format) = &column.date_format {
            let wrong = |problem: String| self.wrong(format.span(), problem, "write date_format = \"%d.%m.%Y\"");
            return DateFormat::parse(format.get_ref()).map(ValueForm::Format).map(Some).map_err(wrong);
        }
        if column.formulas {
            return Ok(Some(ValueForm::Formula));
        }
        if column.decimal_mark.is_none() && column.group_mark.is_none() {
            return Ok(None);
        }
        let decimal = self.mark("decimal_mark", column.decimal_mark.as_ref(), Some(b'.'))?.unwrap_or(b'.');
        let group = self.mark("group_mark", column.group_mark.as_ref(), None)?;
        if group == Some(decimal) {
            let place = column.name.span();
            return Err(self.wrong(
                place,
                "decimal_mark and group_mark are the same",
                "write two different characters",
            ));
        }
        Ok(Some(ValueForm::Number(NumberForm { decimal, group })))
    }
}
