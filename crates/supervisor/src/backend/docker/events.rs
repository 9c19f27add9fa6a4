//! The engine's events, as a bell that rings when a container of the cluster was started or has ended.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bollard::Docker as Engine;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptions;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::Mutex;

use crate::backend::limits::EVENTS_PAUSE;

type Stream = BoxStream<'static, Result<EventMessage, bollard::errors::Error>>;

/// What may have changed when it happens. `oom` comes before `die`, `destroy` takes the container away.
const ACTIONS: [&str; 5] = ["start", "die", "died", "oom", "destroy"];

pub(super) struct Events {
    label: String,
    /// The open stream. It stays here while somebody waits, so a wait that is given up loses nothing.
    stream: Mutex<Option<Stream>>,
    /// When the latest event that was told happened, on the engine's clock: a new stream goes on from there.
    told_ns: AtomicU64,
}

impl Events {
    pub(super) fn since_now(label: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let told_ns = AtomicU64::new(u64::try_from(now).unwrap_or(0));
        Self { label: label.to_owned(), stream: Mutex::default(), told_ns }
    }

    /// Returns at the next event, or, where there are none to be had, after a pause.
    pub(super) async fn next(&self, engine: Option<Engine>) {
        let Some(engine) = engine else {
            *self.stream.lock().await = None;
            return tokio::time::sleep(EVENTS_PAUSE).await;
        };
        let mut slot = self.stream.lock().await;
        loop {
            let stream = slot.get_or_insert_with(|| self.open(&engine));
            match stream.next().await {
                Some(Ok(event)) => {
                    let at = event.time_nano.and_then(|at| u64::try_from(at).ok()).unwrap_or(u64::MAX);
                    // A new stream begins with the second in which the last one ended.
                    if at > self.told_ns.load(Ordering::Relaxed) {
                        if at < u64::MAX {
                            self.told_ns.store(at, Ordering::Relaxed);
                        }
                        return;
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "the engine's events ended");
                    *slot = None;
                    return tokio::time::sleep(EVENTS_PAUSE).await;
                }
                None => {
                    *slot = None;
                    return tokio::time::sleep(EVENTS_PAUSE).await;
                }
            }
        }
    }

    fn open(&self, engine: &Engine) -> Stream {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let filters = [
            ("type".to_owned(), texts(&["container"])),
            ("label".to_owned(), texts(&[&self.label])),
            ("event".to_owned(), texts(&ACTIONS)),
        ];
        let since_s = self.told_ns.load(Ordering::Relaxed) / 1_000_000_000;
        let options = EventsOptions { since: Some(since_s.to_string()), filters: Some(filters.into()), until: None };
        engine.events(Some(options)).boxed()
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("label", &self.label).finish_non_exhaustive()
    }
}
