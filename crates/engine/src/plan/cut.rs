//! Cuts a physical plan into stages.
//!
//! DataFusion's contract makes this simple: an operator works on one partition of its input and knows nothing of the
//! others, except where it asks for rows to be moved. So a chunk of a table may be taken for a partition of the scan,
//! and whatever stands between the scan and the next exchange can run chunk by chunk. The exceptions share state
//! between partitions and are treated here one by one:
//!
//! | operator | how it is cut |
//! |---|---|
//! | hash repartition | the stage below sends by hash |
//! | coalesce, sort-preserving merge | the stage below sends to one partition; its order is restored above |
//! | join with a collected build side | the build side is broadcast, if it hangs on dimension tables only that are read before the probe side's; otherwise the probe side becomes a stage of its own, so that no chunk has to wait |
//! | ... that also emits unmatched build rows | everything meets in one task |
//! | union and the like over scans | each scan becomes a stage of its own |
//! | recursive query, anything unknown with several inputs | one task over the complete tables: slower, never wrong |

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, internal_err};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::partitioned_topk::PartitionedTopKExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use tenaz_core::{Partition, QueryId, StageId, TableId, TaskSet};

use super::key::structure;
use super::source::{EdgeExec, ScanExec};
use super::{Edge, Stage};
use crate::Error;
use crate::workload::{Role, Workload};

/// The partition that runs what only one may run.
pub(super) const SINGLE_HOME: Partition = Partition(0);

type Plan = Arc<dyn ExecutionPlan>;

/// Collects the stages of a job, query by query.
pub(super) struct Cutter {
    stages: Vec<Stage>,
    /// Identical stages run once: the key is the whole structure of the plan and of its edge.
    known: HashMap<String, StageId>,
    dimensions: BTreeSet<TableId>,
}

/// A part of a plan that is still open at the top.
struct Piece {
    plan: Plan,
    /// The table whose chunks it reads.
    scan: Option<TableId>,
    reads: BTreeSet<StageId>,
    broadcasts: BTreeSet<StageId>,
    /// Whether there is only one task of it.
    single: bool,
}

impl Piece {
    fn constant(plan: Plan) -> Self {
        Self { plan, scan: None, reads: BTreeSet::new(), broadcasts: BTreeSet::new(), single: true }
    }

    fn tasks(&self) -> TaskSet {
        match self.scan {
            Some(table) => TaskSet::PerChunk(table),
            None if self.single => TaskSet::Single(SINGLE_HOME),
            None => TaskSet::PerPartition,
        }
    }

    fn under(self, parent: &Plan) -> Result<Self> {
        let plan = replace_children_if_necessary(Arc::clone(parent), vec![self.plan])?;
        Ok(Self { plan, ..self })
    }
}

impl Cutter {
    pub(super) fn new(workload: &Workload) -> Self {
        let dimensions = workload.tables.iter().enumerate().filter(|(_, t)| t.role == Role::Dimension);
        let dimensions = dimensions.map(|(index, _)| TableId(index as u16)).collect();
        Self { stages: Vec::new(), known: HashMap::new(), dimensions }
    }

    /// Cuts one query's plan; returns the stages whose rows are its answer.
    pub(super) fn add(&mut self, query: QueryId, plan: &Plan) -> Result<BTreeSet<StageId>> {
        // Rows of an unordered answer go out from wherever they are made.
        let mut root = plan;
        while let Some(coalesce) = root.downcast_ref::<CoalescePartitionsExec>() {
            if coalesce.fetch().is_some() {
                break;
            }
            root = coalesce.input();
        }
        let mut answers = BTreeSet::new();
        if let Some(union) = root.downcast_ref::<UnionExec>() {
            for input in union.inputs() {
                let piece = self.piece(input)?;
                let piece = renamed(piece, root)?;
                answers.insert(self.close(piece, Edge::Results(query))?);
            }
        } else {
            let piece = self.piece(root)?;
            answers.insert(self.close(piece, Edge::Results(query))?);
        }
        Ok(answers)
    }

