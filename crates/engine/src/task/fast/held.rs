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
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

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
    let numbered = numbered(left, Arc::clone(&held));
    let Some(first) = grouped(aggregate, join, &sources, numbered, &on, &new_place)? else { return Ok(None) };
    let keys = keys.into_iter().map(new_place).collect();
    Ok(Some(found(first, held, keys, aggregate)))
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

/// All rows of `input` in one batch, with a column that numbers them.
fn numbered(input: Plan, held: Held) -> Plan {
    let mut fields: Vec<Arc<Field>> = input.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(NUMBER, DataType::Int64, false)));
    let (plain, schema) = (input.schema(), Arc::new(Schema::new(fields)));
    let equivalences = EquivalenceProperties::new(Arc::clone(&schema));
    let one = Partitioning::UnknownPartitioning(1);
    let properties = PlanProperties::new(equivalences, one, EmissionType::Final, Boundedness::Bounded);
    let number = move |batches: &[RecordBatch]| -> Result<RecordBatch> {
        let rows = concat_batches(&plain, batches)?;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows.num_rows() as i64));
        let columns = rows.columns().iter().cloned().chain([numbers]).collect();
        let rows = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        // Who comes second takes what the first one found: groups get their keys from there.
        Ok(held.get_or_init(|| rows).clone())
    };
    let number = Arc::new(number);
    let run = move |rows: SendableRecordBatchStream| {
        let number = Arc::clone(&number);
        futures::stream::once(async move { number(&rows.try_collect::<Vec<_>>().await?) }).boxed()
    };
    Arc::new(Through { name: "Numbered", input, properties: Arc::new(properties), run: Arc::new(run) })
}

/// The groups of `input` with the keys of these columns in the place of the numbers of held rows, as `aggregate` has them.
fn found(input: Plan, held: Held, keys: Vec<usize>, aggregate: &AggregateExec) -> Plan {
    let schema = aggregate.schema();
    let with_keys = move |groups: &RecordBatch| {
        let Some(held) = held.get() else {
            return Err(internal_datafusion_err!("groups came before the rows that they were found in"));
        };
        let keys = keys.iter().map(|key| Ok(take(held.column(*key), groups.column(0), None)?));
        let mut columns = keys.collect::<Result<Vec<ArrayRef>>>()?;
        columns.extend(groups.columns()[1..].iter().cloned());
        Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
    };
    let with_keys = Arc::new(with_keys);
    let run = move |groups: SendableRecordBatchStream| {
        let with_keys = Arc::clone(&with_keys);
        groups.map(move |groups| with_keys(&groups?)).boxed()
    };
    Arc::new(Through { name: "Found", input, properties: Arc::clone(aggregate.properties()), run: Arc::new(run) })
}

type Run = dyn Fn(SendableRecordBatchStream) -> BoxStream<'static, Result<RecordBatch>> + Send + Sync;

/// An operator that is one function of what comes in.
#[derive(Clone)]
struct Through {
    name: &'static str,
    input: Plan,
    properties: Arc<PlanProperties>,
    run: Arc<Run>,
}

