//! Sends the files of a job: one thread cuts, several send, and what got lost is sent again.
//!
//! ```text
//!  driver: cut table 1 … close it, cut table 2 … close it, ──▶ ask what is missing, send it again, until the job ends
//!             │ a few chunks at a time
//!             ▼
//!  senders: PUT, repeated until a gateway has it
//! ```

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::api::Finish;
use crate::calls::ChunkPlace;
use crate::cut::{Cutter, Place, TableFiles};
use crate::limits::{MAX_PARALLEL, MISSING_AGAIN, MISSING_EVERY, TICK};
use crate::{Compression, Error, Gateways, Ranges};

/// How to send.
#[derive(Debug, Clone, Copy)]
pub struct UploadOptions {
    /// Bytes of a chunk: the job's.
    pub chunk_bytes: u64,
    /// Chunks in flight.
    pub parallel: usize,
    /// How they are compressed.
    pub compression: Compression,
}

/// A table to be sent.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its files.
    pub table: TableFiles,
    /// The chunks that the cluster does not have; `None`: all.
    pub missing: Option<Ranges>,
}

/// An upload that goes on in the background until it is dropped.
#[derive(Debug)]
pub(crate) struct Upload {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gateways: Arc<Gateways>,
    job: String,
    tables: Vec<Wanted>,
    options: UploadOptions,
    /// Bytes of files that the cluster has.
    bytes: AtomicU64,
    /// Chunks handed to the senders and not yet confirmed.
    pending: AtomicU64,
    /// Everything was sent, and nothing was missing.
    complete: AtomicBool,
    /// Nobody needs the upload any more.
    over: AtomicBool,
    failure: Mutex<Option<Error>>,
}

/// A chunk to be sent.
struct Parcel {
    table: usize,
    number: u64,
    place: Place,
    /// The chunk's bytes; none: to be read again.
    data: Option<tenaz_csv::Chunk>,
    /// What the chunk counts for on the progress bar.
    file_bytes: u64,
}

impl Upload {
    /// Starts to send.
    pub(crate) fn start(gateways: Arc<Gateways>, job: String, tables: Vec<Wanted>, options: UploadOptions) -> Self {
        let parallel = options.parallel.clamp(1, MAX_PARALLEL);
        let shared = Arc::new(Shared {
            gateways,
            job,
            tables,
            options,
            bytes: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            complete: AtomicBool::new(false),
            over: AtomicBool::new(false),
            failure: Mutex::new(None),
        });
        let (sender, receiver) = sync_channel(parallel);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..parallel {
            let receiver = Arc::clone(&receiver);
            spawn(&shared, move |shared| shared.send(&receiver));
        }
        spawn(&shared, move |shared| shared.drive(&sender));
        Self { shared }
    }

    /// Bytes of files that the cluster has.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Whether everything was sent, and nothing was missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.shared.complete.load(Ordering::Relaxed)
    }

    /// Why it stopped, once.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

/// A thread of the upload. Whatever ends it badly, a panic included, ends the upload.
fn spawn(shared: &Arc<Shared>, work: impl FnOnce(&Shared) -> Result<(), Error> + Send + 'static) {
    struct Crashed(Arc<Shared>);
    impl Drop for Crashed {
        fn drop(&mut self) {
            if thread::panicking() {
                self.0.fail(Error::Fault("a thread of the upload crashed".to_owned()));
            }
        }
    }
    let guard = Crashed(Arc::clone(shared));
    thread::spawn(move || {
        if let Err(error) = work(&guard.0) {
            guard.0.fail(error);
        }
    });
}

impl Shared {
    fn fail(&self, error: Error) {
        self.over.store(true, Ordering::Relaxed);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.gateways.is_stopping()
    }

