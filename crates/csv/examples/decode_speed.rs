//! How fast chunks are cut and decoded on one core, by the time that the thread really ran, so that a busy machine does not
//! matter much. `cargo run --release -p tenaz-csv --example decode_speed`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenaz_csv::{Chunk, Chunker, Column, Decoder, Kind, Layout};

fn main() {
    let rounds = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(5);
    let (layout, file) = transactions(3_000_000);
    println!("transactions: {} MB", file.len() / 1_000_000);
    for projection in [vec![0, 1, 7, 8], vec![1, 4, 7, 8], vec![], (0..9).collect()] {
        measure(&layout, file.as_bytes(), projection, rounds);
    }
    let (layout, file) = items(4_000_000);
    println!("transaction items: {} MB", file.len() / 1_000_000);
    for projection in [vec![1, 2, 4, 5], vec![]] {
        measure(&layout, file.as_bytes(), projection, rounds);
    }
    let (layout, file) = reviews(300_000);
    println!("reviews, quoted: {} MB", file.len() / 1_000_000);
    for projection in [vec![0, 2, 3], vec![]] {
        measure(&layout, file.as_bytes(), projection, rounds);
    }
}

fn measure(layout: &Layout, file: &[u8], projection: Vec<usize>, rounds: usize) {
    let gigabytes = |from: Duration| file.len() as f64 / (time() - from).as_secs_f64() / 1e9;
    let mut best = (0f64, 0f64, 0f64);
    for _ in 0..rounds {
        let from = time();
        let mut chunker = Chunker::new(file, layout, 1 << 20);
        let chunks: Vec<Chunk> = std::iter::from_fn(|| chunker.next_chunk().unwrap()).collect();
        best.0 = best.0.max(gigabytes(from));

        let mut decoder = Decoder::new(Arc::new(layout.clone()), projection.clone()).unwrap();
        let from = time();
        for chunk in &chunks {
            let decoded = decoder.decode(&chunk.data, chunk.byte, chunk.line).unwrap();
            assert_eq!(decoded.batch.num_rows() as u64, chunk.records);
        }
        best.1 = best.1.max(gigabytes(from));
        drop(chunks);

        let from = time();
        let mut chunker = Chunker::new(file, layout, 1 << 20);
        while let Some(chunk) = chunker.next_chunk().unwrap() {
            decoder.decode(&chunk.data, chunk.byte, chunk.line).unwrap();
        }
        best.2 = best.2.max(gigabytes(from));
    }
    println!(
        "  columns {projection:?}: chunker {:.2} GB/s, decoder {:.2} GB/s, both {:.2} GB/s",
        best.0, best.1, best.2
    );
}

/// The time this thread has run; where the system does not tell, the time on the clock.
fn time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Pseudo-random numbers, always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn transactions(rows: usize) -> (Layout, String) {
    let int = || Kind::Int { float_text: true };
    let money = || Kind::Decimal { precision: 12, scale: 3 };
    let layout = Layout::new(vec![
        Column::new("transaction_id", Kind::Text),
        Column::new("store_id", int()),
        Column::new("payment_method_id", int()),
        Column::new("voucher_id", int()),
        Column::new("user_id", int()),
        Column::new("original_amount", money()),
        Column::new("discount_applied", money()),
        Column::new("final_amount", money()),
        Column::new("created_at", Kind::Timestamp),
    ]);
    let mut random = Random(1);
    let names: Vec<_> = layout.columns.iter().map(|column| column.name.as_str()).collect();
    let mut file = names.join(",") + "\n";
    for _ in 0..rows {
        let id = random.below(1 << 31) << 31 | random.below(1 << 31);
        write!(
            file,
            "{id:08x}-76c2-4095-b861-{:012x},{},{},",
            random.below(1 << 31),
            1 + random.below(10),
            1 + random.below(5)
        )
        .unwrap();
        if random.below(20) == 0 {
            write!(file, "{}.0", random.below(1000)).unwrap();
        }
        file.push(',');
        if random.below(2) == 0 {
            write!(file, "{}.0", random.below(2_200_000)).unwrap();
        }
        let amount = random.below(200);
        writeln!(
            file,
            ",{amount}.{},0.0,{amount}.{},2024-03-{:02} {:02}:{:02}:{:02}",
            random.below(10),
            random.below(1000),
            1 + random.below(31),
            random.below(24),
            random.below(60),
            random.below(60)
        )
        .unwrap();
    }
    (layout, file)
}

fn items(rows: usize) -> (Layout, String) {
    let int = || Kind::Int { float_text: false };
    let money = || Kind::Decimal { precision: 15, scale: 3 };
    let layout = Layout::new(vec![
        Column::new("transaction_id", Kind::Text),
        Column::new("item_id", int()),
        Column::new("quantity", int()),
        Column::new("unit_price", money()),
        Column::new("subtotal", money()),
        Column::new("created_at", Kind::Timestamp),
    ]);
    let mut random = Random(3);
    let names: Vec<_> = layout.columns.iter().map(|column| column.name.as_str()).collect();
    let mut file = names.join(",") + "\n";
    for _ in 0..rows {
        let (id, price, quantity) = (random.below(1 << 31), 6 + random.below(8), 1 + random.below(3));
        writeln!(
            file,
            "{id:08x}-76c2-4095-b861-{:012x},{},{quantity},{price}.0,{}.0,2024-03-{:02} {:02}:{:02}:{:02}",
            random.below(1 << 31),
            1 + random.below(8),
            price * quantity,
            1 + random.below(31),
            random.below(24),
            random.below(60),
            random.below(60)
        )
        .unwrap();
    }
    (layout, file)
}

fn reviews(rows: usize) -> (Layout, String) {
    let layout = Layout::new(vec![
        Column::new("app_id", Kind::Int { float_text: false }),
        Column::new("app_name", Kind::Text),
        Column::new("review_text", Kind::Text),
        Column::new("review_score", Kind::Int { float_text: false }),
        Column::new("review_votes", Kind::Int { float_text: false }),
    ]);
    let mut random = Random(2);
    let mut file = "app_id,app_name,review_text,review_score,review_votes\n".to_owned();
    for _ in 0..rows {
        write!(file, "{},Counter-Strike,\"", 10 + random.below(1_000_000)).unwrap();
        for _ in 0..random.below(40) {
            file.push_str(
                ["good, very good ", "game\n", "I \"\"like\"\" it ", "naïve "][random.below(8).min(3) as usize],
            );
        }
        writeln!(file, "\",{},{}", if random.below(5) == 0 { -1 } else { 1 }, random.below(2)).unwrap();
    }
    (layout, file)
}
