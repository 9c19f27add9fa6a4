//! SQL as a tree: written in several dialects (`sql_text.rs`), and made smaller when it shows a difference (`shrink.rs`).
//!
//! The columns of every query are named c0, c1, …; those of relations are qualified by an alias that is unique in the statement.

use super::operations::Operation;

/// The type of a value, as far as the generator must know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    Bool,
    Int,
    /// Digits behind the point.
    Decimal(u8),
    /// The same in every engine: sums of few binary fractions, correctly rounded operations.
    Float,
    /// A float whose last digits depend on how it is computed. It is only ever shown.
    Approximate,
    Text,
    Date,
    Timestamp,
    Ints,
    Texts,
}

impl Type {
    /// Equal but for the digits of decimals.
    pub fn is_like(self, other: Self) -> bool {
        matches!((self, other), (Self::Decimal(_), Self::Decimal(_))) || self == other
    }

    /// Whether every engine sorts, groups and compares its values in the same way.
    pub fn is_plain(self) -> bool {
        !matches!(self, Self::Approximate | Self::Ints | Self::Texts)
    }
}

#[derive(Debug, Clone)]
pub enum Expr {
    Column {
        name: String,
        of: Type,
    },
    /// A constant, as tenaz and as DuckDB write it.
    Literal {
        tenaz: String,
        duck: String,
        of: Type,
    },
    Call(Box<Call>),
    /// `CASE [operand] WHEN … THEN … [ELSE …] END`.
    Case {
        of: Type,
        operand: Option<Box<Expr>>,
        arms: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    /// `NOT …`, `… AND …`, `… OR …`.
    Logic {
        word: &'static str,
        parts: Vec<Expr>,
    },
    /// `… IN (…, …)`.
    InList {
        value: Box<Expr>,
        not: bool,
        list: Vec<Expr>,
    },
    Subquery {
        of: Type,
        test: Test,
        query: Box<Query>,
    },
}

/// What is asked of a subquery.
#[derive(Debug, Clone)]
pub enum Test {
    /// Its value.
    Scalar,
    Exists {
        not: bool,
    },
    In {
        value: Box<Expr>,
        not: bool,
    },
    /// `value < ANY (…)`.
    Quantified {
        value: Box<Expr>,
        operator: &'static str,
        word: &'static str,
    },
}

/// A call of a function or operator.
#[derive(Debug, Clone)]
pub struct Call {
    pub operation: &'static Operation,
    pub of: Type,
    pub args: Vec<Expr>,
    pub distinct: bool,
    /// `ORDER BY` of an aggregate's input.
    pub order: Vec<Key>,
    pub filter: Option<Expr>,
    pub ignore_nulls: bool,
    pub over: Option<Window>,
    /// SQL leaves the result open: it depends on the order of equal rows. Only our own runs must agree.
    pub open: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Window {
    pub partition: Vec<Expr>,
    pub order: Vec<Key>,
    pub frame: Option<Frame>,
}

#[derive(Debug, Clone)]
pub struct Frame {
    pub unit: &'static str,
    pub from: String,
    pub to: String,
}

#[derive(Debug, Clone)]
pub struct Key {
    pub by: By,
    pub descending: bool,
    /// `NULLS FIRST` or `NULLS LAST`; without it as PostgreSQL does.
    pub nulls_first: Option<bool>,
}

#[derive(Debug, Clone)]
pub enum By {
    /// A column of the query's own result, by name.
    Output(usize),
    /// The same, by its number.
    Ordinal(usize),
    Expr(Expr),
}

#[derive(Debug, Clone)]
pub struct Query {
    pub with: Vec<CommonTable>,
    pub body: Body,
    pub order: Vec<Key>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
    /// The types of its columns.
    pub columns: Vec<Type>,
    /// What a LIMIT without ties and order takes.
    pub ties: Ties,
}

/// Who decides which of several equal rows come first, or which rows a LIMIT takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// All columns of the result, as tenaz promises; the others are told so by a longer ORDER BY.
    Columns,
    /// The order of the file, as tenaz promises, and as the others do with one thread.
    File,
    /// The query itself: its order leaves no ties.
    None,
    /// Nobody. Only our own runs must agree.
    Open,
}

#[derive(Debug, Clone)]
pub struct CommonTable {
    pub name: String,
    pub recursive: bool,
    pub query: Query,
}

#[derive(Debug, Clone)]
pub enum Body {
    Select(Box<Select>),
    Set { operator: &'static str, left: Box<Query>, right: Box<Query> },
}

#[derive(Debug, Clone)]
pub struct Select {
    pub distinct: Distinct,
    /// `SELECT *` of its only relation instead of the list, which names the same columns.
    pub star: bool,
    /// A column that the star leaves out.
    pub exclude: Option<String>,
    pub list: Vec<Expr>,
    pub from: Vec<Join>,
    pub filter: Option<Expr>,
    pub group: Option<Group>,
    pub having: Option<Expr>,
    pub qualify: Option<Expr>,
}

#[derive(Debug, Clone)]
pub enum Distinct {
    No,
    Rows,
    On(Vec<Expr>),
}

#[derive(Debug, Clone)]
pub struct Group {
    pub how: Grouping,
    pub keys: Vec<Expr>,
    /// For grouping sets: the numbers of the keys of each set.
    pub sets: Vec<Vec<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    Plain,
    Rollup,
    Cube,
    Sets,
}

/// A relation of a FROM clause and how it is joined to those before it.
#[derive(Debug, Clone)]
pub struct Join {
    /// Empty for the first one.
    pub kind: &'static str,
    pub relation: Relation,
    pub on: On,
}

#[derive(Debug, Clone)]
pub enum On {
    Nothing,
    Condition(Expr),
    Using(String),
}

#[derive(Debug, Clone)]
pub enum Relation {
    /// A table or common table.
    Named {
        name: String,
        alias: String,
    },
    Derived {
        query: Box<Query>,
        alias: String,
        lateral: bool,
    },
    Values {
        rows: Vec<Vec<Expr>>,
        alias: String,
    },
    /// `generate_series(from, to)`.
    Series {
        from: i64,
        to: i64,
        alias: String,
    },
}

impl Expr {
    pub fn of(&self) -> Type {
        match self {
            Self::Column { of, .. } | Self::Literal { of, .. } | Self::Case { of, .. } | Self::Subquery { of, .. } => {
                *of
            }
            Self::Call(call) => call.of,
            Self::Logic { .. } | Self::InList { .. } => Type::Bool,
        }
    }

