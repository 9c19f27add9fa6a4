//! Makes a data set in a directory and prints how fast: `generate_speed <dataset> <scale> <threads> <out> [seed]`.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::path::PathBuf;
use std::time::Instant;

use tenaz_generate::{Dataset, Options, expected_bytes, generate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dataset, scale, threads, out, seed @ ..] = args.as_slice() else {
        return Err("usage: generate_speed <coffee|steam|books> <scale> <threads> <out> [seed]".into());
    };
    let dataset: Dataset = dataset.parse()?;
    let seed = seed.first().map_or(Ok(1), |seed| seed.parse())?;
    let options = Options { scale: scale.parse()?, seed, threads: threads.parse()? };
    let start = Instant::now();
    let written = generate(dataset, &PathBuf::from(out), &options, &|_| {})?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{dataset}: {} files, {} records, {} bytes (expected {}) in {seconds:.2} s = {:.0} MB/s",
        written.files,
        written.records,
        written.bytes,
        expected_bytes(dataset, options.scale),
        written.bytes as f64 / 1e6 / seconds,
    );
    Ok(())
}
