//! `tenaz demo`

use anyhow::Context;
use tenaz_generate::Dataset;

use crate::args::{DemoArgs, EngineArgs, GenerateArgs, OutputArgs, RunArgs};
use crate::screen::Screen;

pub(crate) fn demo(args: &DemoArgs, screen: &Screen) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("tenaz-demo-").tempdir().context("no place for the demo's data")?;
    screen.say("tenaz demo: a little generated data of a chain of coffee shops, and five questions.\n");
    super::generate::generate(
        &GenerateArgs {
            dataset: Dataset::Coffee,
            out: dir.path().to_owned(),
            scale: args.scale,
            seed: args.seed,
            threads: args.threads,
        },
        screen,
    )?;
    let run = RunArgs {
        workload: "coffee".to_owned(),
        data: dir.path().to_owned(),
        query: Vec::new(),
        output: OutputArgs { out: None, format: None, rows: 12 },
        engine: EngineArgs {
            threads: args.threads,
            strict: false,
            memory: tenaz_runtime::limits::DEFAULT_MEMORY_BYTES,
            chunk_size: None,
            partitions: None,
        },
    };
    super::run::run(&run, screen)?;
    screen.say("\nNext: tenaz generate coffee --scale 0.05 --out data && tenaz run coffee --data data --out results");
    Ok(())
}
