//! Differences that are known, each with its reason. What is not in this list fails the test.
//!
//! An entry matches as narrowly as it can: by the kind of difference, by the words of the SQL, by the text of an error. Every run
//! prints how often each was met.

use super::judge::{Kind, Opinions};
use super::tree::Query;

/// Who is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// tenaz means something else, or refuses, on purpose.
    OurChoice,
    /// DataFusion is wrong, and tenaz refuses or has it from there.
    DataFusion,
    /// DuckDB is wrong, or means something else.
    DuckDb,
    /// To be mended: an entry that must be gone before a search counts.
    Temporary,
}

/// A difference and all that a known one may look at.
pub struct Finding<'f> {
    pub kind: Kind,
    pub query: &'f Query,
    /// As tenaz was asked.
    pub sql: &'f str,
    pub opinions: &'f Opinions,
}

impl Finding<'_> {
    /// The text of tenaz's error.
    pub fn error(&self) -> &str {
        self.opinions.ours.iter().find_map(|(_, ours)| ours.as_ref().err()).map_or("", String::as_str)
    }

    pub fn duck_error(&self) -> &str {
        match &self.opinions.duck {
            Some(Err(error)) => error,
            _ => "",
        }
    }
}

/// A known difference.
pub struct Known {
    pub name: &'static str,
    pub whose: Whose,
    pub reason: &'static str,
    pub matches: fn(&Finding<'_>) -> bool,
}

const fn temporary(name: &'static str, matches: fn(&Finding<'_>) -> bool) -> Known {
    Known { name, whose: Whose::Temporary, reason: "issue 14", matches }
}

pub const KNOWN: &[Known] = &[
    temporary("DISTINCT ON loses its order", |f| {
        matches!(f.kind, Kind::Alone | Kind::Disputed) && f.sql.contains("DISTINCT ON")
    }),
    temporary("exponents", |f| ["1e3", "1e2", "5e-1"].iter().any(|text| f.sql.contains(text))),
    temporary("SIMILAR TO", |f| f.sql.contains("SIMILAR TO")),
    temporary("statistics depend on the order", |f| {
        f.kind == Kind::OwnRuns
            && ["regr_", "corr(", "stddev", "var", "covar", "approx_", "any_value"]
                .iter()
                .any(|name| f.sql.contains(name))
    }),
    temporary("lists have no order", |f| f.kind == Kind::OwnRuns && f.query.columns.iter().any(|of| !of.is_plain())),
    temporary("open windows", |f| f.kind == Kind::OwnRuns && super::walk::is_open(f.query)),
    temporary("decimal division", |f| f.sql.contains(", 0.0))")),
    temporary("EXCLUDE", |f| f.sql.contains("EXCLUDE")),
    temporary("nvl", |f| f.sql.contains("nvl")),
    temporary("INTERSECT ALL and EXCEPT ALL", |f| f.sql.contains("INTERSECT ALL") || f.sql.contains("EXCEPT ALL")),
    temporary("guarded division", |f| f.error().contains("Divide by zero")),
    temporary("subqueries", |f| f.error().contains("ScalarSubquery")),
    temporary("grouping sets of casts", |f| f.error().contains("GroupingSet")),
    temporary("sort by partly monotonic", |f| f.error().contains("does not satisfy order requirements")),
    temporary("repeated keys", |f| {
        f.error().contains("left == right") || f.error().contains("column types must match")
    }),
    temporary("DISTINCT ON below a union", |f| f.error().contains("field nullability")),
];

/// The known difference that this one is.
pub fn known(finding: &Finding<'_>) -> Option<&'static Known> {
    KNOWN.iter().find(|known| (known.matches)(finding))
}
