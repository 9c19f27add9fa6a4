//! Random SQL that is valid, and whose answer does not depend on the order of rows.

use std::fmt::Write as _;

use tenaz_csv::Kind;
use tenaz_engine::Role;

use crate::staged::Rows;

/// A little generator of numbers (xorshift64*), the same everywhere for the same seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            rng.below(2);
        }
        rng
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % n
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len())]
    }
}

/// Two fact and two dimension tables of the same columns, mostly small numbers that meet often; some without rows.
pub fn tables(rng: &mut Rng) -> Vec<Rows> {
    let names = [("t", Role::Fact), ("u", Role::Fact), ("v", Role::Dimension), ("w", Role::Dimension)];
    let table = |(name, role): (&'static str, Role)| {
        let columns = vec![
            ("a", Kind::Int { float_text: false }),
            ("b", Kind::Int { float_text: false }),
            ("s", Kind::Text),
            ("d", Kind::Decimal { precision: 8, scale: 2 }),
            ("f", Kind::Bool { yes: vec!["true".to_owned()], no: vec!["false".to_owned()] }),
        ];
        let count = if rng.one_in(8) { 0 } else { 1 + rng.below(14) };
        Rows { name, role, columns, rows: (0..count).map(|_| row(rng)).collect() }
    };
    names.into_iter().map(table).collect()
}

fn row(rng: &mut Rng) -> Vec<Option<String>> {
    let mut row = vec![
        Some(rng.below(6).to_string()),
        Some((rng.below(20) as i64 - 10).to_string()),
        Some((*rng.pick(&["x", "y", "xy", "zz"])).to_owned()),
        Some(format!("{}.{:02}", rng.below(9), rng.below(4) * 25)),
        Some((*rng.pick(&["true", "false"])).to_owned()),
    ];
    row.iter_mut().filter(|_| rng.one_in(6)).for_each(|field| *field = None);
    row
}

/// A generated query.
pub struct Query {
    pub sql: String,
    /// Whether the order of its rows is fixed.
    pub ordered: bool,
}

pub fn query(rng: &mut Rng) -> Query {
    let mut writer = Writer { rng, names: 0, ctes: Vec::new() };
    let with = writer.rng.one_in(4).then(|| writer.common_table());
    let types: Vec<Type> = (0..1 + writer.rng.below(3)).map(|_| writer.any_type()).collect();
    let body = writer.relation_of(&types, 2);
    let mut sql = with.unwrap_or_default() + &body;
    let ordered = writer.rng.one_in(3);
    if ordered {
        let order = writer.total_order(types.len());
        sql = format!("SELECT * FROM ({sql}) AS q {order}");
    }
    Query { sql, ordered }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Int,
    Text,
    Decimal,
    Bool,
}

/// A column that an expression may use.
#[derive(Debug, Clone)]
struct Column {
    name: String,
    of: Type,
}

struct Writer<'r> {
    rng: &'r mut Rng,
    names: usize,
    ctes: Vec<(String, Vec<Type>)>,
}

const TABLE: [(&str, Type); 5] =
    [("a", Type::Int), ("b", Type::Int), ("s", Type::Text), ("d", Type::Decimal), ("f", Type::Bool)];

