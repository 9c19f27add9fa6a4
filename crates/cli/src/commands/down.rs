//! `tenaz down`: ends a cluster in order, and leaves no process and no port. Jobs stay for the next `tenaz up`, unless their
//! owner says that they may go.

use std::time::Duration;

use anyhow::Result;
use tenaz_cluster::{LinkSettings, Names};
use tenaz_supervisor::stop::{self, StopPatience, StopStep};
use tenaz_supervisor::{BrokerRole, Config, Home};

use crate::process;
use crate::screen::Screen;
use crate::supervision_args::DownArgs;

/// How long a broker may take to tell and delete what is there.
const WIPE_WITHIN: Duration = Duration::from_secs(30);

/// What is wanted besides the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Jobs and their results are deleted. Otherwise they stay on the broker, for the next `tenaz up`.
    pub(crate) discards_jobs: bool,
    /// How long processes may finish what they have begun.
    pub(crate) drain: Duration,
    /// What stays is told: the logs, and jobs that are kept.
    pub(crate) tells_what_stays: bool,
}

impl Default for Wish {
    fn default() -> Self {
        Self { discards_jobs: false, drain: Duration::from_secs(20), tells_what_stays: true }
    }
}

pub(crate) fn down(args: &DownArgs, screen: &Screen) -> Result<()> {
    let home = Home::find(args.cluster.cluster.as_deref())?;
    let config = match home.config() {
        Ok(config) => Some(config),
        // What runs must be stoppable, whatever became of the file.
        Err(error) if home.is_up() => {
            screen.say(&format!("{error}; stopping all the same, but what is on the broker stays"));
            None
        }
        Err(error) => return Err(error.into()),
    };
    if args.keep {
        screen.say("note: --keep is not needed any more, jobs are kept unless --discard-jobs is given");
    }
    let wish = Wish { discards_jobs: args.discard_jobs, drain: args.drain, tells_what_stays: true };
    process::block_on(stop_in_order(&home, config.as_ref(), wish, screen))?
}

/// Supervisors first, so that nobody starts anything again; the broker last, when its queues are gone.
pub(crate) async fn stop_in_order(home: &Home, config: Option<&Config>, wish: Wish, screen: &Screen) -> Result<()> {
    let was_up = home.is_up();
    let patience = StopPatience { drain: wish.drain, ..StopPatience::default() };
    let discarded_of = config.filter(|_| wish.discards_jobs);
    // A node of the cluster's own that is down has its jobs in its directory; any other broker can be asked at any time.
    let asked = discarded_of.filter(|config| was_up || config.broker_node.is_none());
    let wipe = async || {
        if let Some(config) = asked {
            wipe(home, config, screen).await;
        }
    };
    let stopped = stop::stop_all(home, config, None, patience, |step| tell(&step, screen), wipe).await?;
    for stranger in &stopped.untouched {
        screen.say(&format!("  {stranger} was started by hand and is left alone"));
    }
    if discarded_of.is_some_and(|config| config.broker_node.is_some()) {
        let dir = home.broker_dir();
        if let Err(error) = std::fs::remove_dir_all(&dir)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            screen.say(&format!("  {} stays: {error}", dir.display()));
        }
    }
    tell_end(home, was_up, wish, screen);
    Ok(())
}

fn tell_end(home: &Home, was_up: bool, wish: Wish, screen: &Screen) {
    if !was_up {
        return screen.say(&format!("Nothing runs of the cluster in {}", home.dir().display()));
    }
    if !wish.tells_what_stays {
        return screen.say("The cluster is down.");
    }
    screen.say(&format!("The cluster is down. Its logs are in {}", home.dir().join("logs").display()));
    if !wish.discards_jobs {
        screen.say("Jobs that were there stay for the next `tenaz up`; `tenaz down --discard-jobs` deletes them.");
    }
}

fn tell(step: &StopStep, screen: &Screen) {
    match step {
        StopStep::Closed | StopStep::Asked(_) => {}
        StopStep::Ended(member) => screen.say(&format!("  {} has ended", member.name)),
        StopStep::Killed(member) => screen.say(&format!("  {} did not end in time and was killed", member.name)),
        StopStep::Leftover(member) => screen.say(&format!("  {} was left over and was killed", member.describe())),
    }
}

/// Deletes queues and streams. A broker that is away keeps them; that is told, and no reason to leave processes running.
async fn wipe(home: &Home, config: &Config, screen: &Screen) {
    let wiped = async {
        let broker = home.broker_url(config, BrokerRole::Sweeper)?.parse()?;
        let names = Names::new(&config.prefix)?;
        let settings = LinkSettings { broker, names, connection_name: "tenaz down".to_owned() };
        anyhow::Ok(tenaz_cluster::wipe(settings).await?)
    };
    match tokio::time::timeout(WIPE_WITHIN, wiped).await {
        Ok(Ok(wiped)) if wiped.unfinished > 0 => {
            screen.say(&format!("  jobs gone: {}, unfinished ones among them: {}", wiped.jobs, wiped.unfinished));
        }
        Ok(Ok(_)) => {}
        // The node is ours and goes with everything in it.
        _ if config.broker_node.is_some() => {}
        Ok(Err(error)) => screen.say(&format!("  its queues stay on the broker: {error}")),
        Err(_) => screen.say("  its queues stay on the broker, which does not answer"),
    }
}
