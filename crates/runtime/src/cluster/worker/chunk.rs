//! Leaf work: one chunk, all queries, and what must be sent because of it.

use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::record_batch::RecordBatch;
use tenaz_cluster::limits::MAX_MESSAGE_BYTES;
use tenaz_cluster::{ChunkHeader, Encoding, unframe};
use tenaz_core::{Log, Source, StageId};
use tenaz_csv::Decoded;
use tenaz_engine::{LeafInput, TaskOutput};

use super::shared::SharedJob;
use crate::Error;
use crate::cluster::results::kind;
use crate::cluster::rows::{ChunkAccount, Extras, encode};
use crate::rejects::{RejectLine, reject_batch};

/// A message that a task wants sent.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) log: Log,
    pub(super) kind: &'static str,
    pub(super) body: Arc<[u8]>,
}

/// The header of a chunk, without its body.
pub(super) fn chunk_header(queue: &str, message: &[u8]) -> Result<ChunkHeader, Error> {
    Ok(unframe::<ChunkHeader>(queue, message)?.header)
}

/// Runs the leaf work of a chunk.
pub(super) fn run_chunk(job: &SharedJob, message: Vec<u8>) -> Result<Vec<Outgoing>, Error> {
    let framed = unframe::<ChunkHeader>("a work queue", &message)?;
    let header = framed.header;
    let offset = message.len() - framed.payload.len();
    let Some(scan) = job.scan_of(header.table) else {
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
    let bytes = data.len() as u64;
    let decoded = job.with_decoder(scan, |decoder| {
        Ok(decoder.decode(&data, header.byte, header.line).map_err(tenaz_engine::Error::from)?)
    })?;
    let source = Source::Chunk { table: header.table, number: header.number };
    let (account, rejects) = account_for(job, &header, &decoded, bytes)?;
    let output = job.leaf_runner(scan)?.run(&LeafInput { source, rows: decoded.batch })?;
    let (accepted, rejected) = (account.accepted, account.rejected);
    let messages = outgoing(job, source, output, Extras { account: Some(account), rejects })?;
    job.metrics.rows_accepted.inc_by(accepted);
    job.metrics.rows_rejected.inc_by(rejected);
    job.metrics.bytes_in.inc_by(bytes);
    job.metrics.chunks.inc();
    Ok(messages)
}

fn decompressed(job: &SharedJob, header: &ChunkHeader, reader: impl Read) -> Result<Buffer, Error> {
    let mut data = Vec::with_capacity((header.raw_bytes as usize).min(MAX_MESSAGE_BYTES));
    let limit = header.raw_bytes.saturating_add(1);
    reader.take(limit).read_to_end(&mut data).map_err(|e| no_such_chunk(job, header, &e.to_string()))?;
    if data.len() as u64 != header.raw_bytes {
        return Err(no_such_chunk(job, header, "it is not as long as its header says"));
    }
    Ok(Buffer::from_vec(data))
}

fn no_such_chunk(job: &SharedJob, header: &ChunkHeader, why: &str) -> Error {
    let place = format!("chunk {} of table {}", header.number, job.table_name(header.table));
    tenaz_cluster::Error::BadMessage { place, detail: why.to_owned() }.into()
}

/// Rows are conserved: whoever cut the chunk counted its records, and every one of them is a row or a reject.
fn account_for(
    job: &SharedJob,
    header: &ChunkHeader,
    decoded: &Decoded,
    bytes: u64,
) -> Result<(ChunkAccount, Option<RecordBatch>), Error> {
    let accepted = decoded.batch.num_rows() as u64;
    let rejected = decoded.rejects.len() as u64;
    let records = header.records.unwrap_or(accepted + rejected);
    if records != accepted + rejected {
        let what = format!("chunk {} of table {} ({})", header.number, job.table_name(header.table), header.file);
        return Err(Error::Miscounted { what, promised: records, found: accepted + rejected });
    }
    let mut account = ChunkAccount { records, accepted, rejected, bytes, ..ChunkAccount::default() };
    if rejected == 0 {
        return Ok((account, None));
    }
    for reject in &decoded.rejects {
        *account.reasons.entry(reject.reason.code().to_owned()).or_insert(0) += 1;
    }
    let table = &job.workload.tables[usize::from(header.table.0)];
    let line = |reject| RejectLine::new(&table.name, &header.file, &table.layout, reject);
    let lines: Vec<RejectLine> = decoded.rejects.iter().map(line).collect();
    if job.strict {
        return Err(Error::Strict(Box::new(lines[0].clone())));
    }
    Ok((account, Some(reject_batch(&lines))))
}

/// The messages of a task: to every log that waits for it, even if there are no rows for it.
pub(super) fn outgoing(
    job: &SharedJob,
    source: Source,
    output: TaskOutput,
    extras: Extras,
) -> Result<Vec<Outgoing>, Error> {
    let mut extras = Some(extras);
    let mut messages = Vec::new();
    for log in job.topology.destinations(source) {
        let nothing: &[(StageId, RecordBatch)] = &[];
        let (rows, extras) = match log {
            Log::Partition(partition) => (output.partitions[usize::from(partition.0)].as_slice(), None),
            Log::Broadcast => (output.broadcast.as_slice(), None),
            Log::Results => (output.results.as_slice(), extras.take()),
            Log::Control => (nothing, None),
        };
        let parts = encode(source, rows, extras.unwrap_or_default())?;
        messages.extend(parts.into_iter().map(|body| Outgoing { log, kind: kind::ROWS, body: body.into() }));
    }
    Ok(messages)
}
