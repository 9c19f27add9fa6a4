//! Leaf work: one chunk, all queries, and what must be sent because of it.

use std::collections::BTreeMap;
use std::io::Read;

use datafusion::arrow::buffer::Buffer;
use tenaz_cluster::limits::MAX_MESSAGE_BYTES;
use tenaz_cluster::{ChunkHeader, Encoding, unframe};
use tenaz_core::{ChunkDigest, Lineage, Log, Source, StageId};
use tenaz_csv::Decoded;
use tenaz_engine::LeafInput;

use super::engine::{ClusterEngine, SentBytes};
use crate::Error;
use crate::cluster::rows::{ChunkRejects, Extras};
use crate::job_rows::{ChunkAccount, RecordPlace, RecordPlaces, lock};
use crate::panics::guarded;
use crate::rejects::{RejectLine, reject_pieces};

/// The header of a chunk, without its body.
pub(super) fn chunk_header(queue: &str, message: &[u8]) -> Result<ChunkHeader, Error> {
    Ok(unframe::<ChunkHeader>(queue, message)?.header)
}

/// Runs the leaf work of a chunk.
pub(super) fn run(job: &ClusterEngine, message: Vec<u8>) -> Result<Vec<(Log, SentBytes)>, Error> {
    let ChunkHeader { table, number, file, .. } = chunk_header("a work queue", &message)?;
    let name = job.table_name(table);
    tracing::debug!(job = %job.id, table = name, chunk = number, "a chunk is begun");
    let ran = guarded(
        || format!("chunk {number} of table {name} ({file})"),
        || {
            job.faults.before_chunk(name, number);
            run_chunk(job, message)
        },
    );
    tracing::debug!(job = %job.id, table = name, chunk = number, "a chunk is finished");
    ran
}

fn run_chunk(job: &ClusterEngine, message: Vec<u8>) -> Result<Vec<(Log, SentBytes)>, Error> {
    let framed = unframe::<ChunkHeader>("a work queue", &message)?;
    let header = framed.header;
    let offset = message.len() - framed.payload.len();
    let Some(scan) = job.rows.scan_of(header.table) else {
        return Err(no_such_chunk(job, &header, "no query reads its table"));
    };
    let data = match header.encoding {
        Encoding::Identity => Buffer::from_vec(message).slice(offset),
        Encoding::Lz4 => decompressed(job, &header, lz4_flex::frame::FrameDecoder::new(framed.payload))?,
        Encoding::Zstd => {
            let reader = zstd::stream::read::Decoder::new(framed.payload);
            decompressed(job, &header, reader.map_err(|e| no_such_chunk(job, &header, &e.to_string()))?)?
        }
    };
    if ChunkDigest::of(&data) != header.digest {
        return Err(no_such_chunk(job, &header, "its bytes are not those that its header tells of"));
    }
    let bytes = data.len() as u64;
    let decoded = job.rows.with_decoder(scan, None, |decoder| {
        Ok(decoder.decode(&data, header.byte, header.line).map_err(tenaz_engine::Error::from)?)
    })?;
    let source = Source::Chunk { table: header.table, number: header.number };
    let account = account_for(job, &header, &decoded, bytes)?;
    let Decoded { batch, rejects, .. } = decoded;
    let places = ChunkPlaces { job, header: &header, data: &data, scan };
    let product = job.rows.run_leaf(scan, &LeafInput { source, rows: batch }, &places)?;
    let (accepted, rejected) = (account.accepted, account.rejected);
    let lineage = Lineage::of_chunk(header.digest, job.rows.broadcast_lineage(header.table));
    let table = &job.rows.workload.tables[usize::from(header.table.0)];
    let rejects = ChunkRejects {
        table: &table.name,
        file: &header.file,
        pieces: Box::new(reject_pieces(&table.layout, &rejects)),
    };
    let extras = Extras { account: Some(account), rejects: Some(rejects), ..Extras::default() };
    let messages = job.messages(source, lineage, product, extras)?;
    job.metrics.rows_accepted.inc_by(accepted);
    job.metrics.rows_rejected.inc_by(rejected);
    job.metrics.bytes_in.inc_by(bytes);
    job.metrics.chunks.inc();
    Ok(messages)
}

/// The records of a chunk, whose bytes are at hand.
struct ChunkPlaces<'a> {
    job: &'a ClusterEngine,
    header: &'a ChunkHeader,
    data: &'a Buffer,
    scan: usize,
}

impl RecordPlaces for ChunkPlaces<'_> {
    fn source(&self) -> Source {
        Source::Chunk { table: self.header.table, number: self.header.number }
    }

    /// A chunk before this one that fails, too, will fail whoever works on it, and is the one to tell of.
    fn are_wanted(&self, stage: StageId) -> bool {
        lock(&self.job.failing_chunks).get(&stage).is_none_or(|known| self.header.number <= *known)
    }

    fn place_of(&self, stage: StageId, row: usize) -> Option<RecordPlace> {
        let line = self.job.rows.line_of_row(self.scan, self.data, self.header.line, row as u64)?;
        let mut known = lock(&self.job.failing_chunks);
        let first = known.entry(stage).or_insert(self.header.number);
        *first = self.header.number.min(*first);
        Some(RecordPlace { source: self.source(), file: self.header.file.clone(), line })
    }
}

fn decompressed(job: &ClusterEngine, header: &ChunkHeader, reader: impl Read) -> Result<Buffer, Error> {
    let mut data = Vec::with_capacity((header.raw_bytes as usize).min(MAX_MESSAGE_BYTES));
    let limit = header.raw_bytes.saturating_add(1);
    reader.take(limit).read_to_end(&mut data).map_err(|e| no_such_chunk(job, header, &e.to_string()))?;
    if data.len() as u64 != header.raw_bytes {
        return Err(no_such_chunk(job, header, "it is not as long as its header says"));
    }
    Ok(Buffer::from_vec(data))
}

fn no_such_chunk(job: &ClusterEngine, header: &ChunkHeader, why: &str) -> Error {
    let place = format!("chunk {} of table {}", header.number, job.table_name(header.table));
    tenaz_cluster::Error::BadMessage { place, detail: why.to_owned() }.into()
}

/// Rows are conserved: whoever cut the chunk counted its records, and every one of them is a row or a reject.
fn account_for(
    job: &ClusterEngine,
    header: &ChunkHeader,
    decoded: &Decoded,
    bytes: u64,
) -> Result<ChunkAccount, Error> {
    let accepted = decoded.batch.num_rows() as u64;
    let rejected = decoded.rejects.len() as u64;
    let records = header.records.unwrap_or(accepted + rejected);
    if records != accepted + rejected {
        let what = format!("chunk {} of table {} ({})", header.number, job.table_name(header.table), header.file);
        return Err(Error::Miscounted { what, promised: records, found: accepted + rejected });
    }
    let mut account = ChunkAccount { records, accepted, rejected, bytes, ..ChunkAccount::default() };
    if let Some(first) = decoded.rejects.first().filter(|_| job.strict) {
        let table = &job.rows.workload.tables[usize::from(header.table.0)];
        return Err(Error::Strict(Box::new(RejectLine::new(&table.name, &header.file, &table.layout, first))));
    }
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for reject in decoded.rejects.iter() {
        *reasons.entry(reject.reason.code()).or_default() += 1;
    }
    account.reasons = reasons.into_iter().map(|(code, count)| (code.to_owned(), count)).collect();
    Ok(account)
}
