//! `tenaz status`

use std::io::{Write, stdout};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tenaz_client::api::JobLine;
use tenaz_client::{Gateways, Settings, Transport};
use tenaz_core::{ProcessName, ProcessRole, ProcessState};
use tenaz_supervisor::status::{self, ProcessStatus, Status};
use tenaz_supervisor::{Config, Home};

use crate::outcome::{NotWell, stdout_failed};
use crate::process;
use crate::screen::Screen;
use crate::supervision_args::{StatusArgs, StatusFormat};

/// How long supervisors may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// How long a gateway may take to tell the jobs.
const JOBS_WITHIN: Duration = Duration::from_secs(3);

/// A cluster and its jobs.
#[derive(Debug, Serialize)]
struct Whole {
    #[serde(flatten)]
    status: Status,
    jobs: Vec<JobLine>,
    /// Why the jobs are not told, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs_unknown: Option<String>,
}

pub(crate) fn status(args: &StatusArgs, screen: &Screen) -> Result<()> {
    let home = Home::find(args.cluster.cluster.as_deref())?;
    let config = home.config()?;
    let status = process::block_on(ask(&home, &config))??;
    let (jobs, jobs_unknown) = match jobs(
        &status,
        crate::secrets::token(args.token.as_deref(), args.token_file.as_deref())?,
        args.transport.transport(),
    ) {
        Ok(jobs) => (jobs, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let whole = Whole { status, jobs, jobs_unknown };
    let text = match args.format {
        StatusFormat::Json => {
            let mut json = serde_json::to_value(&whole)?;
            // By name, as it stands among the processes.
            // A life has more digits than some programs can count to.
            if let Some(life) = whole.status.term.map(|term| term.life.to_string()) {
                json["term"]["life"] = life.into();
            }
            json["leader"] = serde_json::to_value(leader(&whole.status))?;
            serde_json::to_string_pretty(&json)? + "\n"
        }
        StatusFormat::Table => table(&home, &whole),
    };
    stdout().write_all(text.as_bytes()).map_err(stdout_failed)?;
    for process in whole.status.processes.iter().filter(|process| process.given_up.is_some()) {
        screen.say(&why_given_up(process));
    }
    let unwell = whole.status.processes.iter().filter(|process| process.state != ProcessState::Ready).count();
    match (&whole.status.leader, unwell) {
        (Some(_), 0) => Ok(()),
        (None, _) => Err(NotWell("no supervisor leads: nothing that dies is started again until one does; `tenaz up` starts them if none runs".to_owned()).into()),
        (_, unwell) => {
            Err(NotWell(format!("{unwell} of {} processes are not ready", whole.status.processes.len())).into())
        }
    }
}

/// Who leads.
pub(crate) fn leader(status: &Status) -> Option<ProcessName> {
    status.leader.map(|id| ProcessName::numbered(ProcessRole::Supervisor, u32::from(id.0)))
}

/// What the supervisors say; without any, what this machine itself shows.
pub(crate) async fn ask(home: &Home, config: &Config) -> Result<Status> {
    let key = home.key(config)?;
    match status::ask(config, &key, home.id(), ANSWER_WITHIN).await {
        Ok(status) => Ok(status),
        Err(error) if home.is_up() => {
            tracing::debug!(%error, "no supervisor answers");
            Ok(status::without_supervisors(home, config))
        }
        Err(error) => Err(error.into()),
    }
}

fn jobs(status: &Status, token: Option<String>, transport: Transport) -> Result<Vec<JobLine>> {
    if status.gateways.is_empty() {
        return Ok(Vec::new());
    }
    let settings = Settings {
        urls: status.gateways.iter().map(|gateway| gateway.url.clone()).collect(),
        token,
        transport,
        patience: JOBS_WITHIN,
        parallel: 1,
        stop: Arc::new(AtomicBool::new(false)),
    };
    Ok(Gateways::new(settings)?.jobs()?)
}

fn table(home: &Home, whole: &Whole) -> String {
    let Whole { status, jobs, jobs_unknown } = whole;
    let mut text = format!("cluster in {}\n", home.dir().display());
    let leader = leader(status).map_or("nobody leads".to_owned(), |leader| format!("{leader} leads"));
    let term = status.term.as_ref().map_or(String::new(), |term| format!(", term {}", term.round));
    text += &format!("{leader}{term}\n\n");
    let mut rows = vec![["process", "state", "pid", "life", "restarts", "heartbeat", ""].map(str::to_owned)];
    for process in &status.processes {
        rows.push([
            process.name.to_string(),
            process.state.to_string(),
            process.pid.map_or("-".to_owned(), |pid| pid.to_string()),
            process.incarnation.to_string(),
            process.restarts.to_string(),
            process.heartbeat_age_seconds.map_or("-".to_owned(), |age| format!("{age:.1} s ago")),
            remark(process),
        ]);
    }
    text += &aligned(&rows);
    if let Some(why) = jobs_unknown {
        text += &format!("\njobs: not known ({why})\n");
    } else if jobs.is_empty() {
        text += "\nno jobs\n";
    } else {
        let mut rows = vec![["job", "workload", "state", "chunks", "records"].map(str::to_owned)];
        rows.extend(jobs.iter().map(|job| {
            let chunks = format!("{}/{}", job.progress.chunks, job.progress.chunks_known);
            [
                job.job.clone(),
                job.workload.clone(),
                job.state.as_str().to_owned(),
                chunks,
                job.progress.records.to_string(),
            ]
        }));
        text += "\n";
        text += &aligned(&rows);
    }
    text
}

fn remark(process: &ProcessStatus) -> String {
    match (&process.url, &process.detail, &process.last_ending) {
        (Some(url), _, _) if process.state == ProcessState::Ready => url.clone(),
        (_, Some(detail), _) => detail.clone(),
        (_, _, Some(last)) if process.state != ProcessState::Ready => format!("last time: {}", last.how),
        _ => String::new(),
    }
}

/// Columns that stand below each other.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A process in one line.
pub(crate) fn in_words(process: &ProcessStatus) -> String {
    let pid = process.pid.map_or(String::new(), |pid| format!(", pid {pid}"));
    let restarts = if process.restarts == 0 { String::new() } else { format!(", {} restarts", process.restarts) };
    let url = process.url.as_ref().filter(|_| process.role == ProcessRole::Gateway);
    let url = url.map_or(String::new(), |url| format!(", {url}"));
    let detail = process.detail.as_ref().map_or(String::new(), |detail| format!(" ({detail})"));
    format!("{}{detail}{pid}{restarts}{url}", process.state)
}

/// Why a process is not started any more, with what it said last.
pub(crate) fn why_given_up(process: &ProcessStatus) -> String {
    let Some(given_up) = &process.given_up else { return String::new() };
    let mut text = format!("{} is given up: {}", process.name, given_up.reason);
    if !given_up.last_lines.is_empty() {
        text += "; it said last:";
    }
    for line in &given_up.last_lines {
        text += "\n  ";
        text += &crate::screen::printable(line);
    }
    text + "\nWhen the cause is mended, `tenaz up` starts anew (after `tenaz down`, if the cluster still runs)."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let rows = [["a", "bb"], ["ccc", "d"]].map(|row| row.map(str::to_owned));
        assert_eq!(aligned(&rows), "a    bb\nccc  d\n");
    }
}
