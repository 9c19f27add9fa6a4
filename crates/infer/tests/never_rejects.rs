//! No record of the sampled data is rejected by the inferred layout.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // A test may panic, and says so when it is skipped.

use std::sync::Arc;

use proptest::prelude::*;
use tenaz_csv::{Chunker, Decoder};
use tenaz_infer::{Reading, infer};

/// Values of the kinds that types are guessed from, and some that only look like them.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        (-1000i32..1000).prop_map(|n| n.to_string()),
        (-1000i32..1000).prop_map(|n| format!("{n}.0")),
        (any::<i32>(), 0u32..1000).prop_map(|(a, b)| format!("{a}.{b}")),
        "-?[0-9]{0,45}\\.?[0-9]{0,45}",
        "-?[0-9]\\.?[0-9]{0,3}[eE][+-]?[0-9]{1,3}",
        "(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]([ T][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,7})?Z?)?",
        "True|False|true|FALSE|yes",
        "NULL|NA|nan|None|inf|-|\\+1|007| 5 |  ",
        "[a-z ,;|\"\n\u{e9}]{0,12}",
        Just(String::new()),
    ]
}

/// A table whose columns mostly hold one kind of value.
fn table() -> impl Strategy<Value = Vec<Vec<String>>> {
    (1usize..5, 1usize..20).prop_flat_map(|(columns, rows)| {
        let pools = prop::collection::vec(prop::collection::vec(value(), 1..4), columns);
        let picks = prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), columns), rows);
        (pools, picks).prop_map(|(pools, picks)| {
            let row = |picks: Vec<prop::sample::Index>| {
                picks.iter().zip(&pools).map(|(i, pool)| i.get(pool).clone()).collect()
            };
            picks.into_iter().map(row).collect()
        })
    })
}

fn csv(rows: &[Vec<String>], delimiter: char, header: bool) -> String {
    let mut text = String::new();
    if header {
        let names: Vec<String> = (0..rows[0].len()).map(|i| format!("name {}", char::from(b'a' + i as u8))).collect();
        text.push_str(&format!("{}\n", names.join(&delimiter.to_string())));
    }
    for row in rows {
        let quoted: Vec<String> = row.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
        text.push_str(&format!("{}\n", quoted.join(&delimiter.to_string())));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_sampled_record_is_rejected(rows in table(), delimiter in prop::sample::select(vec![',', ';', '\t', '|']), header: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        std::fs::write(&path, csv(&rows, delimiter, header)).unwrap();
        let inferred = infer(dir.path(), &Reading::default()).unwrap();
        let table = &inferred.workload.tables[0];
        let layout = Arc::clone(&table.layout);
        let mut decoder = Decoder::new(Arc::clone(&layout), Vec::new()).unwrap();
        let mut chunker = Chunker::new(tenaz_source::open(&path, &table.format, &[]).unwrap().into_reader(), &layout, 1 << 20);
        while let Some(chunk) = chunker.next_chunk().unwrap() {
            let decoded = decoder.decode(&chunk.data, chunk.byte, chunk.line).unwrap();
            prop_assert!(decoded.rejects.is_empty(), "{:?} with {:?}", decoded.rejects, layout);
        }
    }

    #[test]
    fn any_bytes_give_tables_or_a_clear_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("t.csv"), &bytes).unwrap();
        if let Err(error) = infer(dir.path(), &Reading::default()) {
            prop_assert!(error.to_string().contains("t.csv is left out"), "{error}");
        }
    }
}
