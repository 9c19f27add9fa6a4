//! A tree as SQL, in the dialect of whoever is asked.

use super::tree::{
    Body, By, Call, Distinct, Expr, Group, Grouping, Join, Key, On, Query, Relation, Select, Test, Ties, Type, Window,
};

/// Whose SQL it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Tenaz,
    /// DataFusion without tenaz: the same words, but what tenaz promises about ties is written out, and what DataFusion means otherwise
    /// has other words.
    Direct,
    /// DuckDB: ties written out, and other names for some functions.
    Duck,
}

/// The statement; `None` where DuckDB has no word for a function.
pub fn sql(query: &Query, dialect: Dialect) -> Option<String> {
    Writer { dialect }.query(query, true)
}

#[derive(Clone, Copy)]
struct Writer {
    dialect: Dialect,
}

fn joined(parts: impl Iterator<Item = Option<String>>, between: &str) -> Option<String> {
    Some(parts.collect::<Option<Vec<String>>>()?.join(between))
}

impl Writer {
    fn query(self, query: &Query, outermost: bool) -> Option<String> {
        let mut text = String::new();
        if !query.with.is_empty() {
            let recursive = if query.with.iter().any(|table| table.recursive) { "RECURSIVE " } else { "" };
            let tables = query.with.iter().map(|table| {
                Some(format!(
                    "{}{} AS ({})",
                    table.name,
                    names(table.query.columns.len()),
                    self.query(&table.query, false)?
                ))
            });
            text += &format!("WITH {recursive}{} ", joined(tables, ", ")?);
        }
        text += &match &query.body {
            Body::Select(select) => self.select(select)?,
            Body::Set { operator, left, right } => {
                let (left, right) = (self.query(left, false)?, self.query(right, false)?);
                match operator.strip_suffix(" ALL") {
                    Some(of_copies @ ("INTERSECT" | "EXCEPT")) if self.dialect == Dialect::Direct => {
                        let columns = names(query.columns.len());
                        let columns = columns.trim_matches(['(', ')']);
                        // DataFusion does not count copies, so they are told apart.
                        let copies = |side: &str| {
                            format!(
                                "SELECT {columns}, row_number() OVER (PARTITION BY {columns}) AS copy FROM ({side}) AS s"
                            )
                        };
                        format!("SELECT {columns} FROM (({}) {of_copies} ({})) AS s", copies(&left), copies(&right))
                    }
                    _ => format!("({left}) {operator} ({right})"),
                }
            }
        };
        text += &self.order_and_limit(query, outermost)?;
        Some(text)
    }

    fn order_and_limit(self, query: &Query, outermost: bool) -> Option<String> {
        let cuts = query.limit.is_some() || query.offset.is_some();
        let mut keys: Vec<String> = query.order.iter().map(|key| self.key(key)).collect::<Option<_>>()?;
        let is_total = match query.ties {
            Ties::Columns => cuts || (outermost && !keys.is_empty()),
            Ties::File | Ties::None | Ties::Open => false,
        };
        if is_total && self.dialect != Dialect::Tenaz {
            let has_key = |column: usize| {
                query.order.iter().any(|key| matches!(key.by, By::Output(c) | By::Ordinal(c) if c == column))
            };
            let more = (0..query.columns.len()).filter(|&column| query.columns[column].is_plain() && !has_key(column));
            keys.extend(more.map(|column| format!("c{column} ASC NULLS LAST")));
        }
        let mut text = if keys.is_empty() { String::new() } else { format!(" ORDER BY {}", keys.join(", ")) };
        if let Some(limit) = query.limit {
            text += &format!(" LIMIT {limit}");
        }
        if let Some(offset) = query.offset {
            text += &format!(" OFFSET {offset}");
        }
        Some(text)
    }

    fn select(self, select: &Select) -> Option<String> {
        let distinct = match &select.distinct {
            Distinct::No => String::new(),
            Distinct::Rows => "DISTINCT ".to_owned(),
            Distinct::On(keys) => format!("DISTINCT ON ({}) ", self.exprs(keys)?),
        };
        let list = if select.star {
            select.exclude.as_ref().map_or("*".to_owned(), |column| format!("* EXCLUDE ({column})"))
        } else {
            let item = |(index, expr): (usize, &Expr)| Some(format!("{} AS c{index}", self.expr(expr)?));
            joined(select.list.iter().enumerate().map(item), ", ")?
        };
        let mut text = format!("SELECT {distinct}{list}");
        if !select.from.is_empty() {
            text += " FROM ";
        }
        for join in &select.from {
            text += &self.join(join)?;
        }
        for (word, condition) in [(" WHERE ", &select.filter)] {
            if let Some(condition) = condition {
                text += &format!("{word}{}", self.expr(condition)?);
            }
        }
        if let Some(group) = &select.group {
            text += &format!(" GROUP BY {}", self.group(group)?);
        }
        for (word, condition) in [(" HAVING ", &select.having), (" QUALIFY ", &select.qualify)] {
            if let Some(condition) = condition {
                text += &format!("{word}{}", self.expr(condition)?);
            }
        }
        Some(text)
    }

