//! `tenaz ui`

use std::io::{IsTerminal, Write, stdout};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use tenaz_local::{Server, Settings};

use super::run::options;
use crate::args::UiArgs;
use crate::outcome::{Usage, stdout_failed};
use crate::process;
use crate::screen::Screen;

pub(crate) fn ui(args: &UiArgs, screen: &Screen) -> Result<()> {
    if !args.listen.ip().is_loopback() {
        let text = format!(
            "--listen {}: other machines could reach it; listen on 127.0.0.1, and use tenaz gateway for others",
            args.listen
        );
        return Err(Usage(text).into());
    }
    let settings = Settings {
        data: args.data.clone(),
        reading: args.reading.reading(),
        types: args.types.clone(),
        options: options(&args.engine),
        listen: args.listen,
    };
    process::run_quietly(async |stop| {
        let started = Server::start(settings).await;
        let server = started.with_context(|| format!("cannot listen on {}", args.listen))?;
        let url = server.url();
        if let Some(trouble) = server.trouble() {
            screen.say(&format!("note: {trouble}"));
        }
        writeln!(stdout(), "{url}").and_then(|()| stdout().flush()).map_err(stdout_failed)?;
        screen.say("the address holds a token: it is for you alone; Ctrl-C ends it");
        if !args.no_open && stdout().is_terminal() {
            open(&url);
        }
        server.serve(stop).await.context("the page cannot be served any longer")
    })
}

/// Shows the page in the user's browser, if there is one.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    let begun = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    // Without a browser the printed address is enough.
    drop(begun);
}
