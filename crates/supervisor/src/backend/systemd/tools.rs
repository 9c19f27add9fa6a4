//! `systemctl` and `journalctl` as subprocesses.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::backend::BackendError;
use crate::backend::limits::{MAX_SHOWN_BYTES, SYSTEMD_PATIENCE};

#[derive(Debug)]
pub(super) struct Tools {
    pub(super) systemctl: PathBuf,
    pub(super) journalctl: PathBuf,
    /// Whether the user's own systemd is meant.
    pub(super) user: bool,
}

impl Tools {
    pub(super) fn new(user: bool) -> Self {
        Self { systemctl: PathBuf::from("systemctl"), journalctl: PathBuf::from("journalctl"), user }
    }

    pub(super) async fn systemctl<S: AsRef<OsStr>>(
        &self,
        what: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String, BackendError> {
        // Nobody sits there to give a password.
        let mut command = self.command(&self.systemctl);
        command.args(["--no-pager", "--no-ask-password"]).args(args);
        self.output(what, command).await
    }

    pub(super) async fn journalctl<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<String, BackendError> {
        let mut command = self.command(&self.journalctl);
        command.args(args);
        self.output("reading the journal", command).await
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if self.user {
            command.arg("--user");
        }
        command.env("LC_ALL", "C").env("SYSTEMD_COLORS", "0").env("SYSTEMD_URLIFY", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    async fn output(&self, what: &str, command: Command) -> Result<String, BackendError> {
        let refused = |detail: String| BackendError::Refused { what: what.to_owned(), detail };
        match tokio::time::timeout(SYSTEMD_PATIENCE, run(command)).await {
            Ok(Ok((true, out, _))) => Ok(out),
            Ok(Ok((false, out, err))) => Err(refused(self.cure(if err.trim().is_empty() { &out } else { &err }))),
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Err(refused(format!(
                "{} is not on this machine; use back-end = \"processes\" where there is no systemd",
                self.systemctl.display()
            ))),
            Ok(Err(error)) => Err(refused(error.to_string())),
            Err(_) => Err(refused(format!("systemd did not answer within {} s", SYSTEMD_PATIENCE.as_secs()))),
        }
    }

    /// What is wrong, and what helps.
    fn cure(&self, said: &str) -> String {
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
        let said = lines.join("; ");
        let cure =
            if ["Access denied", "nteractive authentication", "ermission denied"].iter().any(|t| said.contains(t)) {
                "let the supervisor's user manage the units with deploy/systemd/50-tenaz.rules, or use user = true"
            } else if said.contains("not been booted with systemd") || said.contains("Failed to connect to bus") {
                match self.user {
                    true => "the user has no systemd of its own now: loginctl enable-linger USER starts it",
                    false => "systemd does not run this machine; use back-end = \"processes\"",
                }
            } else if said.contains("not found") || said.contains("not loaded") {
                "install the units from deploy/systemd, then systemctl daemon-reload"
            } else {
                return said;
            };
        format!("{said} ({cure})")
    }
}

/// Whether it went well, and what it wrote, up to a limit.
async fn run(mut command: Command) -> io::Result<(bool, String, String)> {
    let mut child = command.spawn()?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let limit = MAX_SHOWN_BYTES as u64;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read_out = async {
        match stdout {
            Some(pipe) => pipe.take(limit).read_to_end(&mut out).await,
            None => Ok(0),
        }
    };
    let read_err = async {
        match stderr {
            Some(pipe) => pipe.take(limit).read_to_end(&mut err).await,
            None => Ok(0),
        }
    };
    tokio::try_join!(read_out, read_err)?;
    let status = child.wait().await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((status.success(), text(out), text(err)))
}
