//! Any bytes as a message of a queue: taken apart or refused, never a panic; what is taken apart is put together again.
#![allow(clippy::unwrap_used, missing_docs)]

use tenaz_cluster::{ChunkHeader, Encoding, frame, unframe};
use tenaz_core::{ChunkDigest, TableId};
use tenaz_fuzz::Target;

#[test]
fn frames_are_read_or_refused() {
    let header = ChunkHeader {
        table: TableId(1),
        number: 7,
        file: "sales.csv".to_owned(),
        byte: 9,
        line: 2,
        records: Some(2),
        encoding: Encoding::Zstd,
        raw_bytes: 8,
        digest: ChunkDigest(0xab),
    };
    Target::new("frames", env!("CARGO_MANIFEST_DIR")).seed(frame(&header, &[b"1,a\n", b"2,b\n"])).run(|input| {
        match unframe::<ChunkHeader>("a queue", input) {
            Ok(framed) => {
                let again = frame(&framed.header, &[framed.payload]);
                let read = unframe::<ChunkHeader>("a queue", &again).unwrap();
                assert_eq!((&read.header, read.payload), (&framed.header, framed.payload));
                format!("{:?} {}", framed.header.encoding, framed.header.records.is_some())
            }
            Err(error) => error.to_string().chars().filter(|c| !c.is_ascii_digit()).collect(),
        }
    });
}
