//! What a leaf needs of the columns of a table that it scans.
//!
//! `WHERE review_text IS NOT NULL` needs nothing of the text, which may be most of the file, and
//! `SELECT id … WHERE amount >= 75` needs the ids of few records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, IsNotNullExpr, IsNullExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use tenaz_csv::Within;

use super::source::ScanExec;
use crate::task::column_ranges;

type Plan = Arc<dyn ExecutionPlan>;

/// Conditions of which one must hold for a text to be read; with more of them all texts are.
const MAX_CASES: usize = 8;

/// What is needed of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Need {
    /// Which values are null.
    Presence,
    /// The texts of records that lie in all ranges of one of these.
    TextsWhere(Vec<Vec<Within>>),
    Values,
}

impl Need {
    /// What those need together who need this and that.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Presence, Self::Presence) => Self::Presence,
            (Self::TextsWhere(mut one), Self::TextsWhere(other)) if one.len() + other.len() <= MAX_CASES => {
                one.extend(other);
                Self::TextsWhere(one)
            }
            // To know which are null all must be read; and to look at many cases costs more than to read.
            _ => Self::Values,
        }
    }
}

/// What leaf plans that are run in one pass need, by the column of the table's layout.
pub(super) fn needs<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> Result<BTreeMap<usize, Need>> {
    let mut all: BTreeMap<usize, Need> = BTreeMap::new();
    for plan in plans {
        plan.apply(|node| {
            let (found, go_on) = match (filtered_scan(node), node.downcast_ref::<ScanExec>()) {
                (Some((filter, scan)), _) => (needs_of(filter, scan)?, TreeNodeRecursion::Jump),
                (None, Some(scan)) => {
                    let found = scan.columns.iter().map(|column| (*column, Need::Values));
                    (found.collect(), TreeNodeRecursion::Continue)
                }
                (None, None) => return Ok(TreeNodeRecursion::Continue),
            };
            for (column, need) in found {
                let need = match all.remove(&column) {
                    Some(known) => known.and(need),
                    None => need,
                };
                all.insert(column, need);
            }
            Ok(go_on)
        })?;
    }
    Ok(all)
}

/// Of a filter right above the scan it is seen which columns it passes on and which ones it looks into; anything else above a
/// scan counts as reading all.
fn needs_of(filter: &FilterExec, scan: &ScanExec) -> Result<Vec<(usize, Need)>> {
    let passed_on: BTreeSet<usize> = match filter.projection().as_deref() {
        Some(passed_on) => passed_on.iter().copied().collect(),
        None => (0..scan.columns.len()).collect(),
    };
    let mut read = BTreeSet::new();
    looked_into(filter.predicate(), &mut read);
    let schema = scan.schema();
    let ranges = column_ranges(filter.predicate(), &schema)?;
    let within = |&(place, low, high): &(usize, i128, i128)| Within { column: scan.columns[place], low, high };
    let ranges: Vec<Within> = ranges.iter().map(within).collect();
    let need = |place: usize| {
        let is_text = schema.field(place).data_type() == &DataType::Utf8View;
        match (read.contains(&place), passed_on.contains(&place)) {
            // What the filter does not look into is not seen of the rows that it drops.
            (false, true) if is_text && !ranges.is_empty() => Need::TextsWhere(vec![ranges.clone()]),
            (false, false) => Need::Presence,
            _ => Need::Values,
        }
    };
    Ok((0..scan.columns.len()).map(|place| (scan.columns[place], need(place))).collect())
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
    use tenaz_csv::Within;

    use super::MAX_CASES;
    use crate::plan::{JobPlan, ScanPlan};
    use crate::workload::Workload;

    const TABLES: &str = r#"
name = "needs"
title = "Needs"

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

    fn scan(sql: &str) -> ScanPlan {
        let workload = Workload::parse("needs.toml", TABLES, &|_| Ok(sql.to_owned())).unwrap();
        JobPlan::new(&workload).unwrap().scans.remove(0)
    }

    /// The columns of t that are only asked whether they are null.
    fn presence(sql: &str) -> Vec<usize> {
        scan(sql).presence
    }

    #[test]
    fn texts_are_needed_of_records_that_pass_the_filter() {
        let within = |low, high| vec![Within { column: 2, low, high }];
        let both =
            |low, high| vec![Within { column: 2, low, high: i128::MAX }, Within { column: 2, low: i128::MIN, high }];
        for (sql, texts_where) in [
            ("SELECT a FROM t WHERE n > 5", vec![(0, vec![within(6, i128::MAX)])]),
            ("SELECT a, b, n FROM t WHERE n = 5", vec![(0, vec![within(5, 5)]), (1, vec![within(5, 5)])]),
            ("SELECT a FROM t WHERE n BETWEEN 2 AND 4 AND length(b) > 3", vec![(0, vec![both(2, 4)])]),
            ("SELECT max(a) AS m FROM t WHERE n < 5 AND a IS NOT NULL", vec![(0, vec![within(i128::MIN, 4)])]),
            (
                "SELECT a FROM t WHERE n < 5 UNION ALL SELECT a FROM t WHERE n > 7",
                vec![(0, vec![within(i128::MIN, 4), within(8, i128::MAX)])],
            ),
        ] {
            assert_eq!(scan(sql).texts_where, texts_where, "{sql}");
        }
        let cases: Vec<String> = (0..=MAX_CASES).map(|n| format!("SELECT a FROM t WHERE n = {n}")).collect();
        let many = cases.join(" UNION ALL ");
        assert_eq!(scan(&cases[1..].join(" UNION ALL ")).texts_where[0].1.len(), MAX_CASES);
        for sql in [
            "SELECT a FROM t",
            many.as_str(),
            "SELECT a FROM t WHERE n > 5 OR b = 'x'",
            "SELECT a FROM t WHERE n > 5 AND a <> 'x'",
            "SELECT a FROM t WHERE n <> 5",
            "SELECT a FROM t WHERE n IS NOT NULL",
            "SELECT a FROM t WHERE n + 1 > 5",
            "SELECT a FROM t WHERE n < 5 UNION ALL SELECT a FROM t",
            "SELECT a FROM t WHERE n < 5 UNION ALL SELECT b AS a FROM t WHERE a IS NULL",
        ] {
            let read = scan(sql).texts_where;
            assert!(read.iter().all(|(column, _)| *column != 0), "{sql}: {read:?}");
        }
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
