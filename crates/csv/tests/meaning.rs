//! Chunker and decoder mean what the crate's documentation says: compared with a plain byte loop, at many chunk sizes,
//! projections and ways of reading, on bytes of every kind.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::Read;
use std::num::IntErrorKind;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use proptest::prelude::*;
use tenaz_csv::{Block, BlockCutter, Chunker, Column, Decoder, Header, Kind, Layout, Reason, Rejects, Spares, Within};

/// What becomes of a record: its values, or the column at fault and the reason.
type Outcome = Result<(Option<String>, Option<i64>, Option<String>), (Option<usize>, Reason)>;

/// A record as the reference sees it.
#[derive(Debug, Clone, PartialEq)]
struct Expected {
    line: u64,
    byte: u64,
    outcome: Outcome,
}

fn layout(header: Header) -> Layout {
    Layout {
        columns: vec![
            Column::new("a", Kind::Text),
            Column::new("b", Kind::Int { float_text: true }),
            Column { nulls: vec!["N".into()], ..Column::new("c", Kind::Text).required() },
        ],
        delimiter: b',',
        header,
    }
}

/// The rules, byte by byte.
fn reference(file: &[u8], limit: usize, header: bool) -> Vec<Expected> {
    let mut records = Vec::new();
    let mut at = if file.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let mut header = header;
    let (mut counted, mut line) = (0, 1);
    while at < file.len() {
        let line_end = (at..file.len()).find(|i| file[*i] == b'\n').map_or(file.len(), |i| i + 1);
        if matches!(&file[at..line_end], b"\n" | b"\r\n" | b"\r" | b"") {
            at = line_end;
            continue;
        }
        line += file[counted..at].iter().filter(|byte| **byte == b'\n').count() as u64;
        counted = at;
        let (next, parsed) = one_record(file, at, limit);
        let outcome = parsed.map_err(|reason| (None, reason)).and_then(check);
        if !std::mem::take(&mut header) {
            records.push(Expected { line, byte: at as u64, outcome });
        }
        at = next;
    }
    records
}

#[derive(PartialEq, Clone, Copy)]
enum State {
    FieldStart,
    Plain,
    Quoted,
    AfterQuote,
}

type Parsed = Result<(Vec<Vec<u8>>, Vec<u8>), Reason>;

fn one_record(file: &[u8], start: usize, limit: usize) -> (usize, Parsed) {
    let line_from = |from: usize| (from..file.len()).find(|i| file[*i] == b'\n').map_or(file.len(), |i| i + 1);
    let mut fields = vec![Vec::new()];
    let mut state = State::FieldStart;
    let mut bad = false;
    let mut i = start;
    loop {
        let over = i == start + limit;
        if state == State::Quoted && (over || i == file.len()) {
            return (line_from(start), Err(Reason::NeverClosed));
        }
        if over && i < file.len() && file[i] != b'\n' {
            return (line_from(i), Err(Reason::TooLarge { limit }));
        }
        if i == file.len() || (file[i] == b'\n' && state != State::Quoted) {
            break;
        }
        let byte = file[i];
        let field = fields.last_mut().unwrap();
        match (state, byte) {
            (State::Quoted, b'"') => state = State::AfterQuote,
            (State::Quoted, _) => field.push(byte),
            (State::AfterQuote, b'"') => {
                field.push(b'"');
                state = State::Quoted;
            }
            (_, b',') => {
                fields.push(Vec::new());
                state = State::FieldStart;
            }
            (State::FieldStart, b'"') => state = State::Quoted,
            (State::AfterQuote, b'\r') if file.get(i + 1) == Some(&b'\n') => field.push(byte),
            (State::AfterQuote, _) => {
                bad = true;
                state = State::Plain;
            }
            (_, _) => {
                field.push(byte);
                state = State::Plain;
            }
        }
        i += 1;
    }
    let next = (i + 1).min(file.len());
    if bad {
        return (next, Err(Reason::TextAfterQuote));
    }
    let mut raw = file[start..i].to_vec();
    if i < file.len() && raw.last() == Some(&b'\r') {
        raw.pop();
        fields.last_mut().unwrap().pop();
    }
    (next, Ok((fields, raw)))
}

