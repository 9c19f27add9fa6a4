//! Functions and operators that random SQL uses: what they take and give, and how tenaz and DuckDB write them.
//!
//! A test (`every_function_that_is_offered_is_generated_or_listed`) compares these tables with the functions of a session.

mod aggregates;
mod dates;
mod lists;
mod not_generated;
mod numbers;
mod predicates;
mod texts;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::tree::{Expr, Type};

pub use aggregates::{AGGREGATES, ORDERED_AGGREGATES};
pub use not_generated::NOT_GENERATED;
pub use predicates::COMPARISONS;
pub use windows::{NAVIGATION, RANKING};

/// A function or operator.
#[derive(Debug)]
pub struct Operation {
    /// How tenaz and DataFusion write it; `sql_text.rs` says what stands in braces.
    pub tenaz: &'static str,
    /// How DataFusion is told the same where it means something else by those words.
    pub direct: Option<&'static str>,
    /// How DuckDB does; `None`: it has nothing of the same meaning.
    pub duck: Option<&'static str>,
    pub takes: &'static [Arg],
    pub gives: Gives,
}

/// An argument.
#[derive(Debug, Clone, Copy)]
pub enum Arg {
    Of(Type),
    /// The type of the result.
    Same,
    /// Whatever can be sorted and compared.
    Plain,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, as tenaz and as DuckDB write it.
    Pairs(&'static [(&'static str, &'static str)]),
}

/// The type of a result.
#[derive(Debug, Clone, Copy)]
pub enum Gives {
    Type(Type),
    /// That of an argument.
    Argument(usize),
    /// A decimal with the most digits behind the point of all arguments.
    Widest,
    /// A decimal with all digits behind the point of two arguments.
    Product,
    /// A decimal of nine digits more than the argument.
    Average,
    /// A decimal of nine digits more than the longer of both, but at most 18.
    Quotient,
    /// Any type that can be sorted and compared, that of the arguments which are [`Arg::Same`].
    Any,
}

/// Written the same by both.
const fn both(text: &'static str, takes: &'static [Arg], gives: Gives) -> Operation {
    Operation { tenaz: text, direct: None, duck: Some(text), takes, gives }
}

/// Written differently.
const fn pair(tenaz: &'static str, duck: &'static str, takes: &'static [Arg], gives: Gives) -> Operation {
    Operation { tenaz, direct: None, duck: Some(duck), takes, gives }
}

/// Unknown to DuckDB.
const fn ours(tenaz: &'static str, takes: &'static [Arg], gives: Gives) -> Operation {
    Operation { tenaz, direct: None, duck: None, takes, gives }
}

impl Operation {
    /// The same, which DataFusion is told in other words.
    const fn told(self, direct: &'static str) -> Self {
        Self { direct: Some(direct), ..self }
    }

    /// The functions it calls, by tenaz's names.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let text = self.tenaz.to_ascii_lowercase();
        let before: Vec<String> = text
            .match_indices('(')
            .map(|(at, _)| text[..at].chars().rev().take_while(|c| is_part(*c)).collect::<String>())
            .map(|name| name.chars().rev().collect::<String>())
            .filter(|name| !name.is_empty())
            .collect();
        before.into_iter()
    }

    /// Whether it can give this type.
    pub fn gives_like(&self, of: Type) -> bool {
        match self.gives {
            Gives::Type(gives) => gives.is_like(of),
            Gives::Argument(index) => match self.takes[index] {
                Arg::Of(takes) => takes.is_like(of),
                _ => false,
            },
            Gives::Widest | Gives::Product | Gives::Average | Gives::Quotient => matches!(of, Type::Decimal(_)),
            Gives::Any => of.is_plain(),
        }
    }

    /// The type of a call with these arguments.
    pub fn result(&self, args: &[Expr], wanted: Type) -> Type {
        let scales = args.iter().filter_map(|arg| match arg.of() {
            Type::Decimal(scale) => Some(scale),
            _ => None,
        });
        match self.gives {
            Gives::Type(of) => of,
            Gives::Argument(index) => args[index].of(),
            Gives::Widest => Type::Decimal(scales.max().unwrap_or(0)),
            Gives::Product => Type::Decimal(scales.sum()),
            Gives::Average => Type::Decimal(scales.max().unwrap_or(0) + 9),
            Gives::Quotient => {
                let longer = scales.max().unwrap_or(0);
                Type::Decimal((longer + 9).min(18).max(longer))
            }
            Gives::Any if matches!(wanted, Type::Decimal(_)) => Type::Decimal(scales.max().unwrap_or(0)),
            Gives::Any => wanted,
        }
    }
}

/// All functions of single rows that are offered.
pub fn scalars() -> impl Iterator<Item = &'static Operation> {
    static OFFERED: LazyLock<Vec<&'static Operation>> =
        LazyLock::new(|| every_scalar().filter(|operation| operation.names().all(|name| offers(&name))).collect());
    OFFERED.iter().copied()
}

/// Whether a session knows a function. What looks like one and is none in any session counts as known.
fn offers(name: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| session_functions().into_keys().collect());
    SYNTAX.contains(&name) || NAMES.contains(name)
}

/// Words that stand before a parenthesis and are no functions.
const SYNTAX: [&str; 7] = ["cast", "try_cast", "decimal", "in", "extract", "group", "from"];

/// The functions of a session and what they are called in the first place.
pub fn session_functions() -> BTreeMap<String, String> {
    let context = crate::staged::direct_context(&[]);
    let state = context.state();
    let scalars = state.scalar_functions().iter().map(|(name, f)| (name.clone(), f.name().to_owned()));
    let aggregates = state.aggregate_functions().iter().map(|(name, f)| (name.clone(), f.name().to_owned()));
    let windows = state.window_functions().iter().map(|(name, f)| (name.clone(), f.name().to_owned()));
    scalars.chain(aggregates).chain(windows).collect()
}

fn every_scalar() -> impl Iterator<Item = &'static Operation> {
    let tables = [
        numbers::INTEGERS,
        numbers::DECIMALS,
        numbers::FLOATS,
        numbers::APPROXIMATE,
        numbers::CHOICES,
        texts::TEXTS,
        texts::OURS,
        dates::DATES,
        lists::LISTS,
        predicates::PREDICATES,
    ];
    tables.into_iter().flatten()
}

/// What only stands at its own place.
pub const SPECIAL: &[Operation] = &[
    both("CAST(grouping({0}) AS BIGINT)", &[Arg::Plain], Gives::Type(Type::Int)),
    both("unnest({0})", &[Arg::Of(Type::Ints)], Gives::Type(Type::Int)),
];

/// All that there are, for the test that none is forgotten.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    every_scalar()
        .chain(AGGREGATES)
        .chain(ORDERED_AGGREGATES)
        .chain(RANKING)
        .chain(NAVIGATION)
        .chain(COMPARISONS)
        .chain(SPECIAL)
}
