//! How large a query may be: checked after parsing and before planning, which takes time and stack by what is counted here.
//!
//! | bound | what would happen without |
//! |---|---|
//! | words and signs | a chain of n operators is a tree of depth n, which even its own removal goes down |
//! | depth of an expression | every pass of the planner goes down from every node: n² |
//! | the depths of all nodes, added up | (m) 100 columns of 250 terms each are planned for a minute between two looks at the clock |
//! | tables, after each name of WITH is replaced by its query | 30 names that each use the one before twice are 2^30 scans |
//! | grouping sets | CUBE of n columns is 2^n of them |

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, ObjectName, Query, Select, Statement, TableFactor, Visit, Visitor,
};

use crate::limits::{
    MAX_DEPTHS_ADDED_UP, MAX_GROUPING_SETS, MAX_QUERY_DEPTH, MAX_QUERY_TABLES, MAX_QUERY_TOKENS, MAX_SELECT_COLUMNS,
};

fn too_large(what: &str, found: usize, limit: usize, cure: &str) -> DataFusionError {
    DataFusionError::Plan(format!("{what}: {found}, and the limit is {limit}; {cure}"))
}

/// Refuses a text with too many words and signs, before it is parsed.
pub(super) fn check_tokens(found: usize) -> Result<()> {
    match found > MAX_QUERY_TOKENS {
        true => Err(too_large(
            "words and signs in one query",
            found,
            MAX_QUERY_TOKENS,
            "put long lists of values into a file and join it as a table",
        )),
        false => Ok(()),
    }
}

