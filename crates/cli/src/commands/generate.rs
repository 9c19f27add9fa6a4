//! `tenaz generate`

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount};
use tenaz_generate::{Options, expected_bytes};

use crate::args::GenerateArgs;
use crate::progress;
use crate::screen::Screen;

pub(crate) fn generate(args: &GenerateArgs, screen: &Screen) -> anyhow::Result<()> {
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let options = Options { scale: args.scale, seed: args.seed, threads };
    let started = Instant::now();
    let bytes = AtomicU64::new(0);
    let bar = progress::bytes_bar(screen, args.dataset.to_string(), expected_bytes(args.dataset, args.scale));
    let written = std::thread::scope(|scope| {
        let done = std::sync::mpsc::channel::<()>();
        let (finished, waiting) = done;
        let (bar, bytes) = (&bar, &bytes);
        scope.spawn(move || {
            // Ends as soon as the sender is dropped.
            while waiting.recv_timeout(Duration::from_millis(100)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                bar.set_position(bytes.load(Ordering::Relaxed));
            }
        });
        let written =
            tenaz_generate::generate(args.dataset, &args.out, &options, &|n| bytes.store(n, Ordering::Relaxed));
        drop(finished);
        written
    });
    bar.finish_and_clear();
    let written = written?;
    screen.say(&format!(
        "wrote {} records, {} in {} files to {} in {:.1} s",
        HumanCount(written.records),
        HumanBytes(written.bytes),
        written.files,
        args.out.display(),
        started.elapsed().as_secs_f64(),
    ));
    Ok(())
}
