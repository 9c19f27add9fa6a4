//! Random SQL that is valid and small.
//!
//! What SQL leaves open is settled in one of three ways: the query's own order leaves no ties; or tenaz promises what happens to them,
//! and the other engines are told so (`tree::Ties`); or it is marked as open, and only tenaz is compared with itself.

mod grouped;
mod relations;
mod subqueries;
mod values;
mod windowed;

use super::rng::Rng;
use super::tables::type_of;
use super::tree::{Body, By, CommonTable, Distinct, Expr, Join, Key, On, Query, Relation, Select, Ties, Type};
use crate::staged::Rows;

/// Columns that an expression may use.
#[derive(Debug, Clone, Default)]
struct Scope {
    own: Vec<Expr>,
}

/// A table, or a common table.
#[derive(Debug, Clone)]
struct Source {
    name: String,
    columns: Vec<(String, Type)>,
    /// About how many rows it has.
    rows: usize,
    in_file_order: bool,
}

struct Generator<'r> {
    rng: &'r mut Rng,
    tables: Vec<Source>,
    common: Vec<Source>,
    names: usize,
}

/// A SELECT, and an expression that it may be ordered by besides its columns.
struct Built {
    query: Query,
    order_by: Option<Expr>,
}

/// A random query over the tables.
pub fn query(rng: &mut Rng, tables: &[Rows]) -> Query {
    let tables = tables.iter().map(|table| Source {
        name: table.name.to_owned(),
        columns: table.columns.iter().map(|(name, _)| ((*name).to_owned(), type_of(name))).collect(),
        rows: table.rows.len().max(1),
        in_file_order: true,
    });
    let tables = tables.collect();
    Generator { rng, tables, common: Vec::new(), names: 0 }.outermost()
}

