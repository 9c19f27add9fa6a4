//! A bounded sample of a table's records: the heads of its files, and blocks from further inside.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use tenaz_csv::{Records, line_starts};
use tenaz_source::{FileFormat, Opened, has_no_label};

use crate::Error;
use crate::evidence::Evidence;
use crate::find::Found;
use crate::limits::{HEAD_SAMPLE_BYTES, SAMPLED_FILES, STREAM_SAMPLE_BYTES, TABLE_SAMPLE_BYTES};
use crate::unlabelled::{Unlabelled, unlabelled};

/// Blocks from inside a file, besides its head; the last one is its end.
const BLOCKS: u64 = 3;

/// Records that may sum others up, at most.
const MAX_HELD: usize = 10_000;

/// Bytes of a block from inside a stream.
const STREAM_BLOCK_BYTES: usize = 256 << 10;

/// How canonical records of a table look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canonical<'a> {
    pub(crate) delimiter: u8,
    pub(crate) has_header: bool,
    pub(crate) columns: usize,
    /// The header as it stands in the file.
    pub(crate) header: Option<&'a [String]>,
    /// The record with which another table begins.
    pub(crate) second_table: Option<&'a [String]>,
    /// Whether a record that sums others up is one like others.
    pub(crate) keeps_totals: bool,
    /// Whether text below the table is to be rejected like any record that is too short.
    pub(crate) keeps_footnotes: bool,
    /// Spellings of null that the user has named.
    pub(crate) nulls: &'a [String],
}

/// What a sample of a table's records shows.
#[derive(Debug)]
pub(crate) struct Sampled {
    /// Of each column.
    pub(crate) evidence: Vec<Evidence>,
    /// The header stands among the records.
    pub(crate) repeats_header: bool,
    /// The last record of a file, if it sums the others up.
    pub(crate) total: Option<String>,
    /// A record of a file without a label, where all others of the file have one.
    pub(crate) unlabelled: Option<Unlabelled>,
    /// Records have no values at all.
    pub(crate) blank: bool,
    /// The first line of the text below the table.
    pub(crate) footnote: Option<String>,
    /// Records without a label are common, or may be.
    labels_missing: bool,
    /// Records that may sum others up.
    held: Vec<Vec<String>>,
}

/// What the sampled records of these files say. Records that are no good whatever the types are not asked.
pub(crate) fn sample(files: &[&Found], format: &FileFormat, shape: Canonical<'_>) -> Result<Sampled, Error> {
    let evidence = vec![Evidence::default(); shape.columns];
    let mut sampled = Sampled {
        evidence,
        repeats_header: false,
        total: None,
        unlabelled: None,
        blank: false,
        footnote: None,
        labels_missing: false,
        held: Vec::new(),
    };
    // What is repaired in a sample is repaired, and counted, again when the files are read.
    let format = &FileFormat { repairs: Arc::default(), ..format.clone() };
    let chosen = files.len().min(SAMPLED_FILES);
    let share = TABLE_SAMPLE_BYTES / chosen.max(1);
    let head_bytes = (share / 2).min(HEAD_SAMPLE_BYTES);
    let block_bytes = (share - head_bytes).min(HEAD_SAMPLE_BYTES) / BLOCKS as usize;
    for index in 0..chosen {
        let found = files[index * files.len() / chosen];
        let unreadable = |source| Error::Unreadable { path: found.path.clone(), source };
        let opened = tenaz_source::open(&found.path, format, &found.constants());
        let mut file = match opened.map_err(|error| Error::of_source(&found.path, error))? {
            Opened::Plain(file) => file,
            Opened::Stream { mut reader, .. } => {
                let mut head = Vec::new();
                (&mut reader).take(share as u64).read_to_end(&mut head).map_err(unreadable)?;
                let whole = head.len() < share;
                sampled.add_head(shape, &head, whole);
                if !whole && may_start_inside(shape, &head) {
                    sampled.add_blocks_of_stream(shape, reader, STREAM_SAMPLE_BYTES / chosen).map_err(unreadable)?;
                }
                continue;
            }
        };
        let head = read_at(&mut file, 0, head_bytes).map_err(unreadable)?;
        let whole = head.len() < head_bytes;
        sampled.add_head(shape, &head, whole);
        if whole || !may_start_inside(shape, &head) {
            continue;
        }
        for block in 1..=BLOCKS {
            let inside = found.bytes.saturating_sub(head.len() as u64 + block_bytes as u64);
            let start = head.len() as u64 + inside / BLOCKS * block;
            let start = if block == BLOCKS { head.len() as u64 + inside } else { start };
            let bytes = read_at(&mut file, start, block_bytes).map_err(unreadable)?;
            sampled.add_block(shape, &bytes, block == BLOCKS);
        }
    }
    sampled.settle_totals(shape);
    Ok(sampled)
}

