//! Which columns of a table a leaf reads, and which it only asks whether they are null.
//!
//! `WHERE review_text IS NOT NULL` needs nothing of the text, which may be most of the file.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, IsNotNullExpr, IsNullExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;

use super::source::ScanExec;

type Plan = Arc<dyn ExecutionPlan>;

/// The columns of the table's layout that a leaf plan scans.
pub(super) fn scanned_columns(plan: &Plan) -> Vec<usize> {
    let mut columns = Vec::new();
    let visit = |node: &Plan| {
        if let Some(scan) = node.downcast_ref::<ScanExec>() {
            columns.extend(&scan.columns);
        }
        Ok(TreeNodeRecursion::Continue)
    };
    plan.apply(visit).expect("the visitor never fails");
    columns
}

/// Those of the scanned columns whose values are read. Of a filter right above the scan it is seen which ones it passes on and
/// which ones it looks into; anything else above a scan counts as reading all.
pub(super) fn read_columns(plan: &Plan) -> BTreeSet<usize> {
    let mut read = BTreeSet::new();
    let visit = |node: &Plan| {
        if let Some(scan) = node.downcast_ref::<ScanExec>() {
            read.extend(&scan.columns);
        } else if let Some((filter, scan)) = filtered_scan(node) {
            let mut places: BTreeSet<usize> = match filter.projection().as_deref() {
                Some(passed_on) => passed_on.iter().copied().collect(),
                None => (0..scan.columns.len()).collect(),
            };
            looked_into(filter.predicate(), &mut places);
            read.extend(places.into_iter().map(|place| scan.columns[place]));
            return Ok(TreeNodeRecursion::Jump);
        }
        Ok(TreeNodeRecursion::Continue)
    };
    plan.apply(visit).expect("the visitor never fails");
    read
}

fn filtered_scan(node: &Plan) -> Option<(&FilterExec, &ScanExec)> {
    let filter = node.downcast_ref::<FilterExec>()?;
    Some((filter, filter.input().downcast_ref::<ScanExec>()?))
}

/// Adds the columns that the expression mentions other than in `IS NULL` and `IS NOT NULL`.
fn looked_into(expression: &Arc<dyn PhysicalExpr>, places: &mut BTreeSet<usize>) {
    let asked = expression
        .downcast_ref::<IsNotNullExpr>()
        .map(IsNotNullExpr::arg)
        .or_else(|| expression.downcast_ref::<IsNullExpr>().map(IsNullExpr::arg));
    if asked.is_some_and(|argument| argument.downcast_ref::<Column>().is_some()) {
        return;
    }
    if let Some(column) = expression.downcast_ref::<Column>() {
        places.insert(column.index());
    }
    for child in expression.children() {
        looked_into(child, places);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::plan::JobPlan;
    use crate::workload::Workload;

    const TABLES: &str = r#"
name = "presence"
title = "Presence"

[[table]]
name = "t"
files = "t.csv"
role = "fact"
columns = [{ name = "a", type = "text" }, { name = "b", type = "text" }, { name = "n", type = "int" }]

[[query]]
name = "q"
title = "The query"
file = "q.sql"
ordered = false
"#;

    /// The columns of t that are only asked whether they are null.
    fn presence(sql: &str) -> Vec<usize> {
        let workload = Workload::parse("presence.toml", TABLES, &|_| Ok(sql.to_owned())).unwrap();
        JobPlan::new(&workload).unwrap().scans.remove(0).presence
    }

    #[test]
    fn a_text_that_is_only_asked_whether_it_is_null_is_not_read() {
        assert_eq!(presence("SELECT n FROM t WHERE a IS NOT NULL"), [0]);
        assert_eq!(presence("SELECT count(*) AS c FROM t WHERE a IS NULL OR (b IS NOT NULL AND n = 1)"), [0, 1]);
        assert_eq!(presence("SELECT a, count(*) AS c FROM t WHERE b IS NOT NULL GROUP BY a"), [1]);
    }

    #[test]
    fn a_text_that_is_used_anywhere_is_read() {
        for sql in [
            "SELECT a FROM t WHERE a IS NOT NULL",
            "SELECT n FROM t WHERE a IS NOT NULL AND a <> 'x'",
            "SELECT n FROM t WHERE upper(a) IS NOT NULL",
            "SELECT n FROM t WHERE (a = 'x') IS NULL",
            "SELECT a FROM t",
            "SELECT count(DISTINCT a) AS c FROM t WHERE a IS NOT NULL",
            "SELECT max(a) AS m FROM t WHERE n > 1 AND a IS NOT NULL",
            "SELECT x.n FROM t x JOIN t y ON x.a = y.a WHERE x.a IS NOT NULL",
            "SELECT n FROM t WHERE a IS NOT NULL ORDER BY a",
            // One branch asks, the other reads: there is one pass for both.
            "SELECT n, '' AS a FROM t WHERE a IS NOT NULL UNION ALL SELECT n, a FROM t",
        ] {
            assert!(!presence(sql).contains(&0), "{sql}");
        }
    }
}
