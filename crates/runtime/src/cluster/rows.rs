//! Rows as messages, and back.
//!
//! A message carries rows of any number of edges, each batch as an Arrow IPC stream, behind a small header. What one task
//! sends to one log is cut into parts of about a mebibyte; the cut depends on the rows alone.

use std::collections::BTreeMap;
use std::io::Cursor;

use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenaz_cluster::limits::MESSAGE_BYTES;
use tenaz_cluster::{frame, unframe};
use tenaz_core::{Header, Source, StageId};
use tenaz_engine::tight;

use crate::Error;

/// What became of the records of a chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkAccount {
    /// Records that whoever cut the chunk counted.
    pub records: u64,
    /// Records that became rows.
    pub accepted: u64,
    /// Records that did not.
    pub rejected: u64,
    /// Those by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
    /// Bytes of CSV.
    pub bytes: u64,
}

/// The header of a message with rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsHeader {
    /// Its identity.
    pub id: Header,
    /// The batches in it: the edge, and how many bytes.
    pub batches: Vec<(StageId, u32)>,
    /// In the results log, for a chunk: what became of its records. In the first part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<ChunkAccount>,
    /// In the results log, for a chunk: the bytes of its bad records, which follow the batches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rejects: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a task sends to one log, apart from rows.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    pub(super) account: Option<ChunkAccount>,
    pub(super) rejects: Option<RecordBatch>,
}

/// A message with rows, taken apart.
#[derive(Debug)]
pub struct Message {
    /// Its identity.
    pub id: Header,
    /// Its rows.
    pub rows: Vec<(StageId, RecordBatch)>,
    /// What became of a chunk's records.
    pub account: Option<ChunkAccount>,
    /// The bad ones.
    pub rejects: Option<RecordBatch>,
}

/// The messages that carry what one task sends to one log: at least one, because the id itself is news.
pub fn encode(source: Source, rows: &[(StageId, RecordBatch)], extras: Extras) -> Result<Vec<Vec<u8>>, Error> {
    let mut parts: Vec<Vec<(StageId, Vec<u8>)>> = vec![Vec::new()];
    let mut room = MESSAGE_BYTES;
    for (edge, batch) in rows {
        for piece in pieces(batch) {
            let bytes = to_ipc(&piece)?;
            if bytes.len() > room && parts.last().is_some_and(|part| !part.is_empty()) {
                parts.push(Vec::new());
                room = MESSAGE_BYTES;
            }
            room = room.saturating_sub(bytes.len());
            if let Some(part) = parts.last_mut() {
                part.push((*edge, bytes));
            }
        }
    }
    let count = parts.len() as u32;
    // A message that is alone needs no digest: there is nothing it could be mixed up with.
    let content = if count == 1 { 0 } else { digest(&parts) };
    let mut extras = extras;
    let mut messages = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let rejects = extras.rejects.take().map(|batch| to_ipc(&batch)).transpose()?.unwrap_or_default();
        let header = RowsHeader {
            id: Header { source, content, part: index as u32, parts: count },
            batches: part.iter().map(|(edge, bytes)| (*edge, bytes.len() as u32)).collect(),
            account: extras.account.take(),
            rejects: rejects.len() as u32,
        };
        let mut payload: Vec<&[u8]> = part.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        payload.push(&rejects);
        messages.push(frame(&header, &payload));
    }
    Ok(messages)
}

/// Takes a message apart. `log` names where it stood, for errors.
pub fn decode(log: &str, message: &[u8]) -> Result<Message, Error> {
    let framed = unframe::<RowsHeader>(log, message)?;
    let RowsHeader { id, batches, account, rejects } = framed.header;
    let mut rest = framed.payload;
    let mut next = |bytes: u32| {
        let cut_off = || tenaz_cluster::Error::BadMessage { place: log.to_owned(), detail: "it is cut off".to_owned() };
        let (head, tail) = rest.split_at_checked(bytes as usize).ok_or_else(cut_off)?;
        rest = tail;
        from_ipc(head)
    };
    let mut rows = Vec::with_capacity(batches.len());
    for (edge, bytes) in batches {
        rows.extend(next(bytes)?.into_iter().map(|batch| (edge, batch)));
    }
    let rejects = if rejects > 0 { next(rejects)?.into_iter().next() } else { None };
    Ok(Message { id, rows, account, rejects })
}

