//! Sends the files of a job: one thread cuts, several send, and what got lost is sent again.
//!
//! ```text
//!  driver: cut table 1 … close it, cut table 2 … close it, ──▶ ask what is missing, send it again, until the job ends
//!             │ a few chunks at a time
//!             ▼
//!  senders: PUT, repeated until a gateway has it
//!  carer, while they send: what got lost of tables that are closed is sent again
//! ```
//!
//! The carer is needed because a sender may wait for a work queue that is full until the workers have the rows of another table:
//! if a broker loses just those, nobody else would ever send them again.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::api::Finish;
use crate::calls::ChunkPlace;
use crate::compare::{Comparison, changed};
use crate::cut::{Cutter, Place, TableFiles};
use crate::limits::{MAX_PARALLEL, MISSING_AGAIN, MISSING_EVERY, TICK};
use crate::{Compression, Error, Gateways, Ranges};

/// The code of a chunk that the cluster has with other bytes.
const CHUNK_CONFLICT: &str = "chunk_conflict";

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

/// Where the chunks of a closed table are, and what it was closed with.
type ClosedFiles = Arc<(Vec<Place>, Finish)>;

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
    /// The same, by table and number.
    in_flight: Mutex<BTreeSet<(usize, u64)>>,
    /// The tables that are cut and closed.
    closed: Mutex<Vec<ClosedFiles>>,
    /// Everything was handed to the senders, and they have sent it.
    settled: AtomicBool,
    /// All files were cut, and what the cluster had of them was compared.
    cut_all: AtomicBool,
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
        let cut_all = AtomicBool::new(tables.is_empty());
        let shared = Arc::new(Shared {
            gateways,
            job,
            tables,
            options,
            bytes: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            in_flight: Mutex::default(),
            closed: Mutex::default(),
            settled: AtomicBool::new(false),
            cut_all,
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
        spawn(&shared, Shared::care);
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

    /// Whether all files were cut, and what the cluster had of them was found to be the same.
    pub(crate) fn has_cut_all(&self) -> bool {
        self.shared.cut_all.load(Ordering::Relaxed)
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
            self.in_flight().remove(&(parcel.table, parcel.number));
            self.pending.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn in_flight(&self) -> MutexGuard<'_, BTreeSet<(usize, u64)>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed(&self) -> MutexGuard<'_, Vec<ClosedFiles>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what got lost of closed tables while the senders are still busy with others. A gateway that does not answer is the
    /// senders' trouble, too: they say so.
    fn care(&self) -> Result<(), Error> {
        while !self.settled.load(Ordering::Relaxed) && !self.is_over() {
            self.sleep(MISSING_EVERY);
            let closed = self.closed().clone();
            if closed.is_empty() || self.settled.load(Ordering::Relaxed) || self.is_over() {
                continue;
            }
            let Ok(missing) = self.gateways.missing(&self.job) else { continue };
            for (table, cut) in closed.iter().enumerate() {
                let Some(found) = missing.iter().find(|found| found.name == self.tables[table].table.name) else {
                    continue;
                };
                for number in found.missing.numbers(cut.0.len() as u64) {
                    if self.is_over() || self.in_flight().contains(&(table, number)) {
                        continue;
                    }
                    let place = cut.0[number as usize];
                    self.send_one(&Parcel { table, number, place, data: None, file_bytes: 0 })?;
                }
            }
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
        match self.gateways.send_chunk(&self.job, place, &data, self.options.compression) {
            Err(Error::Refused { code, .. }) if code == CHUNK_CONFLICT => {
                Err(changed(&self.job, table, parcel.number, parcel.place))
            }
            sent => sent,
        }
    }

    /// Hands a chunk to the senders; false: there are none left.
    fn hand_over(&self, sender: &SyncSender<Parcel>, parcel: Parcel) -> bool {
        self.pending.fetch_add(1, Ordering::Relaxed);
        self.in_flight().insert((parcel.table, parcel.number));
        sender.send(parcel).is_ok() && !self.is_over()
    }

    /// Cuts all tables, closes them, and then looks after what gets lost.
    fn drive(&self, sender: &SyncSender<Parcel>) -> Result<(), Error> {
        for index in 0..self.tables.len() {
            let Some(places) = self.cut(index, sender)? else { return Ok(()) };
            self.cut_all.store(index + 1 == self.tables.len(), Ordering::Relaxed);
            let finish = self.close(index, &places)?;
            self.closed().push(Arc::new((places, finish)));
        }
        let cut = self.closed().clone();
        while self.settle() {
            self.settled.store(true, Ordering::Relaxed);
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
        let mut comparison = Comparison::new(&self.gateways, &self.job, table);
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
                comparison.check(&piece)?;
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
        let finish = Finish {
            chunks: Some(places.len() as u64),
            records: Some(records),
            bytes: Some(table.bytes()),
            files: None,
        };
        self.gateways.finish(&self.job, &table.name, &finish)?;
        Ok(finish)
    }

    /// Asks what is missing and hands it over again. False: nothing is.
    fn send_missing(&self, cut: &[Arc<(Vec<Place>, Finish)>], sender: &SyncSender<Parcel>) -> Result<bool, Error> {
        let mut lost = false;
        for found in self.gateways.missing(&self.job)? {
            let Some(index) = self.tables.iter().position(|wanted| wanted.table.name == found.name) else { continue };
            let (places, finish) = &*cut[index];
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
