//! Jobs: create, list, look at, cancel, forget.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use tenaz_api::{CreatedJob, EndedJob, Job as JobDocument, JobLine, JobList, JobState, NewJob, WorkloadChoice};
use tenaz_cluster::limits::{MAX_MESSAGE_BYTES, MAX_SPEC_BYTES};
use tenaz_cluster::{JobSpec, build_id, create_job, delete_job_objects};
use tenaz_core::limits::MAX_PARTITIONS;
use tenaz_core::{End, FileEntry, JobCard, JobId, RegistryEvent, WorkloadText};
use tenaz_engine::Workload;
use tenaz_runtime::cluster::plan_digest;

use crate::admission::{admit, admit_channels};
use crate::app::{Shared, ended, gone};
use crate::auth::Tenant;
use crate::body::receive_json;
use crate::limits::{
    BYTES_PER_PARTITION, DEFAULT_CHUNK_BYTES, MAX_CHOSEN_PARTITIONS, MAX_CHUNK_BYTES, MAX_FILE_NAME_BYTES,
    MAX_KEY_CHARS, MAX_MANIFEST_FILES, MAX_QUERIES, MIN_CHUNK_BYTES,
};
use crate::plans::Planned;
use crate::problem::{Code, Problem};
use crate::state::{describe, summarize};
use tenaz_words::unix_ms;

/// `POST /v1/jobs`
pub(crate) async fn create(
    State(app): State<Shared>,
    tenant: Tenant,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<CreatedJob>), Problem> {
    let id = job_id(&tenant, &headers)?;
    let asked: NewJob = receive_json(&app, &headers, body).await?;
    let data_bytes = asked.data_bytes.unwrap_or(0).max(asked.files.iter().map(|file| file.bytes).sum());
    let spec = Arc::new(spec_of(asked, data_bytes)?);
    let digest = spec.digest();
    let known = app.book.view(&id, |view| (view.card.spec_digest == digest, view.spec.is_some()));
    match known {
        Some((false, _)) => return Err(tenaz_cluster::Error::OtherJob(id).into()),
        Some((true, _)) => {}
        None => admit(&app, &tenant, data_bytes, spec.partitions).await?,
    }
    let planned = app.plans.get(&spec, &digest).await?;
    let card = JobCard {
        id: id.clone(),
        tenant: tenant.name,
        workload: planned.workload.name.clone(),
        partitions: spec.partitions,
        waves: planned.waves() as u16,
        tables: planned.read_tables().collect(),
        spec_digest: digest,
        build: build_id(),
        plan_digest: plan_digest(&planned.plan),
        created_ms: unix_ms(),
    };
    if known.is_none() {
        admit_channels(&app, &card).await?;
    }
    app.within(create_job(&app.link, &app.book, &card, &spec)).await??;
    // Whoever comes to this gateway next should find the job complete.
    app.within(app.book.wait(&id, |view| (view.spec.is_some() || view.end.is_some()).then_some(()))).await?;
    let status = if known.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let state = app.book.view(&id, summarize).ok_or_else(|| gone(&id))?;
    Ok((status, Json(created(&id, &spec, &planned, state))))
}

fn created(id: &JobId, spec: &JobSpec, planned: &Planned, state: JobState) -> CreatedJob {
    CreatedJob {
        job: id.as_str().to_owned(),
        workload: planned.workload.name.clone(),
        state,
        partitions: spec.partitions,
        chunk_bytes: spec.chunk_bytes,
        tables: planned.read_tables().map(|table| planned.table_name(table).to_owned()).collect(),
        queries: planned.describe_queries(),
    }
}

/// The id of a job: the same for the same tenant and key at every gateway; without a key nobody else's.
fn job_id(tenant: &Tenant, headers: &HeaderMap) -> Result<JobId, Problem> {
    let Some(key) = headers.get("idempotency-key") else {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(Problem::internal)?;
        return Ok(JobId::from_bytes(bytes));
    };
    let key = key.as_bytes();
    if key.is_empty() || key.len() > MAX_KEY_CHARS {
        let text = format!("an Idempotency-Key has 1 to {MAX_KEY_CHARS} characters");
        return Err(Problem::new(Code::TooLarge, text));
    }
    let mut hash = Sha256::new();
    hash.update(tenant.name.as_bytes());
    hash.update([0]);
    hash.update(key);
    let hash: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash[..8]);
    Ok(JobId::from_bytes(bytes))
}

