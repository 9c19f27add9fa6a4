//! The book of jobs: the registry's log, and the control log of every job that is there, read into memory.
//!
//! Every process has one and none is special: a process that starts reads everything from the logs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tenaz_core::{
    Attempt, Change, End, Fact, JobCard, JobFacts, JobId, Log, Promise, Registry, RegistryEvent, Source, TableId,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::limits::{OPEN_PATIENCE, READ_AHEAD, REGISTRY_STALE_BYTES};
use crate::log::{Again, Followed, follow_log};
use crate::{Control, Error, JobSpec, Link};

/// Something that workers must know, in the order of the control log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A table is complete.
    TableClosed(TableId, Promise),
    /// Something is about to be run.
    Attempted(Source, Attempt),
    /// Something that was tried before has been finished.
    Exonerated(Source),
}

/// What is known of a job.
#[derive(Debug)]
pub struct JobView {
    /// Its entry in the registry.
    pub card: JobCard,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// What it asks, once that has been read.
    pub spec: Option<Arc<JobSpec>>,
    /// What was uploaded and which tables are complete.
    pub facts: JobFacts,
    /// What workers must know.
    pub notes: Vec<Note>,
    /// How often the control log was read from its start: then `facts` and `notes` begin anew.
    pub reading: u64,
    /// When something was last heard of it.
    pub active: Instant,
    /// When this process learned that it had ended.
    pub ended: Option<Instant>,
    /// A contradiction in its control log: it cannot succeed.
    pub problem: Option<String>,
    changed: watch::Sender<u64>,
    /// Whether all its queues and logs exist.
    pub prepared: bool,
    reader: Option<JoinHandle<()>>,
}

impl Drop for JobView {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.abort();
        }
    }
}

#[derive(Debug, Default)]
struct State {
    registry: Registry,
    jobs: BTreeMap<JobId, JobView>,
    mark_seen: bool,
}

/// The book of one process.
#[derive(Debug)]
pub struct Book {
    link: Link,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
    mark: u64,
}

impl Book {
    /// Starts reading, and waits until everything that was written before is read.
    pub async fn open(link: &Link) -> Result<Arc<Self>, Error> {
        let mark = random_number()?;
        let (changed, _) = watch::channel(0);
        let book = Arc::new(Self { link: link.clone(), state: Mutex::default(), changed, mark });
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        tokio::spawn(follow_log(link.clone(), link.names().registry(), Again::Onward, sender));
        tokio::spawn(Arc::clone(&book).read_registry(receiver));
        match tokio::time::timeout(OPEN_PATIENCE, book.catch_up()).await {
            Ok(caught_up) => caught_up.map(|()| book),
            Err(_) => Err(Error::NoRegistry { stream: link.names().registry(), waited: OPEN_PATIENCE }),
        }
    }

