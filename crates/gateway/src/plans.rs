//! The plans of jobs. Planning takes milliseconds of processor time, so it happens once per job and off the event loop.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use tenaz_api::{Column, PlannedQuestion};
use tenaz_cluster::JobSpec;
use tenaz_core::{QueryId, TableId, Topology};
use tenaz_csv::Layout;
use tenaz_engine::{JobPlan, PlannedQuery, Workload};
use tenaz_source::FileFormat;
use tokio::sync::{OnceCell, Semaphore};

use crate::limits::{KEPT_PLANS, PLANNING_AT_ONCE};
use crate::problem::Problem;

/// What a gateway must know of a job's plan.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The workload, with the queries asked.
    pub(crate) workload: Workload,
    /// The stages.
    pub(crate) plan: Arc<JobPlan>,
    /// Their shape.
    pub(crate) topology: Topology,
    /// The wave of each table, by its place in the workload.
    waves: Vec<Option<usize>>,
    wave_count: usize,
}

impl Planned {
    fn make(spec: &JobSpec, time: Duration) -> Result<Self, tenaz_engine::Error> {
        let workload = Workload::from_text(&spec.workload)?.select(&spec.queries)?;
        let plan = JobPlan::within(&workload, time)?;
        let topology = plan.topology(spec.partitions)?;
        let found = topology.waves();
        let wave_of = |table| found.iter().position(|wave| wave.tables.contains(&TableId(table as u16)));
        let waves = (0..workload.tables.len()).map(wave_of).collect();
        Ok(Self { workload, plan: Arc::new(plan), topology, waves, wave_count: found.len() })
    }

    /// The table with this name.
    pub(crate) fn table(&self, name: &str) -> Option<TableId> {
        let index = self.workload.tables.iter().position(|table| table.name == name)?;
        Some(TableId(index as u16))
    }

    /// A table's name.
    pub(crate) fn table_name(&self, table: TableId) -> &str {
        self.workload.tables.get(usize::from(table.0)).map_or("?", |table| table.name.as_str())
    }

    /// What a table's records look like.
    pub(crate) fn layout(&self, table: TableId) -> Option<Arc<Layout>> {
        self.workload.tables.get(usize::from(table.0)).map(|table| Arc::clone(&table.layout))
    }

    /// How a table's files are written.
    pub(crate) fn format(&self, table: TableId) -> Option<FileFormat> {
        self.workload.tables.get(usize::from(table.0)).map(|table| table.format.clone())
    }

    /// The tables that the queries read, in the order in which they should be sent.
    pub(crate) fn read_tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.plan.scans.iter().map(|scan| scan.table)
    }

    /// The wave of a table's chunks.
    pub(crate) fn wave(&self, table: TableId) -> Option<usize> {
        self.waves.get(usize::from(table.0)).copied().flatten()
    }

    /// The tables whose chunks go into the work queue of a wave.
    pub(crate) fn tables_of(&self, wave: usize) -> Vec<TableId> {
        self.read_tables().filter(|table| self.wave(*table) == Some(wave)).collect()
    }

    /// How many waves there are.
    pub(crate) fn waves(&self) -> usize {
        self.wave_count
    }

    /// The query with this name.
    pub(crate) fn query(&self, name: &str) -> Option<(QueryId, &PlannedQuery)> {
        let index = self.plan.queries.iter().position(|query| query.name == name)?;
        Some((QueryId(index as u16), self.plan.queries.get(index)?))
    }

    /// The queries, for people and programs.
    pub(crate) fn describe_queries(&self) -> Vec<PlannedQuestion> {
        let describe = |query: &PlannedQuery| PlannedQuestion {
            name: query.name.clone(),
            title: query.title.clone(),
            ordered: query.ordered,
            columns: columns(&query.schema),
        };
        self.plan.queries.iter().map(describe).collect()
    }
}

/// Names and types.
pub(crate) fn columns(schema: &Schema) -> Vec<Column> {
    let describe = |field: &Arc<Field>| Column { name: field.name().clone(), kind: type_name(field.data_type()) };
    schema.fields().iter().map(describe).collect()
}

/// A type in the words of workload files, where they have one.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        kind if kind.is_integer() => "int".to_owned(),
        kind if kind.is_floating() => "float".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Timestamp(_, _) => "timestamp".to_owned(),
        kind => kind.to_string(),
    }
}

#[derive(Debug)]
struct Kept {
    used: u64,
    plan: Arc<OnceCell<Arc<Planned>>>,
}

/// Plans by the digest of what was asked; the least recently used ones go first.
#[derive(Debug)]
pub(crate) struct Plans {
    kept: Mutex<(u64, HashMap<String, Kept>)>,
    planning: Arc<Semaphore>,
    /// How long planning one job may take.
    time: Duration,
}

impl Plans {
    /// None yet; planning one may take so long.
    pub(crate) fn new(time: Duration) -> Self {
        Self { kept: Mutex::default(), planning: Arc::new(Semaphore::new(PLANNING_AT_ONCE)), time }
    }

    /// The plan of a job. `digest` is its spec's.
    pub(crate) async fn get(&self, spec: &Arc<JobSpec>, digest: &str) -> Result<Arc<Planned>, Problem> {
        let cell = self.cell(digest);
        let planned = cell.get_or_try_init(|| self.plan(spec)).await?;
        Ok(Arc::clone(planned))
    }

    async fn plan(&self, spec: &Arc<JobSpec>) -> Result<Arc<Planned>, Problem> {
        let permit = Arc::clone(&self.planning).acquire_owned().await.map_err(Problem::internal)?;
        let (spec, time) = (Arc::clone(spec), self.time);
        let planning = tokio::task::spawn_blocking(move || {
            let planned = Planned::make(&spec, time);
            drop(permit);
            planned
        });
        let planned = planning.await.map_err(|_| Problem::internal("planning crashed"))?;
        planned.map(Arc::new).map_err(Problem::from)
    }

    fn cell(&self, digest: &str) -> Arc<OnceCell<Arc<Planned>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (clock, plans) = &mut *kept;
        *clock += 1;
        let used = *clock;
        if let Some(found) = plans.get_mut(digest) {
            found.used = used;
            return Arc::clone(&found.plan);
        }
        if plans.len() >= KEPT_PLANS
            && let Some(oldest) = plans.iter().min_by_key(|(_, kept)| kept.used).map(|(digest, _)| digest.clone())
        {
            plans.remove(&oldest);
        }
        let plan = Arc::default();
        plans.insert(digest.to_owned(), Kept { used, plan: Arc::clone(&plan) });
        plan
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_nobody_uses_are_forgotten_first() {
        let plans = Plans::new(Duration::from_secs(1));
        let first = plans.cell("first");
        for n in 1..KEPT_PLANS {
            plans.cell(&n.to_string());
        }
        assert!(Arc::ptr_eq(&plans.cell("first"), &first));
        plans.cell("one more");
        assert!(Arc::ptr_eq(&plans.cell("first"), &first), "used a moment ago");
        assert_eq!(plans.kept.lock().unwrap().1.len(), KEPT_PLANS);
        assert!(!plans.kept.lock().unwrap().1.contains_key("1"));
    }
}
