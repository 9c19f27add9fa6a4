//! The embedded files.

use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// One embedded file.
#[derive(Debug)]
pub struct Asset {
    /// The path below `assets/`.
    pub path: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
    /// Its bytes in gzip.
    pub gzip: Vec<u8>,
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../assets/", $path)))),*]
    };
}

/// Every file of `assets/` but `page.html` and `vendored.json`. A test says what is missing here.
const FILES: &[(&str, &[u8])] = files![
    "app/api.js",
    "app/ask/answers.js",
    "app/ask/ask_view.js",
    "app/ask/asking.js",
    "app/ask/cluster_question.js",
    "app/ask/dropped_files.js",
    "app/ask/sidebar.js",
    "app/ask/sql_editor.js",
    "app/ask/table_upload.js",
    "app/chart_choice.js",
    "app/cluster/cluster_view.js",
    "app/cluster/cluster_watch.js",
    "app/cluster/event_list.js",
    "app/cluster/members.js",
    "app/cluster/throughput.js",
    "app/cluster/time_axis.js",
    "app/csv_rows.js",
    "app/event_stream.js",
    "app/host.js",
    "app/job/job_events.js",
    "app/job/job_view.js",
    "app/job/job_watch.js",
    "app/job/jobs_view.js",
    "app/job/plan_graph.js",
    "app/lanes.js",
    "app/location.js",
    "app/main.js",
    "app/markup.js",
    "app/parts/answer_rows.js",
    "app/parts/chart.js",
    "app/parts/downloads.js",
    "app/parts/fixed_list.js",
    "app/parts/parts.js",
    "app/parts/rejects.js",
    "app/parts/result_table.js",
    "app/plan_layout.js",
    "app/quantities.js",
    "app/route.js",
    "app/row_pages.js",
    "app/shell.js",
    "app/sql_words.js",
    "app/store.js",
    "app/table_files.js",
    "app/theme.js",
    "style/ask.css",
    "style/cluster.css",
    "style/job.css",
    "style/mark.svg",
    "style/parts.css",
    "style/theme.css",
    "vendor/htm/LICENSE",
    "vendor/htm/htm.module.js",
    "vendor/preact/LICENSE",
    "vendor/preact/hooks.module.js",
    "vendor/preact/preact.module.js",
    "vendor/uplot/LICENSE",
    "vendor/uplot/uPlot.esm.js",
    "vendor/uplot/uPlot.min.css",
];

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let embed = |(path, bytes): &(&'static str, &'static [u8])| Asset { path, bytes, gzip: compressed(bytes) };
    FILES.iter().map(embed).collect()
});

static CONTENT_HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for (path, bytes) in FILES {
        hash.update(path.as_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

/// All embedded files.
pub fn assets() -> &'static [Asset] {
    &ASSETS
}

/// A digest of all of them: part of their path.
pub fn content_hash() -> &'static str {
    &CONTENT_HASH
}

/// These bytes in gzip.
pub(crate) fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("writing to memory never fails")
}
