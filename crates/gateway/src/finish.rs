//! Completing tables, and what is missing of them.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use tenaz_api::{Finish, FinishAnswer, Missing, Ranges, TableMissing};
use tenaz_cluster::{ChunkHeader, Control, Encoding};
use tenaz_core::{
    ChunkDigest, Classified, ClosedTable, End, FILE_SHIFT, Fact, FaultClass, JobFacts, Promise, RegistryEvent, TableId,
};

use crate::app::{Job, Shared, gone};
use crate::auth::Tenant;
use crate::body::receive_json;
use crate::limits::MAX_FILE_ORDINAL;
use crate::problem::{Code, Problem};
use crate::publish::{Patience, deliver};

/// `POST /v1/jobs/{job}/tables/{table}/finish`
pub(crate) async fn finish(
    State(app): State<Shared>,
    tenant: Tenant,
    Path((id, table)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<FinishAnswer>, Problem> {
    let job = app.job(&tenant, &id).await?;
    tenant.check_owns(&job.card)?;
    let table = job.table(&table)?;
    let asked: Finish = receive_json(&app, &headers, body).await?;
    app.settled(job.id()).await;
    let closed = app.book.view(job.id(), |view| what_closes(&asked, &view.facts, table));
    let closed = closed.ok_or_else(|| gone(job.id()))??;
    close(&app, &job, table, closed).await.map(Json)
}

/// A table complete with these whole files.
pub(crate) async fn finish_files(
    app: &Shared,
    job: &Job,
    table: TableId,
    files: &[u32],
) -> Result<FinishAnswer, Problem> {
    let closed = app.book.view(job.id(), |view| sum_of_files(&view.facts, table, files));
    let closed = closed.ok_or_else(|| gone(job.id()))??;
    close(app, job, table, closed).await
}

fn what_closes(asked: &Finish, facts: &JobFacts, table: TableId) -> Result<ClosedTable, Problem> {
    let Finish { chunks, records, bytes, files } = asked;
    match (chunks, files) {
        (Some(chunks), None) => {
            Ok(ClosedTable { chunks: Promise::count(*chunks), records: *records, bytes: bytes.unwrap_or(0) })
        }
        (None, Some(files)) => sum_of_files(facts, table, files),
        _ => {
            let text = "say either how many chunks the table has ({\"chunks\": 12, \"records\": …, \"bytes\": …}) or which files ({\"files\": [1, 2]})";
            Err(Problem::new(Code::BadRequest, text))
        }
    }
}

fn sum_of_files(facts: &JobFacts, table: TableId, files: &[u32]) -> Result<ClosedTable, Problem> {
    let mut runs = BTreeMap::new();
    let (mut records, mut bytes) = (0, 0);
    for &file in files {
        if file == 0 || file > MAX_FILE_ORDINAL {
            return Err(Problem::new(Code::BadRequest, format!("{file} is no file: they count from 1")));
        }
        let Some(found) = facts.file(table, file) else {
            let text = format!("file {file} has not arrived completely: send it (again) first");
            return Err(Problem::new(Code::Contradiction, text));
        };
        let first = u64::from(file) << FILE_SHIFT;
        if runs.insert(first, first + found.chunks).is_none() {
            records += found.records;
            bytes += found.bytes;
        }
    }
    Ok(ClosedTable { chunks: Promise::runs(runs), records: Some(records), bytes })
}

async fn close(app: &Shared, job: &Job, table: TableId, asked: ClosedTable) -> Result<FinishAnswer, Problem> {
    asked.chunks.check().map_err(|error| Problem::new(Code::TooLarge, error.to_string()))?;
    // A table without records still has one chunk, so that somebody tells the others that there are none.
    let is_empty = asked.chunks.is_empty();
    let closed = match is_empty {
        true => ClosedTable { chunks: Promise::count(1), records: Some(0), ..asked },
        false => asked,
    };
    if !is_agreed(app, job, table, &closed.chunks)? {
        app.check_open(job.id())?;
        if is_empty {
            send_empty_chunk(app, job, table).await?;
        }
        let ClosedTable { chunks, records, bytes } = closed.clone();
        let fact = Control::Fact(Fact::TableClosed { table, chunks, records, bytes });
        app.within(app.book.tell(job.id(), &fact)).await??;
        let read = app.book.wait(job.id(), |view| view.facts.closed(table).map(|_| ()));
        app.within(read).await?.ok_or_else(|| gone(job.id()))?;
        if let Err(problem) = is_agreed(app, job, table, &closed.chunks) {
            // Somebody else closed it at the same moment, and the log says both.
            fail_contradictions(app, job).await?;
            return Err(problem);
        }
    }
    let missing = app.book.view(job.id(), |view| view.facts.missing(table, None)).ok_or_else(|| gone(job.id()))?;
    let chunks = closed.chunks.len();
    let table = job.planned.table_name(table).to_owned();
    Ok(FinishAnswer { table, chunks, missing: Ranges::new(missing) })
}

/// Whether the table is closed just so. Closed otherwise, or with chunks that are too many, it is a contradiction.
fn is_agreed(app: &Shared, job: &Job, table: TableId, chunks: &Promise) -> Result<bool, Problem> {
    let name = job.planned.table_name(table);
    let (closed, stray) = app
        .book
        .view(job.id(), |view| {
            let closed = view.facts.closed(table).map(|closed| closed.chunks.clone());
            (closed, chunks.stray(&view.facts.uploaded(table)))
        })
        .ok_or_else(|| gone(job.id()))?;
    match (closed, stray) {
        (Some(closed), _) if closed == *chunks => Ok(true),
        (Some(closed), _) => {
            let (before, now) = (closed.len(), chunks.len());
            let text =
                format!("table {name} is complete with {before} chunks, and now {now} are promised: the files differ");
            Err(Problem::new(Code::Contradiction, text).with("chunks", before))
        }
        (None, Some(stray)) => {
            let text = format!("chunk {stray} of table {name} was uploaded, but is none of those promised");
            Err(Problem::new(Code::Contradiction, text).with("chunk", stray))
        }
        (None, None) => Ok(false),
    }
}

async fn send_empty_chunk(app: &Shared, job: &Job, table: TableId) -> Result<(), Problem> {
    let header = ChunkHeader {
        table,
        number: 0,
        file: job.planned.table_name(table).to_owned(),
        byte: 0,
        line: 1,
        records: Some(0),
        encoding: Encoding::Identity,
        raw_bytes: 0,
        digest: ChunkDigest::of(b""),
    };
    deliver(app, job, &header, &[], Patience::Short).await.map(drop)
}

/// A control log that contradicts itself can never succeed: whoever finds out says so.
async fn fail_contradictions(app: &Shared, job: &Job) -> Result<(), Problem> {
    let problem = app.book.view(job.id(), |view| view.problem.clone().filter(|_| view.end.is_none())).flatten();
    let Some(problem) = problem else { return Ok(()) };
    let reason = problem.in_words(|table| job.planned.table_name(table).to_owned());
    fail(app, job, problem.class(), reason).await
}

/// Two clients disagree about the job's data: it can never succeed.
pub(crate) async fn fail(app: &Shared, job: &Job, class: FaultClass, reason: String) -> Result<(), Problem> {
    let end = End::Failed { code: "contradiction".to_owned(), reason: reason.into(), class };
    app.within(app.book.write(&RegistryEvent::Ended { id: job.id().clone(), end })).await??;
    Ok(())
}

/// `GET /v1/jobs/{job}/missing`
pub(crate) async fn missing(
    State(app): State<Shared>,
    tenant: Tenant,
    Path(id): Path<String>,
    Query(parameters): Query<BTreeMap<String, String>>,
) -> Result<Json<Missing>, Problem> {
    let job = app.job(&tenant, &id).await?;
    tenant.check_owns(&job.card)?;
    app.touch(job.id());
    app.settled(job.id()).await;
    let totals = totals(&parameters)?;
    for table in totals.keys() {
        job.table(table)?;
    }
    let tables = app.book.view(job.id(), |view| {
        let tables = job.planned.read_tables().map(|table| {
            let name = job.planned.table_name(table);
            let missing = view.facts.missing(table, totals.get(name).copied());
            let closed = view.facts.closed(table).is_some();
            TableMissing { name: name.to_owned(), closed, missing: Ranges::new(missing) }
        });
        tables.collect::<Vec<TableMissing>>()
    });
    Ok(Json(Missing { tables: tables.ok_or_else(|| gone(job.id()))? }))
}

/// How many chunks the client means to send: `chunks.<table>=N`, or `table=…&chunks=N`.
fn totals(parameters: &BTreeMap<String, String>) -> Result<BTreeMap<String, u64>, Problem> {
    let count = |text: &str| {
        text.parse::<u64>().map_err(|_| Problem::new(Code::BadRequest, format!("{text:?} is no number of chunks")))
    };
    let mut totals = BTreeMap::new();
    for (name, value) in parameters {
        if let Some(table) = name.strip_prefix("chunks.") {
            totals.insert(table.to_owned(), count(value)?);
        }
    }
    if let (Some(table), Some(chunks)) = (parameters.get("table"), parameters.get("chunks")) {
        totals.insert(table.clone(), count(chunks)?);
    }
    Ok(totals)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(3);

    #[test]
    fn a_table_of_files_has_their_chunks_records_and_bytes() {
        let mut facts = JobFacts::default();
        for (offset, (file, chunks)) in [(1, 2), (2, 0), (7, 1)].into_iter().enumerate() {
            let fact = Fact::FileUploaded { table: TABLE, file, chunks, records: 10 * chunks, bytes: 100 };
            facts.apply(offset as u64, &fact).unwrap();
        }
        let all = sum_of_files(&facts, TABLE, &[7, 1, 2, 1]).unwrap();
        let expected = Promise::runs([(1 << 32, (1 << 32) + 2), (7 << 32, (7 << 32) + 1)]);
        assert_eq!(all, ClosedTable { chunks: expected, records: Some(30), bytes: 300 });
        assert_eq!(sum_of_files(&facts, TABLE, &[3]).unwrap_err().code(), Code::Contradiction);
        assert_eq!(sum_of_files(&facts, TABLE, &[0]).unwrap_err().code(), Code::BadRequest);
        assert!(sum_of_files(&facts, TABLE, &[2]).unwrap().chunks.is_empty());
    }

    #[test]
    fn a_finish_says_one_thing() {
        let facts = JobFacts::default();
        let parse = |text: &str| what_closes(&serde_json::from_str::<Finish>(text).unwrap(), &facts, TABLE);
        assert_eq!(parse(r#"{"chunks": 3, "records": null, "bytes": 9}"#).unwrap().chunks, Promise::count(3));
        assert!(parse("{}").is_err());
        assert!(parse(r#"{"chunks": 3, "files": [1]}"#).is_err());
    }

    #[test]
    fn what_is_missing_can_be_asked_in_two_ways() {
        let parameters = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let asked = totals(&parameters(&[("chunks.a", "3"), ("table", "b"), ("chunks", "4")])).unwrap();
        assert_eq!(asked, BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 4)]));
        assert!(totals(&parameters(&[("chunks.a", "x")])).is_err());
    }
}
