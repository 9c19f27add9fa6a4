//! A unit as `systemctl show` shows it.

use tenaz_core::{Ending, Incarnation, ProcessName, ProcessRole};

use crate::backend::time::unix_ms;

/// What is asked for.
pub(super) const PROPERTIES: &str =
    "Id,LoadState,ActiveState,SubState,Restart,MainPID,ExecMainStatus,ExecMainCode,ExecMainStartTimestamp";

/// `CLD_EXITED`, `CLD_KILLED`, `CLD_DUMPED` of waitid(2).
const EXITED: i32 = 1;
const KILLED: [i32; 2] = [2, 3];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    /// `tenaz-worker@1.service`
    pub(super) id: String,
    pub(super) pid: Option<u32>,
    /// When its main process was started, in milliseconds; 0 if it never was.
    pub(super) incarnation: Incarnation,
    /// Whether systemd says "failed".
    pub(super) failed: bool,
    load: String,
    restart: String,
    code: i32,
    status: i32,
}

impl Unit {
    pub(super) fn ended(&self) -> Option<Ending> {
        match self.code {
            _ if self.pid.is_some() => None,
            EXITED => Some(Ending::Exited(self.status)),
            code if KILLED.contains(&code) => Some(Ending::Signalled(self.status)),
            // It never ran, or systemd has forgotten it since.
            _ if self.incarnation == Incarnation(0) => None,
            _ => Some(Ending::Unknown),
        }
    }

    /// Whether systemd has a description of it.
    pub(super) fn is_there(&self) -> bool {
        self.load == "loaded" || self.pid.is_some()
    }

    /// What people should know about it.
    pub(super) fn unusable(&self) -> Option<String> {
        if !self.is_there() {
            let load = &self.load;
            return Some(format!(
                "systemd has no such unit ({load}): install it from deploy/systemd, or correct cluster.toml"
            ));
        }
        // A supervisor that is started twice ends at once, so these may be revived by both.
        let supervisor = named(&self.id, |_| false).is_some_and(|(_, role)| role == ProcessRole::Supervisor);
        let both = !supervisor && !matches!(self.restart.as_str(), "no" | "");
        both.then(|| {
            format!("the unit has Restart={}: systemd and the supervisors both restart it; choose one", self.restart)
        })
    }
}

/// Blocks of `Key=value` lines, with an empty line between them.
pub(super) fn parse_shown(text: &str) -> Vec<Unit> {
    text.split("\n\n").filter_map(parse_block).collect()
}

fn parse_block(block: &str) -> Option<Unit> {
    let value =
        |key: &str| block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default();
    let number = |key: &str| value(key).parse::<i32>().unwrap_or(0);
    let id = value("Id");
    let pid = value("MainPID").parse::<u32>().ok().filter(|pid| *pid > 0);
    (!id.is_empty()).then(|| Unit {
        id: id.to_owned(),
        pid,
        incarnation: Incarnation(started_ms(value("ExecMainStartTimestamp")).unwrap_or(0)),
        failed: value("ActiveState") == "failed",
        load: value("LoadState").to_owned(),
        restart: value("Restart").to_owned(),
        code: number("ExecMainCode"),
        status: number("ExecMainStatus"),
    })
}

/// `Mon 2026-11-16 03:49:33.828594 UTC`
fn started_ms(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace().skip(1);
    let (date, time, zone) = (words.next()?, words.next()?, words.next()?);
    if zone == "UTC" { unix_ms(&format!("{date}T{time}Z")) } else { None }
}

/// `tenaz-worker@1.service` is the worker `worker-1`; if that name is taken, it is `tenaz-worker-1`.
pub(super) fn named(id: &str, taken: impl Fn(&ProcessName) -> bool) -> Option<(ProcessName, ProcessRole)> {
    let stem = id.strip_suffix(".service")?;
    let (template, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let role: ProcessRole = template.rsplit('-').next()?.parse().ok()?;
    let join = |first: &str| match instance {
        "" => first.parse().ok(),
        instance => format!("{first}-{instance}").parse().ok(),
    };
    let name = join(role.as_str()).filter(|name| !taken(name)).or_else(|| join(template).filter(|name| !taken(name)));
    name.map(|name| (name, role))
}

pub(super) fn is_pattern(unit: &str) -> bool {
    unit.contains(['*', '?', '['])
}

/// Whether this can be asked for.
pub(super) fn check(unit: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b":-_.\\@*?[]!".contains(&b);
    if unit.starts_with('-') || !unit.bytes().all(plain) || !unit.ends_with(".service") {
        return Err(format!("{unit:?} is no unit of a service; write names such as tenaz-worker@1.service"));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn units_tell_their_name_and_role() {
        let named = |id| named(id, |_| false).map(|(name, role)| (name.to_string(), role));
        assert_eq!(named("tenaz-worker@1.service"), Some(("worker-1".to_owned(), ProcessRole::Worker)));
        assert_eq!(named("tenaz-gateway@8080.service"), Some(("gateway-8080".to_owned(), ProcessRole::Gateway)));
        assert_eq!(named("broker.service"), Some(("broker".to_owned(), ProcessRole::Broker)));
        for other in ["ssh.service", "tenaz-worker@1.socket", "tenaz-worker@a\\x2fb.service", "tenaz@1.service", ""] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_that_is_taken_gets_longer() {
        let (name, _) = named("two-worker@1.service", |name| name.as_str() == "worker-1").unwrap();
        assert_eq!(name.as_str(), "two-worker-1");
    }

    #[test]
    fn only_services_can_be_asked_for() {
        for good in ["tenaz-worker@1.service", "tenaz-*@*.service", "a\\x2db.service"] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in ["", "tenaz.target", "--now.service", "a b.service", "a;b.service"] {
            assert!(check(bad).unwrap_err().contains("tenaz-worker@1.service"), "{bad}");
        }
    }

    #[test]
    fn times_are_understood() {
        assert_eq!(started_ms("Mon 2026-11-16 03:49:33.828594 UTC"), Some(1_794_800_973_828));
        for never in ["", "n/a", "Mon 2026-11-16 03:49:33 CET"] {
            assert_eq!(started_ms(never), None, "{never}");
        }
    }
}