fn spec_of(asked: NewJob, data_bytes: u64) -> Result<JobSpec, Problem> {
    let bad = |text: String| Err(Problem::new(Code::BadRequest, text));
    let too_large = |text: String| Err(Problem::new(Code::TooLarge, text));
    let chunk_bytes = asked.chunk_bytes.unwrap_or(DEFAULT_CHUNK_BYTES);
    if !(MIN_CHUNK_BYTES..=MAX_CHUNK_BYTES).contains(&chunk_bytes) {
        return bad(format!("chunk_bytes is {chunk_bytes}, but must be {MIN_CHUNK_BYTES} to {MAX_CHUNK_BYTES}"));
    }
    let chosen = data_bytes.div_ceil(BYTES_PER_PARTITION).clamp(1, MAX_CHOSEN_PARTITIONS) as u16;
    let partitions = asked.partitions.unwrap_or(chosen);
    if !(1..=MAX_PARTITIONS).contains(&partitions) {
        return bad(format!("partitions is {partitions}, but must be 1 to {MAX_PARTITIONS}"));
    }
    if asked.files.len() > MAX_MANIFEST_FILES || asked.queries.len() > MAX_QUERIES {
        return too_large(format!("a job has at most {MAX_MANIFEST_FILES} files and {MAX_QUERIES} queries"));
    }
    let is_long =
        |file: &FileEntry| [&file.table, &file.name, &file.sample].iter().any(|t| t.len() > MAX_FILE_NAME_BYTES);
    if asked.files.iter().any(is_long) {
        return too_large(format!("a name in \"files\" has more than {MAX_FILE_NAME_BYTES} bytes"));
    }
    let workload = workload_text(asked.workload)?;
    let text = workload.toml.len() + workload.sql.iter().map(|(name, sql)| name.len() + sql.len()).sum::<usize>();
    if text > MAX_SPEC_BYTES || workload.file.len() > MAX_FILE_NAME_BYTES {
        return too_large(format!("the workload has {text} bytes of text; the limit is {MAX_SPEC_BYTES}"));
    }
    let spec = JobSpec {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload,
        queries: asked.queries,
        partitions,
        chunk_bytes,
        strict: asked.strict,
        files: asked.files,
    };
    if serde_json::to_vec(&spec).map_err(Problem::internal)?.len() > MAX_MESSAGE_BYTES / 2 {
        return too_large("the list of files is too long: leave it out".to_owned());
    }
    Ok(spec)
}

/// The text of a workload. A name is a bundled one: files of this machine are nobody's business.
fn workload_text(choice: WorkloadChoice) -> Result<WorkloadText, Problem> {
    match choice {
        WorkloadChoice::Text { file, toml, sql, now } => {
            Ok(WorkloadText { file: file.unwrap_or_else(|| "workload.toml".to_owned()), toml, sql, now })
        }
        WorkloadChoice::Name(name) => {
            let known = tenaz_engine::bundled_names();
            if !known.contains(&name.as_str()) {
                let known = known.join(", ");
                let text = format!("there is no workload {name:?}: write one of {known}, or send the text of your own");
                return Err(Problem::new(Code::Unprocessable, text));
            }
            Ok(Workload::load_with_text(&name).map_err(Problem::internal)?.1)
        }
    }
}

/// `GET /v1/jobs`
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant) -> Json<JobList> {
    let mut jobs: Vec<(u64, JobLine)> = app
        .book
        .each(|view| {
            let may_see = tenant.may_see(&view.card);
            may_see.then(|| (view.card.created_ms, crate::state::line(&app, &tenant, view)))
        })
        .into_iter()
        .flatten()
        .collect();
    jobs.sort_by_key(|(created, _)| *created);
    Json(JobList { jobs: jobs.into_iter().map(|(_, job)| job).collect() })
}

/// `GET /v1/jobs/{job}`
pub(crate) async fn state(
    State(app): State<Shared>,
    tenant: Tenant,
    Path(id): Path<String>,
) -> Result<Json<JobDocument>, Problem> {
    let job = app.job(&tenant, &id).await?;
    app.touch(job.id());
    Ok(Json(describe(&app, &job).await?))
}

/// `POST /v1/jobs/{job}/cancel`
pub(crate) async fn cancel(
    State(app): State<Shared>,
    tenant: Tenant,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<EndedJob>), Problem> {
    let (card, _) = app.card(&tenant, &id).await?;
    match end_now(&app, &card).await? {
        End::Cancelled => Ok((StatusCode::ACCEPTED, Json(EndedJob { job: id, state: JobState::Cancelled }))),
        end => Err(ended(&card.id, &end)),
    }
}