    /// One of the senders.
    fn send(&self, parcels: &Mutex<Receiver<Parcel>>) -> Result<(), Error> {
        while !self.is_over() {
            let next = parcels.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(parcel) = next else { break };
            self.send_one(&parcel)?;
            self.bytes.fetch_add(parcel.file_bytes, Ordering::Relaxed);
            self.pending.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn send_one(&self, parcel: &Parcel) -> Result<(), Error> {
        let table = &self.tables[parcel.table].table;
        let data = match &parcel.data {
            Some(chunk) => Cow::Borrowed(&chunk.data[..]),
            None => Cow::Owned(parcel.place.read(table)?),
        };
        let place = ChunkPlace {
            table: &table.name,
            number: parcel.number,
            file: &table.files[parcel.place.file as usize].name,
            byte: parcel.place.byte,
            line: parcel.place.line,
            records: parcel.place.records,
        };
        self.gateways.send_chunk(&self.job, place, &data, self.options.compression)
    }

    /// Hands a chunk to the senders; false: there are none left.
    fn hand_over(&self, sender: &SyncSender<Parcel>, parcel: Parcel) -> bool {
        self.pending.fetch_add(1, Ordering::Relaxed);
        sender.send(parcel).is_ok() && !self.is_over()
    }

    /// Cuts all tables, closes them, and then looks after what gets lost.
    fn drive(&self, sender: &SyncSender<Parcel>) -> Result<(), Error> {
        let mut cut = Vec::new();
        for index in 0..self.tables.len() {
            let Some(places) = self.cut(index, sender)? else { return Ok(()) };
            let finish = self.close(index, &places)?;
            cut.push((places, finish));
        }
        while self.settle() {
            let lost = self.send_missing(&cut, sender)?;
            if !lost {
                self.complete.store(true, Ordering::Relaxed);
            }
            self.sleep(if lost { MISSING_AGAIN } else { MISSING_EVERY });
        }
        Ok(())
    }

    /// Cuts a table and hands over what is missing of it. None: the upload is over.
    fn cut(&self, index: usize, sender: &SyncSender<Parcel>) -> Result<Option<Vec<Place>>, Error> {
        let Wanted { table, missing } = &self.tables[index];
        let mut places = Vec::new();
        let mut counted = 0;
        let mut cutter = Cutter::new(table, self.options.chunk_bytes as usize);
        while let Some(piece) = cutter.next()? {
            let place = piece.place();
            places.push(place);
            counted += piece.file_bytes;
            if missing.as_ref().is_none_or(|missing| missing.contains(piece.number)) {
                let (number, file_bytes) = (piece.number, piece.file_bytes);
                let parcel = Parcel { table: index, number, place, data: Some(piece.chunk), file_bytes };
                if !self.hand_over(sender, parcel) {
                    return Ok(None);
                }
            } else {
                self.bytes.fetch_add(piece.file_bytes, Ordering::Relaxed);
            }
        }
        // Bytes that are in no chunk, such as the header of a file without records.
        self.bytes.fetch_add(table.bytes().saturating_sub(counted), Ordering::Relaxed);
        Ok((!self.is_over()).then_some(places))
    }

    fn close(&self, index: usize, places: &[Place]) -> Result<Finish, Error> {
        let table = &self.tables[index].table;
        let records = places.iter().map(|place| place.records).sum();
        let finish = Finish { chunks: places.len() as u64, records, bytes: table.bytes() };
        self.gateways.finish(&self.job, &table.name, &finish)?;
        Ok(finish)
    }

    /// Asks what is missing and hands it over again. False: nothing is.
    fn send_missing(&self, cut: &[(Vec<Place>, Finish)], sender: &SyncSender<Parcel>) -> Result<bool, Error> {
        let mut lost = false;
        for found in self.gateways.missing(&self.job)? {
            let Some(index) = self.tables.iter().position(|wanted| wanted.table.name == found.name) else { continue };
            let (places, finish) = &cut[index];
            if !found.closed {
                self.gateways.finish(&self.job, &found.name, finish)?;
                lost = true;
            }
            for number in found.missing.numbers(places.len() as u64) {
                lost = true;
                let place = places[number as usize];
                if !self.hand_over(sender, Parcel { table: index, number, place, data: None, file_bytes: 0 }) {
                    return Ok(true);
                }
            }
        }
        Ok(lost)
    }

    /// Waits until all senders are idle. False: the upload is over.
    fn settle(&self) -> bool {
        while self.pending.load(Ordering::Relaxed) > 0 && !self.is_over() {
            thread::sleep(TICK / 5);
        }
        !self.is_over()
    }

    fn sleep(&self, time: Duration) {
        let until = std::time::Instant::now() + time;
        while !self.is_over() && std::time::Instant::now() < until {
            thread::sleep(TICK);
        }
    }
}
