//! `tenaz probe`: asks a process how it is, for containers that have no curl.

use anyhow::{Result, bail};

use crate::outcome::{NotWell, Usage};
use crate::supervision_args::ProbeArgs;

pub(crate) fn probe(args: &ProbeArgs) -> Result<()> {
    let wrong = || Usage(format!("{:?} is nothing to ask for; write http://HOST:PORT/PATH", args.url));
    let rest = args.url.strip_prefix("http://").ok_or_else(wrong)?;
    let (host, path) = rest.split_once('/').ok_or_else(wrong)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(tenaz_vitals::status_of(host, &format!("/{path}"), args.timeout));
    // A process that does not answer is not well: that is an answer to the question.
    let status = status.map_err(|error| NotWell(error.to_string()))?;
    if !(200..300).contains(&status) {
        bail!("{} answers with status {status}", args.url);
    }
    Ok(())
}