impl std::fmt::Debug for Through {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(self.name).field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for Through {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for Through {
    fn name(&self) -> &str {
        self.name
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
        let rows = (self.run)(self.input.execute(partition, context)?);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::util::display::array_value_to_string;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::execution::runtime_env::RuntimeEnv;
    use datafusion::physical_expr::aggregate::AggregateExprBuilder;
    use datafusion::physical_expr::expressions::{col, lit};
    use tenaz_core::StageId;

    use super::*;
    use crate::functions::aggregate_named;
    use crate::plan::session_config;
    use crate::task::inner::EdgeRows;
    use crate::task::run::{run_plan, task_context};
    use crate::task::{EdgeInput, MemoryEdge};

    const BOOKS: StageId = StageId(3);

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        let columns = columns.into_iter().map(|(name, values)| (name, values, true));
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    fn texts(count: i64, what: &str, step: i64, bound: i64) -> ArrayRef {
        let text = |row: i64| (row % 11 != 5).then(|| format!("{what} that needs many bytes {}", row * step % bound));
        Arc::new((0..count).map(text).collect::<StringViewArray>())
    }

    /// Books, some with the same title, some even with the same authors, some without; in several batches.
    fn books() -> Vec<RecordBatch> {
        let all = batch(vec![("title", texts(60, "a title", 7, 30)), ("authors", texts(60, "people", 1, 4))]);
        vec![all.slice(0, 13), all.slice(13, 20), all.slice(33, 27)]
    }

    /// Ratings of them and of others, some of none.
    fn join(join_type: JoinType, projection: Option<Vec<usize>>) -> Plan {
        let scores: Int64Array = (0..6000).map(|row| (row % 7 != 2).then_some(row * 31 % 1000)).collect();
        let ratings = batch(vec![("rated", texts(6000, "a title", 13, 37)), ("score", Arc::new(scores))]);
        let (schema, portions) = (ratings.schema(), vec![ratings.slice(0, 2500), ratings.slice(2500, 3500)]);
        let ratings = MemorySourceConfig::try_new_exec(&[portions], schema, None).unwrap();
        let books: Plan = Arc::new(EdgeExec::new(BOOKS, books()[0].schema(), &Partitioning::UnknownPartitioning(8)));
        let on = vec![(col("title", &books.schema()).unwrap(), col("rated", &ratings.schema()).unwrap())];
        let join = HashJoinExecBuilder::new(books, ratings, on, join_type);
        let join = join.with_partition_mode(PartitionMode::CollectLeft).with_projection(projection);
        Arc::new(join.build().unwrap())
    }

    fn aggregate(join: &Plan, keys: &[&str], of: &str) -> AggregateExec {
        let schema = join.schema();
        let keys = keys.iter().map(|key| (col(key, &schema).unwrap(), (*key).to_owned())).collect();
        let of = col(of, &schema).unwrap();
        let function = |function, argument: &Expr| {
            let builder = AggregateExprBuilder::new(function, vec![Arc::clone(argument)]);
            Arc::new(builder.schema(Arc::clone(&schema)).alias("a").build().unwrap())
        };
        let mut aggregates =
            vec![function(aggregate_named("count"), &lit(1i64)), function(aggregate_named("max"), &of)];
        if of.data_type(&schema).unwrap().is_numeric() {
            aggregates.push(function(aggregate_named("sum"), &of));
        }
        let (filters, keys) = (vec![None; aggregates.len()], PhysicalGroupBy::new_single(keys));
        AggregateExec::try_new(AggregateMode::Partial, keys, aggregates, filters, Arc::clone(join), schema).unwrap()
    }

    /// The groups, with the rows of several runs of the same plan.
    fn answer(aggregate: &AggregateExec, first: &Plan, runs: usize) -> Vec<String> {
        let inputs: BTreeMap<StageId, Arc<dyn EdgeInput>> =
            BTreeMap::from([(BOOKS, Arc::new(MemoryEdge(books())) as _)]);
        let context = task_context(&session_config(), &Arc::new(RuntimeEnv::default()), Arc::new(EdgeRows(inputs)));
        let mut groups = Vec::new();
        for _ in 0..runs {
            run_plan(first, &context, |batch| {
                groups.push(batch);
                Ok(())
            })
            .unwrap();
        }
        assert!(groups.iter().all(|batch| batch.schema().fields() == aggregate.schema().fields()));
        let input = MemorySourceConfig::try_new_exec(&[groups], aggregate.schema(), None).unwrap();
        let (keys, functions) = (aggregate.group_expr().as_final(), aggregate.aggr_expr().to_vec());
        let filters = aggregate.filter_expr().to_vec();
        let last =
            AggregateExec::try_new(AggregateMode::Final, keys, functions, filters, input, aggregate.input_schema());
        let mut lines = Vec::new();
        run_plan(&(Arc::new(last.unwrap()) as Plan), &context, |batch| {
            lines.extend((0..batch.num_rows()).map(|row| {
                let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
                cells.collect::<Vec<_>>().join(" | ")
            }));
            Ok(())
        })
        .unwrap();
        lines.sort();
        lines
    }

    #[test]
    fn groups_by_held_rows_are_the_groups() {
        use JoinType::{Inner, RightSemi};
        for (join_type, projection, keys) in [
            (Inner, None, &["rated", "authors"][..]),
            (Inner, Some(vec![2, 3, 1]), &["rated", "authors"]),
            (Inner, Some(vec![0, 3]), &["title"]),
            (Inner, None, &["authors"]),
            (RightSemi, None, &["rated"]),
            (RightSemi, Some(vec![1, 0]), &["rated"]),
        ] {
            let plain = aggregate(&join(join_type, projection), keys, "score");
            let by_held = group_by_held(&plain).unwrap().expect("it is possible");
            for runs in [1, 3] {
                let expected = answer(&plain, &(Arc::new(plain.clone()) as Plan), runs);
                assert!(expected.len() > 2);
                assert_eq!(answer(&plain, &by_held, runs), expected, "{join_type} {keys:?}");
            }
        }
    }

    #[test]
    fn keys_and_values_that_the_held_row_does_not_tell_stay() {
        let inner = join(JoinType::Inner, None);
        assert!(group_by_held(&aggregate(&inner, &["rated", "score"], "score")).unwrap().is_none());
        assert!(group_by_held(&aggregate(&inner, &["rated"], "authors")).unwrap().is_none());
        let semi = join(JoinType::RightSemi, None);
        assert!(group_by_held(&aggregate(&semi, &["score"], "score")).unwrap().is_none());
        for other in [JoinType::Left, JoinType::Right, JoinType::RightAnti, JoinType::Full] {
            let join = join(other, None);
            assert!(group_by_held(&aggregate(&join, &["rated"], "score")).unwrap().is_none(), "{other}");
        }
    }
}
