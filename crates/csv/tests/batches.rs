//! Batches of several chunks: what they point to, and what they have copied.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use tenaz_csv::{Block, BlockCutter, Column, Decoder, Header, Kind, Layout, Spares};

const RECORDS: usize = 40;

fn layout() -> Layout {
    let columns = vec![Column::new("short", Kind::Text), Column::new("long", Kind::Text)];
    Layout { columns, delimiter: b',', header: Header::Absent }
}

fn short(n: usize) -> String {
    // Some fit into a view, some do not, and some have doubled quotes.
    match n % 4 {
        0 => format!("n {n}"),
        1 => format!("a title of number {n}"),
        2 => format!("say \"{n}\" to everybody"),
        _ => "exactly 12 b".to_owned(),
    }
}

fn long(n: usize) -> String {
    format!("{n}: ") + &"so much text, ".repeat(30)
}

fn file() -> String {
    let quoted = |text: String| format!("\"{}\"", text.replace('"', "\"\""));
    (0..RECORDS).map(|n| format!("{},{}\n", quoted(short(n)), quoted(long(n)))).collect()
}

/// The columns of one batch of all blocks of the file, and how often the batch pointed into what had been read.
fn decode(columns: Vec<usize>, block_bytes: usize) -> (Vec<Vec<String>>, usize) {
    let (layout, spares, file) = (layout(), Spares::default(), file());
    let mut cutter = BlockCutter::new(&layout, spares.clone());
    let mut decoder = Decoder::new(Arc::new(layout), columns).unwrap();
    let (mut rest, mut held, mut pointed) = (file.as_bytes(), Vec::new(), 0);
    while !rest.is_empty() {
        let block = Block::read(&mut rest, block_bytes, &spares).unwrap();
        for chunk in cutter.cut(block, rest.is_empty()).unwrap() {
            decoder.add_chunk(&chunk).unwrap();
            if decoder.points_into_chunks() {
                pointed += 1;
                held.push(chunk);
            } else {
                // The next block is read into the same memory.
                spares.give_back(chunk);
            }
        }
    }
    let batch = decoder.take_batch().unwrap();
    assert_eq!(batch.num_rows(), RECORDS);
    let texts = batch.columns().iter().map(|column| {
        column.to_data().validate_full().unwrap();
        column.as_string_view().iter().map(|text| text.unwrap().to_owned()).collect()
    });
    (texts.collect(), pointed)
}

#[test]
fn texts_that_are_a_small_part_are_copied_and_their_chunks_let_go() {
    for block_bytes in [100, 700, 5_000, 1 << 20] {
        let (columns, pointed) = decode(vec![0], block_bytes);
        assert_eq!(columns, [(0..RECORDS).map(short).collect::<Vec<_>>()]);
        assert_eq!(pointed, 0);
    }
}

#[test]
fn texts_that_are_a_large_part_stay_where_they_are() {
    for block_bytes in [100, 700, 5_000, 1 << 20] {
        let (columns, pointed) = decode(vec![1, 0], block_bytes);
        let expected: [Vec<String>; 2] = [(0..RECORDS).map(long).collect(), (0..RECORDS).map(short).collect()];
        assert_eq!(columns, expected);
        assert!(pointed > 0);
    }
}