    fn group(self, group: &Group) -> Option<String> {
        Some(match group.how {
            Grouping::Plain => self.exprs(&group.keys)?,
            Grouping::Rollup => format!("ROLLUP ({})", self.exprs(&group.keys)?),
            Grouping::Cube => format!("CUBE ({})", self.exprs(&group.keys)?),
            Grouping::Sets => {
                let set = |set: &Vec<usize>| {
                    let keys = set.iter().map(|&key| self.expr(group.keys.get(key)?));
                    Some(format!("({})", joined(keys, ", ")?))
                };
                format!("GROUPING SETS ({})", joined(group.sets.iter().map(set), ", ")?)
            }
        })
    }

    fn join(self, join: &Join) -> Option<String> {
        let relation = self.relation(&join.relation)?;
        let kind = match (join.kind, self.dialect) {
            ("LEFT SEMI JOIN", Dialect::Duck) => "SEMI JOIN",
            ("LEFT ANTI JOIN", Dialect::Duck) => "ANTI JOIN",
            (kind, _) => kind,
        };
        let between = match kind {
            "" => String::new(),
            "," => ", ".to_owned(),
            kind => format!(" {kind} "),
        };
        let on = match &join.on {
            On::Nothing => String::new(),
            On::Condition(condition) => format!(" ON {}", self.expr(condition)?),
            On::Using(column) => format!(" USING ({column})"),
        };
        Some(format!("{between}{relation}{on}"))
    }

    fn relation(self, relation: &Relation) -> Option<String> {
        Some(match relation {
            Relation::Named { name, alias } => format!("{name} AS {alias}"),
            Relation::Derived { query, alias, lateral } => {
                format!("{}({}) AS {alias}", if *lateral { "LATERAL " } else { "" }, self.query(query, false)?)
            }
            Relation::Series { from, to, alias } => format!("generate_series({from}, {to}) AS {alias}(c0)"),
            Relation::Values { rows, alias } => {
                let row = |row: &Vec<Expr>| Some(format!("({})", self.exprs(row)?));
                let columns = names(rows.first().map_or(0, Vec::len));
                format!("(VALUES {}) AS {alias}{columns}", joined(rows.iter().map(row), ", ")?)
            }
        })
    }

    fn exprs(self, exprs: &[Expr]) -> Option<String> {
        joined(exprs.iter().map(|expr| self.expr(expr)), ", ")
    }

    fn expr(self, expr: &Expr) -> Option<String> {
        Some(match expr {
            Expr::Column { name, .. } => name.clone(),
            Expr::Literal { tenaz, duck, .. } => (if self.dialect == Dialect::Duck { duck } else { tenaz }).clone(),
            Expr::Call(call) => self.call(call)?,
            Expr::Case { operand, arms, otherwise, .. } => {
                let mut text = "CASE".to_owned();
                if let Some(operand) = operand {
                    text += &format!(" {}", self.expr(operand)?);
                }
                for (when, then) in arms {
                    text += &format!(" WHEN {} THEN {}", self.expr(when)?, self.expr(then)?);
                }
                if let Some(otherwise) = otherwise {
                    text += &format!(" ELSE {}", self.expr(otherwise)?);
                }
                text + " END"
            }
            Expr::Logic { word: "NOT", parts } => format!("(NOT {})", self.exprs(parts)?),
            Expr::Logic { word, parts } => {
                format!("({})", joined(parts.iter().map(|part| self.expr(part)), &format!(" {word} "))?)
            }
            Expr::InList { value, not, list } => {
                format!("({} {}IN ({}))", self.expr(value)?, if *not { "NOT " } else { "" }, self.exprs(list)?)
            }
            Expr::Subquery { test, query, .. } => self.subquery(test, query)?,
        })
    }

