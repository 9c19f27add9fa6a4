//! A submission: the upload, and a look at the job from time to time, until it ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tenaz_core::FaultClass;

use crate::api::{Job, JobState};
use crate::limits::{LOOK_EVERY, TICK};
use crate::upload::Upload;
use crate::{Error, Gateways, UploadOptions, Wanted};

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The cluster has all data.
    Uploaded,
    /// The job is done.
    Done,
}

/// How things are, for whoever shows it.
#[derive(Debug)]
pub struct Glance {
    /// Bytes of files that the cluster has.
    pub sent_bytes: u64,
    /// Whether nothing is left to send.
    pub complete: bool,
    /// The job, when it was last seen.
    pub job: Option<Arc<Job>>,
    /// Why requests have to be repeated, if so.
    pub trouble: Option<String>,
}

/// A job that is being sent and followed, in the background.
#[derive(Debug)]
pub struct Submission {
    gateways: Arc<Gateways>,
    job: String,
    upload: Upload,
    look: Arc<Look>,
}

#[derive(Debug, Default)]
struct Look {
    over: AtomicBool,
    latest: Mutex<Option<Arc<Job>>>,
    failure: Mutex<Option<Error>>,
}

impl Submission {
    /// Starts to send the tables, in this order, and to follow the job.
    pub fn start(gateways: Arc<Gateways>, job: &str, tables: Vec<Wanted>, options: UploadOptions) -> Self {
        let upload = Upload::start(Arc::clone(&gateways), job.to_owned(), tables, options);
        let look = Arc::new(Look::default());
        let (thread_look, thread_gateways, thread_job) = (Arc::clone(&look), Arc::clone(&gateways), job.to_owned());
        thread::spawn(move || thread_look.watch(&thread_gateways, &thread_job));
        Self { gateways, job: job.to_owned(), upload, look }
    }

    /// Waits, calling `tick` a few times a second. An error of `tick` ends the waiting.
    pub fn wait<E: From<Error>>(
        &self,
        until: Until,
        mut tick: impl FnMut(&Glance) -> Result<(), E>,
    ) -> Result<Option<Arc<Job>>, E> {
        loop {
            let glance = self.glance();
            tick(&glance)?;
            if self.gateways.is_stopping() {
                return Err(Error::Stopped.into());
            }
            let failure = self.upload.take_failure();
            if let Some(error @ Error::ChunkChanged { .. }) = failure {
                return Err(error.into());
            }
            // The answers of a job that is resumed are those of the files here only if these are as they were.
            if let Some(job) = &glance.job
                && ended(job)?
                && (failure.is_some() || self.upload.has_cut_all())
            {
                return Ok(glance.job);
            }
            if until == Until::Uploaded && glance.complete {
                return Ok(glance.job);
            }
            if let Some(error) = failure {
                // A job that has ended takes no more chunks: how it ended says more.
                let job = self.gateways.job(&self.job)?;
                return if ended(&job)? { Ok(Some(Arc::new(job))) } else { Err(error.into()) };
            }
            if let Some(error) = take(&self.look.failure) {
                return Err(error.into());
            }
            thread::sleep(TICK);
        }
    }

    fn glance(&self) -> Glance {
        Glance {
            sent_bytes: self.upload.bytes(),
            complete: self.upload.is_complete(),
            job: self.look.latest.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            trouble: self.gateways.trouble(),
        }
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        self.look.over.store(true, Ordering::Relaxed);
    }
}

impl Look {
    fn watch(&self, gateways: &Gateways, job: &str) {
        // Small jobs are done in no time: the first looks come quickly.
        let mut every = TICK;
        while !self.over.load(Ordering::Relaxed) {
            match gateways.job(job) {
                Ok(job) => {
                    let has_ended = !matches!(ended(&job), Ok(false));
                    *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(job));
                    if has_ended {
                        return;
                    }
                }
                Err(error) => {
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return;
                }
            }
            if gateways.pause(every).is_err() {
                return;
            }
            every = (every * 5 / 4 + Duration::from_millis(1)).min(LOOK_EVERY);
        }
    }
}

fn take(slot: &Mutex<Option<Error>>) -> Option<Error> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Whether the job is done.
///
/// # Errors
/// It ended in another way.
fn ended(job: &Job) -> Result<bool, Error> {
    check_job(job)?;
    Ok(job.state == JobState::Done)
}

/// Whether answers can still be expected of a job.
///
/// # Errors
/// The job failed, was cancelled, or expired.
pub fn check_job(found: &Job) -> Result<(), Error> {
    let job = found.job.clone();
    match (found.state, &found.error) {
        (JobState::Failed, Some(error)) => Err(Error::failed(&job, error.clone())),
        (JobState::Failed, None) => Err(Error::Failed {
            job,
            code: String::new(),
            class: FaultClass::Bug,
            text: "the gateway does not say why".to_owned(),
        }),
        (JobState::Cancelled, _) => Err(Error::Cancelled { job }),
        (JobState::Expired, _) => Err(Error::Expired { job }),
        (JobState::Uploading | JobState::Processing | JobState::Done | JobState::Unknown, _) => Ok(()),
    }
}