fn check((fields, raw): (Vec<Vec<u8>>, Vec<u8>)) -> Outcome {
    if fields.len() != 3 {
        return Err((None, Reason::FieldCount { expected: 3, found: fields.len() }));
    }
    if std::str::from_utf8(&raw).is_err() {
        return Err((None, Reason::NotUtf8));
    }
    let text = |i: usize| Some(String::from_utf8(fields[i].clone()).unwrap()).filter(|text| !text.is_empty());
    let b = text(1).unwrap_or_default();
    let trimmed = b.trim_matches(' ');
    let b = if trimmed.is_empty() {
        None
    } else {
        let whole = trimmed
            .split_once('.')
            .map_or(Some(trimmed), |(whole, zeros)| zeros.bytes().all(|byte| byte == b'0').then_some(whole));
        let digits =
            whole.filter(|whole| whole.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit()));
        let mut found: String = trimmed.chars().take(60).collect();
        if found != trimmed {
            found.push('…');
        }
        match digits.map(str::parse::<i64>) {
            Some(Ok(value)) => Some(value),
            Some(Err(error)) if matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => {
                return Err((Some(1), Reason::IntRange { found }));
            }
            _ => return Err((Some(1), Reason::NotInt { found })),
        }
    };
    match text(2).filter(|text| text != "N") {
        None => Err((Some(2), Reason::Missing)),
        c => Ok((text(0), b, c)),
    }
}