impl Sampled {
    fn add_head(&mut self, shape: Canonical<'_>, head: &[u8], whole: bool) {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let records = Records::new(head, shape.delimiter, whole);
        self.add(shape, records.skip(usize::from(shape.has_header)), whole);
        if whole && !shape.keeps_footnotes {
            self.footnote = self.footnote.take().or_else(|| footnote(shape, head));
        }
        if whole && !shape.keeps_totals && shape.columns > 1 {
            self.look_for_unlabelled(shape, head);
        } else {
            (self.labels_missing, self.unlabelled) = (true, None);
        }
    }

    /// Looks in a whole file for a record without a label that sums the others up.
    fn look_for_unlabelled(&mut self, shape: Canonical<'_>, head: &[u8]) {
        let records = Records::new(head, shape.delimiter, true).skip(usize::from(shape.has_header)).flatten();
        let is_second_table = |fields: &Vec<std::borrow::Cow<'_, str>>| {
            shape.second_table.is_some_and(|known| known.iter().eq(fields.iter().map(|field| &**field)))
        };
        let records = records.take_while(|fields| !is_second_table(fields));
        let fit = |fields: &Vec<std::borrow::Cow<'_, str>>| {
            let bytes = || fields.iter().map(|field| field.as_bytes());
            let is_blank = bytes().all(|field| field.trim_ascii().is_empty());
            fields.len() == shape.columns && !is_blank && !tenaz_source::is_total(bytes())
        };
        let records: Vec<Vec<String>> =
            records.filter(fit).map(|fields| fields.into_iter().map(|field| field.into_owned()).collect()).collect();
        let has_none = |record: &Vec<String>| has_no_label(record.iter().map(|field| field.as_bytes()));
        match unlabelled(&records) {
            None => self.labels_missing |= records.iter().any(has_none),
            found if self.unlabelled.is_none() || matches!(found, Some(Unlabelled::Doubtful(_))) => {
                self.unlabelled = found;
            }
            Some(_) => {}
        }
        if self.labels_missing {
            self.unlabelled = None;
        }
    }

    /// Reads on, up to so many bytes, and looks at a block of each part and at the last one.
    fn add_blocks_of_stream(
        &mut self,
        shape: Canonical<'_>,
        mut reader: impl Read,
        most: usize,
    ) -> std::io::Result<()> {
        let part = (most / (BLOCKS as usize + 1)).max(STREAM_BLOCK_BYTES);
        let mut read = 0;
        let (mut last, mut block): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        while read < most {
            std::mem::swap(&mut last, &mut block);
            block.clear();
            let bytes = (&mut reader).take(STREAM_BLOCK_BYTES as u64).read_to_end(&mut block)?;
            let ended = bytes < STREAM_BLOCK_BYTES;
            read += bytes;
            if ended {
                // The last block may be a few bytes only.
                last.extend_from_slice(&block);
                self.add_block(shape, &last, true);
                break;
            }
            if read / part != (read - bytes) / part {
                self.add_block(shape, &block, false);
            }
        }
        Ok(())
    }

    fn add_block(&mut self, shape: Canonical<'_>, block: &[u8], whole: bool) {
        if let Some(start) = record_start(shape, block, whole) {
            self.add(shape, Records::new(&block[start..], shape.delimiter, whole), whole);
            if whole && !shape.keeps_footnotes {
                self.footnote = self.footnote.take().or_else(|| footnote(shape, &block[start..]));
            }
        }
    }

    /// Records that look like sums are none if no file ends with one.
    fn settle_totals(&mut self, shape: Canonical<'_>) {
        for fields in std::mem::take(&mut self.held).iter().filter(|_| self.total.is_none()) {
            add_evidence(&mut self.evidence, shape, fields);
        }
    }

    /// `whole`: the last record is the file's last.
    fn add<'a>(
        &mut self,
        shape: Canonical<'_>,
        records: impl Iterator<Item = <Records<'a> as Iterator>::Item>,
        whole: bool,
    ) {
        let mut seen = 0;
        let mut last_total = None;
        for fields in records.flatten() {
            let is = |known: Option<&[String]>| {
                let unmarked = |field: &'_ std::borrow::Cow<'_, str>| field.trim_start_matches('\u{feff}').to_owned();
                known.is_some_and(|known| {
                    known.len() > 1
                        && known.len() == fields.len()
                        && known.iter().cloned().eq(fields.iter().map(unmarked))
                })
            };
            if is(shape.second_table) {
                return;
            }
            if is(shape.header) {
                self.repeats_header = true;
                continue;
            }
            let bytes = || fields.iter().map(|field| field.as_bytes());
            if fields.len() > 1 && bytes().all(|field| field.trim_ascii().is_empty()) {
                self.blank |= fields.len() == shape.columns;
                continue;
            }
            if seen > 1 && !shape.keeps_totals && tenaz_source::is_total(bytes()) {
                last_total = Some(fields.join(&char::from(shape.delimiter).to_string()));
                if self.held.len() < MAX_HELD {
                    self.held.push(fields.into_iter().map(|field| field.into_owned()).collect());
                }
                continue;
            }
            last_total = None;
            seen += 1;
            let fields: Vec<&str> = fields.iter().map(|field| &**field).collect();
            add_evidence(&mut self.evidence, shape, &fields);
        }
        if whole && last_total.is_some() {
            self.total = last_total;
        }
    }
}