    fn subquery(self, test: &Test, query: &Query) -> Option<String> {
        let query = self.query(query, false)?;
        let negated = |not: &bool| if *not { "NOT " } else { "" };
        Some(match test {
            Test::Scalar => format!("({query})"),
            Test::Exists { not } => format!("({}EXISTS ({query}))", negated(not)),
            Test::In { value, not } => format!("({} {}IN ({query}))", self.expr(value)?, negated(not)),
            Test::Quantified { value, operator, word } => {
                format!("({} {operator} {word} ({query}))", self.expr(value)?)
            }
        })
    }

    fn key(self, key: &Key) -> Option<String> {
        let mut text = match &key.by {
            By::Output(column) => format!("c{column}"),
            By::Ordinal(column) => (column + 1).to_string(),
            By::Expr(expr) => self.expr(expr)?,
        };
        if key.descending {
            text += " DESC";
        }
        match key.nulls_first {
            Some(true) => text += " NULLS FIRST",
            Some(false) => text += " NULLS LAST",
            None => {}
        }
        Some(text)
    }

    fn keys(self, keys: &[Key]) -> Option<String> {
        joined(keys.iter().map(|key| self.key(key)), ", ")
    }

    fn window(self, window: &Window) -> Option<String> {
        let mut parts = Vec::new();
        if !window.partition.is_empty() {
            parts.push(format!("PARTITION BY {}", self.exprs(&window.partition)?));
        }
        if !window.order.is_empty() {
            parts.push(format!("ORDER BY {}", self.keys(&window.order)?));
        }
        if let Some(frame) = &window.frame {
            parts.push(format!("{} BETWEEN {} AND {}", frame.unit, frame.from, frame.to));
        }
        Some(format!(" OVER ({})", parts.join(" ")))
    }

    /// Fills a template: `{0}` … arguments, `{*}` all of them, `{d}` DISTINCT, `{o}` ORDER BY, `{n}` IGNORE NULLS, `{f}` FILTER and OVER,
    /// `{u0}` ten to the power of the scale of an argument, `{t}` the smallest value of the result's scale, `{s}` that scale, `{p}` what makes
    /// a quotient of the unscaled arguments one of that scale, `{regex1}` an argument as DuckDB writes it.
    fn call(self, call: &Call) -> Option<String> {
        let template = match self.dialect {
            Dialect::Tenaz => call.operation.tenaz,
            Dialect::Direct => call.operation.direct.unwrap_or(call.operation.tenaz),
            Dialect::Duck => call.operation.duck?,
        };
        let args: Vec<String> = call.args.iter().map(|arg| self.expr(arg)).collect::<Option<_>>()?;
        let mut tail = String::new();
        if let Some(filter) = &call.filter {
            tail += &format!(" FILTER (WHERE {})", self.expr(filter)?);
        }
        if let Some(window) = &call.over {
            tail += &self.window(window)?;
        }
        let order =
            if call.order.is_empty() { String::new() } else { format!(" ORDER BY {}", self.keys(&call.order)?) };
        let mut text = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}').expect("a template closes its braces");
            text += &rest[..open];
            match &rest[open + 1..close] {
                "d" => text += if call.distinct { "DISTINCT " } else { "" },
                "o" => text += &order,
                "n" => text += if call.ignore_nulls { " IGNORE NULLS" } else { "" },
                "f" => text += &tail,
                "*" => text += &args.join(", "),
                "s" => text += &scale(call.of).to_string(),
                "regex1" => text += &Writer { dialect: Dialect::Duck }.expr(call.args.get(1)?)?,
                "t" => text += &format!("CAST('1e-{0}' AS DECIMAL({1}, {0}))", scale(call.of), scale(call.of) + 1),
                "p" => {
                    let digits = |index: usize| call.args.get(index).map(|arg| scale(arg.of()));
                    let power = scale(call.of) + digits(1)? - digits(0)?;
                    text += &10_u128.pow(u32::from(power)).to_string();
                }
                power if power.starts_with('u') => {
                    let argument: usize = power[1..].parse().expect("the number of an argument");
                    text += &10_u128.pow(u32::from(scale(call.args.get(argument)?.of()))).to_string();
                }
                number => text += args.get(number.parse::<usize>().expect("the number of an argument"))?,
            }
            rest = &rest[close + 1..];
        }
        Some(text + rest)
    }
}

fn scale(of: Type) -> u8 {
    if let Type::Decimal(scale) = of { scale } else { 0 }
}

fn names(columns: usize) -> String {
    format!("({})", (0..columns).map(|column| format!("c{column}")).collect::<Vec<_>>().join(", "))
}