/// A reader that returns at most a few bytes at a time.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(buf.len()).min(self.0.len());
        buf[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn text_at(batch: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let array = batch.column(column).as_string_view();
    array.is_valid(row).then(|| array.value(row).to_owned())
}

/// Reads `file` in chunks and puts accepted and rejected records back in order.
fn actual(file: &[u8], target: usize, limit: usize, header: Header, step: usize, way: usize) -> Vec<Expected> {
    let layout = layout(header);
    let mut chunker = Chunker::new(Dribble(file, step), &layout, target).with_max_record_bytes(limit);
    let make = |projection| Decoder::new(Arc::new(layout.clone()), projection).unwrap().with_max_record_bytes(limit);
    let mut decoders = [make(vec![2, 0, 1]), make(vec![]), make(vec![1]), make(vec![0, 2, 0])];
    let mut asked = make(vec![2, 0, 1]).with_presence_of(&[0, 1, 2]).with_way(way);
    let within = |low, high| vec![Within { column: 1, low, high }];
    let mut sparse = make(vec![2, 0, 1]).with_way(way);
    sparse = sparse.with_texts_where(0, vec![within(1, 8)]);
    sparse = sparse.with_texts_where(2, vec![within(i128::MIN, 0), within(5, 12), within(3, 2)]);
    chunker = chunker.with_way(way).with_marks();
    decoders = decoders.map(|decoder| decoder.with_way(way));
    let mut records = Vec::new();
    let mut number = 0;
    while let Some(chunk) = chunker.next_chunk().unwrap() {
        assert_eq!(chunk.number, number);
        assert!(chunk.records > 0);
        assert!(chunk.data.len() <= target.max(limit + 1));
        number += 1;
        let [all, others @ ..] = &mut decoders;
        let decoded = all.decode_chunk(&chunk).unwrap();
        let unmarked = all.decode(&chunk.data, chunk.byte, chunk.line).unwrap();
        assert_eq!((&unmarked.batch, &unmarked.rejects), (&decoded.batch, &decoded.rejects), "marks change nothing");
        assert_eq!(decoded.records, chunk.records, "chunker and decoder count alike");
        for other in others {
            let other = other.decode(&chunk.data, chunk.byte, chunk.line).unwrap();
            assert_eq!(other.rejects, decoded.rejects, "the projection changes no verdict");
            assert_eq!(other.batch.num_rows(), decoded.batch.num_rows());
        }
        let presence = asked.decode_chunk(&chunk).unwrap();
        assert_eq!(presence.rejects, decoded.rejects, "asking for less changes no verdict");
        for (column, presence) in decoded.batch.columns().iter().zip(presence.batch.columns()) {
            column.to_data().validate_full().unwrap();
            presence.to_data().validate_full().unwrap();
            assert_eq!((presence.len(), presence.logical_nulls()), (column.len(), column.logical_nulls()));
        }
        let some = sparse.decode_chunk(&chunk).unwrap();
        assert_eq!(some.rejects, decoded.rejects, "asking for fewer changes no verdict");
        assert_same_where(&some.batch, &decoded.batch);
        put_back(&decoded.batch, vec![(decoded.records, decoded.rejects)], &mut records);
    }
    records
}

/// That texts are the same where they were asked for: the first column's from 1 to 8, the last one's up to 0 and from 5 to 12.
fn assert_same_where(some: &RecordBatch, all: &RecordBatch) {
    assert_eq!(some.column(2), all.column(2));
    some.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    let ints = all.column(2).as_primitive::<Int64Type>();
    for row in (0..all.num_rows()).filter(|row| ints.is_valid(*row)) {
        let int = ints.value(row);
        if (1..=8).contains(&int) {
            assert_eq!(text_at(some, 1, row), text_at(all, 1, row), "of {int}");
        }
        if int <= 0 || (5..=12).contains(&int) {
            assert_eq!(text_at(some, 0, row), text_at(all, 0, row), "of {int}");
        }
    }
}

/// Puts the rows of a batch and the rejects of the chunks that it was made of, each with its number of records, in order.
fn put_back(batch: &RecordBatch, chunks: Vec<(u64, Rejects)>, records: &mut Vec<Expected>) {
    let mut row = 0;
    for (count, rejects) in chunks {
        let mut rejects = rejects.iter().peekable();
        for record in 0..count {
            if let Some(reject) = rejects.next_if(|reject| reject.record == record) {
                let outcome = Err((reject.column, reject.reason.clone()));
                records.push(Expected { line: reject.line, byte: reject.byte, outcome });
            } else {
                let ints = batch.column(2).as_primitive::<Int64Type>();
                let int = ints.is_valid(row).then(|| ints.value(row));
                let outcome = Ok((text_at(batch, 1, row), int, text_at(batch, 0, row)));
                records.push(Expected { line: 0, byte: 0, outcome });
                row += 1;
            }
        }
        assert!(rejects.next().is_none());
    }
    assert_eq!(row, batch.num_rows());
}

/// The same as [`actual`], in blocks and with batches of several chunks.
fn actual_in_blocks(file: &[u8], bytes: usize, limit: usize, header: Header, way: usize) -> Vec<Expected> {
    let layout = layout(header);
    let spares = Spares::default();
    let mut cutter = BlockCutter::new(&layout, spares.clone()).with_max_record_bytes(limit).with_way(way);
    let mut decoder = Decoder::new(Arc::new(layout), vec![2, 0, 1]).unwrap().with_max_record_bytes(limit).with_way(way);
    let (mut records, mut added, mut held) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = file;
    loop {
        let block = Block::read(&mut rest, bytes, &spares).unwrap();
        let last = rest.is_empty();
        for chunk in cutter.cut(block, last).unwrap() {
            assert!(chunk.records > 0);
            let found = decoder.add_chunk(&chunk).unwrap();
            assert_eq!(found.records, chunk.records, "cutter and decoder count alike");
            assert_eq!(found.rows + found.rejects.len() as u64, found.records);
            added.push((found.records, found.rejects));
            held.push(chunk);
        }
        if last || added.len() == 3 {
            let batch = decoder.take_batch().unwrap();
            batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
            put_back(&batch, std::mem::take(&mut added), &mut records);
            decoder.give_back(batch);
            held.drain(..).for_each(|chunk| spares.give_back(chunk));
        }
        if last {
            return records;
        }
    }
}

fn assert_means_the_same(file: &[u8], limit: usize, header: Header) {
    let mut expected = reference(file, limit, header == Header::Skip);
    for record in expected.iter_mut().filter(|record| record.outcome.is_ok()) {
        // Places are only reported for rejects.
        (record.line, record.byte) = (0, 0);
    }
    for (target, step, way) in [
        (1, 1, 0),
        (2, 7, 2),
        (7, 3, 1),
        (33, 64, 2),
        (64, 64, 0),
        (200, 1000, 1),
        (1 << 16, 1 << 16, 2),
        (1 << 16, 10, 1),
        (1 << 16, 1000, 0),
    ] {
        let actual = actual(file, target, limit, header, step, way);
        assert_eq!(
            actual,
            expected,
            "target {target}, step {step}, way {way}, limit {limit}, file {:?}",
            String::from_utf8_lossy(file)
        );
    }
    for (bytes, way) in [(1, 0), (3, 2), (20, 1), (64, 0), (1000, 0), (1 << 16, 1)] {
        let actual = actual_in_blocks(file, bytes, limit, header, way);
        assert_eq!(
            actual,
            expected,
            "blocks of {bytes}, way {way}, limit {limit}, file {:?}",
            String::from_utf8_lossy(file)
        );
    }
}

/// Bytes that look like CSV, more or less.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => Just(b",".to_vec()),
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        5 => Just(b"\"".to_vec()),
        2 => Just(b"\"\"".to_vec()),
        2 => Just(b",\"".to_vec()),
        2 => Just(b"\",".to_vec()),
        1 => Just(b"\n\n".to_vec()),
        3 => Just(b"12".to_vec()),
        1 => Just(b"7.0".to_vec()),
        1 => Just(b"N".to_vec()),
        1 => Just(b" ".to_vec()),
        2 => Just("é".as_bytes().to_vec()),
        2 => Just(b"some longer text".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..3),
    ];
    proptest::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

