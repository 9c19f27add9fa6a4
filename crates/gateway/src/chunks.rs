//! Uploading chunks: any order, any number at once, repeats harmless.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use tenaz_api::{ChunkReceipt, ChunkStatus};
use tenaz_cluster::{ChunkHeader, Encoding};
use tenaz_core::TableId;
use tenaz_core::limits::MAX_CHUNKS;

use crate::app::{Job, Shared};
use crate::auth::Tenant;
use crate::body::receive;
use crate::encoding::{BodyEncoding, RawChunk, encoding_of, gunzipped, measure};
use crate::limits::{MAX_CHUNK_BODY_BYTES, MAX_FILE_NAME_BYTES};
use crate::problem::{Code, Problem};
use crate::publish::{Delivered, Patience, deliver};
use crate::text::percent_decode;

/// `PUT /v1/jobs/{job}/tables/{table}/chunks/{n}`
pub(crate) async fn upload(
    State(app): State<Shared>,
    tenant: Tenant,
    Path((id, table, number)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<ChunkReceipt>, Problem> {
    let job = app.open_job(&tenant, &id).await?;
    let table_name = table;
    let table = job.table(&table_name)?;
    let number = parse_number(&number)?;
    let encoding = encoding_of(&headers)?;
    let place = Place::of(&headers, &table_name)?;
    check_promised(&app, &job, table, number)?;
    // The body is read even if it is not needed: a client that is still sending does not listen.
    let mut received = receive(&app, &headers, body, MAX_CHUNK_BODY_BYTES).await?;
    let measuring = tokio::task::spawn_blocking(move || {
        let encoding = match encoding {
            BodyEncoding::Frame(encoding) => encoding,
            BodyEncoding::Gzip => {
                received.bytes = gunzipped(&received.bytes)?;
                Encoding::Identity
            }
        };
        Ok::<_, Problem>((measure(encoding, &received.bytes)?, encoding, received))
    });
    let (measured, encoding, received) = measuring.await.map_err(Problem::internal)??;
    let RawChunk { bytes: raw_bytes, digest } = measured;
    let Place { file, byte, line, records } = place;
    let header = ChunkHeader { table, number, file, byte, line, records, encoding, raw_bytes, digest };
    match deliver(&app, &job, &header, &received.bytes, Patience::Short).await? {
        Delivered::Now => Ok(answer(number, ChunkStatus::Received)),
        Delivered::Before => Ok(answer(number, ChunkStatus::Duplicate)),
    }
}

fn answer(chunk: u64, status: ChunkStatus) -> Json<ChunkReceipt> {
    Json(ChunkReceipt { chunk, status })
}

fn parse_number(text: &str) -> Result<u64, Problem> {
    let number = text.parse::<u64>().ok().filter(|number| *number < MAX_CHUNKS);
    number.ok_or_else(|| {
        Problem::new(Code::BadRequest, format!("{text:?} is no chunk number: count from 0 to 4294967295"))
    })
}

/// A chunk that does not belong to a table that is complete comes from a client with other files.
pub(crate) fn check_promised(app: &Shared, job: &Job, table: TableId, number: u64) -> Result<(), Problem> {
    let closed = app.book.view(job.id(), |view| view.facts.closed(table).map(|closed| closed.chunks.clone()));
    match closed.flatten() {
        Some(promise) if !promise.has(number) => {
            let text = format!(
                "table {} is complete with {} chunks, and chunk {number} is none of them",
                job.planned.table_name(table),
                promise.len()
            );
            Err(Problem::new(Code::Contradiction, text))
        }
        _ => Ok(()),
    }
}

/// Where a chunk was cut from, for messages about its records.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    file: String,
    byte: u64,
    line: u64,
    records: Option<u64>,
}

impl Place {
    fn of(headers: &HeaderMap, table: &str) -> Result<Self, Problem> {
        let bad = |name: &str, what: &str| Problem::new(Code::BadRequest, format!("the header {name} {what}"));
        let text = |name: &str| match headers.get(name) {
            None => Ok(None),
            Some(value) => value.to_str().map(Some).map_err(|_| bad(name, "is not plain text: percent-encode it")),
        };
        let number = |name: &str| match text(name)? {
            None => Ok(None),
            Some(value) => value.trim().parse::<u64>().map(Some).map_err(|_| bad(name, "is not a number")),
        };
        let file = match text("tenaz-file")? {
            None => table.to_owned(),
            Some(name) => percent_decode(name).ok_or_else(|| bad("Tenaz-File", "is not percent-encoded UTF-8"))?,
        };
        if file.len() > MAX_FILE_NAME_BYTES {
            let text = format!("the file's name has more than {MAX_FILE_NAME_BYTES} bytes");
            return Err(Problem::new(Code::TooLarge, text));
        }
        Ok(Self {
            file,
            byte: number("tenaz-byte")?.unwrap_or(0),
            line: number("tenaz-line")?.unwrap_or(1),
            records: number("tenaz-records")?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn place(pairs: &[(&'static str, &str)]) -> Result<Place, Problem> {
        let mut headers = HeaderMap::new();
        pairs.iter().for_each(|(name, value)| {
            headers.insert(*name, value.parse().unwrap());
        });
        Place::of(&headers, "menu")
    }

    #[test]
    fn a_chunk_says_where_it_comes_from() {
        let whole =
            place(&[("tenaz-file", "a%2Fb.csv"), ("tenaz-byte", "7"), ("tenaz-line", "2"), ("tenaz-records", "3")]);
        assert_eq!(whole.unwrap(), Place { file: "a/b.csv".to_owned(), byte: 7, line: 2, records: Some(3) });
        assert_eq!(place(&[]).unwrap(), Place { file: "menu".to_owned(), byte: 0, line: 1, records: None });
        assert_eq!(place(&[("tenaz-line", "two")]).unwrap_err().code(), Code::BadRequest);
        assert_eq!(place(&[("tenaz-file", &"x".repeat(2000))]).unwrap_err().code(), Code::TooLarge);
    }

    #[test]
    fn numbers_of_chunks_leave_room_for_those_of_files() {
        assert_eq!(parse_number("4294967295").unwrap(), u64::from(u32::MAX));
        assert!(parse_number("4294967296").is_err());
        assert!(parse_number("-1").is_err() && parse_number("1.0").is_err() && parse_number("").is_err());
    }
}
