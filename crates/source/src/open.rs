//! From a path and a format to bytes that the CSV reader takes.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Chain, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::encoding::Transcoder;
use crate::limits::{HEAD_BYTES, SAMPLE_BYTES};
use crate::record::RecordKind;
use crate::rewrite::{Rewriter, Rewriting};
use crate::{
    ColumnSource, Compression, Dialect, Error, FileFormat, RecordReader, TextEncoding, guess_encoding, known_as,
};

/// A file that is ready to be read.
pub enum Opened {
    /// It is canonical as it is: any part of it may be read at any time.
    Plain(File),
    /// Canonical bytes, from the first to the last.
    Stream {
        /// Reads them.
        reader: Box<dyn Read + Send>,
        /// How many bytes of the file itself have been read so far.
        consumed: Arc<AtomicU64>,
    },
}

impl Opened {
    /// The bytes from the first to the last.
    #[must_use]
    pub fn into_reader(self) -> Box<dyn Read + Send> {
        match self {
            Self::Plain(file) => Box::new(file),
            Self::Stream { reader, .. } => reader,
        }
    }
}

/// A file that counts what is read of it.
struct Counted {
    file: File,
    consumed: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buf)?;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What the beginning of a file shows.
#[derive(Debug, Clone)]
pub struct Head {
    /// How it is packed.
    pub compression: Compression,
    /// Its encoding, given or guessed.
    pub encoding: TextEncoding,
    /// Whether the encoding was guessed among those of one byte, so that it has to be said.
    pub is_guess: bool,
    /// Its first bytes, unpacked and in UTF-8.
    pub text: Vec<u8>,
    /// These are all its bytes.
    pub whole: bool,
}

/// Looks at a file: its first `bytes`, and its middle and end where it is not packed.
///
/// # Errors
/// It cannot be read, or is no CSV.
pub fn read_head(path: &Path, encoding: Option<TextEncoding>, bytes: usize) -> Result<Head, Error> {
    let mut file = File::open(path)?;
    let packed = beginning(&mut file, HEAD_BYTES)?;
    let compression = Compression::of(&packed);
    file.seek(SeekFrom::Start(0))?;
    let head = match compression {
        Compression::None => beginning(&mut file, bytes)?,
        packed => beginning(&mut packed.unpack(&mut file)?, bytes)?,
    };
    let inside = match compression {
        Compression::None if encoding.is_none() => samples_inside(&mut file)?,
        _ => Vec::new(),
    };
    head_of(compression, head, &inside, encoding, bytes)
}

fn head_of(
    compression: Compression,
    head: Vec<u8>,
    inside: &[Vec<u8>],
    encoding: Option<TextEncoding>,
    bytes: usize,
) -> Result<Head, Error> {
    if let Some((what, cure)) = known_as(&head) {
        return Err(Error::NotCsv { what, cure });
    }
    let parts: Vec<&[u8]> = std::iter::once(&head[..]).chain(inside.iter().map(Vec::as_slice)).collect();
    let guess = encoding.unwrap_or_else(|| guess_encoding(&parts));
    let wide = guess == TextEncoding::UTF_16LE || guess == TextEncoding::UTF_16BE;
    if !wide && head.contains(&0) {
        return Err(Error::NotCsv { what: "a file with NUL bytes", cure: "export it as text" });
    }
    let whole = head.len() < bytes;
    let text = match guess.is_utf8() {
        true => head.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(head),
        false => {
            let mut text = Vec::new();
            Transcoder::new(&head[..], guess, Default::default()).read_to_end(&mut text)?;
            text
        }
    };
    let is_guess = encoding.is_none() && !guess.is_utf8() && !wide;
    Ok(Head { compression, encoding: guess, is_guess, text, whole })
}