    /// All stages, with the merging plans of those edges that end in one aggregation, or in the same one for all their readers.
    pub(super) fn finish(mut self) -> Result<Vec<Stage>, Error> {
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.stages.len()];
        for (index, stage) in self.stages.iter().enumerate() {
            for edge in stage.reads.iter().chain(&stage.broadcasts) {
                readers[usize::from(edge.0)].push(index);
            }
        }
        for (edge, readers) in readers.iter().enumerate() {
            let merging = readers.iter().map(|reader| compaction(&self.stages[*reader].plan, StageId(edge as u16)));
            let merging = merging.collect::<Result<Option<Vec<Plan>>>>()?.unwrap_or_default();
            // Several readers must want the same of it.
            if let [first, others @ ..] = &merging[..]
                && (others.is_empty()
                    || structure(first).is_some_and(|this| others.iter().all(|o| structure(o).as_ref() == Some(&this))))
            {
                self.stages[edge].compaction = Some(Arc::clone(first));
            }
        }
        Ok(self.stages)
    }

    fn piece(&mut self, node: &Plan) -> Result<Piece> {
        if let Some(scan) = node.downcast_ref::<ScanExec>() {
            return Ok(Piece { scan: Some(scan.table), single: false, ..Piece::constant(scan.of_one_chunk()) });
        }
        if let Some(exchange) = node.downcast_ref::<RepartitionExec>() {
            return self.repartition(node, exchange);
        }
        if let Some(exchange) = node.downcast_ref::<CoalescePartitionsExec>() {
            return self.gather(node, exchange.input());
        }
        if let Some(exchange) = node.downcast_ref::<SortPreservingMergeExec>() {
            return self.gather(node, exchange.input());
        }
        if let Some((build, probe, emits_build_rows)) = collected_join(node) {
            return self.collected_join(node, &build, &probe, emits_build_rows);
        }
        if let Some(top) = node.downcast_ref::<PartitionedTopKExec>() {
            return self.partitioned_top(node, top);
        }
        let children: Vec<Plan> = node.children().into_iter().cloned().collect();
        match &children[..] {
            [] => Ok(Piece::constant(Arc::clone(node))),
            [_] if node.is::<RecursiveQueryExec>() => self.whole(node),
            [child] => self.piece(child)?.under(node),
            _ if node.is::<UnionExec>() || node.is::<InterleaveExec>() || is_partitioned_join(node) => {
                self.side_by_side(node, &children)
            }
            _ => self.whole(node),
        }
    }

    fn repartition(&mut self, node: &Plan, exchange: &RepartitionExec) -> Result<Piece> {
        let below = self.piece(exchange.input())?;
        match exchange.partitioning() {
            Partitioning::Hash(keys, _) => {
                let edge = self.close(below, Edge::Hash(keys.clone()))?;
                self.receive(node, edge, false)
            }
            // Round robin only shares work, and nobody relies on where its rows end up.
            _ => Ok(below),
        }
    }

    fn gather(&mut self, node: &Plan, input: &Plan) -> Result<Piece> {
        // The rows are sorted again above, so a full sort below is wasted; a sort with a limit still saves rows.
        let mut input = input;
        while let Some(sort) = input.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) {
            input = sort.input();
        }
        let below = self.piece(input)?;
        let edge = self.close(below, Edge::One)?;
        self.receive(node, edge, true)
    }

    /// What stands above a cut: the rows of the edge, in the order and up to the limit that the exchange promised.
    fn receive(&self, exchange: &Plan, edge: StageId, single: bool) -> Result<Piece> {
        let sender = &self.stages[usize::from(edge.0)];
        let received = EdgeExec::new(edge, sender.plan.schema(), exchange.properties().output_partitioning());
        let mut plan: Plan = Arc::new(received.knowing(known_of(sender)));
        if let Some(order) = promised_order(exchange) {
            let sort = SortExec::new(order, plan).with_fetch(exchange.fetch());
            plan = Arc::new(sort.with_preserve_partitioning(!single));
        } else if let Some(fetch) = exchange.fetch() {
            plan = Arc::new(GlobalLimitExec::new(plan, 0, Some(fetch)));
        }
        Ok(Piece { reads: BTreeSet::from([edge]), single, ..Piece::constant(plan) })
    }

    /// The best k rows of each key: each sender already drops what cannot be among them.
    fn partitioned_top(&mut self, node: &Plan, top: &PartitionedTopKExec) -> Result<Piece> {
        let Some(exchange) = top.input().downcast_ref::<RepartitionExec>() else {
            return self.piece(top.input())?.under(node);
        };
        let early = replace_children_if_necessary(Arc::clone(node), vec![Arc::clone(exchange.input())])?;
        let moved = replace_children_if_necessary(Arc::clone(top.input()), vec![early])?;
        self.piece(&moved)?.under(node)
    }

    fn collected_join(&mut self, node: &Plan, build: &Plan, probe: &Plan, emits_build_rows: bool) -> Result<Piece> {
        let mut probe = self.piece(probe)?;
        if emits_build_rows && !probe.single {
            let edge = self.close(probe, Edge::One)?;
            probe = self.plain_receive(edge, true);
        }
        let build_input = build.downcast_ref::<CoalescePartitionsExec>().filter(|c| c.fetch().is_none());
        let build_input = build_input.map_or(build, |coalesce| coalesce.input());
        let build = self.piece(build_input)?;
        if probe.single {
            let build = if build.single {
                Piece { plan: as_one(build.plan), ..build }
            } else {
                let edge = self.close(build, Edge::One)?;
                self.plain_receive(edge, true)
            };
            return merge(node, vec![build, probe]);
        }
        let edge = self.close(build, Edge::Broadcast)?;
        if probe.scan.is_some_and(|table| !self.may_wait_for(table, edge)) {
            let spread = self.close(probe, Edge::Spread)?;
            probe = self.plain_receive(spread, false);
        }
        let build = self.plain_receive(edge, false);
        let build = Piece { broadcasts: build.reads, reads: BTreeSet::new(), ..build };
        merge(node, vec![build, probe])
    }

    /// Operators whose inputs are partitioned alike: every task reads its partition of each.
    fn side_by_side(&mut self, node: &Plan, children: &[Plan]) -> Result<Piece> {
        let mut pieces = children.iter().map(|child| self.piece(child)).collect::<Result<Vec<_>>>()?;
        let all_single = pieces.iter().all(|p| p.single);
        if !all_single {
            for piece in &mut pieces {
                if piece.scan.is_some() || piece.single {
                    let edge = self.close(std::mem::replace(piece, Piece::constant(Arc::clone(node))), Edge::Spread)?;
                    *piece = self.plain_receive(edge, false);
                }
            }
        }
        merge(node, pieces)
    }

    /// The last resort: the operator and everything below it, uncut, over the complete tables.
    fn whole(&mut self, node: &Plan) -> Result<Piece> {
        let mut reads = BTreeSet::new();
        let plan = self.whole_below(node, &mut reads)?;
        Ok(Piece { reads, ..Piece::constant(as_one(plan)) })
    }

    fn whole_below(&mut self, node: &Plan, reads: &mut BTreeSet<StageId>) -> Result<Plan> {
        if node.is::<ScanExec>() {
            let scan = self.piece(node)?;
            let edge = self.close(scan, Edge::One)?;
            reads.insert(edge);
            return Ok(self.plain_receive(edge, true).plan);
        }
        let children: Vec<Plan> = node.children().into_iter().cloned().collect();
        let children = children.iter().map(|child| self.whole_below(child, reads)).collect::<Result<Vec<_>>>()?;
        replace_children_if_necessary(Arc::clone(node), children)
    }

    /// What stands above a cut where the planner saw none.
    fn plain_receive(&self, edge: StageId, single: bool) -> Piece {
        let sender = &self.stages[usize::from(edge.0)];
        let received = EdgeExec::new(edge, sender.plan.schema(), &Partitioning::UnknownPartitioning(1));
        let plan: Plan = Arc::new(received.knowing(known_of(sender)));
        Piece { reads: BTreeSet::from([edge]), single, ..Piece::constant(plan) }
    }

    /// Whether the chunks of `table` may wait for a broadcast: only for dimension tables, and a dimension table only for
    /// those declared before it. Otherwise two joins, or one of a table with itself, could wait for each other.
    fn may_wait_for(&self, table: TableId, edge: StageId) -> bool {
        let behind = super::tables_behind(&self.stages, &BTreeSet::from([edge]));
        let comes_first = |t: &TableId| !self.dimensions.contains(&table) || *t < table;
        behind.is_subset(&self.dimensions) && behind.iter().all(comes_first)
    }

    /// Ends a piece: it becomes a stage, or the equal stage that is already there.
    fn close(&mut self, piece: Piece, edge: Edge) -> Result<StageId> {
        let tasks = piece.tasks();
        if piece.scan.is_some() && !piece.reads.is_empty() {
            return internal_err!("a leaf stage reads a partition's log");
        }
        let key = stage_key(&piece.plan, tasks, &edge);
        if let Some(&same) = key.as_ref().and_then(|key| self.known.get(key)) {
            return Ok(same);
        }
        let id = StageId(self.stages.len() as u16);
        self.stages.push(Stage {
            plan: piece.plan,
            tasks,
            reads: piece.reads.into_iter().collect(),
            broadcasts: piece.broadcasts.into_iter().collect(),
            edge,
            compaction: None,
            early: false,
        });
        if let Some(key) = key {
            self.known.insert(key, id);
        }
        Ok(id)
    }
}