fn add_evidence(evidence: &mut [Evidence], shape: Canonical<'_>, fields: &[impl AsRef<str>]) {
    if fields.len() == shape.columns {
        let is_null = |field: &str| shape.nulls.iter().any(|null| null == field);
        let value = |field| if is_null(field) { "" } else { field };
        evidence.iter_mut().zip(fields).for_each(|(column, field)| column.add(value(field.as_ref())));
    }
}

/// The first line of the text that stands behind the last blank line, if records have several fields and it has one.
fn footnote(shape: Canonical<'_>, text: &[u8]) -> Option<String> {
    let text = text.trim_ascii_end();
    let blank = [&b"\n\n"[..], b"\n\r\n"].into_iter().filter_map(|ends| memchr::memmem::rfind(text, ends)).max()?;
    let below = text[blank..].trim_ascii_start();
    let records: Vec<_> = Records::new(below, shape.delimiter, true).flatten().collect();
    let is_count =
        |fields: &Vec<std::borrow::Cow<'_, str>>| tenaz_source::is_total(fields.iter().map(|field| field.as_bytes()));
    let is_text = !records.is_empty() && records.iter().all(|fields| fields.len() == 1 && !is_count(fields));
    (shape.columns > 1 && is_text).then(|| records[0][0].clone().into_owned())
}

/// Whether a block from inside the file can be read. Where lines are all there is to go by, quotes would make its start a guess.
fn may_start_inside(shape: Canonical<'_>, head: &[u8]) -> bool {
    shape.second_table.is_none() && !(shape.columns == 1 && head.contains(&b'"'))
}

