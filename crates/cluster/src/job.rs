//! Making and unmaking what a job has on the broker.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tenaz_core::{CreationSigns, CreationStep, End, JobCard, JobId, Log, Partition, RegistryEvent};
use tenaz_rabbit::{Properties, Publisher, QueueSpec, StreamSpec, Target};
use tokio::task::JoinSet;

use crate::limits::{DELETE_QUESTIONS, OBJECTS_AT_ONCE, QUEUED_BYTES, QUEUED_CHUNKS};
use crate::{Book, Control, Error, JobSpec, JobView, Link, Names, Session};

/// Creates a job. Doing it again with the same card is harmless, which is how a client retries; the same id for another
/// request is refused.
///
/// The registry comes first: whatever exists on the broker belongs to a job that somebody knows and will clean up.
pub async fn create_job(link: &Link, book: &Book, card: &JobCard, spec: &JobSpec) -> Result<(), Error> {
    let signs = |view: &JobView| CreationSigns {
        same_request: view.card.spec_digest == card.spec_digest,
        ended: view.end.is_some(),
        prepared: view.prepared,
        caught_up: view.is_caught_up(),
        has_spec: view.spec.is_some(),
    };
    let next = || CreationStep::next(book.view(&card.id, signs));
    if next() == CreationStep::Announce {
        book.write(&RegistryEvent::Created { card: card.clone() }).await?;
        book.wait_for_job(&card.id).await;
    }
    match next() {
        CreationStep::MakeAll => make_all(link, book, card, spec).await,
        CreationStep::WriteSpec => book.tell(&card.id, &Control::Spec(Box::new(spec.clone()))).await,
        CreationStep::Refuse => Err(Error::OtherJob(card.id.clone())),
        // A job that is not known any more was removed in this moment.
        CreationStep::Nothing | CreationStep::Announce => Ok(()),
    }
}

/// Makes all queues and logs of a job, and says so.
async fn make_all(link: &Link, book: &Book, card: &JobCard, spec: &JobSpec) -> Result<(), Error> {
    side_by_side(logs_of(card), |log| declare_log(link.clone(), link.names().log(&card.id, log))).await?;
    for wave in 0..usize::from(card.waves) {
        declare_chunks(link, card, wave).await?;
    }
    book.tell(&card.id, &Control::Spec(Box::new(spec.clone()))).await?;
    book.write(&RegistryEvent::Prepared { id: card.id.clone() }).await
}

/// How many channels a worker needs that has to do everything for a job: one for each log and each work queue.
pub fn channels_of(card: &JobCard) -> usize {
    logs_of(card).len() + usize::from(card.waves)
}

async fn declare_log(link: Link, name: String) -> Result<(), Error> {
    let spec = StreamSpec::new(name);
    link.persist(|session| {
        let spec = spec.clone();
        async move { session.reading.declare_stream(&spec).await }
    })
    .await
}

/// Does something for each of these, [`OBJECTS_AT_ONCE`] at a time. Ends with the first error.
async fn side_by_side<T, F>(objects: impl IntoIterator<Item = T>, work: impl Fn(T) -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for object in objects {
        if tasks.len() >= OBJECTS_AT_ONCE {
            next_done(&mut tasks).await?;
        }
        tasks.spawn(work(object));
    }
    while !tasks.is_empty() {
        next_done(&mut tasks).await?;
    }
    Ok(())
}

async fn next_done(tasks: &mut JoinSet<Result<(), Error>>) -> Result<(), Error> {
    match tasks.join_next().await {
        Some(Ok(done)) => done,
        Some(Err(crash)) => std::panic::resume_unwind(crash.into_panic()),
        None => Ok(()),
    }
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
    delete_queue(link.clone(), link.names().chunks(&card.id, wave)).await
}

/// Finds out whether the broker stores messages now: makes another queue as work queues are, and waits until it has confirmed a
/// message. If it does not, the queue stays until the job is removed: a broker that is not well is not asked to delete anything.
pub async fn store_probe(session: &Session, names: &Names, job: &JobId) -> Result<(), tenaz_rabbit::Error> {
    let name = names.probe(job);
    let spec = QueueSpec { name: name.clone(), max_length: Some(QUEUED_CHUNKS), max_length_bytes: Some(QUEUED_BYTES) };
    // One that a gateway has left behind may be as dead as the queue that is suspected.
    session.reading.delete_queue(&name).await?;
    session.reading.declare_queue(&spec).await?;
    // On a channel of its own: the broker may not read on from one over which a message for a dead queue waits.
    let publisher = Publisher::open(&session.writing).await?;
    publisher.publish(Target::Queue(&name), Vec::new(), &Properties::of_kind("probe")).await?;
    session.reading.delete_queue(&name).await
}

/// Deletes a queue or stream. (m) A stream that RabbitMQ 3.10.8 was making when it was killed can be neither used nor deleted: it
/// does not answer, and each question costs a connection. Such a one stays.
async fn delete_queue(link: Link, queue: String) -> Result<(), Error> {
    let (queue, unanswered): (Arc<str>, AtomicU32) = (queue.into(), AtomicU32::new(0));
    link.persist(|session| {
        let (queue, unanswered) = (Arc::clone(&queue), &unanswered);
        async move {
            match session.reading.delete_queue(&queue).await {
                Err(error @ tenaz_rabbit::Error::Unanswered { .. })
                    if unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= DELETE_QUESTIONS =>
                {
                    tracing::warn!(%error, "it cannot be deleted, and stays on the broker");
                    session.met(&error);
                    Ok(())
                }
                deleted => deleted,
            }
        }
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
    let keep = |log: &Log| !all && matches!(log, Log::Control) || (!all && end.is_done() && *log == Log::Results);
    let logs = logs_of(card).into_iter().filter(|log| !keep(log)).map(|log| names.log(&card.id, log));
    let queues = (0..usize::from(card.waves)).map(|wave| names.chunks(&card.id, wave));
    let queues = queues.chain([names.probe(&card.id)]);
    side_by_side(queues.chain(logs), |queue| delete_queue(link.clone(), queue)).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Barrier;

    use super::*;

    /// Partitions are cheap only if the broker is asked for many at once: each of these waits until all are under way.
    #[tokio::test]
    async fn objects_are_made_side_by_side_and_each_of_them_once() {
        let (barrier, made) = (Arc::new(Barrier::new(OBJECTS_AT_ONCE)), Arc::new(AtomicUsize::new(0)));
        let all = side_by_side(0..3 * OBJECTS_AT_ONCE, |_| {
            let (barrier, made) = (Arc::clone(&barrier), Arc::clone(&made));
            async move {
                barrier.wait().await;
                made.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        });
        tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect("side by side").expect("all made");
        assert_eq!(made.load(Ordering::Relaxed), 3 * OBJECTS_AT_ONCE);
    }
}