    /// A constant that all dialects write alike.
    pub fn literal(text: impl Into<String>, of: Type) -> Self {
        let text = text.into();
        Self::Literal { tenaz: text.clone(), duck: text, of }
    }

    pub fn call(operation: &'static Operation, of: Type, args: Vec<Expr>) -> Self {
        Self::Call(Box::new(Call::new(operation, of, args)))
    }

    pub fn is_literal(&self) -> bool {
        matches!(self, Self::Literal { .. })
    }
}

impl Call {
    pub fn new(operation: &'static Operation, of: Type, args: Vec<Expr>) -> Self {
        Self {
            operation,
            of,
            args,
            distinct: false,
            order: Vec::new(),
            filter: None,
            ignore_nulls: false,
            over: None,
            open: false,
        }
    }
}

impl Query {
    /// A SELECT without order and limit.
    pub fn select(select: Select) -> Self {
        let columns = select.list.iter().map(Expr::of).collect();
        Self {
            with: Vec::new(),
            body: Body::Select(Box::new(select)),
            order: Vec::new(),
            limit: None,
            offset: None,
            columns,
            ties: Ties::Columns,
        }
    }
}

impl Select {
    pub fn new(list: Vec<Expr>, from: Vec<Join>) -> Self {
        Self {
            distinct: Distinct::No,
            star: false,
            exclude: None,
            list,
            from,
            filter: None,
            group: None,
            having: None,
            qualify: None,
        }
    }
}

impl Key {
    pub fn ascending(by: By) -> Self {
        Self { by, descending: false, nulls_first: None }
    }
}
