//! `tenaz supervisor`

use anyhow::Result;
use tenaz_core::{Incarnation, ProcessRole, SupervisorId};
use tenaz_supervisor::{Error, Home, Supervisor, SupervisorSettings};
use tenaz_vitals::{Identity, VitalsSettings};

use crate::outcome::Usage;
use crate::process;
use crate::screen::Screen;
use crate::supervision_args::SupervisorArgs;

pub(crate) fn supervisor(args: &SupervisorArgs, screen: &Screen) -> Result<()> {
    process::run(&args.log, screen, async |stop| {
        let home = Home::find(args.cluster.cluster.as_deref())?;
        let config = home.config().map_err(|error| Usage(error.to_string()))?;
        let key = home.key(&config).map_err(|error| Usage(error.to_string()))?;
        let id = SupervisorId(args.id);
        let Some(me) = config.supervisor(id) else {
            let known: Vec<String> = config.supervisors.iter().map(|known| known.id.to_string()).collect();
            let text = format!("cluster.toml has no supervisor {id}; it has {}", known.join(", "));
            return Err(Usage(text).into());
        };
        for warning in config.warnings() {
            tracing::warn!("{warning}");
        }
        if args.check {
            tracing::info!(supervisor = %id, "cluster.toml and the key are fine");
            return Ok(());
        }
        let name = me.name();
        // Before anybody hears of it: heartbeats of a second one would be taken for the first's.
        if home.hold_identity(&name)?.is_none() {
            tracing::info!(%name, "another process of this name runs: there is nothing to do");
            return Ok(());
        }
        let incarnation = match args.incarnation {
            Some(life) => Incarnation(life),
            None => home.begin_by_hand(&name, ProcessRole::Supervisor)?,
        };
        let supervisors = config.supervisors.iter().map(|known| known.listen.to_string()).collect();
        let cluster = home.id().clone();
        let vitals = process::start_vitals(VitalsSettings {
            identity: Identity { cluster: cluster.clone(), name, role: ProcessRole::Supervisor, incarnation },
            key: Some(key.for_heartbeats()),
            supervisors,
            every: config.supervision.heartbeat_every,
            http: args.http.http,
        })
        .await?;
        let settings = SupervisorSettings { id, home, config, key, cluster, vitals: Some(vitals) };
        match Supervisor::run(settings, stop).await {
            // Two that revive the same one at the same moment are no trouble.
            Err(Error::RunsAlready { name }) => {
                tracing::info!(%name, "another process of this name runs: there is nothing to do");
                Ok(())
            }
            done => Ok(done?),
        }
    })
}
