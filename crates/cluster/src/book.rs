//! The book of jobs: the registry's log, and the control log of every job that is there, read into memory.
//!
//! Every process has one and none is special: a process that starts reads everything from the logs.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tenaz_core::{
    Change, Classified, ControlLog, End, Entry, FaultClass, JobCard, JobId, Log, MentionUrgency, Registry,
    RegistryEvent, SpecWatch, TableId,
};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::limits::{OPEN_PATIENCE, READ_AHEAD, REGISTRY_BYTES};
use crate::log::{Followed, follow_log};
use crate::{Control, Error, JobSpec, Link};

/// Why a job can not succeed, as its control log shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlProblem {
    /// A message cannot be read.
    Unreadable(String),
    /// Two messages contradict each other.
    Contradiction(tenaz_core::Error),
}

impl ControlProblem {
    /// The problem in words, with the tables' names.
    pub fn in_words(&self, table_name: impl Fn(TableId) -> String) -> String {
        match self {
            Self::Unreadable(text) => text.clone(),
            Self::Contradiction(error) => error.in_words(table_name),
        }
    }
}

impl Classified for ControlProblem {
    fn class(&self) -> FaultClass {
        match self {
            Self::Unreadable(_) => FaultClass::Bug,
            Self::Contradiction(error) => error.class(),
        }
    }
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
    control: ControlLog,
    /// When something was last heard of it.
    pub active: Instant,
    /// What is wrong with its control log: it cannot succeed.
    pub problem: Option<ControlProblem>,
    /// Whether its control log still has the spec.
    spec_watch: SpecWatch,
    /// How often its control log was marked.
    marks_made: u64,
    changed: watch::Sender<u64>,
    /// Whether all its queues and logs exist.
    pub prepared: bool,
    reader: Option<JoinHandle<()>>,
}

/// What the control log says is said of the job.
impl Deref for JobView {
    type Target = ControlLog;

    fn deref(&self) -> &ControlLog {
        &self.control
    }
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
    /// Whether the registry was read to its end once.
    is_open: bool,
}

/// The book of one process.
#[derive(Debug)]
pub struct Book {
    link: Link,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

impl Book {
    /// Starts reading, and waits until everything that was written before is read.
    pub async fn open(link: &Link) -> Result<Arc<Self>, Error> {
        let (changed, _) = watch::channel(0);
        let book = Arc::new(Self { link: link.clone(), state: Mutex::default(), changed });
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        tokio::spawn(follow_log(link.clone(), link.names().registry(), sender));
        tokio::spawn(Arc::clone(&book).read_registry(random_number()?, receiver));
        match tokio::time::timeout(OPEN_PATIENCE, book.catch_up()).await {
            Ok(()) => Ok(book),
            Err(_) => Err(Error::NoRegistry { stream: link.names().registry(), waited: OPEN_PATIENCE }),
        }
    }