/// What is known of the rows of a stage: columns that are equal, or the same in all rows. What holds per partition holds for all
/// only if there is one task of the stage, and one partition in it: a union of constants keeps its branches apart.
fn known_of(stage: &Stage) -> EquivalenceProperties {
    let properties = stage.plan.properties();
    let mut known = properties.equivalence_properties().clone();
    let is_one = matches!(stage.tasks, TaskSet::Single(_)) && properties.output_partitioning().partition_count() == 1;
    if !is_one {
        known.clear_per_partition_constants();
    }
    known
}

/// The order that an exchange promises. What it knows of its rows may hold for each of its inputs only (a column that is the same
/// in all rows of each), so an exchange that merges is asked what it merges by.
fn promised_order(exchange: &Plan) -> Option<LexOrdering> {
    if let Some(merge) = exchange.downcast_ref::<SortPreservingMergeExec>() {
        return Some(merge.expr().clone());
    }
    exchange.properties().output_ordering().cloned()
}

/// What a stage shares with an equal one. Two equal branches of a UNION ALL both count, so rows that are an answer are
/// never made for two.
fn stage_key(plan: &Plan, tasks: TaskSet, edge: &Edge) -> Option<String> {
    let route = match edge {
        Edge::Hash(keys) => keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        Edge::Results(_) => return None,
        Edge::Spread | Edge::One | Edge::Broadcast => format!("{edge:?}"),
    };
    Some(format!("{tasks:?} {route}\n{}", structure(plan)?))
}