/// Up to so many bytes.
fn beginning(input: &mut (impl Read + ?Sized), bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(bytes as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Parts from the middle and the end of a file that is longer than its head.
fn samples_inside(file: &mut File) -> std::io::Result<Vec<Vec<u8>>> {
    let length = file.metadata()?.len();
    let sample = SAMPLE_BYTES as u64;
    let mut samples = Vec::new();
    for at in [length / 2, length.saturating_sub(sample)] {
        if at > 0 && length > HEAD_BYTES as u64 {
            file.seek(SeekFrom::Start(at))?;
            samples.push(beginning(file, SAMPLE_BYTES)?);
        }
    }
    Ok(samples)
}

/// Opens a file of a table. `constants` are columns whose value stands in the file's path.
///
/// # Errors
/// It cannot be read, or is no CSV.
pub fn open(path: &Path, format: &FileFormat, constants: &[(String, String)]) -> Result<Opened, Error> {
    format.dialect.check()?;
    let head = read_head(path, format.encoding, HEAD_BYTES)?;
    let format = &with_record_ends(format, &head);
    let rewriting = rewriting(&head, format, constants);
    let file = File::open(path)?;
    if head.compression == Compression::None && head.encoding.is_utf8() && rewriting.is_none() {
        return Ok(Opened::Plain(file));
    }
    let consumed = Arc::<AtomicU64>::default();
    let file = Counted { file, consumed: Arc::clone(&consumed) };
    Ok(Opened::Stream { reader: stream(file, &head, format, rewriting)?, consumed })
}

/// Canonical bytes of what `input` reads, such as standard input or the body of a request.
///
/// # Errors
/// It cannot be read, or is no CSV.
pub fn open_stream(
    mut input: impl Read + Send + 'static,
    format: &FileFormat,
    constants: &[(String, String)],
) -> Result<Box<dyn Read + Send>, Error> {
    format.dialect.check()?;
    let packed = beginning(&mut input, HEAD_BYTES)?;
    let compression = Compression::of(&packed);
    let input: Chain<Cursor<Vec<u8>>, _> = Cursor::new(packed).chain(input);
    let mut unpacked = compression.unpack(input)?;
    let head = beginning(&mut unpacked, HEAD_BYTES)?;
    let again = Cursor::new(head.clone()).chain(unpacked);
    let head = head_of(Compression::None, head, &[], format.encoding, HEAD_BYTES)?;
    let format = &with_record_ends(format, &head);
    let rewriting = rewriting(&head, format, constants);
    stream(again, &head, format, rewriting)
}

/// The format, with the record ends that the file's beginning shows: where there is no `\n` at all, a `\r` ends a record.
/// Otherwise such a file would be one long record, and all of it a header.
fn with_record_ends<'a>(format: &'a FileFormat, head: &Head) -> Cow<'a, FileFormat> {
    if format.dialect.cr_ends_records || !ends_with_cr(&head.text) {
        return Cow::Borrowed(format);
    }
    let dialect = Dialect { cr_ends_records: true, ..format.dialect.clone() };
    Cow::Owned(FileFormat { dialect, ..format.clone() })
}

/// Whether the records of a text end with `\r` alone.
#[must_use]
pub fn ends_with_cr(text: &[u8]) -> bool {
    memchr::memchr(b'\n', text).is_none()
        && memchr::memchr_iter(b'\r', text).any(|at| text.get(at + 1).is_some_and(|next| *next != b'\r'))
}

fn stream(
    input: impl Read + Send + 'static,
    head: &Head,
    format: &FileFormat,
    rewriting: Option<Rewriting>,
) -> Result<Box<dyn Read + Send>, Error> {
    let unpacked = head.compression.unpack(input)?;
    let text: Box<dyn Read + Send> = match head.encoding.is_utf8() {
        true => unpacked,
        false => Box::new(Transcoder::new(unpacked, head.encoding, format.repairs.clone())),
    };
    Ok(match rewriting {
        None => text,
        Some(rewriting) => Box::new(Rewriter::new(text, format, rewriting)),
    })
}

/// How the records of the file with this head have to be written anew; none: they are canonical.
fn rewriting(head: &Head, format: &FileFormat, constants: &[(String, String)]) -> Option<Rewriting> {
    let header = header_names(head, format);
    let names = format.columns_by_name.clone().unwrap_or_default();
    let columns = match (&format.columns_by_name, &header) {
        (Some(names), Some(header)) => columns_of(names, header, constants),
        _ => None,
    };
    let width = header.map(|header| header.len());
    let has_values = format.values.iter().any(Option::is_some);
    let must = columns.is_some()
        || !format.dialect.is_canonical()
        || format.drop_repeated_headers
        || format.drop_totals
        || format.drop_unlabelled
        || format.drop_blank
        || format.drop_footnotes
        || format.lenient
        || has_values;
    must.then_some(Rewriting { columns, names, width })
}

/// The names in the header of a file.
fn header_names(head: &Head, format: &FileFormat) -> Option<Vec<String>> {
    if !format.has_header {
        return None;
    }
    let mut reader = RecordReader::new(format.dialect.clone(), true);
    let mut rest = &head.text[..];
    for _ in 0..format.dialect.skip_lines {
        let end = memchr::memchr2(b'\n', if format.dialect.cr_ends_records { b'\r' } else { b'\n' }, rest)?;
        let both = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
        rest = &rest[end + 1 + usize::from(both)..];
    }
    loop {
        let span = reader.read(rest, head.whole)?;
        if !matches!(span.kind, RecordKind::Blank | RecordKind::Comment) {
            return Some(reader.fields().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect());
        }
        rest = &rest[span.next..];
    }
}

