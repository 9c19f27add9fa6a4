//! `tenaz worker`

use anyhow::Result;
use tenaz_core::ProcessRole;
use tenaz_runtime::cluster::{Worker, WorkerSettings};

use crate::cluster_args::WorkerArgs;
use crate::process;
use crate::screen::Screen;

pub(crate) fn worker(args: &WorkerArgs, screen: &Screen) -> Result<()> {
    process::run(&args.broker.log, screen, async |stop| {
        let vitals = process::vitals(&args.vitals, ProcessRole::Worker, args.http.http).await?;
        let link = process::link(&args.broker, "worker").await?;
        let defaults = WorkerSettings::default();
        let settings = WorkerSettings {
            threads: args.threads.unwrap_or(defaults.threads),
            memory_bytes: args.memory,
            spool_limit_bytes: args.spool_limit as u64,
            drain: args.drain,
            faults: args.faults.clone(),
            patience: process::patience(&args.broker),
            vitals: Some(vitals),
            ..defaults
        };
        Ok(Worker::run(link, settings, stop).await?)
    })
}
