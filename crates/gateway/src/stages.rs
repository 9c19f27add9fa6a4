//! A job's stages as a graph, for people: what each does, and how many tasks it has.

use tenaz_api::{Stage, StageEdge, StageTasks};
use tenaz_cluster::JobView;
use tenaz_engine::describe::{StageDescription, stages as described};

use crate::app::Job;

/// The stages of a job, in the order in which they read each other.
pub(crate) fn stages(job: &Job, view: &JobView) -> Vec<Stage> {
    described(&job.planned.plan).into_iter().map(|stage| with_tasks(job, view, stage)).collect()
}

fn with_tasks(job: &Job, view: &JobView, described: StageDescription) -> Stage {
    let StageDescription { stage, table, reads, broadcasts, query, plan, .. } = described;
    let tasks = match described.tasks {
        "chunk" => StageTasks::Chunk,
        "partition" => StageTasks::Partition,
        _ => StageTasks::Single,
    };
    let edge = match described.edge {
        "hash" => StageEdge::Hash,
        "spread" => StageEdge::Spread,
        "one" => StageEdge::One,
        "broadcast" => StageEdge::Broadcast,
        _ => StageEdge::Results,
    };
    let tasks_known = match tasks {
        StageTasks::Chunk => {
            let id = table.as_deref().and_then(|name| job.planned.table(name));
            id.and_then(|id| view.facts.closed(id)).map(|closed| closed.chunks.len())
        }
        StageTasks::Partition => Some(u64::from(job.spec.partitions)),
        StageTasks::Single => Some(1),
    };
    Stage {
        stage,
        label: label(&plan, table.as_deref()),
        tasks,
        table,
        reads,
        broadcasts,
        edge,
        query,
        plan,
        tasks_known,
        tasks_done: 0,
        running: 0,
        rows_in: 0,
        bytes_in: 0,
        rows_out: 0,
        bytes_out: 0,
        busy_seconds: 0.0,
        skew: None,
    }
}

/// What a stage does, by the operator that matters most in it.
fn label(plan: &[String], table: Option<&str>) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("Join", "join"),
        ("Aggregate", "group"),
        ("Window", "rank"),
        ("Sort", "sort"),
        ("Union", "union"),
        ("Filter", "filter"),
    ];
    let has =
        |operator: &str| plan.iter().any(|line| line.split(':').next().is_some_and(|name| name.contains(operator)));
    let what = WORDS.iter().find(|(operator, _)| has(operator)).map_or("read", |(_, word)| *word);
    table.map_or_else(|| what.to_owned(), |table| format!("{what} {table}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_called_by_what_it_does() {
        let plan = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(label(&plan(&["FilterExec: a > 1", "  Source"]), Some("games")), "filter games");
        let join = ["ProjectionExec: expr=[a]", "  HashJoinExec: mode=Partitioned", "    FilterExec: b"];
        assert_eq!(label(&plan(&join), None), "join");
        assert_eq!(label(&plan(&["Source"]), Some("users")), "read users");
    }
}
