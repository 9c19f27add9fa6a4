//! A process that supervisors keep: this very test program, run again with another task.

use std::time::Duration;

use tenaz_core::{Incarnation, ProcessName, ProcessRole, SupervisorId};
use tenaz_supervisor::{Home, Supervisor, SupervisorSettings, command};
use tenaz_vitals::{Identity, Key, Vitals, VitalsSettings};
use tokio_util::sync::CancellationToken;

use crate::cluster::executor;

/// How `sh worker …` becomes this program, in the cluster's directory. `exec` keeps the process id, and the
/// role, by which the census knows a process from its helpers, stays the first argument.
pub(crate) fn script() -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "for mode; do :; done\nexport TEST_MODE=\"$mode\"\nexec '{}' \"$0\" --exact managed::process --ignored --nocapture\n",
        program.display()
    )
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The cluster's key and where heartbeats go: a supervisor reads them in the description, others are told.
fn whom_to_tell(role: ProcessRole) -> (Key, Vec<String>) {
    if role == ProcessRole::Supervisor {
        let home = Home::open(".".as_ref()).unwrap();
        let config = home.config().unwrap();
        let listen = config.supervisors.iter().map(|known| known.listen.to_string()).collect();
        return (home.key(&config).unwrap(), listen);
    }
    let key = Key::read(variable(command::KEY_FILE).unwrap().as_ref()).unwrap();
    (key, variable(command::SUPERVISORS).unwrap().split(',').map(str::to_owned).collect())
}

/// Not a test: what supervisors start. Without a cluster's marks in its environment it does nothing.
#[test]
#[ignore = "run by supervisors"]
fn process() {
    let Some(mode) = variable("TEST_MODE") else { return };
    if let Some(code) = mode.strip_prefix("exit-") {
        println!("going with {code}");
        std::process::exit(code.parse().unwrap());
    }
    let name: ProcessName = variable(command::NAME).unwrap().parse().unwrap();
    let (role, number) = name.as_str().split_once('-').unwrap();
    let (role, number): (ProcessRole, u16) = (role.parse().unwrap(), number.parse().unwrap());
    let identity = Identity {
        cluster: variable(command::CLUSTER_ID).unwrap().parse().unwrap(),
        name: name.clone(),
        role,
        incarnation: Incarnation(variable(command::INCARNATION).unwrap().parse().unwrap()),
    };
    let (key, supervisors) = whom_to_tell(role);
    let settings = VitalsSettings {
        identity: identity.clone(),
        key: Some(if role == ProcessRole::Supervisor { key.for_heartbeats() } else { key.clone() }),
        supervisors,
        every: Duration::from_millis(200),
        // A gateway answers questions about itself where it serves clients.
        http: variable(command::HTTP).map(|http| http.parse().unwrap()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async move {
        let vitals = Vitals::start(settings).await.unwrap();
        if role == ProcessRole::Supervisor {
            let home = Home::open(".".as_ref()).unwrap();
            let config = home.config().unwrap();
            let id = SupervisorId(number);
            let executor = executor(&home, &config, &config.supervisor(id).unwrap().machine);
            let cluster = identity.cluster;
            let settings = SupervisorSettings { id, home, config, key, cluster, vitals: Some(vitals) };
            Supervisor::run_with(settings, executor, CancellationToken::new()).await.unwrap();
            return;
        }
        let pulse = vitals.pulse();
        println!("{name} is up");
        vitals.set_ready(true);
        loop {
            pulse.beat();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}
