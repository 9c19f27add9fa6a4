//! How DataFusion's planner sees a table of the workload.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use tenaz_core::TableId;

use super::source::ScanExec;
use crate::workload::{Role, Table};

/// Guessed rows of a dimension and of a fact table. Only their ratio matters: it makes the planner put dimensions on
/// the build side and collect them there. Guesses are constants, so every process plans the same job alike.
const DIMENSION_ROWS: usize = 1_000;
const FACT_ROWS: usize = 1_000_000_000;

/// A table as the planner knows it: a schema and a guess at its size.
#[derive(Debug)]
pub(super) struct WorkloadTable {
    id: TableId,
    name: String,
    role: Role,
    schema: SchemaRef,
}

impl WorkloadTable {
    pub(super) fn new(id: TableId, table: &Table) -> Self {
        let fields: Vec<Field> =
            table.layout.columns.iter().map(|c| Field::new(&c.name, c.kind.data_type(), !c.required)).collect();
        Self { id, name: table.name.clone(), role: table.role, schema: Arc::new(Schema::new(fields)) }
    }

    fn guess(&self) -> Statistics {
        let rows = match self.role {
            Role::Dimension => DIMENSION_ROWS,
            Role::Fact => FACT_ROWS,
        };
        let mut guess = Statistics::new_unknown(&self.schema);
        guess.num_rows = Precision::Inexact(rows);
        guess.total_byte_size = Precision::Inexact(rows * 8 * self.schema.fields().len());
        guess
    }
}

#[async_trait]
impl TableProvider for WorkloadTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.guess())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<usize> = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        let guess = self.guess().project(Some(&columns));
        let partitions = state.config().target_partitions();
        Ok(Arc::new(ScanExec::new(self.id, &self.name, columns, schema, guess, partitions)))
    }
}
