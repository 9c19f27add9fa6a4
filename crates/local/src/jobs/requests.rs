//! Requests about jobs as a whole.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};
use tenaz_core::ProblemCode;

use super::job::Job;
use super::question::{Asked, Question};
use crate::problem::Problem;
use crate::server::Shared;

/// `POST /v1/check`: plans what is asked, and says what is wrong with it.
pub(crate) async fn check(
    State(local): State<Shared>,
    asked: Result<Json<Asked>, axum::extract::rejection::JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let question = planned(&local, asked).await?;
    Ok(Json(json!({"queries": question.queries(), "stages": question.stages()?})))
}

/// `POST /v1/jobs`
pub(crate) async fn create(
    State(local): State<Shared>,
    asked: Result<Json<Asked>, axum::extract::rejection::JsonRejection>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let question = planned(&local, asked).await?;
    let id = random_id()?;
    let made = tokio::task::spawn_blocking(move || Job::new(id, question)).await.map_err(Problem::internal)?;
    let job = Arc::new(made.map_err(|error| Problem::of_question(&error))?);
    let created = json!({
        "job": job.id, "workload": job.question.workload.name, "state": job.name(), "partitions": null,
        "chunk_bytes": null, "tables": job.question.tables().map(|(_, name)| name).collect::<Vec<_>>(),
        "queries": job.question.queries(),
    });
    local.jobs.begin(job).map_err(|error| Problem::new(ProblemCode::Busy, error.to_string()))?;
    Ok((StatusCode::CREATED, Json(created)))
}

async fn planned(
    local: &Shared,
    asked: Result<Json<Asked>, axum::extract::rejection::JsonRejection>,
) -> Result<Question, Problem> {
    let Json(asked) = asked.map_err(|rejection| Problem::new(ProblemCode::BadRequest, rejection.body_text()))?;
    let local = Arc::clone(local);
    tokio::task::spawn_blocking(move || Question::plan(&local, &asked)).await.map_err(Problem::internal)?
}

fn random_id() -> Result<String, Problem> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(Problem::internal)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The job with this id.
pub(crate) fn find(local: &Shared, id: &str) -> Result<Arc<Job>, Problem> {
    local.jobs.find(id).ok_or_else(|| Problem::not_found(format!("job {id:?}")))
}

/// `GET /v1/jobs`
pub(crate) async fn list(State(local): State<Shared>) -> Json<Value> {
    let jobs: Vec<Value> = local.jobs.all().iter().map(|job| job.line()).collect();
    Json(json!({"jobs": jobs}))
}

/// `GET /v1/jobs/{job}`
pub(crate) async fn state(State(local): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let job = find(&local, &id)?;
    let stages = job.question.stages()?;
    Ok(Json(job.describe(stages)))
}

/// `POST /v1/jobs/{job}/cancel`
pub(crate) async fn cancel(
    State(local): State<Shared>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let job = find(&local, &id)?;
    job.stop();
    Ok((StatusCode::ACCEPTED, Json(json!({"job": job.id, "state": job.name()}))))
}

/// `DELETE /v1/jobs/{job}`: stops it and forgets it.
pub(crate) async fn forget(
    State(local): State<Shared>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let job = find(&local, &id)?;
    job.stop();
    local.jobs.remove(&job.id);
    Ok((StatusCode::ACCEPTED, Json(json!({"job": job.id, "state": job.name()}))))
}