impl Writer<'_> {
    fn any_type(&mut self) -> Type {
        *self.rng.pick(&[Type::Int, Type::Int, Type::Text, Type::Decimal, Type::Bool])
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    /// `WITH k AS (…)`, for use any number of times.
    fn common_table(&mut self) -> String {
        let types: Vec<Type> = (0..2 + self.rng.below(2)).map(|_| self.any_type()).collect();
        let body = self.relation_of(&types, 1);
        let name = self.fresh();
        self.ctes.push((name.clone(), types));
        format!("WITH {name} AS ({body}) ")
    }

    /// ORDER BY everything, perhaps with a limit.
    fn total_order(&mut self, columns: usize) -> String {
        let keys: Vec<String> = (0..columns)
            .map(|c| format!("c{c} {} NULLS {}", self.rng.pick(&["ASC", "DESC"]), self.rng.pick(&["FIRST", "LAST"])))
            .collect();
        let mut order = format!("ORDER BY {}", keys.join(", "));
        if self.rng.one_in(2) {
            write!(order, " LIMIT {}", self.rng.below(7)).expect("a string");
        }
        if self.rng.one_in(4) {
            write!(order, " OFFSET {}", self.rng.below(4)).expect("a string");
        }
        order
    }

    /// A query with columns c0, c1, … of these types.
    fn relation_of(&mut self, types: &[Type], depth: usize) -> String {
        if depth > 0 && self.rng.one_in(5) {
            let kinds = ["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"];
            let kind = *self.rng.pick(&kinds);
            let left = self.relation_of(types, depth - 1);
            let right = if self.rng.one_in(5) { left.clone() } else { self.relation_of(types, depth - 1) };
            return format!("({left}) {kind} ({right})");
        }
        if depth > 0 && self.rng.one_in(8) {
            let inner = self.select(types, depth - 1);
            let order = self.total_order(types.len());
            let name = self.fresh();
            return format!("SELECT * FROM ({inner}) AS {name} {order}");
        }
        self.select(types, depth)
    }

    fn select(&mut self, types: &[Type], depth: usize) -> String {
        let (from, scope) = self.from(depth);
        let condition = self.condition(&scope, depth);
        match self.rng.below(8) {
            0..3 => self.grouped(types, &from, &scope, &condition),
            3 => self.windowed(types, &from, &scope, &condition),
            4 => self.best_of_each(types, &from, &scope, &condition),
            shape => {
                let distinct = if shape == 5 { "DISTINCT " } else { "" };
                let list = self.list(types, |writer, of| match writer.rng.below(14) {
                    0 if depth > 0 && of == Type::Int => writer.scalar_subquery(&scope),
                    _ => writer.value(of, &scope, 2),
                });
                format!("SELECT {distinct}{list} FROM {from}{condition}")
            }
        }
    }

    fn list(&mut self, types: &[Type], mut value: impl FnMut(&mut Self, Type) -> String) -> String {
        let values: Vec<String> =
            types.iter().enumerate().map(|(i, &of)| format!("{} AS c{i}", value(self, of))).collect();
        values.join(", ")
    }

    /// A FROM clause and the columns it offers.
    fn from(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (mut from, mut scope) = self.relation(depth);
        for _ in 0..*self.rng.pick(&[0, 0, 1, 1, 2]) {
            let (right, columns) = self.relation(depth);
            let mut both = scope.clone();
            both.extend(columns.iter().cloned());
            let of = self.any_type();
            let equal = format!("{} = {}", self.column(of, &scope), self.column(of, &columns));
            let on = match self.rng.below(6) {
                0 => self.predicate(&both, 1),
                1 | 2 => format!("{equal} AND {}", self.predicate(&both, 1)),
                _ => equal,
            };
            let kind =
                *self.rng.pick(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "SEMI", "ANTI"]);
            match kind {
                "CROSS JOIN" => write!(from, " CROSS JOIN {right}").expect("a string"),
                "SEMI" | "ANTI" => write!(from, " LEFT {kind} JOIN {right} ON {on}").expect("a string"),
                kind => write!(from, " {kind} {right} ON {on}").expect("a string"),
            }
            if !matches!(kind, "SEMI" | "ANTI") {
                scope = both;
            }
        }
        (from, scope)
    }

    fn relation(&mut self, depth: usize) -> (String, Vec<Column>) {
        let alias = self.fresh();
        let column = |(name, of): (String, Type)| Column { name: format!("{alias}.{name}"), of };
        let numbered = |types: &[Type]| -> Vec<Column> {
            types.iter().enumerate().map(|(i, &of)| column((format!("c{i}"), of))).collect()
        };
        if !self.ctes.is_empty() && self.rng.one_in(2) {
            let (name, types) = self.rng.pick(&self.ctes).clone();
            return (format!("{name} AS {alias}"), numbered(&types));
        }
        match self.rng.below(if depth > 0 { 10 } else { 7 }) {
            0 => {
                let values = "(VALUES (1, 'x'), (2, NULL), (2, 'zz'), (NULL, 'y'))";
                (format!("{values} AS {alias}(c0, c1)"), numbered(&[Type::Int, Type::Text]))
            }
            7.. => {
                let types: Vec<Type> = (0..1 + self.rng.below(3)).map(|_| self.any_type()).collect();
                let body = self.relation_of(&types, depth - 1);
                (format!("({body}) AS {alias}"), numbered(&types))
            }
            _ => {
                let table = self.rng.pick(&["t", "t", "u", "u", "v", "w"]);
                let columns = TABLE.iter().map(|&(name, of)| column((name.to_owned(), of))).collect();
                (format!("{table} AS {alias}"), columns)
            }
        }
    }

    fn condition(&mut self, scope: &[Column], depth: usize) -> String {
        let mut parts = Vec::new();
        if self.rng.one_in(2) {
            parts.push(self.predicate(scope, 2));
        }
        if depth > 0 && self.rng.one_in(4) {
            parts.push(self.subquery_condition(scope));
        }
        if parts.is_empty() { String::new() } else { format!(" WHERE {}", parts.join(" AND ")) }
    }

    fn table(&mut self) -> (&'static str, String) {
        (*self.rng.pick(&["t", "u", "v", "w"]), self.fresh())
    }

    fn subquery_condition(&mut self, scope: &[Column]) -> String {
        let (table, alias) = self.table();
        let inner: Vec<Column> =
            TABLE.iter().map(|&(name, of)| Column { name: format!("{alias}.{name}"), of }).collect();
        let of = self.any_type();
        let (outer, own) = (self.column(of, scope), self.column(of, &inner));
        let int = self.column(Type::Int, scope);
        // A condition without columns goes below a ROLLUP in DataFusion, which then has a grand total of no rows.
        if !outer.contains('.') || !int.contains('.') {
            return self.predicate(scope, 1);
        }
        let filter = self.predicate(&inner, 1);
        let not = *self.rng.pick(&["", "NOT "]);
        match self.rng.below(4) {
            0 => format!("{outer} {not}IN (SELECT {own} FROM {table} AS {alias} WHERE {filter})"),
            1 => format!("{not}EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {own} = {outer} AND {filter})"),
            2 => {
                let call = self.rng.pick(&["max", "min", "count", "sum"]);
                format!("{int} >= (SELECT {call}({alias}.b) FROM {table} AS {alias} WHERE {filter})")
            }
            _ => format!("{int} <= (SELECT max({alias}.b) FROM {table} AS {alias} WHERE {own} = {outer})"),
        }
    }

    /// One whole number from another table, correlated or not.
    fn scalar_subquery(&mut self, scope: &[Column]) -> String {
        let (table, alias) = self.table();
        let call = *self.rng.pick(&["max(b)", "min(a)", "count(*)", "sum(b)", "count(DISTINCT s)"]);
        if self.rng.one_in(2) {
            return format!("(SELECT {call} FROM {table} AS {alias})");
        }
        let outer = self.column(Type::Int, scope);
        format!("(SELECT {call} FROM {table} AS {alias} WHERE {alias}.a = {outer})")
    }

    fn grouped(&mut self, types: &[Type], from: &str, scope: &[Column], condition: &str) -> String {
        let key_types: Vec<Type> = (0..self.rng.below(3)).map(|_| self.any_type()).collect();
        let keys: Vec<Column> = key_types.iter().map(|&of| Column { name: self.column(of, scope), of }).collect();
        // A literal that no column offers is no key.
        let keys: Vec<Column> = keys.into_iter().filter(|key| key.name.contains('.')).collect();
        let list = self.list(types, |writer, of| match keys.iter().find(|key| key.of == of) {
            Some(key) if writer.rng.one_in(2) => key.name.clone(),
            _ => writer.aggregate(of, scope),
        });
        let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        let by = match (names.len(), self.rng.below(6)) {
            (0, _) => String::new(),
            (_, 0) => format!(" GROUP BY ROLLUP ({})", names.join(", ")),
            (2, 1) if names[0] != names[1] => format!(" GROUP BY GROUPING SETS (({0}), ({1}), ())", names[0], names[1]),
            _ => format!(" GROUP BY {}", names.join(", ")),
        };
        let having = match self.rng.below(4) {
            0 => format!(" HAVING count(*) > {}", self.rng.below(3)),
            1 => format!(" HAVING {} >= {}", self.aggregate(Type::Int, scope), self.rng.below(4)),
            _ => String::new(),
        };
        format!("SELECT {list} FROM {from}{condition}{by}{having}")
    }

    fn aggregate(&mut self, of: Type, scope: &[Column]) -> String {
        let value = self.value(of, scope, 1);
        let call = match of {
            Type::Int => match self.rng.below(9) {
                0 => "count(*)".to_owned(),
                1 => format!("count({value})"),
                2 => format!("count(DISTINCT {value})"),
                3 => format!("distinct_count({value})"),
                4 => return format!("exact_percentile({value}, 0.5)"),
                5 => format!("max({value})"),
                6 => format!("min({value})"),
                _ => format!("sum({value})"),
            },
            Type::Decimal => match self.rng.below(4) {
                0 => format!("avg({value})"),
                1 => format!("sum({value})"),
                _ => format!("max({value})"),
            },
            Type::Bool => format!("{}({value})", self.rng.pick(&["bool_and", "bool_or"])),
            Type::Text => format!("{}({value})", self.rng.pick(&["min", "max"])),
        };
        if self.rng.one_in(6) {
            return format!("{call} FILTER (WHERE {})", self.predicate(scope, 1));
        }
        call
    }

    fn windowed(&mut self, types: &[Type], from: &str, scope: &[Column], condition: &str) -> String {
        let mut frame = String::new();
        if self.rng.one_in(2) {
            let of = self.any_type();
            write!(frame, "PARTITION BY {}", self.column(of, scope)).expect("a string");
        }
        let ordered = self.rng.one_in(2);
        if ordered {
            write!(frame, " ORDER BY {}", self.column(Type::Int, scope)).expect("a string");
        }
        let list = self.list(types, |writer, of| {
            if writer.rng.one_in(2) {
                return writer.value(of, scope, 1);
            }
            let value = writer.value(of, scope, 1);
            let call = match of {
                Type::Int if ordered && writer.rng.one_in(2) => {
                    // The rank is a wide whole number without sign, and a union wants one kind.
                    return format!("CAST({}() OVER ({frame}) AS BIGINT)", writer.rng.pick(&["rank", "dense_rank"]));
                }
                Type::Int => format!("{}({value})", writer.rng.pick(&["sum", "count", "max"])),
                Type::Decimal => format!("sum({value})"),
                Type::Text | Type::Bool => format!("{}({value})", writer.rng.pick(&["min", "max"])),
            };
            format!("{call} OVER ({frame})")
        });
        format!("SELECT {list} FROM {from}{condition}")
    }

    /// The first rows of each key: every column decides, so that only equal rows tie.
    fn best_of_each(&mut self, types: &[Type], from: &str, scope: &[Column], condition: &str) -> String {
        let list = self.list(types, |writer, of| writer.value(of, scope, 1));
        let (inner, outer) = (self.fresh(), self.fresh());
        let columns: Vec<String> = (0..types.len()).map(|c| format!("c{c}")).collect();
        let columns = columns.join(", ");
        let by = if self.rng.one_in(3) { "" } else { "PARTITION BY c0 " };
        let most = 1 + self.rng.below(3);
        format!(
            "SELECT {columns} FROM (SELECT {columns}, row_number() OVER ({by}ORDER BY {columns}) AS r \
             FROM (SELECT {list} FROM {from}{condition}) AS {inner}) AS {outer} WHERE r <= {most}"
        )
    }

    /// A column of the type, or a literal where there is none.
    fn column(&mut self, of: Type, scope: &[Column]) -> String {
        let fitting: Vec<&Column> = scope.iter().filter(|column| column.of == of).collect();
        if fitting.is_empty() { self.literal(of) } else { self.rng.pick(&fitting).name.clone() }
    }

    fn literal(&mut self, of: Type) -> String {
        match of {
            Type::Int => self.rng.below(7).to_string(),
            Type::Text => format!("'{}'", self.rng.pick(&["x", "y", "zz", ""])),
            Type::Decimal => format!("{}.{}", self.rng.below(9), self.rng.pick(&["00", "25", "50"])),
            Type::Bool => (*self.rng.pick(&["true", "false"])).to_owned(),
        }
    }

    fn value(&mut self, of: Type, scope: &[Column], depth: usize) -> String {
        if depth == 0 || self.rng.one_in(2) {
            return if self.rng.one_in(8) { self.literal(of) } else { self.column(of, scope) };
        }
        if self.rng.one_in(6) {
            let (left, right) = (self.value(of, scope, depth - 1), self.value(of, scope, depth - 1));
            return match self.rng.below(3) {
                0 => format!("coalesce({left}, {right})"),
                1 => format!("CASE WHEN {} THEN {left} ELSE {right} END", self.predicate(scope, 1)),
                _ => format!("nullif({left}, {right})"),
            };
        }
        match of {
            Type::Int => {
                let (left, right) = (self.value(of, scope, depth - 1), self.value(of, scope, depth - 1));
                format!("({left} {} {right})", self.rng.pick(&["+", "-"]))
            }
            Type::Decimal => {
                let (left, right) = (self.value(of, scope, depth - 1), self.value(of, scope, depth - 1));
                format!("({left} {} {right})", self.rng.pick(&["+", "-"]))
            }
            Type::Text => {
                let value = self.value(of, scope, depth - 1);
                format!("{}({value})", self.rng.pick(&["upper", "reverse", "trim"]))
            }
            Type::Bool => self.predicate(scope, depth - 1),
        }
    }

    fn predicate(&mut self, scope: &[Column], depth: usize) -> String {
        if depth > 0 && self.rng.one_in(3) {
            let (left, right) = (self.predicate(scope, depth - 1), self.predicate(scope, depth - 1));
            return match self.rng.below(3) {
                0 => format!("({left} AND {right})"),
                1 => format!("({left} OR {right})"),
                _ => format!("(NOT {left})"),
            };
        }
        let of = self.any_type();
        let value = self.value(of, scope, depth.min(1));
        match self.rng.below(6) {
            0 => format!("({value} IS {}NULL)", self.rng.pick(&["", "NOT "])),
            1 if of == Type::Int => format!("({value} IN (1, 2, {}))", self.literal(of)),
            2 if of == Type::Text => format!("({value} LIKE '{}')", self.rng.pick(&["x%", "%y", "_", "%"])),
            3 => format!("({value} IS DISTINCT FROM {})", self.value(of, scope, 0)),
            _ => format!("({value} {} {})", self.rng.pick(&["=", "<", ">=", "<>"]), self.value(of, scope, 0)),
        }
    }
}
