//! The server: an address on loopback, a token, and what all requests share.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tenaz_infer::Reading;
use tenaz_runtime::Options;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::files::DroppedFiles;
use crate::guard::Guard;
use crate::jobs::Jobs;
use crate::limits::DRAIN;
use crate::routes::router;
use crate::tables::Tables;

/// What to serve, and where.
#[derive(Debug)]
pub struct Settings {
    /// A directory of CSV files, or one file; none: only what is dropped onto the page.
    pub data: Option<PathBuf>,
    /// How its files are written, where that is known.
    pub reading: Reading,
    /// Types of columns, where that is known.
    pub types: Vec<String>,
    /// How jobs run.
    pub options: Options,
    /// Where to listen: an address of this machine that others cannot reach.
    pub listen: SocketAddr,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) tables: Tables,
    pub(crate) files: DroppedFiles,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) stop: CancellationToken,
}

/// The state of the router.
pub(crate) type Shared = Arc<Local>;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    local: Shared,
}

impl Server {
    /// Looks at the tables and begins to listen.
    ///
    /// # Errors
    /// The address is not one of loopback or is taken, or there is no place for temporary files.
    pub async fn start(settings: Settings) -> std::io::Result<Self> {
        let Settings { data, reading, types, options, listen } = settings;
        if !listen.ip().is_loopback() {
            let text = format!(
                "{listen} can be reached from other machines: listen on 127.0.0.1, and use a gateway for others"
            );
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, text));
        }
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let files = DroppedFiles::new()?;
        let tables = Tables::new(data, files.dir().to_owned(), reading, types);
        let tables = tokio::task::spawn_blocking(move || {
            tables.look();
            tables
        });
        let tables = tables.await.map_err(std::io::Error::other)?;
        let stop = CancellationToken::new();
        let local = Arc::new(Local { tables, files, jobs: Arc::new(Jobs::new(options)), stop });
        Ok(Self { listener, address, token: random_hex()?, local })
    }

    /// The address of the page, with the token in its fragment, which no browser ever sends.
    pub fn url(&self) -> String {
        let host = match self.address.ip() {
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        };
        format!("http://{host}:{}/#/ask?token={}", self.address.port(), self.token)
    }

    /// What could not be read of the data, if anything.
    pub fn trouble(&self) -> Option<String> {
        self.local.tables.found().trouble.clone()
    }

    /// Serves until it is told to stop. Jobs that run are stopped then, and temporary files removed.
    ///
    /// # Errors
    /// The listener fails.
    pub async fn serve(self, stop: CancellationToken) -> std::io::Result<()> {
        let guard = Arc::new(Guard::new(self.address, self.token));
        let router = router(Arc::clone(&self.local), guard);
        let stopping = stop.clone();
        let serving = axum::serve(self.listener, router)
            .with_graceful_shutdown(async move { stopping.cancelled().await })
            .into_future();
        let mut serving = std::pin::pin!(serving);
        let done = tokio::select! {
            done = serving.as_mut() => done,
            () = stop.cancelled() => {
                self.local.stop.cancel();
                self.local.jobs.stop_all();
                tokio::time::timeout(DRAIN, serving).await.unwrap_or(Ok(()))
            }
        };
        self.local.jobs.stop_all();
        self.local.files.clear();
        done
    }
}

fn random_hex() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
