//! `tenaz chaos`

use std::io::{Write, stdout};

use anyhow::Result;
use tenaz_core::{ChaosSettings, ChaosWeights};
use tenaz_supervisor::Home;
use tenaz_supervisor::chaos::{self, Chaos, StrikeRecord};

use crate::outcome::{Usage, stdout_failed};
use crate::process;
use crate::screen::Screen;
use crate::supervision_args::{ChaosAction, ChaosArgs};

pub(crate) fn chaos(args: &ChaosArgs, screen: &Screen) -> Result<()> {
    if args.roles.is_empty() || args.actions.is_empty() {
        return Err(Usage(
            "nobody to strike, or nothing to do: give --roles and --actions at least one each".to_owned(),
        )
        .into());
    }
    let home = Home::find(args.cluster.cluster.as_deref())?;
    if !home.is_up() {
        return Err(tenaz_supervisor::Error::NotUp { dir: home.dir().to_owned() }.into());
    }
    let plan = plan(args);
    process::run_quietly(async |stop| {
        let mut failure = None;
        let mut struck = 0;
        let record = |record: &StrikeRecord| {
            struck += usize::from(record.hit);
            screen.say(&in_words(record));
            let line = serde_json::to_string(record).unwrap_or_default();
            if let Err(error) = writeln!(stdout(), "{line}") {
                failure.get_or_insert(error);
                stop.cancel();
            }
        };
        chaos::run(&home, &plan, record, stop.clone()).await?;
        if let Some(error) = failure {
            return Err(stdout_failed(error));
        }
        screen.say(&format!("{struck} strikes; `tenaz status` shows how the cluster heals"));
        Ok(())
    })
}

fn plan(args: &ChaosArgs) -> Chaos {
    let defaults = ChaosWeights::default();
    let weight = |action, weight| if args.actions.contains(&action) { weight } else { 0 };
    let settings = ChaosSettings {
        every_ms: args.every.as_millis() as u64,
        duration_ms: Some(args.duration.as_millis() as u64),
        roles: args.roles.clone(),
        weights: ChaosWeights {
            kill: weight(ChaosAction::Kill, defaults.kill),
            pause: weight(ChaosAction::Pause, defaults.pause),
            restart: weight(ChaosAction::Restart, defaults.restart),
        },
        ..ChaosSettings::default()
    };
    Chaos { seed: args.seed, settings, ..Chaos::default() }
}

/// A strike in a sentence.
pub(crate) fn in_words(record: &StrikeRecord) -> String {
    let whom = record.name.as_ref().map_or(format!("a {}", record.role), ToString::to_string);
    format!("x {:>5.1} s  {} {whom}: {}", record.elapsed_seconds, record.action, record.outcome)
}
