//! The one right order of rows that have none: by their columns, left to right.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use tenaz_core::StageId;

use super::EdgeInput;
use super::inner::EdgeRows;
use super::output::tight;
use super::run::{MergeShare, run_plan, task_config, task_context};
use crate::Error;
use crate::plan::session_config;
use crate::plan::source::EdgeExec;

/// Sorts rows by all their columns, ascending, nulls first; on disk where memory does not suffice.
pub fn sort_rows(
    rows: Arc<dyn EdgeInput>,
    schema: &SchemaRef,
    env: &Arc<RuntimeEnv>,
    take: &mut dyn FnMut(RecordBatch) -> Result<()>,
) -> Result<(), Error> {
    let edge = StageId(0);
    let source = Arc::new(EdgeExec::new(edge, Arc::clone(schema), &Partitioning::UnknownPartitioning(1)));
    let options = SortOptions { descending: false, nulls_first: true };
    let columns = schema.fields().iter().enumerate();
    let keys = columns.map(|(i, f)| PhysicalSortExpr::new(Arc::new(Column::new(f.name(), i)), options));
    let rows = Arc::new(EdgeRows(BTreeMap::from([(edge, rows)])));
    let config = task_config(session_config(), env, MergeShare::Half { sorts: 1 });
    let context = task_context(&config, env, rows);
    // Sorted rows point into all that was read: unless they are made tight, every batch is as large as the whole answer.
    let mut take = |batch| take(tight(batch));
    match LexOrdering::new(keys) {
        Some(order) => run_plan(&(Arc::new(SortExec::new(order, source)) as _), &context, &mut take)?,
        None => run_plan(&(source as _), &context, &mut take)?,
    }
    Ok(())
}