impl Generator<'_> {
    fn outermost(&mut self) -> Query {
        let mut with = Vec::new();
        if self.rng.one_in(5) {
            with.push(if self.rng.one_in(4) { self.recursive_table() } else { self.common_table() });
        }
        let types: Vec<Type> = (0..1 + self.rng.below(4)).map(|_| self.any_type()).collect();
        let mut built = if self.rng.one_in(3) {
            let mut types = types;
            let extra = *self.rng.pick(&[Type::Approximate, Type::Approximate, Type::Ints, Type::Texts]);
            types.push(extra);
            self.shown(&types)
        } else {
            self.query_of(&types, 2)
        };
        if built.query.order.is_empty() && built.query.limit.is_none() && self.rng.one_in(2) {
            self.add_order(&mut built);
        }
        built.query.with.splice(0..0, with);
        built.query
    }

    /// A SELECT with a column that nothing but an answer can have.
    fn shown(&mut self, types: &[Type]) -> Built {
        match self.rng.below(4) {
            0 => self.windowed(types, 1),
            1 => self.plain(types, 1),
            _ => self.grouped(types, 1),
        }
    }

    fn any_type(&mut self) -> Type {
        use Type::{Bool, Date, Decimal, Float, Int, Text, Timestamp};
        *self.rng.pick(&[Int, Int, Int, Text, Text, Decimal(2), Decimal(4), Float, Bool, Date, Timestamp])
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("q{}", self.names)
    }

    /// `WITH k AS (…)`, for use any number of times.
    fn common_table(&mut self) -> CommonTable {
        let types: Vec<Type> = (0..2 + self.rng.below(2)).map(|_| self.any_type()).collect();
        let query = self.query_of(&types, 1).query;
        let name = self.fresh();
        self.common.push(Source {
            name: name.clone(),
            columns: numbered(&query.columns),
            rows: 20,
            in_file_order: self.is_in_file_order(&query),
        });
        CommonTable { name, recursive: false, query }
    }

    /// `WITH RECURSIVE k AS (base UNION [ALL] step)`, in which a number grows up to a bound.
    fn recursive_table(&mut self) -> CommonTable {
        let of = self.any_type();
        let (from, scope, _) = self.from(0);
        let start = self.column(Type::Int, &scope);
        let other = self.value(of, &scope, 1);
        let mut base = Select::new(vec![start.clone(), other], from);
        let bounds = vec![start, Expr::literal("0", Type::Int), Expr::literal("2", Type::Int)];
        base.filter = Some(self.comparison("({0} BETWEEN {1} AND {2})", bounds));
        let base = Query::select(base);
        let columns = base.columns.clone();
        let name = self.fresh();
        let alias = self.fresh();
        let own: Vec<Expr> = columns_of(&alias, &numbered(&columns));
        let scope = Scope { own: own.clone() };
        let next = self.operation("({0} + {1})", Type::Int, vec![own[0].clone(), Expr::literal("1", Type::Int)]);
        let other = if self.rng.one_in(2) { own[1].clone() } else { self.value(columns[1], &scope, 1) };
        // Both sides have one type: what is computed may have other digits.
        let other = if other.of() == columns[1] { other } else { own[1].clone() };
        let relation = Relation::Named { name: name.clone(), alias };
        let mut step = Select::new(vec![next, other], vec![Join { kind: "", relation, on: On::Nothing }]);
        let bound = vec![own[0].clone(), Expr::literal((2 + self.rng.below(4)).to_string(), Type::Int)];
        step.filter = Some(self.comparison("({0} < {1})", bound));
        let step = Query::select(step);
        let operator = *self.rng.pick(&["UNION ALL", "UNION ALL", "UNION"]);
        let query = self.set(operator, base, step);
        let source = Source { name: name.clone(), columns: numbered(&columns), rows: 30, in_file_order: false };
        self.common.push(source);
        CommonTable { name, recursive: true, query }
    }

    /// A query with columns like these types.
    fn query_of(&mut self, types: &[Type], depth: usize) -> Built {
        if depth > 0 && self.rng.one_in(5) {
            return Built { query: self.union(types, depth), order_by: None };
        }
        let mut built = match self.rng.below(12) {
            0..3 => self.grouped(types, depth),
            3..5 => self.windowed(types, depth),
            5 => self.best_of_each(types, depth),
            6 => return self.distinct_on(types, depth),
            7 if depth > 0 => self.star(types, depth),
            _ => self.plain(types, depth),
        };
        // Below the outermost query an order matters only where it is cut.
        if self.rng.one_in(10) {
            self.add_order(&mut built);
            self.add_limit(&mut built.query);
        } else if self.rng.one_in(20) {
            self.add_limit(&mut built.query);
        }
        built
    }

    fn set(&mut self, operator: &'static str, left: Query, right: Query) -> Query {
        let wider = |(left, right): (&Type, &Type)| match (left, right) {
            (Type::Decimal(left), Type::Decimal(right)) => Type::Decimal(*left.max(right)),
            (Type::Int, Type::Decimal(scale)) => Type::Decimal(*scale),
            (left, _) => *left,
        };
        let columns = left.columns.iter().zip(&right.columns).map(wider).collect();
        let body = Body::Set { operator, left: Box::new(left), right: Box::new(right) };
        Query { with: Vec::new(), body, order: Vec::new(), limit: None, offset: None, columns, ties: Ties::Columns }
    }

    fn union(&mut self, types: &[Type], depth: usize) -> Query {
        let operators = [
            "UNION ALL",
            "UNION ALL",
            "UNION ALL",
            "UNION",
            "UNION",
            "INTERSECT",
            "EXCEPT",
            "INTERSECT ALL",
            "EXCEPT ALL",
        ];
        let operator = *self.rng.pick(&operators);
        let mut left = self.query_of(types, depth - 1).query;
        let mut right = if self.rng.one_in(6) { left.clone() } else { self.query_of(types, depth - 1).query };
        if self.rng.one_in(3) {
            // A column that is constant in each branch.
            let column = self.rng.below(types.len());
            for branch in [&mut left, &mut right] {
                if let Body::Select(select) = &mut branch.body
                    && !select.star
                {
                    let literal = self.literal(types[column]);
                    branch.columns[column] = literal.of();
                    select.list[column] = literal;
                }
            }
        }
        let mut union = self.set(operator, left, right);
        if self.rng.one_in(6) {
            let mut built = Built { query: union, order_by: None };
            self.add_order(&mut built);
            self.add_limit(&mut built.query);
            union = built.query;
        }
        union
    }

    /// `SELECT … FROM … WHERE …`, perhaps DISTINCT.
    fn plain(&mut self, types: &[Type], depth: usize) -> Built {
        if self.rng.one_in(40) {
            let list = types.iter().map(|&of| self.value(of, &Scope::default(), 1)).collect();
            return Built { query: Query::select(Select::new(list, Vec::new())), order_by: None };
        }
        let (from, scope, _) = self.from(depth);
        let filter = self.condition(&scope, depth);
        let list: Vec<Expr> = types.iter().map(|&of| self.item(of, &scope, depth)).collect();
        let mut select = Select::new(list, from);
        select.filter = filter;
        let is_plain = types.iter().all(|of| of.is_plain());
        if is_plain && self.rng.one_in(5) {
            select.distinct = Distinct::Rows;
            return Built { query: Query::select(select), order_by: None };
        }
        let of = self.any_type();
        let order_by = Some(self.item(of, &scope, depth));
        Built { query: Query::select(select), order_by }
    }

    /// An expression of a SELECT list, which may be a subquery.
    fn item(&mut self, of: Type, scope: &Scope, depth: usize) -> Expr {
        if depth > 0 && of.is_plain() && self.rng.one_in(16) {
            return self.scalar_subquery(of, scope);
        }
        self.value(of, scope, 2)
    }

    /// `SELECT * FROM (…)`.
    fn star(&mut self, types: &[Type], depth: usize) -> Built {
        let excludes = self.rng.one_in(6);
        let extra = self.any_type();
        let inner_types: Vec<Type> = types.iter().copied().chain(excludes.then_some(extra)).collect();
        let inner = self.query_of(&inner_types, depth - 1).query;
        let alias = self.fresh();
        let list = columns_of(&alias, &numbered(&inner.columns));
        let scope = Scope { own: list.clone() };
        let relation = Relation::Derived { query: Box::new(inner), alias, lateral: false };
        let mut select = Select::new(list, vec![Join { kind: "", relation, on: On::Nothing }]);
        select.star = true;
        if excludes {
            select.list.pop();
            select.exclude = Some(format!("c{}", types.len()));
        }
        select.filter = self.condition(&scope, depth);
        Built { query: Query::select(select), order_by: None }
    }

    /// `SELECT DISTINCT ON (…) … ORDER BY` everything.
    fn distinct_on(&mut self, types: &[Type], depth: usize) -> Built {
        let (from, scope, _) = self.from(depth);
        let filter = self.condition(&scope, depth);
        let mut keys: Vec<Expr> = vec![self.rng.pick(&scope.own).clone()];
        let other = self.rng.pick(&scope.own).clone();
        if self.rng.one_in(2) && format!("{other:?}") != format!("{:?}", keys[0]) {
            keys.push(other);
        }
        let list = types.iter().map(|&of| self.value(of, &scope, 1)).collect();
        let mut select = Select::new(list, from);
        select.filter = filter;
        let mut query = Query::select(select);
        query.order = self.total_order(&keys, &scope);
        query.ties = Ties::None;
        if self.rng.one_in(3) {
            query.limit = Some(self.rng.below(4));
        }
        if let Body::Select(select) = &mut query.body {
            select.distinct = Distinct::On(keys);
        }
        Built { query, order_by: None }
    }

    /// ORDER BY some columns, perhaps with an expression.
    fn add_order(&mut self, built: &mut Built) {
        let columns: Vec<usize> =
            (0..built.query.columns.len()).filter(|&column| built.query.columns[column].is_plain()).collect();
        let mut keys = Vec::new();
        for column in columns {
            if !self.rng.one_in(3) {
                let by = if self.rng.one_in(5) { By::Ordinal(column) } else { By::Output(column) };
                let at = self.rng.below(keys.len() + 1);
                keys.insert(at, self.key(by));
            }
        }
        if let Some(expr) = built.order_by.take()
            && !expr.is_literal()
            && self.rng.one_in(4)
        {
            let at = self.rng.below(keys.len() + 1);
            keys.insert(at, self.key(By::Expr(expr)));
        }
        built.query.order = keys;
        if self.rng.one_in(3) {
            self.add_limit(&mut built.query);
        }
    }

    fn key(&mut self, by: By) -> Key {
        let nulls_first = *self.rng.pick(&[None, None, Some(true), Some(false)]);
        Key { by, descending: self.rng.one_in(2), nulls_first }
    }

    /// LIMIT, OFFSET or both, where what they take is settled.
    fn add_limit(&mut self, query: &mut Query) {
        if query.columns.iter().any(|of| !of.is_plain()) {
            return;
        }
        if query.order.is_empty() && self.is_in_file_order(query) {
            query.ties = if has_subquery(query) { Ties::Open } else { Ties::File };
        }
        if !self.rng.one_in(6) {
            query.limit = Some(self.rng.below(7));
        }
        if query.limit.is_none() || self.rng.one_in(4) {
            query.offset = Some(self.rng.below(4));
        }
    }

    /// Whether rows come straight from a table, of which a LIMIT takes the first (`plan/order.rs`).
    fn is_in_file_order(&self, query: &Query) -> bool {
        let Body::Select(select) = &query.body else { return false };
        let is_simple = matches!(select.distinct, Distinct::No)
            && query.order.is_empty()
            && select.group.is_none()
            && select.having.is_none()
            && select.qualify.is_none()
            && !select.list.iter().any(values::is_computed_from_many);
        let [join] = select.from.as_slice() else { return is_simple && select.from.is_empty() };
        is_simple
            && match &join.relation {
                Relation::Named { name, .. } => {
                    let mut sources = self.tables.iter().chain(&self.common);
                    sources.any(|source| source.name == *name && source.in_file_order)
                }
                Relation::Derived { query, .. } => self.is_in_file_order(query),
                Relation::Values { .. } | Relation::Series { .. } => true,
            }
    }
}

/// Whether the SELECT itself, or one that it takes its rows from, has a subquery in an expression.
fn has_subquery(query: &Query) -> bool {
    let Body::Select(select) = &query.body else { return false };
    let below = select.from.iter().any(|join| match &join.relation {
        Relation::Derived { query, .. } => has_subquery(query),
        _ => false,
    });
    below || select.filter.iter().chain(&select.list).any(values::has_subquery)
}

fn numbered(types: &[Type]) -> Vec<(String, Type)> {
    types.iter().enumerate().map(|(index, &of)| (format!("c{index}"), of)).collect()
}

/// The columns of a relation, for expressions.
fn columns_of(alias: &str, columns: &[(String, Type)]) -> Vec<Expr> {
    columns.iter().map(|(name, of)| Expr::Column { name: format!("{alias}.{name}"), of: *of }).collect()
}
