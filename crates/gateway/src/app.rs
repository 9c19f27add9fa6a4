//! What all requests share, and how a request finds its job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenaz_api::JobState;
use tenaz_cluster::{Book, Control, EventLog, JobSpec, Link, Membership, ResultEnd, build_id};
use tenaz_core::{End, Fact, JobCard, JobId, TableId};
use tenaz_runtime::Budget;
use tenaz_vitals::{GatewayMetrics, Vitals};
use tokio::sync::Semaphore;

use crate::auth::Tenant;
use crate::limits::{APPEAR_WAIT, KEPT_ENDS, READ_BACK_WAIT, TOUCH_EVERY};
use crate::places::FilePlaces;
use crate::plans::{Planned, Plans};
use crate::problem::{Code, Problem};
use crate::receipts::Receipts;
use crate::request_rate::RequestRate;
use crate::server::Ending;
use crate::stuck::Stuck;
use crate::supervision::Supervisors;
use crate::tokens::Tokens;
use crate::{GatewaySettings, Limits};

/// What all requests share.
pub(crate) struct App {
    pub(crate) link: Link,
    pub(crate) book: Arc<Book>,
    pub(crate) membership: Arc<Membership>,
    /// What has happened in the cluster.
    pub(crate) events: Arc<EventLog>,
    /// The way to the supervisors, if there are any.
    pub(crate) supervision: Option<Arc<dyn Supervisors>>,
    pub(crate) tokens: Option<Arc<Tokens>>,
    pub(crate) limits: Limits,
    pub(crate) plans: Plans,
    pub(crate) request_rate: RequestRate,
    pub(crate) receipts: Receipts,
    pub(crate) ending: Ending,
    /// How this process shows itself.
    pub(crate) vitals: Arc<Vitals>,
    /// What it counts.
    pub(crate) metrics: GatewayMetrics,
    /// Bytes of uploads in memory.
    pub(crate) upload_memory: Arc<Semaphore>,
    /// Streams under way.
    pub(crate) streams: Arc<Semaphore>,
    /// Whole files under way.
    pub(crate) files: FilePlaces,
    /// Rows at rest.
    pub(crate) rows: Arc<Budget>,
    touch_every: Duration,
    touched: Mutex<HashMap<JobId, Instant>>,
    ends: Mutex<HashMap<JobId, Arc<FoundEnd>>>,
    /// Work queues that confirm nothing.
    pub(crate) stuck: Stuck,
    /// How far the control logs of jobs were read at most.
    read: Mutex<HashMap<JobId, u64>>,
}

/// The state of the router.
pub(crate) type Shared = Arc<App>;

/// A job that a request is about.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) card: JobCard,
    pub(crate) spec: Arc<JobSpec>,
    pub(crate) planned: Arc<Planned>,
    pub(crate) end: Option<End>,
}

/// The end of a job's results.
#[derive(Debug)]
pub(crate) struct FoundEnd {
    pub(crate) end: ResultEnd,
    /// Its place in the results log: everything before it is there, too.
    pub(crate) offset: u64,
}

impl Job {
    pub(crate) fn id(&self) -> &JobId {
        &self.card.id
    }

    /// The table with this name, if the job reads it.
    pub(crate) fn table(&self, name: &str) -> Result<TableId, Problem> {
        let table = self.planned.table(name).filter(|table| self.card.tables.contains(table));
        table.ok_or_else(|| {
            let read: Vec<&str> = self.planned.read_tables().map(|table| self.planned.table_name(table)).collect();
            let text = format!("job {} reads no table {name:?}; it reads {}", self.id(), read.join(", "));
            Problem::new(Code::NotFound, text)
        })
    }
}

impl App {
    pub(crate) fn new(
        link: Link,
        book: Arc<Book>,
        membership: Arc<Membership>,
        tokens: Option<Arc<Tokens>>,
        settings: &GatewaySettings,
        vitals: Arc<Vitals>,
        ending: Ending,
    ) -> Self {
        let limits = settings.limits.clone();
        let touch_every = TOUCH_EVERY.min(settings.patience.idle / 4).min(settings.patience.results / 4);
        Self {
            receipts: Receipts::new(&book),
            plans: Plans::new(limits.planning),
            request_rate: RequestRate::new(limits.requests_per_second),
            upload_memory: Arc::new(Semaphore::new(limits.upload_memory_bytes.min(Semaphore::MAX_PERMITS))),
            streams: Arc::new(Semaphore::new(limits.streams)),
            files: FilePlaces::new(limits.files),
            rows: Budget::new(limits.row_memory_bytes, settings.temp_dir.clone()),
            events: EventLog::open(&link),
            supervision: settings.supervisors.clone(),
            link,
            book,
            membership,
            tokens,
            limits,
            ending,
            metrics: vitals.metrics().gateway(),
            vitals,
            touch_every,
            touched: Mutex::default(),
            ends: Mutex::default(),
            stuck: Stuck::default(),
            read: Mutex::default(),
        }
    }

    /// The tenant's job with this id. Another gateway may have made it a moment ago.
    pub(crate) async fn card(&self, tenant: &Tenant, id: &str) -> Result<(JobCard, Option<End>), Problem> {
        let unknown = || Problem::new(Code::NotFound, format!("there is no job {id:?}: it may have expired"));
        let id = JobId::parse(id).ok_or_else(unknown)?;
        let look = || self.book.view(&id, |view| (view.card.clone(), view.end.clone()));
        let mut found = look();
        if found.is_none() {
            let _ = tokio::time::timeout(APPEAR_WAIT, self.book.wait_for_job(&id)).await;
            found = look();
        }
        match (found, self.link.trouble()) {
            (Some((card, end)), _) if tenant.may_see(&card) => Ok((card, end)),
            (None, Some(trouble)) => Err(broker_away(&trouble)),
            _ => Err(unknown()),
        }
    }

