//! Groups joined rows by the row of the held side that they found.
//!
//! `count(*) … FROM ratings JOIN nineties USING (title) GROUP BY title, authors` groups by two texts, though both are known once
//! it is known which row of `nineties` was found. Held rows are numbered, rows are grouped by that number, and only groups get
//! their texts. Two held rows with the same keys make two groups; later steps of the aggregation merge what comes twice.
//!
//! A semi join is the inner join with held rows that were made distinct first.

use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinType, Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::TryStreamExt;

use super::aggregate::WordGroups;
use super::ahead::{From, is_plain, moved, source, sources};
use super::{Expr, Plan};
use crate::plan::source::EdgeExec;

/// The held rows with their numbers, once they were read.
type Held = Arc<OnceLock<RecordBatch>>;

/// The same as `aggregate`, by numbers of held rows, if all its keys are known from them.
pub(super) fn group_by_held(aggregate: &AggregateExec) -> Result<Option<Plan>> {
    let Some(join) = aggregate.input().downcast_ref::<HashJoinExec>() else { return Ok(None) };
    let is_semi = *join.join_type() == JoinType::RightSemi;
    if !is_plain(aggregate, join, &[JoinType::Inner, JoinType::RightSemi]) || !join.left().is::<EdgeExec>() {
        return Ok(None);
    }
    let Some(on) = join.on().iter().map(|(held, passing)| Some((place(held)?, place(passing)?))).collect() else {
        return Ok(None);
    };
    let on: Vec<(usize, usize)> = on;
    let sources = sources(join);
    // A column of the passing side that the join is on has the value of the held one.
    let as_held = |key: &Expr| match source(key, &sources)? {
        From::Held(column) => Some(column),
        From::Passing(column) => on.iter().find(|(_, passing)| *passing == column).map(|(held, _)| *held),
    };
    let Some(keys) = aggregate.group_expr().expr().iter().map(|(key, _)| as_held(key)).collect() else {
        return Ok(None);
    };
    let keys: Vec<usize> = keys;
    let held_schema = join.left().schema();
    let same_bytes = |column: &usize| {
        let data_type = held_schema.field(*column).data_type();
        data_type.is_integer() || *data_type == DataType::Utf8View || data_type.is_temporal()
    };
    if !on.iter().all(|(held, _)| same_bytes(held)) {
        return Ok(None);
    }
    // Of a semi join's held side only the columns that it is on matter.
    let (left, held_places): (Plan, Vec<usize>) = match is_semi {
        true => (distinct(join.left(), &on)?, on.iter().map(|(held, _)| *held).collect()),
        false => (Arc::clone(join.left()), (0..held_schema.fields().len()).collect()),
    };
    let new_place = |column: usize| held_places.iter().position(|place| *place == column).unwrap_or_default();
    let held = Held::default();
    let numbered: Plan = Arc::new(Numbered::new(left, Arc::clone(&held)));
    let Some(first) = grouped(aggregate, join, &sources, numbered, &on, &new_place)? else { return Ok(None) };
    let keys = keys.into_iter().map(new_place).collect();
    let found =
        Found { input: first, held, keys, schema: aggregate.schema(), properties: aggregate.properties().clone() };
    Ok(Some(Arc::new(found)))
}

fn place(expr: &Expr) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

fn column(schema: &Schema, place: usize) -> Expr {
    Arc::new(Column::new(schema.field(place).name(), place))
}

/// The held rows, each combination of the columns that the join is on once.
fn distinct(held: &Plan, on: &[(usize, usize)]) -> Result<Plan> {
    let schema = held.schema();
    let keys = on.iter().map(|(place, _)| (column(&schema, *place), schema.field(*place).name().clone())).collect();
    let groups = PhysicalGroupBy::new_single(keys);
    let (none, no_filters) = (Vec::new(), Vec::new());
    let distinct = AggregateExec::try_new(AggregateMode::Single, groups, none, no_filters, Arc::clone(held), schema)?;
    Ok(Arc::new(distinct))
}