fn read_at(file: &mut File, start: u64, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut block = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(bytes as u64).read_to_end(&mut block)?;
    Ok(block)
}

/// Where the first record of a block from inside a file starts; none: it cannot be told.
///
/// The block may start inside quotes. Of two line starts with an odd number of quotes between them, one is inside. So there are two
/// guesses, the first line start of either kind. From the wrong one, too, records are soon read right, because a quote inside an
/// unquoted field is literal: from where both guesses agree, both are right. If they never do, the one from which more records
/// have the right number of fields is taken. If all lines are of one kind, no quotes span lines.
fn record_start(shape: Canonical<'_>, block: &[u8], whole: bool) -> Option<usize> {
    let guess = |start: usize| Guess::new(shape, block, whole, start);
    let chosen = match guesses(block).map(|start| start.map(guess)) {
        [Some(one), Some(other)] => match one.starts.iter().find(|start| other.starts.binary_search(start).is_ok()) {
            Some(agreed) => guess(*agreed),
            None if one.bad == other.bad => return None,
            None if one.bad < other.bad => one,
            None => other,
        },
        [one, other] => one.or(other)?,
    };
    let is_likely = chosen.bad * 20 <= chosen.starts.len();
    chosen.starts.first().copied().filter(|_| is_likely)
}

/// The first line start with an even number of quotes before it, and the first with an odd number.
fn guesses(block: &[u8]) -> [Option<usize>; 2] {
    let mut firsts = [None, None];
    let (mut quotes, mut from) = (0, 0);
    for start in line_starts(block).filter(|start| *start < block.len()) {
        quotes += block[from..start].iter().filter(|byte| **byte == b'"').count();
        from = start;
        firsts[quotes % 2].get_or_insert(start);
        if firsts.iter().all(Option::is_some) {
            break;
        }
    }
    firsts
}

/// A block as it is read from a guessed start.
struct Guess {
    /// Where its records start.
    starts: Vec<usize>,
    /// Records with a wrong number of fields.
    bad: usize,
}

impl Guess {
    fn new(shape: Canonical<'_>, block: &[u8], whole: bool, start: usize) -> Self {
        let mut guess = Self { starts: Vec::new(), bad: 0 };
        let mut records = Records::new(&block[start..], shape.delimiter, whole);
        let mut at = start;
        while let Some(fields) = records.next() {
            guess.starts.push(at);
            guess.bad += usize::from(fields.is_none_or(|fields| fields.len() != shape.columns));
            at = start + records.position();
        }
        guess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(columns: usize) -> Canonical<'static> {
        Canonical {
            delimiter: b',',
            has_header: false,
            columns,
            header: None,
            second_table: None,
            keeps_totals: false,
            keeps_footnotes: false,
            nulls: &[],
        }
    }

    #[test]
    fn a_block_starts_at_a_record_or_not_at_all() {
        let plain = b"7,x\n18,y\n19,z\n";
        assert_eq!(record_start(shape(2), plain, true), Some(4));
        // The block starts inside a quoted text of three lines.
        let record = "1,\"one, line\nanother, line\nand a third\",2\n";
        let text = record.repeat(50);
        for cut in [5, 15, 30, 40] {
            let block = &text.as_bytes()[cut..];
            if let Some(start) = record_start(shape(3), block, true) {
                assert!(
                    text[cut + start..].starts_with("1,\"one"),
                    "cut at {cut}: {:?}",
                    &text[cut + start..cut + start + 9]
                );
            }
        }
        // Inside and outside look alike: no guess.
        let twisted = "1,\"\n2,\"\n".repeat(50);
        assert_eq!(record_start(shape(2), &twisted.as_bytes()[2..], false), None);
        assert_eq!(record_start(shape(2), b"no line end", true), None);
    }
}