/// Refuses a query that would take too long to plan.
pub(super) fn check_size(statement: &Statement) -> Result<()> {
    match Visit::visit(statement, &mut SizeCheck::default()) {
        ControlFlow::Break(error) => Err(*error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

#[derive(Default)]
struct SizeCheck {
    depth: usize,
    /// The depths of all expressions so far: the steps of a pass that goes down from each of them.
    depths_added_up: usize,
    scopes: Vec<Scope>,
}

/// A query that is being looked through.
#[derive(Default)]
struct Scope {
    /// The tables in it, those of its subqueries included.
    tables: usize,
    /// The queries of its WITH by where they stand in the tree.
    names_by_query: HashMap<*const Query, String>,
    /// The tables behind each name of its WITH.
    tables_by_name: HashMap<String, usize>,
}

type Flow = ControlFlow<Box<DataFusionError>>;

fn refused(what: &str, found: usize, limit: usize, cure: &str) -> Flow {
    ControlFlow::Break(Box::new(too_large(what, found, limit, cure)))
}

impl SizeCheck {
    fn add_tables(&mut self, tables: usize) -> Flow {
        let Some(scope) = self.scopes.last_mut() else { return ControlFlow::Continue(()) };
        scope.tables = scope.tables.saturating_add(tables);
        match scope.tables > MAX_QUERY_TABLES {
            true => refused(
                "tables and SELECTs in one query, after each name of WITH is replaced by its query",
                scope.tables,
                MAX_QUERY_TABLES,
                "write it as several queries",
            ),
            false => ControlFlow::Continue(()),
        }
    }

    fn tables_behind(&self, name: &ObjectName) -> usize {
        let name = name.to_string().to_lowercase();
        self.scopes.iter().rev().find_map(|scope| scope.tables_by_name.get(&name).copied()).unwrap_or(1)
    }
}

fn grouping_sets(group_by: &GroupByExpr) -> usize {
    let power = |columns: usize| 1_usize.checked_shl(columns as u32).filter(|_| columns < 63).unwrap_or(usize::MAX);
    let GroupByExpr::Expressions(exprs, modifiers) = group_by else { return 1 };
    let sets = exprs.iter().map(|expr| match expr {
        Expr::Cube(columns) => power(columns.len()),
        Expr::Rollup(columns) => columns.len() + 1,
        Expr::GroupingSets(sets) => sets.len(),
        _ => 1,
    });
    let modified = modifiers.iter().map(|modifier| match modifier {
        GroupByWithModifier::Cube => power(exprs.len()),
        GroupByWithModifier::Rollup => exprs.len() + 1,
        _ => 1,
    });
    sets.chain(modified).fold(1, usize::saturating_mul)
}

impl Visitor for SizeCheck {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &Query) -> Flow {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        let name = |cte: &datafusion::sql::sqlparser::ast::Cte| cte.alias.name.to_string().to_lowercase();
        let names_by_query = ctes.map(|cte| (&raw const *cte.query, name(cte))).collect();
        self.scopes.push(Scope { names_by_query, ..Scope::default() });
        match self.scopes.len() > MAX_QUERY_DEPTH {
            true => {
                refused("queries inside each other", self.scopes.len(), MAX_QUERY_DEPTH, "name inner queries with WITH")
            }
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, query: &Query) -> Flow {
        let Some(ended) = self.scopes.pop() else { return ControlFlow::Continue(()) };
        match self.scopes.last_mut() {
            Some(outer) => match outer.names_by_query.get(&(&raw const *query)) {
                Some(name) => {
                    outer.tables_by_name.insert(name.clone(), ended.tables);
                    ControlFlow::Continue(())
                }
                None => self.add_tables(ended.tables),
            },
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        let sets = grouping_sets(&select.group_by);
        if sets > MAX_GROUPING_SETS {
            return refused(
                "grouping sets",
                sets,
                MAX_GROUPING_SETS,
                "name the sets that are wanted: GROUPING SETS (…)",
            );
        }
        let columns = select.projection.len();
        if columns > MAX_SELECT_COLUMNS {
            return refused("columns of a SELECT", columns, MAX_SELECT_COLUMNS, "write it as several queries");
        }
        self.add_tables(1)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Flow {
        match table {
            TableFactor::Table { name, .. } => {
                let tables = self.tables_behind(name);
                self.add_tables(tables)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> Flow {
        self.depth += 1;
        self.depths_added_up += self.depth;
        if self.depth > MAX_QUERY_DEPTH {
            return refused(
                "operators and functions inside each other",
                self.depth,
                MAX_QUERY_DEPTH,
                "compute parts of it in a subquery, or sum values as rows of a table",
            );
        }
        match self.depths_added_up > MAX_DEPTHS_ADDED_UP {
            true => refused(
                "operators and functions, each counted as often as it stands inside others",
                self.depths_added_up,
                MAX_DEPTHS_ADDED_UP,
                "write it as several queries, or compute parts of it in a subquery",
            ),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> Flow {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::plan::dialect::Sql;

    fn check(sql: &str) -> Result<(), String> {
        let statement = Parser::new(&Sql).try_with_sql(sql).unwrap().parse_statement().unwrap();
        check_size(&statement).map_err(|error| error.to_string())
    }

    #[test]
    fn names_that_double_are_counted_as_what_they_become() {
        let named = |levels: usize| {
            let mut names = vec!["c0 AS (SELECT 1 AS a)".to_owned()];
            let next = |n: usize| format!("c{n} AS (SELECT x.a FROM c{m} x, c{m} y)", m = n - 1);
            names.extend((1..=levels).map(next));
            format!("WITH {} SELECT * FROM c{levels}", names.join(", "))
        };
        assert_eq!(check(&named(4)), Ok(()));
        let error = check(&named(40)).unwrap_err();
        assert!(error.contains("tables and SELECTs") && error.contains(&MAX_QUERY_TABLES.to_string()), "{error}");
    }

    #[test]
    fn names_that_are_used_once_each_cost_what_they_cost() {
        let names: Vec<String> = (1..60).map(|n| format!("c{n} AS (SELECT a FROM c{})", n - 1)).collect();
        assert_eq!(check(&format!("WITH c0 AS (SELECT 1 AS a), {} SELECT * FROM c59", names.join(", "))), Ok(()));
    }

    #[test]
    fn deep_expressions_and_wide_cubes_are_refused_with_limit_and_cure() {
        let sum = |terms: usize| format!("SELECT {} FROM t", vec!["a"; terms].join("+"));
        assert_eq!(check(&sum(100)), Ok(()));
        let error = check(&sum(2500)).unwrap_err();
        assert!(error.contains("inside each other") && error.contains("subquery"), "{error}");
        let columns: Vec<String> = (0..12).map(|n| format!("c{n}")).collect();
        assert!(check(&format!("SELECT 1 FROM t GROUP BY CUBE({})", columns.join(","))).unwrap_err().contains("4096"));
        assert_eq!(check(&format!("SELECT 1 FROM t GROUP BY ROLLUP({})", columns.join(","))), Ok(()));
    }

    #[test]
    fn many_deep_expressions_are_refused_though_each_of_them_is_not() {
        let columns = |count: usize| vec![vec!["a"; 250].join("+"); count].join(", ");
        assert_eq!(check(&format!("SELECT {} FROM t", columns(5))), Ok(()));
        let error = check(&format!("SELECT {} FROM t", columns(100))).unwrap_err();
        assert!(error.contains("as often as it stands inside others"), "{error}");
    }

    #[test]
    fn long_lists_of_values_are_fine() {
        let values: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
        assert_eq!(check(&format!("SELECT a FROM t WHERE a IN ({})", values.join(","))), Ok(()));
    }
}