    /// The tenant's job with this id, with what it asks.
    pub(crate) async fn job(&self, tenant: &Tenant, id: &str) -> Result<Job, Problem> {
        let (card, end) = self.card(tenant, id).await?;
        if card.build != build_id() {
            let text = format!(
                "job {id} was planned by build {} of tenaz, and this gateway is build {}: ask a gateway of the job's build",
                card.build,
                build_id()
            );
            return Err(Problem::new(Code::OtherBuild, text));
        }
        let reading = self.book.wait(&card.id, |view| view.spec.clone());
        let spec = match tokio::time::timeout(APPEAR_WAIT, reading).await {
            Ok(Some(spec)) => spec,
            Ok(None) => return Err(gone(&card.id)),
            Err(_) => {
                let text = format!("job {id} is still being created: create it again with the same key, or wait");
                return Err(Problem::new(Code::BeingCreated, text));
            }
        };
        let planned = self.plans.get(&spec, &card.spec_digest).await?;
        Ok(Job { card, spec, planned, end })
    }

    /// The same, where the job must not have ended.
    pub(crate) async fn open_job(&self, tenant: &Tenant, id: &str) -> Result<Job, Problem> {
        let job = self.job(tenant, id).await?;
        tenant.check_owns(&job.card)?;
        match &job.end {
            None => Ok(job),
            Some(end) => Err(ended(job.id(), end)),
        }
    }

    /// Fails when the job has ended or is gone.
    pub(crate) fn check_open(&self, job: &JobId) -> Result<(), Problem> {
        match self.book.view(job, |view| view.end.clone()) {
            None => Err(gone(job)),
            Some(Some(end)) => Err(ended(job, &end)),
            Some(None) => Ok(()),
        }
    }

    /// Waits for something that needs the broker: not for ever, but longer while the broker only asks for patience.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Problem> {
        const STEP: Duration = Duration::from_millis(250);
        let mut work = std::pin::pin!(work);
        let (mut waited, mut blocked) = (Duration::ZERO, Duration::ZERO);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = tokio::time::sleep(STEP) => {}
            }
            if self.link.is_blocked() {
                blocked += STEP;
            } else {
                waited += STEP;
            }
            if waited >= self.limits.broker_wait || blocked >= self.limits.blocked_wait {
                let trouble = self.link.trouble().unwrap_or_else(|| "the broker does not answer".to_owned());
                return Err(broker_away(&trouble));
            }
        }
    }

    /// Waits until the job's control log is read as far as it was before. When the broker comes back, books read control
    /// logs anew, and for a moment a job looks as if nothing had been uploaded. (A log that has lost its end in a power cut
    /// never gets there, so this does not wait for long.)
    pub(crate) async fn settled(&self, job: &JobId) {
        let lock = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let before = lock().get(job).copied().unwrap_or(0);
        let reading = self.book.wait(job, |view| (view.facts.next_offset() >= before).then_some(()));
        let caught_up = tokio::time::timeout(READ_BACK_WAIT, reading).await.is_ok();
        let now = self.book.view(job, |view| view.facts.next_offset());
        let mut read = lock();
        match now {
            Some(now) => drop(read.insert(job.clone(), if caught_up { now.max(before) } else { now })),
            None => drop(read.remove(job)),
        }
        if read.len() > self.limits.jobs {
            read.retain(|job, _| self.book.view(job, |_| ()).is_some());
        }
    }

    /// A client of the job is there. Written down now and then, so that the job does not expire.
    pub(crate) fn touch(self: &Arc<Self>, job: &JobId) {
        let every = self.touch_every;
        let active = self.book.view(job, |view| view.active.elapsed() < every);
        if active != Some(false) {
            return;
        }
        {
            let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
            touched.retain(|_, at| at.elapsed() < every);
            if touched.contains_key(job) {
                return;
            }
            touched.insert(job.clone(), Instant::now());
        }
        let (app, job) = (Arc::clone(self), job.clone());
        tokio::spawn(async move {
            let touched = Control::Fact(Fact::Touched);
            if let Ok(Err(error)) = app.within(app.book.tell(&job, &touched)).await {
                tracing::warn!(%job, %error, "a sign of life could not be written down");
            }
        });
    }

    /// The end of the results, if somebody has read it.
    pub(crate) fn known_end(&self, job: &JobId) -> Option<Arc<FoundEnd>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).get(job).cloned()
    }

    /// Remembers the end of the results, and where it was found.
    pub(crate) fn remember_end(&self, job: &JobId, end: ResultEnd, offset: u64) -> Arc<FoundEnd> {
        let end = Arc::new(FoundEnd { end, offset });
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends.len() >= KEPT_ENDS {
            ends.retain(|job, _| self.book.view(job, |_| ()).is_some());
        }
        if ends.len() >= KEPT_ENDS {
            ends.clear();
        }
        ends.insert(job.clone(), Arc::clone(&end));
        end
    }
}

/// The broker cannot be reached.
pub(crate) fn broker_away(trouble: &str) -> Problem {
    Problem::new(Code::BrokerAway, format!("{trouble}; try again in a moment: nothing that was confirmed is lost"))
}

/// The job was there a moment ago.
pub(crate) fn gone(job: &JobId) -> Problem {
    Problem::new(Code::NotFound, format!("job {job} was removed"))
}

/// The job has ended.
pub(crate) fn ended(job: &JobId, end: &End) -> Problem {
    let text = match end {
        End::Failed { reason, .. } => format!("job {job} has failed: {reason}"),
        end => format!("job {job} is {}: create another", JobState::of_end(end).as_str()),
    };
    Problem::new(Code::AlreadyEnded, text).with("state", JobState::of_end(end).as_str())
}
