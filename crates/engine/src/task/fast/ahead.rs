//! Groups rows before a join, where they are grouped again behind it.
//!
//! `count(*) … FROM reviews JOIN game USING (app_id) GROUP BY app_id, name` looks every review up among the games, and then
//! groups as many rows by a text. If reviews of a chunk are grouped by `app_id` first, only as many rows are looked up as there
//! are games among them. A row of the other side that is found by a group gets what all rows of the group come to, which is
//! what it would have come to by each of them.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::aggregate::WordGroups;
use super::{Expr, Plan};
use crate::plan::merges_in_any_order;

/// Where a column behind the join comes from.
#[derive(Clone, Copy)]
pub(super) enum From {
    /// The side that is held: one of its columns.
    Held(usize),
    /// The side that passes by.
    Passing(usize),
}

/// The same as `aggregate`, with its rows grouped before the join below it, if that is possible.
pub(super) fn group_ahead(aggregate: &AggregateExec) -> Result<Option<Plan>> {
    let Some(join) = aggregate.input().downcast_ref::<HashJoinExec>() else { return Ok(None) };
    if !is_plain(aggregate, join, &[JoinType::Inner]) {
        return Ok(None);
    }
    let sources = sources(join);
    let Some(groups) = aggregate.group_expr().expr().iter().map(|(key, _)| source(key, &sources)).collect() else {
        return Ok(None);
    };
    let groups: Vec<From> = groups;
    let Some((first, keys)) = before_join(aggregate, join, &sources, &groups)? else { return Ok(None) };
    let joined = join_again(join, first, &keys)?;
    // Keys and states, in the order in which a later step of the aggregation expects them.
    let held = join.left().schema().fields().len();
    let place = |from: &From| match from {
        From::Held(column) => *column,
        From::Passing(column) => held + keys.iter().position(|key| key == column).unwrap_or_default(),
    };
    let schema = joined.schema();
    let column = |place: usize| Arc::new(Column::new(schema.field(place).name(), place)) as Expr;
    let names = aggregate.group_expr().expr().iter().map(|(_, name)| name.clone());
    let keys_out = groups.iter().map(|from| column(place(from))).zip(names);
    let states = held + keys.len()..schema.fields().len();
    let states_out = states.map(|place| (column(place), schema.field(place).name().clone()));
    let exprs = keys_out.chain(states_out).map(|(expr, alias)| ProjectionExpr { expr, alias });
    let ordered = Arc::new(ProjectionExec::try_new(exprs.collect::<Vec<_>>(), joined)?);
    // Groups that have all their keys behind the join as well are as many there. Steps of an aggregation that come later merge
    // those that come twice all the same.
    if keeps_keys_apart(join, &groups) && ordered.schema().fields() == aggregate.schema().fields() {
        return Ok(Some(ordered));
    }
    let merged = AggregateExec::try_new(
        AggregateMode::PartialReduce,
        aggregate.group_expr().as_final(),
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        ordered,
        aggregate.input_schema(),
    )?;
    if merged.schema().fields() != aggregate.schema().fields() {
        return Ok(None);
    }
    Ok(Some(match WordGroups::instead_of(&merged)? {
        Some(groups) => Arc::new(groups),
        None => Arc::new(merged),
    }))
}

/// Whether these are the first step of an aggregation and a join in which every row that is held may be found by any other.
pub(super) fn is_plain(aggregate: &AggregateExec, join: &HashJoinExec, types: &[JoinType]) -> bool {
    *aggregate.mode() == AggregateMode::Partial
        && aggregate.limit_options().is_none()
        && merges_in_any_order(aggregate)
        && aggregate.filter_expr().iter().all(Option::is_none)
        && types.contains(join.join_type())
        && *join.partition_mode() == PartitionMode::CollectLeft
        && join.null_equality() == NullEquality::NullEqualsNothing
        && join.filter().is_none()
        && join.fetch().is_none()
}

/// Whether every key of the join is, from one side or the other, a key of the groups behind it.
fn keeps_keys_apart(join: &HashJoinExec, groups: &[From]) -> bool {
    let is_key = |held: &Expr, passing: &Expr| {
        let [held, passing] = [held, passing].map(|side| side.downcast_ref::<Column>().map(Column::index));
        groups.iter().any(|from| match *from {
            From::Held(column) => held == Some(column),
            From::Passing(column) => passing == Some(column),
        })
    };
    join.on().iter().all(|(held, passing)| is_key(held, passing))
}

