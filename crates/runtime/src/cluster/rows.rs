//! Rows as messages, and back.
//!
//! A message carries rows of any number of edges, each batch as an Arrow IPC stream, behind a small header. What one task
//! sends to one log is cut into parts of about a mebibyte; the cut depends on the rows alone. The bad records of a chunk travel
//! behind its rows in the same way, with the names of table and file once in each message.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::root_as_message;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenaz_cluster::limits::MESSAGE_BYTES;
use tenaz_cluster::{frame, unframe};
use tenaz_core::{FailedStages, Header, Lineage, Source, StageId};
use tenaz_engine::tight;

use crate::Error;
use crate::job_rows::{ChunkAccount, Message, RejectPiece};
use crate::limits::REJECT_PIECE_BYTES;

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
    /// In the results log, for a chunk: some of its bad records, which follow the batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejects: Option<RejectsPart>,
    /// Stages whose rows would be here if they had not failed. In the first part.
    #[serde(default, skip_serializing_if = "FailedStages::is_empty")]
    pub failed: FailedStages,
}

/// Bad records in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectsPart {
    /// Their table.
    pub table: String,
    /// Their file.
    pub file: String,
    /// How many bytes they take. Their columns are those of [`crate::reject_piece_schema`].
    pub bytes: u32,
}

/// What a task sends to one log, apart from rows.
#[derive(Default)]
pub struct Extras<'a> {
    pub(super) failed: FailedStages,
    pub(super) account: Option<ChunkAccount>,
    pub(super) rejects: Option<ChunkRejects<'a>>,
}

/// The bad records of a chunk.
pub(super) struct ChunkRejects<'a> {
    pub(super) table: &'a str,
    pub(super) file: &'a str,
    /// In pieces, each made when its turn comes.
    pub(super) pieces: Box<dyn Iterator<Item = RecordBatch> + 'a>,
}

/// What one message carries.
#[derive(Default)]
struct Part {
    batches: Vec<(StageId, Vec<u8>)>,
    rejects: Option<Vec<u8>>,
}

/// The messages that carry what one task sends to one log: at least one, because the id itself is news.
pub fn encode(
    source: Source,
    lineage: Lineage,
    rows: &[(StageId, RecordBatch)],
    extras: Extras<'_>,
) -> Result<Vec<Vec<u8>>, Error> {
    let Extras { mut failed, mut account, rejects } = extras;
    let mut parts = row_parts(rows)?;
    let names = rejects.as_ref().map(|rejects| (rejects.table, rejects.file));
    for piece in rejects.into_iter().flat_map(|rejects| rejects.pieces) {
        let bytes = Some(to_ipc(&piece)?);
        match parts.last_mut() {
            Some(last) if has_room_for_rejects(last) => last.rejects = bytes,
            _ => parts.push(Part { rejects: bytes, ..Part::default() }),
        }
    }
    let count = parts.len() as u32;
    // A message that is alone needs no digest: there is nothing it could be mixed up with.
    let content = if count == 1 { 0 } else { digest(lineage, &failed, &parts) };
    let mut messages = Vec::with_capacity(parts.len());
    for (index, Part { batches, rejects }) in parts.into_iter().enumerate() {
        let rejects_part = names.zip(rejects.as_ref()).map(|((table, file), bytes)| RejectsPart {
            table: table.to_owned(),
            file: file.to_owned(),
            bytes: bytes.len() as u32,
        });
        let header = RowsHeader {
            id: Header { source, content, part: index as u32, parts: count, lineage },
            batches: batches.iter().map(|(edge, bytes)| (*edge, bytes.len() as u32)).collect(),
            account: account.take(),
            rejects: rejects_part,
            failed: std::mem::take(&mut failed),
        };
        let payload: Vec<&[u8]> = batches.iter().map(|(_, bytes)| bytes.as_slice()).chain(rejects.as_deref()).collect();
        messages.push(frame(&header, &payload));
    }
    Ok(messages)
}

/// Rows as the parts of an output: at least one.
fn row_parts(rows: &[(StageId, RecordBatch)]) -> Result<Vec<Part>, Error> {
    let mut parts = vec![Part::default()];
    let mut room = MESSAGE_BYTES;
    for (edge, batch) in rows {
        for piece in pieces(batch) {
            let bytes = to_ipc(&piece)?;
            if bytes.len() > room && parts.last().is_some_and(|part| !part.batches.is_empty()) {
                parts.push(Part::default());
                room = MESSAGE_BYTES;
            }
            room = room.saturating_sub(bytes.len());
            if let Some(part) = parts.last_mut() {
                part.batches.push((*edge, bytes));
            }
        }
    }
    Ok(parts)
}

/// Whether a piece of bad records fits into this part.
fn has_room_for_rejects(part: &Part) -> bool {
    let bytes: usize = part.batches.iter().map(|(_, bytes)| bytes.len()).sum();
    part.rejects.is_none() && bytes + REJECT_PIECE_BYTES <= MESSAGE_BYTES
}

