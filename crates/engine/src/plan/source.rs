//! The two leaves of a stage's plan: rows of a chunk, and rows that came over an edge.
//!
//! A plan is shared by all tasks of its stage. What a task works on is not in the plan but in the task's context, as
//! a [`TaskRows`].

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use tenaz_core::{StageId, TableId};

use crate::stop::check;

/// The rows a task works on.
pub(crate) trait TaskRows: Send + Sync + Any {
    /// The task's chunk, with the given columns of the table's layout.
    fn scan(&self, columns: &[usize]) -> Result<Vec<RecordBatch>>;
    /// The rows that came over an edge.
    fn edge(&self, edge: StageId) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>>;
}

/// The context extension that carries a task's rows.
pub(crate) struct Rows(pub(crate) Arc<dyn TaskRows>);

fn rows_of(context: &TaskContext) -> Result<Arc<Rows>> {
    let rows = context.session_config().get_extension::<Rows>();
    rows.ok_or_else(|| internal_datafusion_err!("a stage was run without rows"))
}

/// Reads the task's chunk.
#[derive(Debug, Clone)]
pub(crate) struct ScanExec {
    pub(crate) table: TableId,
    pub(crate) name: String,
    /// Columns of the table's layout, by position.
    pub(crate) columns: Vec<usize>,
    guess: Statistics,
    properties: Arc<PlanProperties>,
}

impl ScanExec {
    pub(super) fn new(
        table: TableId,
        name: &str,
        columns: Vec<usize>,
        schema: SchemaRef,
        guess: Statistics,
        partitions: usize,
    ) -> Self {
        let properties = properties(schema, Partitioning::UnknownPartitioning(partitions));
        Self { table, name: name.to_owned(), columns, guess, properties }
    }

    /// The same scan as it is run: one chunk is one partition.
    pub(super) fn of_one_chunk(&self) -> Arc<dyn ExecutionPlan> {
        let schema = self.schema();
        Arc::new(Self::new(self.table, &self.name, self.columns.clone(), schema, self.guess.clone(), 1))
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "Scan: {} [{}]", self.name, names.join(", "))
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.guess.clone()))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = rows_of(&context)?.0.scan(&self.columns)?;
        let stream = futures::stream::iter(batches.into_iter().map(|batch| check().and(Ok(batch))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}

/// Reads the rows that an earlier stage sent here.
#[derive(Debug, Clone)]
pub(crate) struct EdgeExec {
    pub(crate) edge: StageId,
    properties: Arc<PlanProperties>,
}

impl EdgeExec {
    /// `partitioning` is what the planner was promised about the rows; here it is always one partition of it.
    pub(crate) fn new(edge: StageId, schema: SchemaRef, partitioning: &Partitioning) -> Self {
        let here = match partitioning {
            Partitioning::Hash(keys, _) => Partitioning::Hash(keys.clone(), 1),
            _ => Partitioning::UnknownPartitioning(1),
        };
        Self { edge, properties: properties(schema, here) }
    }

    /// With what is known of the rows. Operators above were planned with it (a sort leaves out columns that are the same in
    /// all rows) and would be refused without. Orders are lost at a cut.
    pub(super) fn knowing(self, mut known: EquivalenceProperties) -> Self {
        known.clear_orderings();
        let properties = PlanProperties::clone(&self.properties).with_eq_properties(known);
        Self { properties: Arc::new(properties), ..self }
    }
}

impl DisplayAs for EdgeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receive: from stage {}", self.edge.0)
    }
}

impl ExecutionPlan for EdgeExec {
    fn name(&self) -> &str {
        "EdgeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = rows_of(&context)?.0.edge(self.edge)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            futures::stream::iter(batches.map(|batch| check().and(batch))),
        )))
    }
}

fn properties(schema: SchemaRef, partitioning: Partitioning) -> Arc<PlanProperties> {
    let equivalences = EquivalenceProperties::new(schema);
    Arc::new(PlanProperties::new(equivalences, partitioning, EmissionType::Incremental, Boundedness::Bounded))
}
