//! Whether three opinions agree.

use super::runs::{Ours, Settings};
use super::tree::{Query, Type};
use super::value::{Answer, Value, compare_rows};
use crate::staged::is_clean;

/// What everybody said of one query.
#[derive(Debug, Clone)]
pub struct Opinions {
    /// tenaz, at several settings.
    pub ours: Vec<(Settings, Result<Ours, String>)>,
    pub direct: Result<Answer, String>,
    /// DuckDB; `None` if it was not asked.
    pub duck: Option<Result<Answer, String>>,
}

/// How they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// tenaz differs from itself.
    OwnRuns,
    /// An error that is a fault of ours.
    Fault,
    /// tenaz fails where DataFusion answers.
    Refused,
    /// tenaz and DataFusion fail where DuckDB answers. It is counted, and only looked into when asked for.
    Unanswered,
    /// tenaz alone says so; DataFusion and DuckDB agree.
    Alone,
    /// All three differ, or two and nobody else knows.
    Disputed,
    /// tenaz and DataFusion agree; DuckDB does not.
    AgainstDuck,
}

/// What is made of it.
#[derive(Debug, Clone)]
pub enum Judgement {
    /// So many agree, with so many rows.
    Agreed {
        opinions: usize,
        rows: usize,
    },
    /// tenaz and DuckDB agree; DataFusion says something else, or fails with this.
    DataFusionAlone {
        rows: usize,
        error: Option<String>,
    },
    /// tenaz and DataFusion fail; DuckDB, if it answers, is alone.
    NobodyAnswers {
        ours: String,
        direct: String,
        duck: Option<String>,
    },
    Different(Kind),
}

impl Opinions {
    /// The kind of difference, and the class of tenaz's error: enough to tell whether two cases show the same.
    pub fn difference(&self, query: &Query) -> Option<(Kind, String)> {
        let error = self.ours.iter().find_map(|(_, ours)| ours.as_ref().err());
        let class = error.map(|error| super::report::class(error)).unwrap_or_default();
        match self.judge(query) {
            Judgement::Different(kind) => Some((kind, class)),
            Judgement::NobodyAnswers { duck: None, .. } => Some((Kind::Unanswered, class)),
            _ => None,
        }
    }

    pub fn judge(&self, query: &Query) -> Judgement {
        let (_, first) = &self.ours[0];
        if self.ours.iter().any(|(_, other)| !same_bytes(first, other)) {
            return Judgement::Different(Kind::OwnRuns);
        }
        match first {
            Ok(ours) => self.judge_answer(query, ours),
            Err(error) if !is_clean(error) => Judgement::Different(Kind::Fault),
            Err(error) => match (&self.direct, &self.duck) {
                (Ok(_), _) => Judgement::Different(Kind::Refused),
                (Err(direct), duck) => Judgement::NobodyAnswers {
                    ours: error.clone(),
                    direct: direct.clone(),
                    duck: duck.as_ref().and_then(|duck| duck.as_ref().err().cloned()),
                },
            },
        }
    }

    fn judge_answer(&self, query: &Query, ours: &Ours) -> Judgement {
        let rows = ours.values.len();
        if super::walk::is_open(query) {
            return Judgement::Agreed { opinions: 1, rows };
        }
        let with_direct = self.direct.as_ref().ok().map(|direct| is_same(query, &ours.values, direct, false));
        let duck = self.duck.as_ref().and_then(|duck| duck.as_ref().ok());
        let with_duck = duck.map(|duck| is_same(query, &ours.values, duck, true));
        match (with_direct, with_duck) {
            (Some(true), Some(true)) => Judgement::Agreed { opinions: 3, rows },
            (Some(true), None) => Judgement::Agreed { opinions: 2, rows },
            (Some(true), Some(false)) => Judgement::Different(Kind::AgainstDuck),
            (Some(false) | None, Some(true)) => {
                Judgement::DataFusionAlone { rows, error: self.direct.as_ref().err().cloned() }
            }
            (None, None) => Judgement::Agreed { opinions: 1, rows },
            (Some(false), Some(false)) => {
                let (Ok(direct), Some(duck)) = (&self.direct, duck) else { unreachable!("both answered") };
                let alone = is_same(query, direct, duck, true);
                Judgement::Different(if alone { Kind::Alone } else { Kind::Disputed })
            }
            (Some(false), None) | (None, Some(false)) => Judgement::Different(Kind::Disputed),
        }
    }
}

fn same_bytes(one: &Result<Ours, String>, other: &Result<Ours, String>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one.csv == other.csv && one.fingerprint == other.fingerprint,
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

/// The same rows, in the same order if the query has one.
pub fn is_same(query: &Query, one: &Answer, other: &Answer, statistics_about: bool) -> bool {
    let is_ordered = !query.order.is_empty() && query.columns.iter().all(|of| of.is_plain());
    let same_row = |one: &[Value], other: &[Value]| {
        one.len() == other.len()
            && one.iter().zip(other).zip(&query.columns).all(|((one, other), of)| match of {
                Type::Approximate if statistics_about => one.is_about(other),
                _ => one.is_exactly(other),
            })
    };
    if one.len() != other.len() {
        return false;
    }
    if is_ordered {
        return one.iter().zip(other).all(|(one, other)| same_row(one, other));
    }
    // Statistics come last: among rows that are equal but for them, those of both sides are in nearly the same order.
    let sorted = |answer: &Answer| {
        let mut rows: Vec<(Vec<Value>, &Vec<Value>)> = answer
            .iter()
            .map(|row| {
                let of = |index: usize| query.columns.get(index) == Some(&Type::Approximate);
                let (last, first): (Vec<usize>, Vec<usize>) = (0..row.len()).partition(|&index| of(index));
                (first.into_iter().chain(last).map(|index| row[index].clone()).collect(), row)
            })
            .collect();
        rows.sort_by(|(one, _), (other, _)| compare_rows(one, other));
        rows.into_iter().map(|(_, row)| row.clone()).collect::<Answer>()
    };
    sorted(one).iter().zip(&sorted(other)).all(|(one, other)| same_row(one, other))
}