/// The grouping of the side that passes by, and the columns that are its keys.
fn before_join(
    aggregate: &AggregateExec,
    join: &HashJoinExec,
    sources: &[From],
    groups: &[From],
) -> Result<Option<(Plan, Vec<usize>)>> {
    let schema = join.right().schema();
    let mut keys = Vec::new();
    for (_, passing) in join.on() {
        let Some(column) = passing.downcast_ref::<Column>() else { return Ok(None) };
        keys.push(column.index());
    }
    keys.extend(groups.iter().filter_map(|from| match from {
        From::Passing(column) => Some(*column),
        From::Held(_) => None,
    }));
    keys.sort_unstable();
    keys.dedup();
    let aggregates = aggregate.aggr_expr().iter().map(|function| moved(function, sources, &schema));
    let Some(aggregates) = aggregates.collect::<Result<Option<Vec<_>>>>()? else { return Ok(None) };
    let filters = vec![None; aggregates.len()];
    let columns = keys.iter().map(|key| schema.field(*key).name().clone());
    let columns = keys.iter().zip(columns).map(|(key, name)| (Arc::new(Column::new(&name, *key)) as Expr, name));
    let groups = PhysicalGroupBy::new_single(columns.collect());
    let passing = Arc::clone(join.right());
    let first = AggregateExec::try_new(AggregateMode::Partial, groups, aggregates, filters, passing, schema)?;
    Ok(WordGroups::instead_of(&first)?.map(|first| (Arc::new(first) as Plan, keys)))
}

/// The join, of groups instead of rows.
fn join_again(join: &HashJoinExec, first: Plan, keys: &[usize]) -> Result<Plan> {
    let schema = first.schema();
    let on = join.on().iter().map(|(held, passing)| {
        let column = passing.downcast_ref::<Column>().map_or(0, Column::index);
        let place = keys.iter().position(|key| *key == column).unwrap_or_default();
        (Arc::clone(held), Arc::new(Column::new(schema.field(place).name(), place)) as Expr)
    });
    let builder = HashJoinExecBuilder::new(Arc::clone(join.left()), first, on.collect(), JoinType::Inner);
    Ok(Arc::new(builder.with_partition_mode(PartitionMode::CollectLeft).build()?))
}

/// Where each column of the join's output comes from.
pub(super) fn sources(join: &HashJoinExec) -> Vec<From> {
    // A semi join shows nothing of what it holds.
    let held = if *join.join_type() == JoinType::RightSemi { 0 } else { join.left().schema().fields().len() };
    let all = held + join.right().schema().fields().len();
    let from = |place: usize| if place < held { From::Held(place) } else { From::Passing(place - held) };
    match &join.projection {
        Some(projection) => projection.iter().map(|place| from(*place)).collect(),
        None => (0..all).map(from).collect(),
    }
}

pub(super) fn source(expr: &Expr, sources: &[From]) -> Option<From> {
    sources.get(expr.downcast_ref::<Column>()?.index()).copied()
}