/// All rows of a plan that runs in one task: a union, say, keeps its branches apart.
fn as_one(plan: Plan) -> Plan {
    match plan.properties().output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

fn merge(node: &Plan, pieces: Vec<Piece>) -> Result<Piece> {
    let mut scans = pieces.iter().filter_map(|p| p.scan);
    let scan = scans.next();
    if scans.next().is_some() {
        return internal_err!("two scans in one stage");
    }
    let single = scan.is_none() && pieces.iter().all(|p| p.single);
    let reads = pieces.iter().flat_map(|p| p.reads.iter().copied()).collect();
    let broadcasts = pieces.iter().flat_map(|p| p.broadcasts.iter().copied()).collect();
    let children = pieces.into_iter().map(|p| p.plan).collect();
    let plan = replace_children_if_necessary(Arc::clone(node), children)?;
    Ok(Piece { plan, scan, reads, broadcasts, single })
}

/// A branch of a union that answers by itself has the union's column names.
fn renamed(piece: Piece, union: &Plan) -> Result<Piece> {
    if piece.plan.schema() == union.schema() {
        return Ok(piece);
    }
    let plan: Plan = UnionExec::try_new(vec![Arc::clone(&piece.plan)])?;
    if plan.schema() == union.schema() {
        return Ok(Piece { plan, ..piece });
    }
    let names = union.schema();
    let columns = names.fields().iter().enumerate().map(|(index, field)| {
        let from = piece.plan.schema().field(index).name().clone();
        let column: Arc<dyn datafusion::physical_expr::PhysicalExpr> =
            Arc::new(datafusion::physical_expr::expressions::Column::new(&from, index));
        (column, field.name().clone())
    });
    let columns: Vec<_> = columns.collect();
    let plan = datafusion::physical_plan::projection::ProjectionExec::try_new(columns, Arc::clone(&piece.plan))?;
    Ok(Piece { plan: Arc::new(plan), ..piece })
}

/// A join that holds its whole left side: (build, probe, whether unmatched build rows are part of its output).
fn collected_join(node: &Plan) -> Option<(Plan, Plan, bool)> {
    let emits = |join_type: &JoinType| {
        matches!(
            join_type,
            JoinType::Left | JoinType::LeftAnti | JoinType::LeftSemi | JoinType::LeftMark | JoinType::Full
        )
    };
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let collected = *join.partition_mode() == PartitionMode::CollectLeft;
        return collected.then(|| (Arc::clone(join.left()), Arc::clone(join.right()), emits(join.join_type())));
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        return Some((Arc::clone(join.left()), Arc::clone(join.right()), emits(join.join_type())));
    }
    let join = node.downcast_ref::<CrossJoinExec>()?;
    Some((Arc::clone(join.left()), Arc::clone(join.right()), false))
}

