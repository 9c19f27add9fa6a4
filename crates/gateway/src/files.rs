//! Whole files (`curl -T`): the gateway cuts them where a client of its own would.
//!
//! ```text
//!  body ──parts──▶ Pipe ──▶ decompress ──▶ Chunker ──chunks──▶ work queue, receipts
//!        (async)            (a thread of its own)             (async, a few at once)
//! ```
//!
//! Every arrow is bounded, so a full work queue slows the client down and nothing gathers here.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tenaz_api::{FileReceipt, FinishAnswer};
use tenaz_cluster::{ChunkHeader, Control, Encoding};
use tenaz_core::{ChunkDigest, FILE_SHIFT, Fact, TableId, UploadedFile};
use tenaz_csv::Chunk;
use tokio::sync::{Notify, mpsc};

use crate::app::{Job, Shared, gone};
use crate::auth::Tenant;
use crate::body::Parts;
use crate::chunks::check_promised;
use crate::cutting::{Cut, Pipe, cut};
use crate::encoding::{BodyEncoding, encoding_of};
use crate::finish::finish_files;
use crate::limits::{FILE_CHUNKS_AT_ONCE, FILE_PARTS_AHEAD, MAX_FILE_NAME_BYTES, MAX_FILE_ORDINAL};
use crate::places::hold_place;
use crate::problem::{Code, Problem};
use crate::publish::{Patience, deliver};
use crate::results::stay_alive;

