//! The one HTML document.

use std::sync::LazyLock;

use crate::assets::content_hash;

/// Who serves the page: it decides which views there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// A gateway of a cluster.
    Gateway,
    /// `tenaz ui`: one machine, without a broker.
    Local,
}

impl Host {
    /// Its name in the document.
    fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Local => "local",
        }
    }
}

/// The map from the names of libraries to their files. It stands inside the document, so the policy names its digest.
pub(crate) static IMPORT_MAP: LazyLock<String> = LazyLock::new(|| {
    let hash = content_hash();
    let module = |name: &str, path: &str| format!("\"{name}\":\"/ui/{hash}/vendor/{path}\"");
    let modules = [
        module("preact", "preact/preact.module.js"),
        module("preact/hooks", "preact/hooks.module.js"),
        module("htm", "htm/htm.module.js"),
        module("uplot", "uplot/uPlot.esm.js"),
    ];
    format!("{{\"imports\":{{{}}}}}", modules.join(","))
});

/// The document for this host.
pub(crate) fn document(host: Host) -> String {
    include_str!("../assets/page.html")
        .replace("{{import-map}}", &IMPORT_MAP)
        .replace("{{assets}}", &format!("/ui/{}", content_hash()))
        .replace("{{host}}", host.name())
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
}