fn is_partitioned_join(node: &Plan) -> bool {
    node.downcast_ref::<HashJoinExec>().is_some_and(|join| *join.partition_mode() == PartitionMode::Partitioned)
}

/// The aggregation that merges partial results into fewer partial results, if `plan` reads `edge` only to finish an
/// aggregation whose result does not depend on the order of its input.
fn compaction(plan: &Plan, edge: StageId) -> Result<Option<Plan>> {
    let mut found = None;
    plan.apply(|node| {
        if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            let reads_edge = aggregate.input().downcast_ref::<EdgeExec>().is_some_and(|e| e.edge == edge);
            let is_final = matches!(aggregate.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned);
            if reads_edge && is_final && merges_in_any_order(aggregate) {
                let plan = AggregateExec::try_new(
                    AggregateMode::PartialReduce,
                    aggregate.group_expr().clone(),
                    aggregate.aggr_expr().to_vec(),
                    aggregate.filter_expr().to_vec(),
                    Arc::clone(aggregate.input()),
                    aggregate.input_schema(),
                )?;
                // The merged rows take the place of the rows that came: only the very same columns will do.
                if plan.schema().fields() == aggregate.input().schema().fields() {
                    found = Some(Arc::new(plan) as Plan);
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether parts of the aggregation may be merged in any order.
pub(crate) fn merges_in_any_order(aggregate: &AggregateExec) -> bool {
    let merges = |e: &Arc<AggregateFunctionExpr>| crate::functions::merges_in_any_order(e.fun()) && !e.is_distinct();
    aggregate.group_expr().is_single() && !aggregate.group_expr().is_empty() && aggregate.aggr_expr().iter().all(merges)
}
