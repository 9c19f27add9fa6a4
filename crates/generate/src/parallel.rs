//! Many hands, one result: files side by side, or blocks of one file put together in order.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::sink::Sink;
use crate::{Error, Written};

/// Blocks a worker may have ready before it waits for the writer: this and the block size bound the memory.
const BLOCKS_AHEAD: usize = 2;

/// Runs `work(0)` to `work(jobs - 1)` on `threads` threads and adds up what they wrote. After a failure no new job
/// starts; of several failures the one of the first job is returned.
pub(crate) fn files(
    threads: usize,
    jobs: usize,
    work: impl Fn(usize) -> Result<Written, Error> + Sync,
) -> Result<Written, Error> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let worker = || {
        let mut total = Written::default();
        while !failed.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                break;
            }
            match work(job) {
                Ok(written) => total.add(written),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    return Err((job, error));
                }
            }
        }
        Ok(total)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(jobs)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let mut total = Written::default();
    let mut first_failure: Option<(usize, Error)> = None;
    for result in results {
        match result {
            Ok(written) => total.add(written),
            Err(failure) if first_failure.as_ref().is_none_or(|first| failure.0 < first.0) => {
                first_failure = Some(failure)
            }
            Err(_) => {}
        }
    }
    first_failure.map_or(Ok(total), |(_, error)| Err(error))
}

/// Appends blocks 0 to `blocks - 1` to `sink`, in this order. `make(block, out)` writes one block to `out` and returns
/// its number of records; it must depend on nothing but the block's number.
pub(crate) fn blocks(
    sink: &mut Sink<'_>,
    threads: usize,
    blocks: u64,
    make: impl Fn(u64, &mut Vec<u8>) -> u64 + Sync,
) -> Result<(), Error> {
    if threads <= 1 || blocks <= 1 {
        for block in 0..blocks {
            let records = make(block, sink.buffer());
            sink.appended(records)?;
        }
        return Ok(());
    }
    let make = &make;
    thread::scope(|scope| {
        // Worker w makes blocks w, w + threads, ...; the writer asks the workers in turn, which restores the order.
        let receivers: Vec<Receiver<(Vec<u8>, u64)>> = (0..threads as u64)
            .map(|first| {
                let (sender, receiver) = sync_channel(BLOCKS_AHEAD);
                scope.spawn(move || make_every(first, threads, blocks, make, &sender));
                receiver
            })
            .collect();
        for block in 0..blocks {
            let receiver = &receivers[(block % threads as u64) as usize];
            let (bytes, records) = receiver.recv().expect("a worker sends every block that is its own");
            // A failed write drops the receivers, at which the workers stop.
            sink.append_block(&bytes, records)?;
        }
        Ok(())
    })
}

fn make_every(
    first: u64,
    step: usize,
    blocks: u64,
    make: &(impl Fn(u64, &mut Vec<u8>) -> u64 + Sync),
    sender: &SyncSender<(Vec<u8>, u64)>,
) {
    let mut size = 0;
    for block in (first..blocks).step_by(step) {
        let mut bytes = Vec::with_capacity(size + size / 8);
        let records = make(block, &mut bytes);
        size = bytes.len();
        if sender.send((bytes, records)).is_err() {
            return;
        }
    }
}
