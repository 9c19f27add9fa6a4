//! How fast files become canonical CSV, each on a thread of its own: compare with `time zcat FILE > /dev/null`.
//!
//! `cargo run --release -p tenaz-source --example unpack -- a.csv.gz b.csv.gz`
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use tenaz_source::{FileFormat, open};

fn bytes_of(path: &str) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    let format = FileFormat { has_header: true, ..FileFormat::default() };
    let mut reader = open(Path::new(path), &format, &[])?.into_reader();
    let (mut buffer, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let start = Instant::now();
    let threads: Vec<_> = paths.into_iter().map(|path| std::thread::spawn(move || bytes_of(&path))).collect();
    let mut bytes = 0;
    for thread in threads {
        bytes += thread.join().map_err(|_| "a thread has panicked")??;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{bytes} bytes in {seconds:.2} s, {:.0} MB/s", bytes as f64 / 1e6 / seconds);
    Ok(())
}