/// The join with the numbered rows, grouped by their numbers.
fn grouped(
    aggregate: &AggregateExec,
    join: &HashJoinExec,
    sources: &[From],
    numbered: Plan,
    on: &[(usize, usize)],
    new_place: &dyn Fn(usize) -> usize,
) -> Result<Option<Plan>> {
    // The join's output: the number, then what is aggregated.
    let passing = join.right();
    let mut wanted: Vec<usize> = Vec::new();
    for argument in aggregate.aggr_expr().iter().flat_map(|function| function.expressions()) {
        if let Some(From::Passing(place)) = source(&argument, sources)
            && !wanted.contains(&place)
        {
            wanted.push(place);
        }
    }
    let number = numbered.schema().fields().len() - 1;
    let projection = [number].into_iter().chain(wanted.iter().map(|place| number + 1 + place)).collect();
    let keys = on
        .iter()
        .map(|(held, place)| (column(&numbered.schema(), new_place(*held)), column(&passing.schema(), *place)));
    let keys = keys.collect();
    let joined = HashJoinExecBuilder::new(Arc::clone(&numbered), Arc::clone(passing), keys, JoinType::Inner)
        .with_partition_mode(PartitionMode::CollectLeft)
        .with_projection(Some(projection))
        .build()?;
    let joined: Plan = Arc::new(joined);
    let schema = joined.schema();
    let behind = sources.iter().map(|from| match from {
        From::Passing(place) => match wanted.iter().position(|wanted| wanted == place) {
            Some(position) => From::Passing(1 + position),
            None => From::Held(0),
        },
        held => *held,
    });
    let behind: Vec<From> = behind.collect();
    let aggregates = aggregate.aggr_expr().iter().map(|function| moved(function, &behind, &schema));
    let Some(aggregates) = aggregates.collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
    let filters = vec![None; aggregates.len()];
    let groups = PhysicalGroupBy::new_single(vec![(column(&schema, 0), NUMBER.to_owned())]);
    let first = AggregateExec::try_new(AggregateMode::Partial, groups, aggregates, filters, joined, schema)?;
    // The states must be those that later steps expect.
    let states = |schema: SchemaRef, keys: usize| -> Vec<DataType> {
        schema.fields().iter().skip(keys).map(|field| field.data_type().clone()).collect()
    };
    if states(first.schema(), 1) != states(aggregate.schema(), aggregate.group_expr().expr().len()) {
        return Ok(None);
    }
    Ok(WordGroups::instead_of(&first)?.map(|first| Arc::new(first) as Plan))
}

const NUMBER: &str = "number of the held row";

/// All rows of its input in one batch, with a column that numbers them.
#[derive(Debug, Clone)]
struct Numbered {
    input: Plan,
    held: Held,
    properties: Arc<PlanProperties>,
}

impl Numbered {
    fn new(input: Plan, held: Held) -> Self {
        let mut fields: Vec<Arc<Field>> = input.schema().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(NUMBER, DataType::Int64, false)));
        let equivalences = EquivalenceProperties::new(Arc::new(Schema::new(fields)));
        let one = Partitioning::UnknownPartitioning(1);
        let properties = PlanProperties::new(equivalences, one, EmissionType::Final, Boundedness::Bounded);
        Self { input, held, properties: Arc::new(properties) }
    }

    fn number(&self, batches: &[RecordBatch]) -> Result<RecordBatch> {
        let rows = concat_batches(&self.input.schema(), batches)?;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows.num_rows() as i64));
        let columns = rows.columns().iter().cloned().chain([numbers]).collect();
        let rows = RecordBatch::try_new(self.schema(), columns)?;
        // Who comes second takes what the first one found: groups get their keys from there.
        Ok(self.held.get_or_init(|| rows).clone())
    }
}

impl DisplayAs for Numbered {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Numbered")
    }
}

impl ExecutionPlan for Numbered {
    fn name(&self) -> &str {
        "Numbered"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input, ..Self::clone(&self) }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let numbered = self.clone();
        let rows = async move { numbered.number(&input.try_collect::<Vec<_>>().await?) };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), futures::stream::once(rows))))
    }
}

/// Puts the keys of the groups in the place of the numbers of held rows.
#[derive(Debug, Clone)]
struct Found {
    input: Plan,
    held: Held,
    /// Columns of the held rows.
    keys: Arc<[usize]>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl Found {
    fn with_keys(&self, groups: &RecordBatch) -> Result<RecordBatch> {
        let Some(held) = self.held.get() else {
            return Err(internal_datafusion_err!("groups came before the rows that they were found in"));
        };
        let keys = self.keys.iter().map(|key| Ok(take(held.column(*key), groups.column(0), None)?));
        let mut columns = keys.collect::<Result<Vec<ArrayRef>>>()?;
        columns.extend(groups.columns()[1..].iter().cloned());
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl DisplayAs for Found {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Found: keys {:?}", self.keys)
    }
}

impl ExecutionPlan for Found {
    fn name(&self) -> &str {
        "Found"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, mut children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input, ..Self::clone(&self) }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let found = self.clone();
        let groups = self.input.execute(partition, context)?.and_then(move |groups| {
            let with_keys = found.with_keys(&groups);
            async move { with_keys }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), groups)))
    }
}