/// The same function of the side that passes by; none if it needs the other side, or anything that would have to be computed for
/// rows that the join may drop.
pub(super) fn moved(
    function: &AggregateFunctionExpr,
    sources: &[From],
    schema: &Arc<Schema>,
) -> Result<Option<Arc<AggregateFunctionExpr>>> {
    if function.ignore_nulls() || !function.order_bys().is_empty() {
        return Ok(None);
    }
    let arguments = function.expressions().into_iter().map(|argument| {
        if argument.downcast_ref::<Literal>().is_some() {
            return Some(argument);
        }
        let Some(From::Passing(place)) = source(&argument, sources) else { return None };
        Some(Arc::new(Column::new(schema.field(place).name(), place)) as Expr)
    });
    let Some(arguments) = arguments.collect() else { return Ok(None) };
    let builder = AggregateExprBuilder::new(Arc::new(function.fun().clone()), arguments);
    Ok(Some(Arc::new(builder.schema(Arc::clone(schema)).alias(function.name()).build()?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringViewArray};
    use datafusion::arrow::record_batch::RecordBatch;
    use datafusion::arrow::util::display::array_value_to_string;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::execution::TaskContext;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, col, lit};

    use super::*;
    use crate::functions::aggregate_named;
    use crate::task::run::run_plan;

    fn source(columns: Vec<(&str, ArrayRef)>, portions: usize) -> Plan {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, values)| (n, values, true))).unwrap();
        let size = batch.num_rows() / portions;
        let batches = (0..portions).map(|i| batch.slice(i * size, size)).collect::<Vec<_>>();
        MemorySourceConfig::try_new_exec(&[batches], batch.schema(), None).unwrap()
    }

    /// Games, some with the same number; reviews of them and of others, some of none.
    fn join(projection: Option<Vec<usize>>) -> Plan {
        let numbers = |count: i64, step: i64, bound: i64| -> ArrayRef {
            let number = |row: i64| (row % 11 != 5).then_some(row * step % bound);
            Arc::new((0..count).map(number).collect::<Int64Array>())
        };
        let names: StringViewArray = (0..40).map(|row| Some(format!("a game of some name, {}", row % 17))).collect();
        let games = source(vec![("id", numbers(40, 7, 30)), ("name", Arc::new(names))], 1);
        let reviews = source(
            vec![("game", numbers(6000, 13, 37)), ("score", numbers(6000, 1, 5)), ("votes", numbers(6000, 31, 1000))],
            3,
        );
        let on = vec![(col("id", &games.schema()).unwrap(), col("game", &reviews.schema()).unwrap())];
        let join = HashJoinExecBuilder::new(games, reviews, on, JoinType::Inner);
        let join = join.with_partition_mode(PartitionMode::CollectLeft).with_projection(projection);
        Arc::new(join.build().unwrap())
    }

    fn aggregate(join: Plan, keys: &[&str], of: Expr) -> AggregateExec {
        let schema = join.schema();
        let keys = keys.iter().map(|key| (col(key, &schema).unwrap(), (*key).to_owned())).collect();
        let function = |function, argument: &Expr| {
            let builder = AggregateExprBuilder::new(function, vec![Arc::clone(argument)]);
            Arc::new(builder.schema(Arc::clone(&schema)).alias("a").build().unwrap())
        };
        let aggregates = vec![
            function(aggregate_named("count"), &lit(1i64)),
            function(aggregate_named("sum"), &of),
            function(aggregate_named("max"), &of),
        ];
        let filters = vec![None; aggregates.len()];
        let keys = PhysicalGroupBy::new_single(keys);
        AggregateExec::try_new(AggregateMode::Partial, keys, aggregates, filters, join, schema).unwrap()
    }

    fn answer(aggregate: &AggregateExec, first: Plan) -> Vec<String> {
        let last = AggregateExec::try_new(
            AggregateMode::Final,
            aggregate.group_expr().as_final(),
            aggregate.aggr_expr().to_vec(),
            aggregate.filter_expr().to_vec(),
            first,
            aggregate.input_schema(),
        );
        let last: Plan = Arc::new(last.unwrap());
        let mut lines = Vec::new();
        run_plan(&last, &Arc::new(TaskContext::default()), |batch| {
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
    fn groups_of_groups_are_the_groups() {
        for (projection, keys) in [
            (None, &["game", "name"][..]),
            (Some(vec![4, 1, 2, 3]), &["game", "name"]),
            (Some(vec![4, 1, 2, 3]), &["name"]),
            (Some(vec![0, 1, 3, 4]), &["id", "score"]),
            (None, &["score", "name", "id"]),
            (None, &["votes"]),
        ] {
            let join = join(projection);
            let plain = aggregate(Arc::clone(&join), keys, col("votes", &join.schema()).unwrap());
            let ahead = group_ahead(&plain).unwrap().expect("it is possible");
            assert_eq!(ahead.is::<ProjectionExec>(), keys.iter().any(|key| ["game", "id"].contains(key)), "{keys:?}");
            let expected = answer(&plain, Arc::new(plain.clone()));
            assert!(expected.len() > 3);
            assert_eq!(answer(&plain, ahead), expected, "{keys:?}");
        }
    }

    #[test]
    fn what_needs_both_sides_stays_behind_the_join() {
        let join = join(None);
        let of_held = aggregate(Arc::clone(&join), &["game"], col("id", &join.schema()).unwrap());
        assert!(group_ahead(&of_held).unwrap().is_none());
        let computed = BinaryExpr::new(col("votes", &join.schema()).unwrap(), Operator::Divide, lit(0i64));
        let computed = aggregate(Arc::clone(&join), &["game"], Arc::new(computed));
        assert!(group_ahead(&computed).unwrap().is_none());
        let no_join =
            aggregate(Arc::clone(join.children()[1]), &["game"], col("votes", &join.children()[1].schema()).unwrap());
        assert!(group_ahead(&no_join).unwrap().is_none());
    }
}
