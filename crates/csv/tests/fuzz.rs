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

/// Records that are accepted, and the reasons why others are not.
fn decoded(chunk: &Chunk) -> (u64, Vec<String>) {
    let mut decoder = Decoder::new(Arc::new(layout()), (0..5).collect()).unwrap();
    let decoded = decoder.decode_chunk(chunk).unwrap();
    decoded.batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    let rejects: Vec<String> = decoded.rejects.iter().map(|reject| format!("{:?}", reject.reason)).collect();
    let accepted = decoded.batch.num_rows() as u64;
    assert_eq!(accepted + rejects.len() as u64, chunk.records, "every record is accounted for");
    (accepted, rejects)
}

#[test]
fn records_are_the_same_for_any_chunk_size_and_each_is_accounted_for() {
    Target::new("records", env!("CARGO_MANIFEST_DIR")).run(|input| {
        let whole = chunks(input, 1 << 20);
        let count = |chunks: &Option<Vec<Chunk>>| {
            chunks.as_ref().map(|chunks| {
                let all: Vec<_> = chunks.iter().map(decoded).collect();
                let accepted: u64 = all.iter().map(|(accepted, _)| accepted).sum();
                (accepted, all.into_iter().flat_map(|(_, rejects)| rejects).collect::<Vec<_>>())
            })
        };
        let expected = count(&whole);
        for target_bytes in [1, 7, 64] {
            let parts = chunks(input, target_bytes);
            assert_eq!(count(&parts), expected, "chunks of {target_bytes} bytes");
            if let (Some(parts), Some(whole)) = (&parts, &whole) {
                let bytes =
                    |chunks: &[Chunk]| chunks.iter().flat_map(|c| c.data.as_slice().to_vec()).collect::<Vec<u8>>();
                assert_eq!(bytes(parts), bytes(whole));
            }
        }
        expected.map(|(accepted, rejects)| (accepted.min(3), rejects.into_iter().take(3).collect::<Vec<_>>()))
    });
}