/// Takes a message apart. `log` names where it stood, for errors.
pub fn decode(log: &str, message: &[u8]) -> Result<Message, Error> {
    let framed = unframe::<RowsHeader>(log, message)?;
    let RowsHeader { id, batches, account, rejects, failed } = framed.header;
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
    let rejects = match rejects {
        None => None,
        Some(RejectsPart { table, file, bytes }) => {
            next(bytes)?.into_iter().next().map(|records| RejectPiece { table, file, records })
        }
    };
    Ok(Message { id, rows, account, rejects, failed })
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

/// Arrow's reader takes the memory that a length asks for before it finds that the bytes are not there: 2 GiB for one wrong byte.
fn check_lengths(mut rest: &[u8]) -> Result<(), Error> {
    let cut_off = || ArrowError::IpcError("a length points beyond the end".to_owned());
    while let Some((head, behind)) = rest.split_first_chunk::<4>() {
        let (size, behind) = match *head {
            [0xff, 0xff, 0xff, 0xff] => behind.split_first_chunk::<4>().ok_or_else(cut_off)?,
            _ => (head, behind),
        };
        let size = u32::from_le_bytes(*size) as usize;
        if size == 0 {
            break;
        }
        let (message, behind) = behind.split_at_checked(size).ok_or_else(cut_off)?;
        let message = root_as_message(message).map_err(|error| ArrowError::IpcError(error.to_string()))?;
        let body = usize::try_from(message.bodyLength()).map_err(|_| cut_off())?;
        rest = behind.get(body..).ok_or_else(cut_off)?;
    }
    Ok(())
}

fn from_ipc(bytes: &[u8]) -> Result<Vec<RecordBatch>, Error> {
    check_lengths(bytes)?;
    // Arrow's reader trusts the offsets of buffers within a body, and panics where one leads beyond its end.
    let read = catch_unwind(AssertUnwindSafe(|| read_ipc(bytes)));
    read.unwrap_or_else(|_| Err(ArrowError::IpcError("a buffer lies beyond the end".to_owned()).into()))
}

fn read_ipc(bytes: &[u8]) -> Result<Vec<RecordBatch>, Error> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None)?;
    Ok(reader.collect::<Result<Vec<_>, _>>()?)
}