/// Mostly good records, with a bad byte here and there.
fn records() -> impl Strategy<Value = Vec<u8>> {
    let a = prop_oneof!["[a-z]{0,20}", "\"[a-z,\n]{0,20}\"", "\"[a-z]{0,9}\"\"[a-z\r\n]{0,9}\"", "5\" [a-z]{0,3}"];
    let b =
        prop_oneof![Just(String::new()), "[0-9]{1,12}", "-?[0-9]{1,6}\\.0{0,2}", "\" ?[0-9]{1,3} \"", "[0-9x]{1,4}"];
    let c = prop_oneof![8 => "[a-zé]{1,30}", 2 => "\"[a-z]{1,9}(\"\")?\"", 1 => Just("N".to_owned()), 1 => Just("\"\"".to_owned())];
    let end =
        prop_oneof![9 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\n\n"), 1 => Just(",x\n"), 1 => Just("\r\n\r\n")];
    let record = (a, b, c, end).prop_map(|(a, b, c, end)| format!("{a},{b},{c}{end}"));
    (
        proptest::collection::vec(record, 0..40),
        any::<bool>(),
        any::<bool>(),
        proptest::option::of((any::<usize>(), any::<u8>())),
    )
        .prop_map(|(records, bom, cut, spoilt)| {
            let mut file = if bom { "\u{feff}" } else { "" }.as_bytes().to_vec();
            file.extend(records.concat().bytes());
            if cut {
                file.pop();
            }
            if let Some((place, byte)) = spoilt
                && file.len() > 3
            {
                let place = 3 + place % (file.len() - 3);
                file[place] = byte;
            }
            file
        })
}

fn header() -> impl Strategy<Value = Header> {
    prop_oneof![Just(Header::Absent), Just(Header::Skip)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_mean_what_the_rules_say(file in garbage(), limit in 1usize..200, header in header()) {
        assert_means_the_same(&file, limit, header);
    }

    #[test]
    fn records_mean_what_the_rules_say(file in records(), limit in prop_oneof![20usize..300, Just(1 << 20)], header in header()) {
        assert_means_the_same(&file, limit, header);
    }

    #[test]
    fn well_formed_records_are_those_of_the_csv_crate(
        rows in proptest::collection::vec(("[a-z\",\n]{0,40}", proptest::option::of(any::<i64>()), "[a-zé\", ]{1,20}"), 0..60),
        crlf in any::<bool>(),
    ) {
        let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
        writer.write_record(["a", "b", "c"]).unwrap();
        for (a, b, c) in &rows {
            writer.write_record([a.as_str(), &b.map_or(String::new(), |b| b.to_string()), c]).unwrap();
        }
        let file = writer.into_inner().unwrap();
        let expected: Vec<_> = csv::Reader::from_reader(file.as_slice())
            .records()
            .map(|record| {
                let record = record.unwrap();
                let text = |i: usize| Some(record[i].to_owned()).filter(|text| !text.is_empty());
                (text(0), record[1].parse().ok(), text(2))
            })
            .collect();
        for target in [1, 50, 1000, 1 << 20] {
            let actual: Vec<_> = actual(&file, target, 1 << 20, Header::Check, 1 << 16, 0)
                .into_iter()
                .map(|record| record.outcome.unwrap())
                .collect();
            prop_assert_eq!(&actual, &expected);
        }
    }
}

#[test]
fn files_larger_than_a_window_mean_what_the_rules_say() {
    let mut file = Vec::new();
    for i in 0..20_000u32 {
        match i % 997 {
            0 => file.extend(b"x,\"y\n"),
            1 => file.extend(b"too,few\n"),
            2 => file.extend(b"a\xff,1,b\n"),
            3 => file.extend(format!("\"{}\",1,b\n", "long ".repeat(30_000)).bytes().take(if i < 2000 {
                200_000
            } else {
                0
            })),
            4 => file.extend(b"\"a\"b,1,c\n"),
            _ => file.extend(format!("\"text, {i}\n\"\"{i}\"\"\",{i}.0,twelve{i}\n").bytes()),
        }
    }
    for limit in [1000, 1 << 20] {
        let mut expected = reference(&file, limit, false);
        for record in expected.iter_mut().filter(|record| record.outcome.is_ok()) {
            (record.line, record.byte) = (0, 0);
        }
        for (target, way) in [(100_000, 0), (100_000, 1), (100_000, 2), (1 << 22, 0), (1 << 22, 1)] {
            assert!(actual(&file, target, limit, Header::Absent, 1 << 20, way) == expected);
        }
    }
}

#[test]
fn empty_and_header_only_files_have_no_chunks() {
    for file in ["", "\u{feff}", "\n\r\n", "a,b,c", "\u{feff}A, b ,\"C\"\r\n", "\n\na,b,c\n\n\n"] {
        let layout = layout(Header::Check);
        let mut chunker = Chunker::new(file.as_bytes(), &layout, 10);
        assert_eq!(chunker.next_chunk().unwrap(), None, "{file:?}");
        assert_eq!(actual_in_blocks(file.as_bytes(), 2, 1 << 20, Header::Check, 0), [], "{file:?}");
    }
}

#[test]
fn a_wrong_header_says_what_was_expected() {
    let message = |file: &str| {
        let layout = layout(Header::Check);
        let mut chunker = Chunker::new(file.as_bytes(), &layout, 10);
        chunker.next_chunk().unwrap_err().to_string()
    };
    assert_eq!(
        message("a,x,c\n1,2,3\n"),
        "the header does not match the table: column 2 is named \"x\", expected \"b\". Header found: a,x,c"
    );
    assert_eq!(
        message("a,b\r\n1,2,3\n"),
        "the header does not match the table: it names 2 columns, expected 3. Header found: a,b"
    );
    assert!(message("\"a,b,c\n1,2,3\n").contains("it names"));
    let spares = Spares::default();
    let mut cutter = BlockCutter::new(&layout(Header::Check), spares.clone());
    let mut cut = |mut text: &[u8], last| cutter.cut(Block::read(&mut text, 100, &spares).unwrap(), last);
    assert!(cut(b"a,x", false).unwrap().is_empty());
    assert!(cut(b",c\n1,2,3\n", true).unwrap_err().to_string().contains("column 2 is named \"x\""));
}

#[test]
fn a_line_without_end_takes_bounded_memory() {
    let layout = layout(Header::Absent);
    let line = std::io::repeat(b'x').take(200 << 20);
    let mut chunker = Chunker::new(line.chain(b"\na,1,c\n".as_slice()), &layout, 1 << 16);
    let first = chunker.next_chunk().unwrap().unwrap();
    assert_eq!((first.records, first.data.len()), (1, (1 << 20) + 1));
    let second = chunker.next_chunk().unwrap().unwrap();
    assert_eq!((second.byte, second.line, &second.data[..]), ((200 << 20) + 1, 2, b"a,1,c\n".as_slice()));
    let mut decoder = Decoder::new(Arc::new(layout), vec![]).unwrap();
    let decoded = decoder.decode(&first.data, first.byte, first.line).unwrap();
    assert_eq!(decoded.rejects.first().unwrap().reason.to_string(), "record is larger than 1 MiB");
}

#[test]
fn a_line_without_end_takes_bounded_memory_in_blocks() {
    let spares = Spares::default();
    let mut cutter = BlockCutter::new(&layout(Header::Absent), spares.clone());
    let block = [b'x'; 100_000];
    let mut cut = |mut text: &[u8], last| cutter.cut(Block::read(&mut text, 1 << 20, &spares).unwrap(), last).unwrap();
    let mut found = Vec::new();
    for _ in 0..1000 {
        found.extend(cut(&block, false));
    }
    assert_eq!((found.len(), found[0].records, found[0].data.len()), (1, 1, (1 << 20) + 1));
    let second = &cut(b"\na,1,c\n", true)[0];
    assert_eq!((second.byte, second.line, &second.data[..]), (100_000_001, 2, b"a,1,c\n".as_slice()));
}
