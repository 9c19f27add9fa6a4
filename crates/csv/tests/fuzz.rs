//! Any bytes as records: nothing is lost, nothing depends on how they are portioned, nothing panics.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;

use tenaz_csv::{Chunk, Chunker, Column, Decoder, Header, Kind, Layout};
use tenaz_fuzz::Target;

fn layout() -> Layout {
    let kinds = [
        ("n", Kind::Int { float_text: true }),
        ("text", Kind::Text),
        ("price", Kind::Decimal { precision: 9, scale: 2 }),
        ("day", Kind::Date),
        ("flag", Kind::Bool { yes: vec!["true".to_owned()], no: vec!["false".to_owned()] }),
    ];
    let columns = kinds.map(|(name, kind)| Column::new(name, kind)).into();
    Layout { columns, delimiter: b',', header: Header::Absent }
}

fn chunks(input: &[u8], target_bytes: usize) -> Option<Vec<Chunk>> {
    let mut chunker = Chunker::new(input, &layout(), target_bytes);
    let mut chunks = Vec::new();
    loop {
        match chunker.next_chunk() {
            Ok(Some(chunk)) => chunks.push(chunk),
            Ok(None) => return Some(chunks),
            Err(_) => return None,
        }
    }
}

/// All bytes but blank lines, which are no records: one between two chunks is in neither.
fn records(chunks: &[Chunk]) -> Vec<u8> {
    let all: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.data.as_slice().to_vec()).collect();
    all.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && *line != b"\r").collect::<Vec<_>>().concat()
}

/// A rejected record: its line, its byte, the reason.
type Told = (u64, u64, String);

/// How many records are accepted, and where and why the others are not.
fn decoded(chunk: &Chunk) -> (u64, Vec<Told>) {
    let mut decoder = Decoder::new(Arc::new(layout()), (0..5).collect()).unwrap();
    let decoded = decoder.decode_chunk(chunk).unwrap();
    decoded.batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    let rejects = decoded.rejects.iter().map(|reject| (reject.line, reject.byte, format!("{:?}", reject.reason)));
    let (accepted, rejects) = (decoded.batch.num_rows() as u64, rejects.collect::<Vec<_>>());
    assert_eq!(accepted + rejects.len() as u64, chunk.records, "every record is accounted for");
    (accepted, rejects)
}

fn decoded_all(chunks: &[Chunk]) -> (u64, Vec<Told>) {
    let all: Vec<_> = chunks.iter().map(decoded).collect();
    let accepted = all.iter().map(|(accepted, _)| accepted).sum();
    (accepted, all.into_iter().flat_map(|(_, rejects)| rejects).collect())
}

#[test]
fn records_are_the_same_for_any_chunk_size_and_each_is_accounted_for() {
    Target::new("records", env!("CARGO_MANIFEST_DIR")).run(|input| -> Option<(u64, Vec<String>)> {
        let whole = chunks(input, 1 << 20);
        let expected = whole.as_deref().map(decoded_all);
        for target_bytes in [1, 7, 64] {
            let parts = chunks(input, target_bytes);
            assert_eq!(parts.as_deref().map(decoded_all), expected, "chunks of {target_bytes} bytes");
            assert_eq!(parts.as_deref().map(records), whole.as_deref().map(records));
        }
        let (accepted, rejects) = expected?;
        Some((accepted.min(3), rejects.into_iter().take(3).map(|(_, _, reason)| reason).collect()))
    });
}