/// A batch in pieces that fit into a message, as far as rows can be told apart.
fn pieces(batch: &RecordBatch) -> Vec<RecordBatch> {
    let bytes = batch.get_array_memory_size();
    let count = bytes.div_ceil(MESSAGE_BYTES).max(1);
    let rows = batch.num_rows().div_ceil(count).max(1);
    if count == 1 || batch.num_rows() <= 1 {
        return vec![batch.clone()];
    }
    let starts = (0..batch.num_rows()).step_by(rows);
    starts.map(|start| tight(batch.slice(start, rows.min(batch.num_rows() - start)))).collect()
}

fn to_ipc(batch: &RecordBatch) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, batch.schema_ref())?;
    writer.write(batch)?;
    writer.finish()?;
    drop(writer);
    Ok(bytes)
}

fn from_ipc(bytes: &[u8]) -> Result<Vec<RecordBatch>, Error> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None)?;
    Ok(reader.collect::<Result<Vec<_>, _>>()?)
}

fn digest(parts: &[Vec<(StageId, Vec<u8>)>]) -> u64 {
    let mut hash = Sha256::new();
    for (edge, bytes) in parts.iter().flatten() {
        hash.update(edge.0.to_be_bytes());
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
    let hash: [u8; 32] = hash.finalize().into();
    u64::from_be_bytes(hash[..8].try_into().expect("eight of them"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};
    use datafusion::arrow::compute::concat_batches;
    use tenaz_core::{Partition, TableId};

    use super::*;

    fn rows(count: i64) -> RecordBatch {
        let text: StringViewArray = (0..count).map(|n| Some(format!("a text that is long enough {n:>40}"))).collect();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
        RecordBatch::try_from_iter([("n", numbers), ("t", Arc::new(text) as ArrayRef)]).unwrap()
    }

    const TASK: Source = Source::Task { stage: StageId(2), partition: Partition(1) };

    #[test]
    fn a_large_output_travels_in_parts_of_bounded_size_and_comes_back_whole() {
        let all = rows(60_000);
        let messages = encode(TASK, &[(StageId(2), all.clone())], Extras::default()).unwrap();
        assert!(messages.len() > 3, "{}", messages.len());
        assert!(messages.iter().all(|m| m.len() < 2 * MESSAGE_BYTES));
        let decoded: Vec<Message> = messages.iter().map(|m| decode("log", m).unwrap()).collect();
        let parts: Vec<u32> = decoded.iter().map(|m| m.id.part).collect();
        assert_eq!(parts, (0..messages.len() as u32).collect::<Vec<_>>());
        assert!(decoded.iter().all(|m| m.id.parts as usize == messages.len() && m.id.content == decoded[0].id.content));
        let batches: Vec<RecordBatch> = decoded.into_iter().flat_map(|m| m.rows).map(|(_, b)| b).collect();
        assert_eq!(concat_batches(&all.schema(), &batches).unwrap(), all);
        assert_eq!(encode(TASK, &[(StageId(2), all)], Extras::default()).unwrap(), messages, "same rows, same bytes");
    }

    #[test]
    fn nothing_to_say_is_still_a_message() {
        let source = Source::Chunk { table: TableId(0), number: 5 };
        let account = ChunkAccount { records: 3, accepted: 2, rejected: 1, ..ChunkAccount::default() };
        let extras = Extras { account: Some(account.clone()), rejects: Some(rows(1)) };
        let messages = encode(source, &[], extras).unwrap();
        assert_eq!(messages.len(), 1);
        let message = decode("log", &messages[0]).unwrap();
        assert_eq!((message.id.source, message.id.parts), (source, 1));
        assert_eq!(message.account, Some(account));
        assert_eq!(message.rejects, Some(rows(1)));
        assert!(decode("log", &messages[0][..messages[0].len() - 9]).is_err());
    }
}