fn digest(lineage: Lineage, failed: &FailedStages, parts: &[Part]) -> u64 {
    let mut hash = Sha256::new();
    hash.update(serde_json::to_vec(failed).expect("failures are plain data"));
    hash.update(lineage.input.to_be_bytes());
    hash.update(lineage.broadcasts.to_be_bytes());
    for part in parts {
        let batches = part.batches.iter().map(|(edge, bytes)| (edge.0, bytes));
        // No edge has this number: there are at most 4096 stages.
        for (edge, bytes) in batches.chain(part.rejects.iter().map(|bytes| (u16::MAX, bytes))) {
            hash.update(edge.to_be_bytes());
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
    }
    let hash: [u8; 32] = hash.finalize().into();
    u64::from_be_bytes(hash[..8].try_into().expect("eight of them"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};
    use datafusion::arrow::buffer::Buffer;
    use datafusion::arrow::compute::concat_batches;
    use tenaz_core::{FaultClass, Partition, StageFailure, TableId};
    use tenaz_csv::{Column, Decoder, Kind, Layout};

    use super::*;
    use crate::RejectLine;
    use crate::rejects::reject_pieces;

    fn rows(count: i64) -> RecordBatch {
        let text: StringViewArray = (0..count).map(|n| Some(format!("a text that is long enough {n:>40}"))).collect();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
        RecordBatch::try_from_iter([("n", numbers), ("t", Arc::new(text) as ArrayRef)]).unwrap()
    }

    const LINEAGE: Lineage = Lineage { input: 1, broadcasts: 2 };
    const TASK: Source = Source::Task { stage: StageId(2), partition: Partition(1) };

    fn decoded_lineages_agree(messages: &[Vec<u8>]) -> bool {
        messages.iter().all(|message| decode("log", message).unwrap().id.lineage == LINEAGE)
    }

    #[test]
    fn a_large_output_travels_in_parts_of_bounded_size_and_comes_back_whole() {
        let all = rows(60_000);
        let messages = encode(TASK, LINEAGE, &[(StageId(2), all.clone())], Extras::default()).unwrap();
        assert!(messages.len() > 3, "{}", messages.len());
        assert!(messages.iter().all(|m| m.len() < 2 * MESSAGE_BYTES));
        let decoded: Vec<Message> = messages.iter().map(|m| decode("log", m).unwrap()).collect();
        let parts: Vec<u32> = decoded.iter().map(|m| m.id.part).collect();
        assert_eq!(parts, (0..messages.len() as u32).collect::<Vec<_>>());
        assert!(decoded.iter().all(|m| m.id.parts as usize == messages.len() && m.id.content == decoded[0].id.content));
        let batches: Vec<RecordBatch> = decoded.into_iter().flat_map(|m| m.rows).map(|(_, b)| b).collect();
        assert_eq!(concat_batches(&all.schema(), &batches).unwrap(), all);
        assert!(decoded_lineages_agree(&messages));
        let again = encode(TASK, LINEAGE, &[(StageId(2), all.clone())], Extras::default()).unwrap();
        assert_eq!(again, messages, "same rows, same bytes");
        let other = encode(TASK, Lineage::default(), &[(StageId(2), all)], Extras::default()).unwrap();
        let content = |message: &[u8]| decode("log", message).unwrap().id.content;
        assert_ne!(content(&other[0]), content(&messages[0]), "parts of two versions never mix");
    }

    /// Arrow's own reader must not trust what it reads either: lengths and offsets come from the network.
    #[test]
    fn any_bytes_are_rows_or_refused() {
        let some = encode(TASK, LINEAGE, &[(StageId(2), rows(5)), (StageId(3), rows(1))], Extras::default()).unwrap();
        let none = encode(TASK, LINEAGE, &[], Extras::default()).unwrap();
        let target = tenaz_fuzz::Target::new("rows", env!("CARGO_MANIFEST_DIR"));
        target.seed(some[0].clone()).seed(none[0].clone()).run(|input| match decode("log", input) {
            Ok(message) => {
                for (_, batch) in &message.rows {
                    batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
                }
                format!("{}", message.rows.len())
            }
            Err(error) => error.to_string().chars().filter(|c| c.is_ascii_alphabetic()).take(60).collect(),
        });
    }

    #[test]
    fn nothing_to_say_is_still_a_message() {
        let source = Source::Chunk { table: TableId(0), number: 5 };
        let account = ChunkAccount { records: 3, accepted: 2, rejected: 1, ..ChunkAccount::default() };
        let extras = Extras { account: Some(account.clone()), ..Extras::default() };
        let messages = encode(source, LINEAGE, &[], extras).unwrap();
        assert_eq!(messages.len(), 1);
        let message = decode("log", &messages[0]).unwrap();
        assert_eq!((message.id.source, message.id.parts), (source, 1));
        assert_eq!(message.account, Some(account));
        assert!(message.rejects.is_none());
        assert!(decode("log", &messages[0][..messages[0].len() - 9]).is_err());
    }

    #[test]
    fn a_failed_stage_travels_in_the_first_part_and_is_part_of_the_content() {
        let failure = StageFailure::new(StageId(3), TASK, FaultClass::Query, "division by zero");
        let failed = FailedStages::from(vec![(StageId(3), failure)]);
        let all = rows(60_000);
        let extras = |failed: &FailedStages| Extras { failed: failed.clone(), ..Extras::default() };
        let messages = encode(TASK, LINEAGE, &[(StageId(2), all.clone())], extras(&failed)).unwrap();
        let decoded: Vec<Message> = messages.iter().map(|message| decode("log", message).unwrap()).collect();
        assert_eq!(decoded[0].failed, failed);
        assert!(decoded.len() > 1 && decoded[1..].iter().all(|message| message.failed.is_empty()));
        let without = encode(TASK, LINEAGE, &[(StageId(2), all)], Extras::default()).unwrap();
        assert_ne!(decode("log", &without[0]).unwrap().id.content, decoded[0].id.content);
    }

    /// Two mebibytes of records of two bytes, all of them bad: their messages are bounded, and nothing is lost.
    #[test]
    fn bad_records_travel_in_parts_of_bounded_size() {
        let layout = Arc::new(Layout::new(vec![Column::new("a", Kind::Text), Column::new("b", Kind::Text)]));
        let data = Buffer::from_vec(b"x\n".repeat(1 << 20));
        let mut decoder = Decoder::new(Arc::clone(&layout), vec![0]).unwrap();
        let rejects = decoder.decode(&data, 4, 2).unwrap().rejects;
        let account = ChunkAccount { records: 1 << 20, rejected: 1 << 20, ..ChunkAccount::default() };
        let file = "a/file/with/a/long/name.csv";
        let pieces = Box::new(reject_pieces(&layout, &rejects));
        let extras = Extras {
            account: Some(account.clone()),
            rejects: Some(ChunkRejects { table: "transactions", file, pieces }),
            ..Extras::default()
        };
        let source = Source::Chunk { table: TableId(0), number: 5 };
        let messages = encode(source, LINEAGE, &[], extras).unwrap();
        assert!(messages.len() > 20, "{}", messages.len());
        assert!(messages.iter().all(|message| message.len() < MESSAGE_BYTES));
        let bytes: usize = messages.iter().map(Vec::len).sum();
        assert!(bytes < 40 << 20, "{bytes}");
        let decoded: Vec<Message> = messages.iter().map(|message| decode("log", message).unwrap()).collect();
        assert_eq!(decoded[0].account, Some(account));
        assert!(decoded[1..].iter().all(|message| message.account.is_none()));
        let mut expected = rejects.iter();
        for rows in decoded.iter().filter_map(|message| message.rejects.as_ref()).map(|piece| piece.rows().unwrap()) {
            for line in RejectLine::from_rows(&rows) {
                assert_eq!(Some(line), expected.next().map(|r| RejectLine::new("transactions", file, &layout, r)));
            }
        }
        assert!(expected.next().is_none());
    }
}
