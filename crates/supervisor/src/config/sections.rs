//! The parts of the file that stand by themselves: supervision, restarts, one machine.

use std::net::IpAddr;

use tenaz_words::show_span;
use toml::Spanned;

use super::file::{MachineEntry, RestartsEntry, SupervisionEntry};
use super::here::Here;
use super::{BackEnd, ConfigError, DockerSettings, Machine, Restarts, Supervision, SystemdSettings};
use crate::limits::MAX_PROCESSES_PER_MACHINE;

/// A hang shows only against several heartbeats.
const HEARTBEATS_PER_HANG: u32 = 3;
const BACK_ENDS: [&str; 3] = ["processes", "docker", "systemd"];
const DOCKER_SOCKET: &str = "/var/run/docker.sock";
/// What the supervisors write into the command line of a process themselves.
const OWN_OPTIONS: [&str; 4] = ["--broker", "--prefix", "--listen", "--"];

impl Here<'_> {
    pub(super) fn supervision(&self, entry: &SupervisionEntry) -> Result<Supervision, ConfigError> {
        let default = Supervision::default();
        let found = Supervision {
            heartbeat_every: self.time(entry.heartbeat_every.as_ref(), default.heartbeat_every)?,
            hang_after: self.time(entry.hang_after.as_ref(), default.hang_after)?,
            start_within: self.time(entry.start_within.as_ref(), default.start_within)?,
        };
        if found.hang_after < found.heartbeat_every * HEARTBEATS_PER_HANG {
            let at = entry.hang_after.as_ref().or(entry.heartbeat_every.as_ref()).map_or(0..0, Spanned::span);
            let (hang, beat) = (show_span(found.hang_after), show_span(found.heartbeat_every));
            let problem = format!("hang-after {hang} is less than {HEARTBEATS_PER_HANG} heartbeats of {beat}");
            let cure = "raise hang-after or lower heartbeat-every, or a late heartbeat would be taken for a hang";
            return Err(self.wrong(at, problem, cure));
        }
        Ok(found)
    }

    pub(super) fn restarts(&self, entry: &RestartsEntry) -> Result<Restarts, ConfigError> {
        let default = Restarts::default();
        let found = Restarts {
            backoff: self.time(entry.backoff.as_ref(), default.backoff)?,
            backoff_cap: self.time(entry.backoff_cap.as_ref(), default.backoff_cap)?,
            healthy_after: self.time(entry.healthy_after.as_ref(), default.healthy_after)?,
            failed_starts: self.count(entry.failed_starts.as_ref(), default.failed_starts)?,
            per_process: self.count(entry.per_process.as_ref(), default.per_process)?,
            per_cluster: self.count(entry.per_cluster.as_ref(), default.per_cluster)?,
            window: self.time(entry.window.as_ref(), default.window)?,
        };
        if found.backoff > found.backoff_cap {
            let at = entry.backoff.as_ref().or(entry.backoff_cap.as_ref()).map_or(0..0, Spanned::span);
            let (backoff, cap) = (show_span(found.backoff), show_span(found.backoff_cap));
            let problem = format!("backoff {backoff} is longer than backoff-cap {cap}");
            return Err(self.wrong(at, problem, "raise backoff-cap or lower backoff"));
        }
        Ok(found)
    }

    pub(super) fn machine(&self, cluster: &str, entry: &Spanned<MachineEntry>) -> Result<Machine, ConfigError> {
        let at = entry.span();
        let entry = entry.get_ref();
        let name = self.name("machine", &entry.name)?;
        let Ok(address) = entry.address.get_ref().parse::<IpAddr>() else {
            let problem = format!("{:?} is no address", entry.address.get_ref());
            return Err(self.wrong(entry.address.span(), problem, "write an IP address such as 127.0.0.1"));
        };
        if address.is_unspecified() {
            let problem = format!("{address} is no place that others can reach");
            return Err(self.wrong(entry.address.span(), problem, "write the machine's own IP address"));
        }
        let back_end = self.back_end(cluster, entry)?;
        let workers = entry.workers.as_ref().map_or(0, |w| *w.get_ref());
        let gateways = entry.gateways.iter().map(|g| self.listen(g)).collect::<Result<Vec<_>, _>>()?;
        let options = [&entry.worker_options, &entry.gateway_options];
        if back_end != BackEnd::Processes && (workers > 0 || !gateways.is_empty()) {
            let kind = back_end.as_str();
            let problem = format!("machine {name:?} counts workers or gateways, but {kind} knows what it has");
            return Err(self.wrong(at, problem, "remove `workers` and `gateways`"));
        }
        if let Some(option) = options.iter().find_map(|list| list.first()).filter(|_| back_end != BackEnd::Processes) {
            let kind = back_end.as_str();
            let problem = format!("machine {name:?} has options for its processes, but {kind} starts them");
            let cure = format!("write them where {kind} is told what to start");
            return Err(self.wrong(option.span(), problem, cure));
        }
        if workers as usize + gateways.len() > MAX_PROCESSES_PER_MACHINE {
            let problem = format!("{workers} workers and {} gateways are too many for one machine", gateways.len());
            return Err(self.wrong(at, problem, format!("write at most {MAX_PROCESSES_PER_MACHINE}")));
        }
        Ok(Machine {
            name,
            address,
            back_end,
            workers,
            gateways,
            worker_options: self.options(&entry.worker_options)?,
            gateway_options: self.options(&entry.gateway_options)?,
        })
    }

    fn back_end(&self, cluster: &str, entry: &MachineEntry) -> Result<BackEnd, ConfigError> {
        let word = match &entry.back_end {
            Some(word) => self.one_of("back-end", word, &BACK_ENDS)?,
            None => BACK_ENDS[0],
        };
        let strange = [
            ("docker", entry.docker.as_ref().map(Spanned::span)),
            ("systemd", entry.systemd.as_ref().map(Spanned::span)),
        ];
        for (section, at) in strange {
            if let Some(at) = at
                && section != word
            {
                let problem = format!("`{section}` is set, but the back-end is {word:?}");
                return Err(self.wrong(at, problem, format!("write back-end = {section:?}, or remove `{section}`")));
            }
        }
        match word {
            "docker" => self.docker(cluster, entry),
            "systemd" => self.systemd(entry),
            _ => Ok(BackEnd::Processes),
        }
    }

    fn docker(&self, cluster: &str, entry: &MachineEntry) -> Result<BackEnd, ConfigError> {
        let docker = entry.docker.as_ref().map(Spanned::get_ref);
        let socket = docker.and_then(|d| d.socket.as_ref()).map_or(DOCKER_SOCKET, |s| s.get_ref());
        let label = match docker.and_then(|d| d.label.as_ref()) {
            None => format!("tenaz.cluster={cluster}"),
            Some(label) if label.get_ref().split_once('=').is_some_and(|(k, v)| !k.is_empty() && !v.is_empty()) => {
                label.get_ref().clone()
            }
            Some(label) => {
                let problem = format!("{:?} is no label with a value", label.get_ref());
                return Err(self.wrong(label.span(), problem, "write key=value, such as tenaz.cluster=demo"));
            }
        };
        Ok(BackEnd::Docker(DockerSettings { socket: socket.into(), label }))
    }

    fn systemd(&self, entry: &MachineEntry) -> Result<BackEnd, ConfigError> {
        let at = entry.back_end.as_ref().map_or(0..0, Spanned::span);
        let Some(systemd) = &entry.systemd else {
            let cure = "add systemd = { units = [\"tenaz-worker@1.service\"] }";
            return Err(self.wrong(at, "systemd needs to know its units", cure));
        };
        let systemd = systemd.get_ref();
        if systemd.units.get_ref().is_empty() {
            return Err(self.wrong(systemd.units.span(), "there is no unit", "name at least one"));
        }
        for unit in systemd.units.get_ref() {
            let text = unit.get_ref();
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.@:\\".contains(&b);
            if !text.ends_with(".service") || text.starts_with(['-', '.']) || !text.bytes().all(plain) {
                let problem = format!("{text:?} is no unit");
                return Err(self.wrong(unit.span(), problem, "write a name such as tenaz-worker@1.service"));
            }
        }
        let units = systemd.units.get_ref().iter().map(|unit| unit.get_ref().clone()).collect();
        Ok(BackEnd::Systemd(SystemdSettings { units, user: systemd.user }))
    }

    fn options(&self, options: &[Spanned<String>]) -> Result<Vec<String>, ConfigError> {
        for option in options {
            let text = option.get_ref();
            let word = text.split('=').next().unwrap_or_default();
            if OWN_OPTIONS.contains(&word) {
                let problem = format!("{text:?} is set by the supervisors");
                return Err(self.wrong(option.span(), problem, "remove it: this file says the same elsewhere"));
            }
        }
        Ok(options.iter().map(|option| option.get_ref().clone()).collect())
    }
}