/// `DELETE /v1/jobs/{job}`
pub(crate) async fn delete(
    State(app): State<Shared>,
    tenant: Tenant,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<EndedJob>), Problem> {
    let (card, end) = app.card(&tenant, &id).await?;
    let end = match end {
        None => end_now(&app, &card).await?,
        Some(end) => {
            app.within(delete_job_objects(&app.link, &card, &end, true)).await??;
            app.within(app.book.write(&RegistryEvent::Removed { id: card.id.clone() })).await??;
            // The wait ends with nothing when the job is gone.
            app.within(app.book.wait(&card.id, |_| None::<()>)).await?;
            end
        }
    };
    Ok((StatusCode::ACCEPTED, Json(EndedJob { job: id, state: JobState::of_end(&end) })))
}

/// Cancels a job that is open, and says how it has ended.
async fn end_now(app: &Shared, card: &JobCard) -> Result<End, Problem> {
    let known = app.book.view(&card.id, |view| view.end.clone()).ok_or_else(|| gone(&card.id))?;
    if let Some(end) = known {
        return Ok(end);
    }
    app.within(app.book.write(&RegistryEvent::Ended { id: card.id.clone(), end: End::Cancelled })).await??;
    app.within(app.book.wait(&card.id, |view| view.end.clone())).await?.ok_or_else(|| gone(&card.id))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn parse(text: &str) -> Result<JobSpec, Problem> {
        let asked: NewJob = serde_json::from_str(text).unwrap();
        let bytes = asked.data_bytes.unwrap_or(0);
        spec_of(asked, bytes)
    }

    #[test]
    fn partitions_follow_the_size_of_the_data_unless_asked_for() {
        let partitions =
            |bytes: u64| parse(&format!(r#"{{"workload": "coffee", "data_bytes": {bytes}}}"#)).unwrap().partitions;
        assert_eq!(partitions(0), 1);
        assert_eq!(partitions(BYTES_PER_PARTITION), 1);
        assert_eq!(partitions(BYTES_PER_PARTITION + 1), 2);
        assert_eq!(partitions(u64::MAX), 16);
        assert_eq!(parse(r#"{"workload": "coffee", "partitions": 200}"#).unwrap().partitions, 200);
        assert_eq!(parse(r#"{"workload": "coffee", "partitions": 257}"#).unwrap_err().code(), Code::BadRequest);
        assert_eq!(parse(r#"{"workload": "coffee", "chunk_bytes": 1}"#).unwrap_err().code(), Code::BadRequest);
    }

    /// The keys that a request may have, as the parser names them when it meets one that it does not know.
    fn known_keys() -> Vec<String> {
        let error = serde_json::from_str::<NewJob>(r#"{"unheard of": 1}"#).unwrap_err().to_string();
        let (_, expected) = error.split_once("expected one of").unwrap();
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_key_of_a_request_changes_the_job() {
        let plain = parse(r#"{"workload": "coffee"}"#).unwrap();
        let changes = [
            ("workload", r#""steam""#),
            ("queries", r#"["q1"]"#),
            ("strict", "true"),
            ("data_bytes", "1000000000000"),
            ("partitions", "7"),
            ("chunk_bytes", "4096"),
            ("files", r#"[{"table": "users", "name": "u.csv", "bytes": 3, "sample": "x"}]"#),
        ];
        assert_eq!(known_keys(), changes.map(|(key, _)| key), "a new key needs a change here, and an effect");
        for (key, value) in changes {
            let mut request: BTreeMap<&str, Value> = BTreeMap::from([("workload", json!("coffee"))]);
            request.insert(key, serde_json::from_str(value).unwrap());
            let changed = parse(&serde_json::to_string(&request).unwrap()).unwrap();
            assert_ne!(changed, plain, "{key} has no effect");
            assert_ne!(changed.digest(), plain.digest(), "{key} makes another request");
        }
    }

    #[test]
    fn a_workload_is_bundled_or_text_and_never_a_file_of_this_machine() {
        assert!(parse(r#"{"workload": "coffee"}"#).unwrap().workload.toml.contains("transactions"));
        assert_eq!(parse(r#"{"workload": "/etc/passwd"}"#).unwrap_err().code(), Code::Unprocessable);
        assert_eq!(parse(r#"{"workload": {"toml": "name = 'x'"}}"#).unwrap().workload.file, "workload.toml");
    }

    #[test]
    fn a_key_gives_the_same_id_to_the_same_tenant_only() {
        let id = |tenant: &str, key: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("idempotency-key", key.parse().unwrap());
            job_id(&Tenant::named(tenant), &headers)
        };
        assert_eq!(id("a", "k").unwrap(), id("a", "k").unwrap());
        assert_ne!(id("a", "k").unwrap(), id("b", "k").unwrap());
        assert_ne!(id("a", "k").unwrap(), id("a", "l").unwrap());
        assert!(id("a", &"k".repeat(201)).is_err());
        let random = |_| job_id(&Tenant::named("a"), &HeaderMap::new()).unwrap();
        assert_ne!(random(0), random(1));
    }
}