/// `PUT /v1/jobs/{job}/tables/{table}/files/{file}`
pub(crate) async fn upload(
    State(app): State<Shared>,
    tenant: Tenant,
    Path((id, table, file)): Path<(String, String, String)>,
    Query(parameters): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<FileReceipt>, Problem> {
    let job = app.open_job(&tenant, &id).await?;
    let table = job.table(&table)?;
    let ordinal = file.parse::<u32>().ok().filter(|file| (1..=MAX_FILE_ORDINAL).contains(file));
    let ordinal = ordinal.ok_or_else(|| {
        Problem::new(Code::BadRequest, format!("{file:?} is no file: count from 1 to {MAX_FILE_ORDINAL}"))
    })?;
    let upload = Upload::new(&job, table, ordinal, parameters.get("name"), &headers)?;
    let file = upload.run(&app, &job, body).await?;
    Ok(Json(receipt(ordinal, file)))
}

/// `PUT /v1/jobs/{job}/tables/{table}/data`
pub(crate) async fn upload_table(
    State(app): State<Shared>,
    tenant: Tenant,
    Path((id, table)): Path<(String, String)>,
    Query(parameters): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<FileReceipt>, Problem> {
    let job = app.open_job(&tenant, &id).await?;
    let table = job.table(&table)?;
    let upload = Upload::new(&job, table, 1, parameters.get("name"), &headers)?;
    let file = upload.run(&app, &job, body).await?;
    let finished = finish_files(&app, &job, table, &[1]).await?;
    let FinishAnswer { table, chunks, missing } = finished;
    Ok(Json(FileReceipt { chunks, table: Some(table), missing: Some(missing), ..receipt(1, file) }))
}

fn receipt(ordinal: u32, file: UploadedFile) -> FileReceipt {
    let UploadedFile { chunks, records, bytes } = file;
    FileReceipt { file: ordinal, chunks, records, bytes, table: None, missing: None }
}

/// A file on its way.
#[derive(Debug)]
struct Upload {
    table: TableId,
    ordinal: u32,
    name: String,
    encoding: BodyEncoding,
}

impl Upload {
    fn new(
        job: &Job,
        table: TableId,
        ordinal: u32,
        name: Option<&String>,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        let default = || format!("{}.{ordinal}.csv", job.planned.table_name(table));
        let name = name.cloned().unwrap_or_else(default);
        if name.len() > MAX_FILE_NAME_BYTES {
            let text = format!("the file's name has more than {MAX_FILE_NAME_BYTES} bytes");
            return Err(Problem::new(Code::TooLarge, text));
        }
        Ok(Self { table, ordinal, name, encoding: encoding_of(headers)? })
    }

    async fn run(&self, app: &Shared, job: &Job, body: Body) -> Result<UploadedFile, Problem> {
        let place = app.files.take()?;
        let full = Notify::new();
        let sending = self.send(app, job, body, &full);
        let file = tokio::select! {
            file = sending => file?,
            problem = hold_place(app, job, self.table, place, &full) => return Err(problem),
            () = stay_alive(app, job) => return Err(Problem::internal("this never ends")),
        };
        self.record(app, job, file).await
    }

    /// Cuts the file and sends its chunks.
    async fn send(&self, app: &Shared, job: &Job, body: Body, full: &Notify) -> Result<UploadedFile, Problem> {
        let layout = job.planned.layout(self.table).ok_or_else(|| Problem::internal("a table has no layout"))?;
        let format = job.planned.format(self.table).ok_or_else(|| Problem::internal("a table has no format"))?;
        let target = usize::try_from(job.spec.chunk_bytes).map_err(Problem::internal)?;
        let (pipe, writer) = Pipe::new(FILE_PARTS_AHEAD);
        let (sender, mut chunks) = mpsc::channel::<(Chunk, ChunkDigest)>(1);
        let encoding = self.encoding;
        let cutting = tokio::task::spawn_blocking(move || cut(pipe, encoding, (&layout, &format), target, &sender));
        let feeding = async {
            let mut parts = Parts::new(body, app.limits.idle);
            let mut bytes = 0;
            while let Some(part) = parts.next().await? {
                bytes += part.len() as u64;
                if !writer.part(part).await {
                    // Whoever cuts knows why it has stopped: here only that it has not read this part.
                    return Ok(bytes);
                }
            }
            writer.end().await;
            Ok::<u64, Problem>(bytes)
        };
        let sending = async {
            let mut under_way = FuturesUnordered::new();
            let mut more = true;
            while more || !under_way.is_empty() {
                tokio::select! {
                    Some(sent) = under_way.next() => sent?,
                    chunk = chunks.recv(), if more && under_way.len() < FILE_CHUNKS_AT_ONCE => match chunk {
                        Some((chunk, digest)) => under_way.push(self.send_chunk(app, job, chunk, digest, full)),
                        None => more = false,
                    },
                }
            }
            Ok::<(), Problem>(())
        };
        // Whichever fails first ends the others: dropping their ends of the channels does it.
        let cut = async { cutting.await.map_err(|_| Problem::internal("cutting a file crashed"))? };
        let (cut, (), sent) = tokio::try_join!(cut, sending, feeding)?;
        let Cut { chunks, records, bytes, taken } = cut;
        if taken != sent {
            let text = "something follows the end of the compressed data: send it as one frame";
            return Err(Problem::new(Code::Unprocessable, text));
        }
        Ok(UploadedFile { chunks, records, bytes })
    }

    async fn send_chunk(
        &self,
        app: &Shared,
        job: &Job,
        chunk: Chunk,
        digest: ChunkDigest,
        full: &Notify,
    ) -> Result<(), Problem> {
        if chunk.number >> FILE_SHIFT != 0 {
            return Err(Problem::new(Code::TooLarge, "the file has too many chunks: use a larger chunk_bytes"));
        }
        let number = (u64::from(self.ordinal) << FILE_SHIFT) + chunk.number;
        check_promised(app, job, self.table, number)?;
        let header = ChunkHeader {
            table: self.table,
            number,
            file: self.name.clone(),
            byte: chunk.byte,
            line: chunk.line,
            records: Some(chunk.records),
            encoding: Encoding::Identity,
            raw_bytes: chunk.data.len() as u64,
            digest,
        };
        deliver(app, job, &header, &chunk.data, Patience::Long { full }).await.map(drop)
    }

    /// Writes down that the file is complete.
    async fn record(&self, app: &Shared, job: &Job, file: UploadedFile) -> Result<UploadedFile, Problem> {
        let known = || app.book.view(job.id(), |view| view.facts.file(self.table, self.ordinal));
        match known().ok_or_else(|| gone(job.id()))? {
            Some(before) if before == file => return Ok(file),
            Some(before) => {
                let text = format!(
                    "file {} was sent before with {} chunks and {} bytes, and now has {} and {}: use another number",
                    self.ordinal, before.chunks, before.bytes, file.chunks, file.bytes
                );
                return Err(Problem::new(Code::Contradiction, text));
            }
            None => {}
        }
        let UploadedFile { chunks, records, bytes } = file;
        let fact = Fact::FileUploaded { table: self.table, file: self.ordinal, chunks, records, bytes };
        app.within(app.book.tell(job.id(), &Control::Fact(fact))).await??;
        let (table, ordinal) = (self.table, self.ordinal);
        let read = app.book.wait(job.id(), |view| view.facts.file(table, ordinal));
        app.within(read).await?.ok_or_else(|| gone(job.id()))
    }
}
