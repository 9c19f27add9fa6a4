//! The digests of the chunks that are in the cluster: a client that resumes an upload compares them with its files.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, Query, State};
use tenaz_api::Digests;

use crate::app::{Shared, gone};
use crate::auth::Tenant;
use crate::limits::DIGESTS_PER_PAGE;
use crate::problem::{Code, Problem};

/// `GET /v1/jobs/{job}/tables/{table}/digests`
pub(crate) async fn digests(
    State(app): State<Shared>,
    tenant: Tenant,
    Path((id, table)): Path<(String, String)>,
    Query(parameters): Query<BTreeMap<String, String>>,
) -> Result<Json<Digests>, Problem> {
    let job = app.job(&tenant, &id).await?;
    tenant.check_owns(&job.card)?;
    let table = job.table(&table)?;
    let from = first_chunk(&parameters)?;
    app.touch(job.id());
    app.settled(job.id()).await;
    let numbers = from..from.saturating_add(DIGESTS_PER_PAGE);
    let digests = app.book.view(job.id(), |view| numbers.map(|number| view.facts.digest(table, number)).collect());
    let digests = digests.ok_or_else(|| gone(job.id()))?;
    Ok(Json(Digests { table: job.planned.table_name(table).to_owned(), from, digests }))
}

fn first_chunk(parameters: &BTreeMap<String, String>) -> Result<u64, Problem> {
    let Some(text) = parameters.get("from") else { return Ok(0) };
    text.parse().map_err(|_| Problem::new(Code::BadRequest, format!("{text:?} is no chunk number")))
}