/// Where the table's columns are in a file with this header. None: where they are in the table.
fn columns_of(names: &[String], header: &[String], constants: &[(String, String)]) -> Option<Vec<ColumnSource>> {
    let same = |one: &str, other: &str| one.trim().to_lowercase() == other.trim().to_lowercase();
    let mut taken = vec![false; header.len()];
    let mut source = |name: &String| {
        let constant = constants.iter().find(|(column, _)| same(column, name));
        // Of several columns of one name the first one that is free: a table may have several, too.
        let field = (0..header.len()).find(|&index| !taken[index] && same(&header[index], name));
        match (field, constant) {
            (Some(field), _) => {
                taken[field] = true;
                ColumnSource::Field(field)
            }
            (None, Some((_, value))) => ColumnSource::Constant(value.clone()),
            (None, None) => ColumnSource::Missing,
        }
    };
    let columns: Vec<ColumnSource> = names.iter().map(&mut source).collect();
    let in_place = columns.len() == header.len()
        && columns.iter().enumerate().all(|(index, column)| *column == ColumnSource::Field(index));
    (!in_place).then_some(columns)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(format: &FileFormat, bytes: &[u8]) -> (bool, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        std::fs::write(&path, bytes).unwrap();
        let opened = open(&path, format, &[]).unwrap();
        let plain = matches!(opened, Opened::Plain(_));
        let mut text = String::new();
        opened.into_reader().read_to_string(&mut text).unwrap();
        let mut streamed = String::new();
        open_stream(Cursor::new(bytes.to_vec()), format, &[]).unwrap().read_to_string(&mut streamed).unwrap();
        assert_eq!(streamed.trim_start_matches('\u{feff}'), text.trim_start_matches('\u{feff}'));
        (plain, text)
    }

    fn with_header() -> FileFormat {
        FileFormat { has_header: true, ..FileFormat::default() }
    }

    #[test]
    fn a_plain_file_stays_a_file() {
        assert_eq!(read(&with_header(), "a,b\n1,ö\n".as_bytes()), (true, "a,b\n1,ö\n".to_owned()));
    }

    #[test]
    fn what_is_packed_or_in_another_encoding_is_read_as_canonical_text() {
        let (latin, ..) = encoding_rs::WINDOWS_1252.encode("stadt;größe\nKöln;5\nMünchen;7\n");
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(&latin).unwrap();
        let format = FileFormat { dialect: Dialect::with_delimiter(b';'), ..with_header() };
        let expected = "stadt;größe\nKöln;5\nMünchen;7\n".to_owned();
        assert_eq!(read(&format, &packer.finish().unwrap()), (false, expected.clone()));
        assert_eq!(read(&format, &latin), (false, expected));
    }

    #[test]
    fn a_file_without_any_newline_has_records_that_end_with_carriage_returns() {
        assert_eq!(read(&with_header(), b"a,b\r1,x\r2,y\r"), (false, "a,b\n1,x\n2,y\n".to_owned()));
        // One record, and no more than that.
        assert_eq!(read(&with_header(), b"a,b\r"), (true, "a,b\r".to_owned()));
    }

    #[test]
    fn columns_are_found_by_name_in_each_file() {
        let names = ["id", "Name", "amount"].map(str::to_owned).to_vec();
        let format = FileFormat { columns_by_name: Some(names), ..with_header() };
        assert_eq!(read(&format, b"id,name,amount\n1,a,2\n"), (true, "id,name,amount\n1,a,2\n".to_owned()));
        assert_eq!(read(&format, b"amount,id\n2,1\n"), (false, "id,Name,amount\n1,,2\n".to_owned()));
        assert_eq!(read(&format, b"id,extra,Name,amount\n1,x,a,2\n"), (false, "id,Name,amount\n1,a,2\n".to_owned()));
    }

    #[test]
    fn a_file_that_is_no_table_is_refused_with_its_name_and_a_cure() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        std::fs::write(&path, b"<!DOCTYPE html><html><body>Please log in</body></html>").unwrap();
        let error = open(&path, &with_header(), &[]).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("this is an HTML page, not CSV; the download may have failed"), "{error}");
    }
}