    async fn catch_up(&self) -> Result<(), Error> {
        self.write(&RegistryEvent::Mark { number: self.mark }).await?;
        let mut version = self.changes();
        while !self.lock().mark_seen {
            if version.changed().await.is_err() {
                break;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event to the registry's log.
    pub async fn write(&self, event: &RegistryEvent) -> Result<(), Error> {
        let body = serde_json::to_vec(event).expect("events are plain data");
        self.link.publish(&self.link.names().registry(), "registry", body.into()).await
    }

    /// Appends a message to a job's control log.
    pub async fn tell(&self, job: &JobId, message: &Control) -> Result<(), Error> {
        let body = serde_json::to_vec(message).expect("control messages are plain data");
        self.link.publish(&self.link.names().log(job, Log::Control), "control", body.into()).await
    }

    /// Changes whenever a job comes, ends or goes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Changes whenever something new is known of this job.
    pub fn changes_of(&self, job: &JobId) -> Option<watch::Receiver<u64>> {
        self.lock().jobs.get(job).map(|view| view.changed.subscribe())
    }

    /// Looks at a job.
    pub fn view<T>(&self, job: &JobId, look: impl FnOnce(&JobView) -> T) -> Option<T> {
        self.lock().jobs.get(job).map(look)
    }

    /// Looks at all jobs, one after the other, in the order of their ids.
    pub fn each<T>(&self, mut look: impl FnMut(&JobView) -> T) -> Vec<T> {
        self.lock().jobs.values().map(&mut look).collect()
    }

    /// Waits until `answer` says something about the job. `None` when the job is gone.
    pub async fn wait<T>(&self, job: &JobId, mut answer: impl FnMut(&JobView) -> Option<T>) -> Option<T> {
        let mut changed = self.changes_of(job)?;
        loop {
            changed.borrow_and_update();
            if let Some(found) = self.view(job, &mut answer)? {
                return Some(found);
            }
            changed.changed().await.ok()?;
        }
    }

    /// Waits until the job is in the registry.
    pub async fn wait_for_job(&self, job: &JobId) {
        let mut changed = self.changes();
        while self.view(job, |_| ()).is_none() {
            changed.borrow_and_update();
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    async fn read_registry(self: Arc<Self>, mut messages: mpsc::Receiver<Followed>) {
        while let Some(followed) = messages.recv().await {
            let Followed::Message(message) = followed else { continue };
            let event = match serde_json::from_slice::<RegistryEvent>(&message.body) {
                Ok(event) => event,
                Err(error) => {
                    tracing::error!(offset = message.offset, %error, "an event of the registry cannot be read");
                    continue;
                }
            };
            let stale = self.take_event(message.offset, message.body.len() as u64, event);
            for event in stale {
                let book = Arc::clone(&self);
                tokio::spawn(async move {
                    if let Err(error) = book.write(&event).await {
                        tracing::warn!(%error, "a job could not be written down again");
                    }
                });
            }
        }
    }

    /// Takes an event in and says which jobs must be written down again.
    fn take_event(self: &Arc<Self>, offset: u64, bytes: u64, event: RegistryEvent) -> Vec<RegistryEvent> {
        let mut state = self.lock();
        if matches!(event, RegistryEvent::Mark { number } if number == self.mark) {
            state.mark_seen = true;
        }
        let change = state.registry.apply(offset, bytes, event);
        match &change {
            Change::Nothing => {}
            Change::Opened(id) => {
                let entry = state.registry.get(id).cloned();
                if let Some(entry) = entry {
                    let view = self.open_job(entry.card, entry.end, entry.prepared);
                    state.jobs.insert(id.clone(), view);
                }
            }
            Change::Prepared(id) => {
                if let Some(view) = state.jobs.get_mut(id) {
                    view.prepared = true;
                    view.reader.get_or_insert_with(|| self.follow_control(id));
                    view.changed.send_modify(|version| *version += 1);
                }
            }
            Change::Ended(id) => {
                let end = state.registry.get(id).and_then(|entry| entry.end.clone());
                if let Some(view) = state.jobs.get_mut(id) {
                    view.end = end;
                    view.ended = Some(Instant::now());
                    view.changed.send_modify(|version| *version += 1);
                }
            }
            Change::Removed(id) => {
                state.jobs.remove(id);
            }
        }
        // While the beginning is still being read, everything looks old.
        let stale = if state.mark_seen { state.registry.stale(REGISTRY_STALE_BYTES) } else { Vec::new() };
        drop(state);
        self.changed.send_modify(|version| *version += 1);
        stale
    }

    fn follow_control(self: &Arc<Self>, job: &JobId) -> JoinHandle<()> {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let log = self.link.names().log(job, Log::Control);
        let following = follow_log(self.link.clone(), log, Again::FromStart, sender);
        let taking = Arc::clone(self).read_control(job.clone(), receiver);
        tokio::spawn(async move {
            tokio::join!(following, taking);
        })
    }

    fn open_job(self: &Arc<Self>, card: JobCard, end: Option<End>, prepared: bool) -> JobView {
        let reader = prepared.then(|| self.follow_control(&card.id));
        let ended = end.as_ref().map(|_| Instant::now());
        let (changed, _) = watch::channel(0);
        JobView {
            card,
            end,
            spec: None,
            facts: JobFacts::default(),
            notes: Vec::new(),
            reading: 0,
            active: Instant::now(),
            ended,
            problem: None,
            changed,
            prepared,
            reader,
        }
    }

    async fn read_control(self: Arc<Self>, job: JobId, mut messages: mpsc::Receiver<Followed>) {
        while let Some(followed) = messages.recv().await {
            let mut state = self.lock();
            let Some(view) = state.jobs.get_mut(&job) else { return };
            match followed {
                Followed::Anew => {
                    view.facts = JobFacts::default();
                    view.notes.clear();
                    view.reading += 1;
                }
                Followed::Message(message) => match serde_json::from_slice::<Control>(&message.body) {
                    Ok(control) => view.take(message.offset, control),
                    Err(error) => {
                        let text = format!("message {} of its control log cannot be read: {error}", message.offset);
                        view.problem.get_or_insert(text);
                    }
                },
            }
            view.active = Instant::now();
            view.changed.send_modify(|version| *version += 1);
        }
    }
}

impl JobView {
    fn take(&mut self, offset: u64, control: Control) {
        match control {
            Control::Spec(spec) => {
                self.spec.get_or_insert_with(|| Arc::from(spec));
            }
            Control::Fact(fact) => match self.facts.apply(offset, &fact) {
                Err(error) => {
                    self.problem.get_or_insert(error.to_string());
                }
                Ok(false) => {}
                Ok(true) => match fact {
                    Fact::TableClosed { table, chunks, .. } => self.notes.push(Note::TableClosed(table, chunks)),
                    Fact::Attempted { source, by } => self.notes.push(Note::Attempted(source, by)),
                    Fact::Exonerated { source } => self.notes.push(Note::Exonerated(source)),
                    Fact::Uploaded { .. } | Fact::FileUploaded { .. } | Fact::Lost { .. } | Fact::Touched => {}
                },
            },
        }
    }
}

/// A number nobody else has.
pub(crate) fn random_number() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(u64::from_be_bytes(bytes))
}
