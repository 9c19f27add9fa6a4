//! `tenaz explain`

use std::io::{Write, stdout};

use tenaz_engine::{JobPlan, Workload, describe};

use crate::args::{ExplainArgs, ExplainFormat};
use crate::outcome::stdout_failed;
use crate::screen::Screen;

pub(crate) fn explain(args: &ExplainArgs, _: &Screen) -> anyhow::Result<()> {
    let mut workload = Workload::load(&args.workload)?.select(&args.query)?;
    args.time.fix(&mut workload);
    let plan = JobPlan::new(&workload)?;
    let text = match args.format {
        ExplainFormat::Text => describe::text(&plan),
        ExplainFormat::Dot => describe::dot(&plan),
        ExplainFormat::Json => {
            let scans: Vec<_> = plan.scans.iter().map(|scan| plan.tables[usize::from(scan.table.0)].clone()).collect();
            let job = serde_json::json!({
                "workload": workload.name,
                "title": workload.title,
                "scans": scans,
                "stages": describe::stages(&plan),
            });
            format!("{}\n", serde_json::to_string_pretty(&job)?)
        }
    };
    stdout().write_all(text.as_bytes()).map_err(stdout_failed)
}
