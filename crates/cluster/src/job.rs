//! Making and unmaking what a job has on the broker.

use std::sync::Arc;

use tenaz_core::{End, JobCard, Log, Partition, RegistryEvent};
use tenaz_rabbit::{QueueSpec, StreamSpec};

use crate::limits::{QUEUED_BYTES, QUEUED_CHUNKS};
use crate::{Book, Control, Error, JobSpec, Link};

/// Creates a job. Doing it again with the same card is harmless, which is how a client retries; the same id for another
/// request is refused.
///
/// The registry comes first: whatever exists on the broker belongs to a job that somebody knows and will clean up.
pub async fn create_job(link: &Link, book: &Book, card: &JobCard, spec: &JobSpec) -> Result<(), Error> {
    let known = || book.view(&card.id, |view| (view.card.spec_digest.clone(), view.prepared, view.end.clone()));
    if known().is_none() {
        book.write(&RegistryEvent::Created { card: card.clone() }).await?;
        book.wait_for_job(&card.id).await;
    }
    match known() {
        Some((digest, _, _)) if digest != card.spec_digest => return Err(Error::OtherJob(card.id.clone())),
        Some((_, true, _)) | Some((_, _, Some(_))) | None => return Ok(()),
        Some((_, false, None)) => {}
    }
    let names = link.names();
    for log in logs_of(card) {
        let spec =
            StreamSpec { name: names.log(&card.id, log), max_length_bytes: None, max_age: None, segment_bytes: None };
        link.persist(|session| {
            let spec = spec.clone();
            async move { session.reading.declare_stream(&spec).await }
        })
        .await?;
    }
    for wave in 0..usize::from(card.waves) {
        declare_chunks(link, card, wave).await?;
    }
    book.tell(&card.id, &Control::Spec(Box::new(spec.clone()))).await?;
    book.write(&RegistryEvent::Prepared { id: card.id.clone() }).await
}

/// Makes the work queue of a wave, if it is not there.
pub async fn declare_chunks(link: &Link, card: &JobCard, wave: usize) -> Result<(), Error> {
    let spec = QueueSpec {
        name: link.names().chunks(&card.id, wave),
        max_length: Some(QUEUED_CHUNKS),
        max_length_bytes: Some(QUEUED_BYTES),
    };
    link.persist(|session| {
        let spec = spec.clone();
        async move {
            session.reading.declare_queue(&spec).await?;
            session.reading.check_delivery_limit(&spec).await
        }
    })
    .await
}

/// Deletes the work queue of a wave, whatever is in it. Chunks that nobody has worked on are found missing later, and their
/// client sends them again.
pub async fn delete_chunks(link: &Link, card: &JobCard, wave: usize) -> Result<(), Error> {
    delete_queue(link, link.names().chunks(&card.id, wave)).await
}

async fn delete_queue(link: &Link, queue: String) -> Result<(), Error> {
    let queue: Arc<str> = queue.into();
    link.persist(|session| {
        let queue = Arc::clone(&queue);
        async move { session.reading.delete_queue(&queue).await }
    })
    .await
}

fn logs_of(card: &JobCard) -> Vec<Log> {
    let partitions = (0..card.partitions).map(|p| Log::Partition(Partition(p)));
    [Log::Control, Log::Broadcast, Log::Results].into_iter().chain(partitions).collect()
}

/// Deletes what an ended job has on the broker. The results and the control log of a finished job stay until `all`.
pub async fn delete_job_objects(link: &Link, card: &JobCard, end: &End, all: bool) -> Result<(), Error> {
    let names = link.names();
    let keep = |log: &Log| !all && matches!(log, Log::Control) || (!all && *end == End::Done && *log == Log::Results);
    let logs = logs_of(card).into_iter().filter(|log| !keep(log)).map(|log| names.log(&card.id, log));
    let queues = (0..usize::from(card.waves)).map(|wave| names.chunks(&card.id, wave));
    for queue in queues.chain(logs) {
        delete_queue(link, queue).await?;
    }
    Ok(())
}
