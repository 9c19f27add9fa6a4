//! Some queries over the same tables, answered by everybody.

use std::path::Path;
use std::sync::Arc;

use datafusion::prelude::SessionContext;

use super::generator;
use super::judge::Opinions;
use super::rng::Rng;
use super::runs::{self, Ours, Settings};
use super::second_opinion::SecondOpinion;
use super::sql_text::{Dialect, sql};
use super::tables::tables;
use super::tree::Query;
use super::value::Answer;
use crate::staged::{Rows, direct_context, workload, write_files};

/// Queries of a case: they share its tables, and in some jobs the reading of them.
pub const QUERIES: usize = 8;

/// Tables and queries over them.
#[derive(Debug, Clone)]
pub struct Case {
    pub tables: Vec<Rows>,
    pub queries: Vec<Query>,
}

impl Case {
    pub fn random(rng: &mut Rng) -> Self {
        let tables = tables(rng);
        let queries = (0..QUERIES).map(|_| generator::query(rng, &tables)).collect();
        Self { tables, queries }
    }

    /// About how many bytes all tables have.
    pub fn bytes(&self) -> usize {
        let fields = self.tables.iter().flat_map(|table| table.rows.iter().flatten());
        fields.map(|field| field.as_ref().map_or(1, |text| text.len() + 1)).sum()
    }

    /// Asks everybody about all queries. tenaz runs each of them at two settings, in one job with the others or alone.
    pub fn ask(&self, rng: &mut Rng, second: Option<&mut SecondOpinion>) -> Vec<Opinions> {
        let files = Files::new(&self.tables);
        let mut second = second;
        let questions: Vec<Option<String>> = self.queries.iter().map(|query| sql(query, Dialect::Duck)).collect();
        let asked: Vec<String> = questions.iter().flatten().cloned().collect();
        if let Some(second) = &mut second {
            second.load(&self.tables);
            second.send(&asked);
        }
        let direct: Vec<Result<Answer, String>> = self.queries.iter().map(|query| files.direct(query)).collect();
        let settings = [(); 2].map(|()| Settings::random(rng, self.bytes()));
        // What DataFusion cannot answer would most likely fail the job of the others.
        let (together, alone): (Vec<usize>, Vec<usize>) = (0..self.queries.len()).partition(|&i| direct[i].is_ok());
        let mut ours: Vec<Vec<(Settings, Result<Ours, String>)>> = vec![Vec::new(); self.queries.len()];
        let first = files.staged(together.iter().map(|&i| &self.queries[i]), &[settings[0]]);
        let both_together = rng.one_in(2);
        let second_run = match (&first, both_together) {
            (Ok(_), true) => files.staged(together.iter().map(|&i| &self.queries[i]), &[settings[1]]).ok(),
            _ => None,
        };
        for runs in [first.ok(), second_run].into_iter().flatten() {
            for (place, &index) in together.iter().enumerate() {
                let (settings, answers) = &runs[0];
                ours[index].push((*settings, Ok(answers[place].clone())));
            }
        }
        for index in together.into_iter().chain(alone) {
            let missing = &settings[ours[index].len()..];
            if !missing.is_empty() {
                let runs = files.alone(&self.queries[index], missing);
                ours[index].extend(runs);
            }
        }
        let mut answers = match second {
            Some(second) => second.receive(asked.len()),
            None => Vec::new(),
        }
        .into_iter();
        let duck = questions.iter().map(|question| question.as_ref().and_then(|_| answers.next()));
        let all = ours.into_iter().zip(direct).zip(duck);
        all.map(|((ours, direct), duck)| Opinions { ours, direct, duck }).collect()
    }

    /// Asks everybody about one query, which runs alone, at these settings.
    pub fn ask_alone(&self, query: &Query, settings: &[Settings], second: Option<&mut SecondOpinion>) -> Opinions {
        let files = Files::new(&self.tables);
        let ours = files.alone(query, settings);
        let direct = files.direct(query);
        let duck = second.and_then(|second| {
            let question = sql(query, Dialect::Duck)?;
            second.load(&self.tables);
            Some(second.ask(&question))
        });
        Opinions { ours, direct, duck }
    }
}

/// The tables on disk and in a session.
struct Files<'c> {
    tables: &'c [Rows],
    dir: tempfile::TempDir,
    context: SessionContext,
}

type Run = (Settings, Vec<Ours>);

impl<'c> Files<'c> {
    fn new(tables: &'c [Rows]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        write_files(tables, dir.path());
        Self { tables, dir, context: direct_context(tables) }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn direct(&self, query: &Query) -> Result<Answer, String> {
        runs::direct(&self.context, &sql(query, Dialect::Direct).expect("only DuckDB lacks words"))
    }

    /// All queries in one job, run at each of these settings.
    fn staged<'q>(&self, queries: impl Iterator<Item = &'q Query>, settings: &[Settings]) -> Result<Vec<Run>, String> {
        let texts: Vec<String> =
            queries.map(|query| sql(query, Dialect::Tenaz).expect("only DuckDB lacks words")).collect();
        if texts.is_empty() {
            return Ok(settings.iter().map(|settings| (*settings, Vec::new())).collect());
        }
        let workload = Arc::new(workload(self.tables, texts.iter().map(String::as_str)));
        let plan = runs::plan(&workload)?;
        settings.iter().map(|&at| Ok((at, runs::staged(&workload, &plan, self.path(), at)?))).collect()
    }

    fn alone(&self, query: &Query, settings: &[Settings]) -> Vec<(Settings, Result<Ours, String>)> {
        let text = sql(query, Dialect::Tenaz).expect("only DuckDB lacks words");
        let workload = Arc::new(workload(self.tables, [text.as_str()]));
        let plan = runs::plan(&workload);
        let run = |&at: &Settings| {
            let answers = plan.clone().and_then(|plan| runs::staged(&workload, &plan, self.path(), at));
            (at, answers.map(|mut answers| answers.remove(0)))
        };
        settings.iter().map(run).collect()
    }
}
