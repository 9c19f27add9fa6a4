//! Receipts: the control log says which chunks are in the cluster.
//!
//! One task per job writes them. While one receipt is on its way to the broker, the chunks that are confirmed meanwhile
//! gather, and the next receipt names them all: the more uploads at once, the fewer messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tenaz_cluster::{Book, Control};
use tenaz_core::{ChunkDigest, Fact, JobId, Promise, TableId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::app::{ended, gone};
use crate::limits::{READ_BACK_WAIT, RECEIPT_CHUNKS, RECEIPTS_IDLE};
use crate::problem::Problem;

/// A chunk whose receipt somebody waits for.
#[derive(Debug)]
struct Request {
    table: TableId,
    number: u64,
    digest: ChunkDigest,
    done: oneshot::Sender<()>,
}

/// Writes receipts.
#[derive(Debug)]
pub(crate) struct Receipts {
    book: Arc<Book>,
    tasks: Mutex<HashMap<JobId, mpsc::Sender<Request>>>,
}

impl Receipts {
    pub(crate) fn new(book: &Arc<Book>) -> Self {
        Self { book: Arc::clone(book), tasks: Mutex::default() }
    }

    /// Writes down that a chunk is in its work queue. Returns after the broker's confirm.
    pub(crate) async fn write(
        &self,
        job: &JobId,
        table: TableId,
        number: u64,
        digest: ChunkDigest,
    ) -> Result<(), Problem> {
        let (done, written) = oneshot::channel();
        let mut request = Request { table, number, digest, done };
        // A task that has just ended for want of work is replaced.
        while let Err(mpsc::error::SendError(back)) = self.task(job).send(request).await {
            request = back;
        }
        match written.await {
            Ok(()) => Ok(()),
            // The task gives up when the job has ended.
            Err(_) => Err(self.why_not(job)),
        }
    }

    fn why_not(&self, job: &JobId) -> Problem {
        match self.book.view(job, |view| view.end.clone()) {
            Some(Some(end)) => ended(job, &end),
            Some(None) => Problem::internal("the receipts of a job are not written"),
            None => gone(job),
        }
    }

    fn task(&self, job: &JobId) -> mpsc::Sender<Request> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = tasks.get(job).filter(|sender| !sender.is_closed()) {
            return sender.clone();
        }
        tasks.retain(|_, sender| !sender.is_closed());
        let (sender, requests) = mpsc::channel(RECEIPT_CHUNKS);
        tasks.insert(job.clone(), sender.clone());
        tokio::spawn(run(Arc::clone(&self.book), job.clone(), requests));
        sender
    }
}

async fn run(book: Arc<Book>, job: JobId, mut requests: mpsc::Receiver<Request>) {
    loop {
        let first = match timeout(RECEIPTS_IDLE, requests.recv()).await {
            Ok(first) => first,
            Err(_) => {
                // Nobody can ask any more, but somebody may have.
                requests.close();
                requests.recv().await
            }
        };
        let Some(first) = first else { return };
        let mut batch = vec![first];
        while batch.len() < RECEIPT_CHUNKS
            && let Ok(next) = requests.try_recv()
        {
            batch.push(next);
        }
        let writing = write(&book, &job, &batch);
        tokio::select! {
            written = writing => if let Err(error) = written {
                tracing::error!(%job, %error, "a receipt cannot be written");
                return;
            },
            // Dropping the requests tells those who wait.
            _ = book.wait(&job, |view| view.end.as_ref().map(|_| ())) => return,
        }
        batch.into_iter().for_each(|request| {
            let _ = request.done.send(());
        });
    }
}

async fn write(book: &Book, job: &JobId, batch: &[Request]) -> Result<(), tenaz_cluster::Error> {
    let facts = receipts(batch.iter().map(|request| (request.table, request.number, request.digest)));
    for fact in &facts {
        book.tell(job, &Control::Fact(fact.clone())).await?;
    }
    // Whoever asks this gateway next what is missing should not be told these.
    for fact in &facts {
        if let Fact::Uploaded { table, chunks, .. } = fact {
            let known =
                book.wait(job, |view| chunks.missing_from(&view.facts.uploaded(*table)).is_empty().then_some(()));
            let _ = timeout(READ_BACK_WAIT, known).await;
        }
    }
    Ok(())
}

/// One receipt per table. A chunk that came with different bytes is in two of them, so that all who read the log find it.
fn receipts(chunks: impl Iterator<Item = (TableId, u64, ChunkDigest)>) -> Vec<Fact> {
    let mut tables: BTreeMap<TableId, Vec<BTreeMap<u64, ChunkDigest>>> = BTreeMap::new();
    for (table, number, digest) in chunks {
        let receipts = tables.entry(table).or_default();
        let agrees = |receipt: &BTreeMap<u64, ChunkDigest>| receipt.get(&number).is_none_or(|known| *known == digest);
        match receipts.iter().position(agrees) {
            Some(index) => receipts[index].insert(number, digest).map_or((), drop),
            None => receipts.push(BTreeMap::from([(number, digest)])),
        }
    }
    let fact = |table, receipt: BTreeMap<u64, ChunkDigest>| Fact::Uploaded {
        table,
        chunks: Promise::runs(receipt.keys().map(|&number| (number, number + 1))),
        digests: receipt.into_values().collect(),
    };
    tables
        .into_iter()
        .flat_map(|(table, receipts)| receipts.into_iter().map(move |receipt| fact(table, receipt)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_gathered_share_one_receipt_per_table() {
        let chunks = [(1, 4), (0, 9), (1, 3), (1, 7), (1, 4)];
        let chunks = chunks.map(|(table, number)| (TableId(table), number, ChunkDigest(10 * number)));
        assert_eq!(receipts(chunks.into_iter()), [uploaded(0, &[(9, 90)]), uploaded(1, &[(3, 30), (4, 40), (7, 70)])]);
    }

    fn uploaded(table: u16, chunks: &[(u64, u64)]) -> Fact {
        Fact::Uploaded {
            table: TableId(table),
            chunks: Promise::runs(chunks.iter().map(|&(number, _)| (number, number + 1))),
            digests: chunks.iter().map(|&(_, digest)| ChunkDigest(digest)).collect(),
        }
    }

    #[test]
    fn a_chunk_with_two_digests_has_two_receipts() {
        let chunks = [(4, 1), (5, 2), (4, 3), (4, 1)];
        let chunks = chunks.map(|(number, digest)| (TableId(0), number, ChunkDigest(digest)));
        assert_eq!(receipts(chunks.into_iter()), [uploaded(0, &[(4, 1), (5, 2)]), uploaded(0, &[(4, 3)])]);
    }
}
