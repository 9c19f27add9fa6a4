//! Files for the benchmarks: always the same bytes, in the layouts of the bundled workloads.

use std::fmt::Write;

use tenaz_csv::{Chunk, Chunker, Column, Kind, Layout};

/// What a chunk holds when a large file is cut.
const CHUNK_BYTES: usize = 1 << 20;

/// A file and how to read it.
pub(crate) struct Case {
    pub(crate) layout: Layout,
    pub(crate) file: Vec<u8>,
}

impl Case {
    /// The file's chunks.
    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        let mut chunker = Chunker::new(&self.file[..], &self.layout, CHUNK_BYTES).with_marks();
        std::iter::from_fn(|| chunker.next_chunk().expect("the file is in memory")).collect()
    }
}

/// Unquoted numbers, money and times, as in coffee.
pub(crate) fn transactions(rows: usize) -> Case {
    let int = || Kind::Int { float_text: true };
    let money = || Kind::Decimal { precision: 15, scale: 3 };
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
    let names: Vec<_> = layout.columns.iter().map(|column| column.name.as_str()).collect();
    let mut file = names.join(",") + "\n";
    let mut random = Random(1);
    for _ in 0..rows {
        let user = if random.below(2) == 0 { format!("{}.0", random.below(2_200_000)) } else { String::new() };
        let (amount, day, hour) = (random.below(200), 1 + random.below(28), random.below(24));
        writeln!(
            file,
            "{:08x}-76c2-4095-b861-{:012x},{},{},,{user},{amount}.{},0.0,{amount}.{:03},2024-03-{day:02} {hour:02}:30:{:02}",
            random.below(1 << 31),
            random.below(1 << 31),
            1 + random.below(10),
            1 + random.below(5),
            random.below(10),
            random.below(1000),
            random.below(60),
        )
        .expect("a string takes everything");
    }
    Case { layout, file: file.into_bytes() }
}

/// Quoted texts with commas, doubled quotes, line ends and umlauts, as in steam.
pub(crate) fn reviews(rows: usize) -> Case {
    let int = || Kind::Int { float_text: false };
    let layout = Layout::new(vec![
        Column::new("app_id", int()),
        Column::new("app_name", Kind::Text),
        Column::new("review_text", Kind::Text),
        Column::new("review_score", int()),
        Column::new("review_votes", int()),
    ]);
    let mut file = "app_id,app_name,review_text,review_score,review_votes\n".to_owned();
    let mut random = Random(2);
    for _ in 0..rows {
        write!(file, "{},Counter-Strike,\"", 10 + random.below(1_000_000)).expect("a string takes everything");
        for _ in 0..random.below(40) {
            let words = ["good, very good ", "game\n", "I \"\"like\"\" it ", "naïve "];
            file.push_str(words[random.below(8).min(3) as usize]);
        }
        let score = if random.below(5) == 0 { -1 } else { 1 };
        writeln!(file, "\",{score},{}", random.below(2)).expect("a string takes everything");
    }
    Case { layout, file: file.into_bytes() }
}

/// Pseudo-random numbers, always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
