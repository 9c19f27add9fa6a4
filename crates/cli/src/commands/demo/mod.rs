//! `tenaz demo`

mod chaos;

use std::path::{Path, PathBuf};

use anyhow::Context;
use tenaz_generate::Dataset;

use crate::args::{DemoArgs, EngineArgs, GenerateArgs, OutputArgs, RunArgs, TimeArgs};
use crate::screen::Screen;

pub(crate) fn demo(args: &DemoArgs, screen: &Screen) -> anyhow::Result<()> {
    if args.chaos {
        return chaos::demo(args, screen);
    }
    let dir = tempfile::Builder::new().prefix("tenaz-demo-").tempdir().context("no place for the demo's data")?;
    screen.say("tenaz demo: a little generated data of a chain of coffee shops, and five questions.\n");
    generate(args, dir.path(), screen)?;
    super::run::run(&run_args(args, dir.path(), None), screen)?;
    screen.say("\nNext: tenaz generate coffee --scale 0.05 --out data && tenaz run coffee --data data --out results");
    Ok(())
}

fn generate(args: &DemoArgs, dir: &Path, screen: &Screen) -> anyhow::Result<()> {
    let (out, scale, seed, threads) = (dir.to_owned(), args.scale, args.seed, args.threads);
    super::generate::generate(&GenerateArgs { dataset: Dataset::Coffee, out, scale, seed, threads }, screen)
}

/// An undisturbed run of the coffee workload on this machine.
fn run_args(args: &DemoArgs, data: &Path, out: Option<PathBuf>) -> RunArgs {
    RunArgs {
        workload: "coffee".to_owned(),
        data: data.to_owned(),
        query: Vec::new(),
        time: TimeArgs::default(),
        output: OutputArgs {
            out,
            output: None,
            format: None,
            chart: false,
            write_decimal_comma: false,
            accept_rejects: false,
            rows: 12,
        },
        engine: EngineArgs {
            threads: args.threads,
            strict: false,
            memory: tenaz_runtime::limits::DEFAULT_MEMORY_BYTES,
            chunk_size: None,
            partitions: None,
        },
    }
}