    async fn catch_up(&self) {
        let mut version = self.changes();
        while !self.lock().is_open {
            if version.changed().await.is_err() {
                break;
            }
        }
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

    /// Jobs that the registry's log must be told of again, because it has lost them or would soon drop them.
    pub fn due_mentions(&self) -> BTreeMap<JobId, MentionUrgency> {
        self.lock().registry.due(REGISTRY_BYTES)
    }

    /// Writes a job into the registry's log again.
    pub async fn mention(&self, job: &JobId) -> Result<(), Error> {
        let mention = self.lock().registry.mention(job);
        match mention {
            Some(event) => self.write(&event).await,
            None => Ok(()),
        }
    }

    /// Each reading of the log has a mark of its own: `mark` and those that follow.
    async fn read_registry(self: Arc<Self>, mut mark: u64, mut messages: mpsc::Receiver<Followed>) {
        while let Some(followed) = messages.recv().await {
            match followed {
                Followed::Anew => self.begin_reading(&mut mark),
                Followed::Message(message) => match serde_json::from_slice::<RegistryEvent>(&message.body) {
                    Ok(event) => self.take_event(message.body.len() as u64, event),
                    Err(error) => {
                        tracing::error!(offset = message.offset, %error, "an event of the registry cannot be read");
                    }
                },
            }
        }
    }

    fn begin_reading(self: &Arc<Self>, mark: &mut u64) {
        *mark = mark.wrapping_add(1);
        let (book, number) = (Arc::clone(self), *mark);
        self.lock().registry.begin_reading(number);
        tokio::spawn(async move {
            if let Err(error) = book.write(&RegistryEvent::Mark { number }).await {
                tracing::error!(%error, "the registry cannot be written");
            }
        });
    }

    fn take_event(self: &Arc<Self>, bytes: u64, event: RegistryEvent) {
        let mut state = self.lock();
        for change in state.registry.apply(bytes, event) {
            self.take_change(&mut state, change);
        }
        state.is_open |= state.registry.is_caught_up();
        drop(state);
        self.changed.send_modify(|version| *version += 1);
    }

    fn take_change(self: &Arc<Self>, state: &mut State, change: Change) {
        match change {
            Change::Opened(id) => {
                if let Some(entry) = state.registry.get(&id).cloned() {
                    state.jobs.insert(id, self.open_job(entry));
                }
            }
            Change::Prepared(id) => {
                if let Some(view) = state.jobs.get_mut(&id) {
                    view.prepared = true;
                    view.reader.get_or_insert_with(|| self.follow_control(&id));
                    view.changed.send_modify(|version| *version += 1);
                }
            }
            Change::Ended(id) => {
                let end = state.registry.get(&id).and_then(|entry| entry.end.clone());
                if let Some(view) = state.jobs.get_mut(&id) {
                    view.end = end;
                    view.changed.send_modify(|version| *version += 1);
                }
            }
            Change::Removed(id) => {
                state.jobs.remove(&id);
            }
        }
    }

    fn follow_control(self: &Arc<Self>, job: &JobId) -> JoinHandle<()> {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let log = self.link.names().log(job, Log::Control);
        let following = follow_log(self.link.clone(), log, sender);
        let taking = Arc::clone(self).read_control(job.clone(), receiver);
        tokio::spawn(async move {
            tokio::join!(following, taking);
        })
    }

    fn open_job(self: &Arc<Self>, Entry { card, end, prepared }: Entry) -> JobView {
        let reader = prepared.then(|| self.follow_control(&card.id));
        let (changed, _) = watch::channel(0);
        JobView {
            card,
            end,
            spec: None,
            control: ControlLog::default(),
            active: Instant::now(),
            problem: None,
            marks_made: 0,
            spec_watch: SpecWatch::default(),
            changed,
            prepared,
            reader,
        }
    }

    async fn read_control(self: Arc<Self>, job: JobId, mut messages: mpsc::Receiver<Followed>) {
        // Ends with this reader: the log may be gone by then.
        let mut marking = JoinSet::new();
        while let Some(followed) = messages.recv().await {
            let mut state = self.lock();
            let Some(view) = state.jobs.get_mut(&job) else { return };
            match followed {
                Followed::Anew => {
                    marking.abort_all();
                    marking.spawn(mark(Arc::clone(&self), job.clone(), view.begin_reading()));
                    view.active = Instant::now();
                }
                Followed::Message(message) => match serde_json::from_slice::<Control>(&message.body) {
                    Ok(control) => {
                        if let Some(spec) = view.take(message.offset, control) {
                            marking.spawn(write_spec_again(Arc::clone(&self), job.clone(), spec));
                        }
                    }
                    Err(error) => {
                        let text = format!("message {} of its control log cannot be read: {error}", message.offset);
                        view.problem.get_or_insert(ControlProblem::Unreadable(text));
                    }
                },
            }
            view.changed.send_modify(|version| *version += 1);
        }
    }
}

/// Marks the present end of a control log.
async fn mark(book: Arc<Book>, job: JobId, number: u64) {
    if let Err(error) = book.tell(&job, &Control::Mark(number)).await {
        tracing::warn!(%job, %error, "a control log cannot be marked");
    }
}

/// A power cut has taken the spec out of the control log: workers that come later would wait for it in vain.
async fn write_spec_again(book: Arc<Book>, job: JobId, spec: Arc<JobSpec>) {
    tracing::warn!(%job, "its control log has lost what the job asks: writing that again");
    if let Err(error) = book.tell(&job, &Control::Spec(Box::new((*spec).clone()))).await {
        tracing::warn!(%job, %error, "what the job asks cannot be written again");
    }
}

impl JobView {
    /// The control log is read from its start. Returns the mark at which it is read to its present end.
    fn begin_reading(&mut self) -> u64 {
        self.marks_made += 1;
        let mark = random_number().unwrap_or(self.marks_made);
        self.control.begin_reading(mark);
        self.spec_watch.begin_reading();
        mark
    }

    /// Marks are no signs of life of the job: every process that starts leaves one. Returns the spec if the log has lost it.
    fn take(&mut self, offset: u64, control: Control) -> Option<Arc<JobSpec>> {
        if !matches!(control, Control::Mark(_)) {
            self.active = Instant::now();
        }
        match control {
            Control::Spec(spec) => {
                self.spec.get_or_insert_with(|| Arc::from(spec));
                self.spec_watch.read();
            }
            Control::Mark(mark) => {
                let was_caught_up = self.control.is_caught_up();
                self.control.marked(mark);
                let is_read_anew = !was_caught_up && self.control.is_caught_up();
                let is_lost = is_read_anew && self.spec_watch.is_lost() && self.end.is_none();
                return self.spec.clone().filter(|_| is_lost);
            }
            Control::Fact(fact) => {
                self.control.take(offset, fact);
                if let Some(error) = self.control.contradiction() {
                    self.problem.get_or_insert_with(|| ControlProblem::Contradiction(error.clone()));
                }
            }
        }
        None
    }
}

/// A number nobody else has.
pub(crate) fn random_number() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(u64::from_be_bytes(bytes))
}
