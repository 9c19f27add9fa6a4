//! What the kernel knows of a process: `/proc/PID/stat`, and pidfds, which never mean another process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};
use tenaz_core::Ending;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::limits::TICKS_PER_SECOND;

/// A line of `/proc/PID/stat`, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `R` runs, `S` sleeps, `T` is stopped, `Z` is a zombie, …
    pub(crate) state: char,
    /// The session that it belongs to: its own pid if it leads one.
    pub(crate) session: u32,
    /// When it was started, in ticks since the machine was. With the pid it names a process for ever.
    pub(crate) start_ticks: u64,
    /// The memory it has mapped: 0 once it is on its way out, and then its environment cannot be read any more.
    mapped: u64,
    /// What its parent will read from it; 0 while it runs.
    exit_status: i32,
}

impl Stat {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field is the program's name in parentheses, which may itself contain blanks and parentheses.
    fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            session: fields.get(3)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
            mapped: fields.get(20)?.parse().ok()?,
            exit_status: fields.get(49).and_then(|status| status.parse().ok()).unwrap_or_default(),
        })
    }

    /// Whether a signal has stopped it (not a debugger).
    pub(crate) fn is_stopped(&self) -> bool {
        self.state == 'T'
    }

    fn ending(&self) -> Ending {
        match self.exit_status & 0x7f {
            0 => Ending::Exited((self.exit_status >> 8) & 0xff),
            signal => Ending::Signalled(signal),
        }
    }

    /// How long it has been there.
    pub(crate) fn age_ms(&self) -> u64 {
        let started_ms = self.start_ticks.saturating_mul(1000 / TICKS_PER_SECOND);
        uptime_ms().saturating_sub(started_ms)
    }
}

fn uptime_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds: f64 = text.split_whitespace().next().and_then(|s| s.parse().ok()).unwrap_or_default();
    (seconds * 1000.0) as u64
}

/// What became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vitality {
    /// It runs (or is stopped).
    Running,
    /// It is on its way out: its memory is gone, and with it the mark in its environment. How it ends is known in a moment.
    Leaving,
    /// It has ended, and its parent has not yet asked how.
    Zombie(Ending),
    /// There is no such process any more.
    Gone,
}

/// What became of the process that had this pid and was started then.
pub(crate) fn vitality(pid: u32, start_ticks: u64) -> Vitality {
    match Stat::of(pid) {
        Some(stat) if stat.start_ticks == start_ticks => match stat.state {
            // The first thread may have ended before the others: only the pidfd knows that all have.
            'Z' => match PidFd::open(pid) {
                Some(pidfd) if !pidfd.has_ended() => Vitality::Leaving,
                _ => Vitality::Zombie(stat.ending()),
            },
            'X' | 'x' => Vitality::Gone,
            _ if stat.mapped == 0 => Vitality::Leaving,
            _ => Vitality::Running,
        },
        _ => Vitality::Gone,
    }
}

/// A handle of one process.
#[derive(Debug)]
pub(crate) struct PidFd(OwnedFd);

impl PidFd {
    /// The process that has this pid now, if there is one.
    pub(crate) fn open(pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Self)
    }

    /// Sends a signal. `false`: it has ended already.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<bool> {
        match pidfd_send_signal(&self.0, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether all its threads have ended.
    pub(crate) fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(ready) if ready > 0)
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(self) -> io::Result<Self> {
        // SAFETY: an `OwnedFd` is open, and stays the same one until the `AsyncFd` that owns it is dropped or gives it back.
        let watched = unsafe { AsyncFd::register_with_interest(self.0, Interest::READABLE) }?;
        watched.readable().await?.retain_ready();
        Ok(Self(watched.into_inner()))
    }

    /// Takes the ending of a child that has ended, after which it is gone. Nothing happens if it is nobody's or another's
    /// child.
    pub(crate) fn reap(&self) {
        let ended = waitid(WaitId::PidFd(self.0.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        if let Err(error) = ended
            && error != Errno::CHILD
        {
            tracing::warn!(%error, "a child that has ended cannot be reaped");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_cannot_confuse_the_reader() {
        let tail = "3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 \
                    39 40 41 42 43 44 45 46 47 48 1792";
        let stat = Stat::parse(&format!("12 (a) Z (b) Z 1 2 {tail}")).unwrap();
        assert_eq!((stat.state, stat.session, stat.start_ticks, stat.mapped), ('Z', 3, 19, 20));
        assert_eq!(stat.ending(), Ending::Exited(7));
    }

    #[tokio::test]
    async fn a_child_that_ended_is_seen_with_its_exit_code_until_it_is_reaped() {
        let child = std::process::Command::new("/bin/sh").args(["-c", "exit 7"]).spawn().unwrap();
        let pid = child.id();
        let start = Stat::of(pid).unwrap().start_ticks;
        let pidfd = PidFd::open(pid).unwrap().ended().await.unwrap();
        assert_eq!(vitality(pid, start), Vitality::Zombie(Ending::Exited(7)));
        assert_eq!(vitality(pid, start + 1), Vitality::Gone);
        assert!(pidfd.has_ended());
        pidfd.reap();
        assert_eq!(vitality(pid, start), Vitality::Gone);
        assert!(!pidfd.signal(Signal::KILL).unwrap());
        drop(child);
    }

    /// A process that is on its way out has no environment any more, so that it looks like a stranger. On 2 cores about
    /// one of 25 is met in that state.
    #[test]
    fn a_process_without_an_environment_does_not_run() {
        for _ in 0..200 {
            let mut child = std::process::Command::new("/bin/sh").args(["-c", "exit 7"]).spawn().unwrap();
            let pid = child.id();
            let start = Stat::of(pid).unwrap().start_ticks;
            let environment = || std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            // It does not have one yet when it has just become another program.
            while environment().is_empty() && vitality(pid, start) == Vitality::Running {}
            loop {
                let environment = environment();
                match vitality(pid, start) {
                    Vitality::Zombie(ending) => break assert_eq!(ending, Ending::Exited(7)),
                    Vitality::Running => assert!(!environment.is_empty(), "it has lost its mark"),
                    Vitality::Leaving => {}
                    Vitality::Gone => panic!("nobody has reaped it"),
                }
            }
            child.wait().unwrap();
        }
    }
}
