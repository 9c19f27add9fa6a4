//! Columns by the names of their header: `"Order Date"` for the column that SQL calls `order_date`.
//!
//! Only names in quotes are looked at, because others match anyway. A name that the query itself gives (`AS "Order Date"`) is
//! the query's.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, Visit, VisitMut, Visitor, VisitorMut};

use crate::workload::Workload;

/// Writes the names of columns for those of their headers.
pub(super) fn in_names_of_columns(statement: &mut Statement, workload: &Workload) {
    let has_labels = workload.tables.iter().any(|table| table.labels.iter().any(Option::is_some));
    let Statement::Statement(statement) = statement else { return };
    if !has_labels {
        return;
    }
    let mut given = GivenNames::default();
    let _ = Visit::visit(&**statement, &mut given);
    let _ = VisitMut::visit(&mut **statement, &mut ColumnNames { workload, given: given.names });
}

/// The names that a query gives.
#[derive(Default)]
struct GivenNames {
    names: HashSet<String>,
}

impl Visitor for GivenNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.names.extend(table.alias.columns.iter().map(|column| column.name.value.clone()));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.names.insert(alias.value.clone());
            }
        }
        ControlFlow::Continue(())
    }
}

struct ColumnNames<'a> {
    workload: &'a Workload,
    given: HashSet<String>,
}

impl ColumnNames<'_> {
    fn rename(&self, table: Option<&str>, name: &mut Ident) {
        if name.quote_style != Some('"') || self.given.contains(&name.value) {
            return;
        }
        let tables = || self.workload.tables.iter();
        if tables().any(|known| known.layout.columns.iter().any(|column| column.name == name.value)) {
            return;
        }
        let wanted = name.value.trim().to_lowercase();
        let is_wanted = |label: &Option<String>| label.as_ref().is_some_and(|label| label.to_lowercase() == wanted);
        // The table that is named, or else the first that has such a column.
        let named = tables().filter(|known| table.is_some_and(|name| known.name.eq_ignore_ascii_case(name)));
        let column = named.chain(tables()).find_map(|known| {
            let place = known.labels.iter().position(is_wanted)?;
            known.layout.columns.get(place)
        });
        if let Some(column) = column {
            name.value.clone_from(&column.name);
        }
    }
}

impl VisitorMut for ColumnNames<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.rename(None, name),
            Expr::CompoundIdentifier(parts) => {
                let table = parts.len().checked_sub(2).map(|at| parts[at].value.clone());
                if let Some(name) = parts.last_mut() {
                    self.rename(table.as_deref(), name);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
