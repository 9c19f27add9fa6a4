//! A search: many cases on several threads, with everything counted.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::case::Case;
use super::judge::{Judgement, Kind, Opinions};
use super::known_differences::{Finding, known};
use super::ledger::{Done, Ledger};
use super::report::{Failure, Report, class, describe};
use super::rng::Rng;
use super::second_opinion::SecondOpinion;
use super::shrink::shrink;
use super::sql_text::{Dialect, sql};
use super::tree::Query;

/// What to search.
#[derive(Debug)]
pub struct Search {
    pub first_seed: u64,
    /// At least so many queries.
    pub queries: u64,
    pub jobs: usize,
    /// Different failures after which it is enough.
    pub enough: usize,
    /// Whether failures are made smaller.
    pub shrinks: bool,
    /// Whether it is a failure, too, if only DuckDB answers.
    pub unanswered: bool,
    pub python: Option<std::path::PathBuf>,
    /// Called now and then with what is known so far.
    pub says: fn(&str),
    /// Errors that were made smaller already.
    pub seen: Mutex<BTreeSet<(Kind, String)>>,
    /// Where it is written down what was searched.
    pub ledger: Option<Ledger>,
}

/// What all threads know together.
struct SoFar {
    report: Report,
    done: Done,
    said: Instant,
}

impl Search {
    pub fn run(&self) -> Report {
        let next = AtomicU64::new(self.first_seed);
        let cases = self.queries.div_ceil(super::case::QUERIES as u64);
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let all =
            Mutex::new(SoFar { report: Report::default(), done: Done::from(self.first_seed), said: Instant::now() });
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    let mut second = self.python.clone().map(SecondOpinion::new);
                    while !stop.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= self.first_seed + cases {
                            break;
                        }
                        let report = self.check(seed, second.as_mut());
                        let mut guard = all.lock().expect("no thread panics with the report");
                        let SoFar { report: all, done, said } = &mut *guard;
                        done.add(seed);
                        for failure in report.failures.iter().filter(|(look, _)| !all.failures.contains_key(*look)) {
                            (self.says)(&failure.1.text);
                        }
                        all.add(report);
                        if all.failures.len() >= self.enough {
                            stop.store(true, Ordering::Relaxed);
                        }
                        if said.elapsed() > Duration::from_secs(60) {
                            *said = Instant::now();
                            let rate = all.queries as f64 / began.elapsed().as_secs_f64();
                            (self.says)(&format!("up to seed {seed}, {rate:.0} queries a second: {all}"));
                            self.write_down(all, done);
                        }
                    }
                });
            }
        });
        let SoFar { report, done, .. } = all.into_inner().expect("all threads have ended");
        self.write_down(&report, &done);
        report
    }

    fn write_down(&self, report: &Report, done: &Done) {
        if let Some(ledger) = &self.ledger {
            let queries = (done.end() - self.first_seed) * super::case::QUERIES as u64;
            let differences = report.failures.values().map(|failure| failure.count).sum();
            ledger.write(self.first_seed, done.end(), queries, differences);
        }
    }

    /// One case.
    fn check(&self, seed: u64, mut second: Option<&mut SecondOpinion>) -> Report {
        let mut rng = Rng::new(seed);
        let case = Case::random(&mut rng);
        let opinions = case.ask(&mut rng, second.as_deref_mut());
        let mut report = Report::default();
        for (query, opinions) in case.queries.iter().zip(&opinions) {
            report.queries += 1;
            let example = || format!("seed {seed}: {}", sql(query, Dialect::Tenaz).unwrap_or_default());
            let rows = match opinions.judge(query) {
                Judgement::Agreed { opinions: count, rows } => {
                    report.agreed[count] += 1;
                    if let Some(Err(error)) = &opinions.duck {
                        report.duck_fails.count(class(error), || {
                            format!("seed {seed}: {}", sql(query, Dialect::Duck).unwrap_or_default())
                        });
                    }
                    rows
                }
                Judgement::DataFusionAlone { rows, error } => {
                    let class = error.as_deref().map_or("another answer".to_owned(), class);
                    report.datafusion_alone.count(class, example);
                    rows
                }
                Judgement::NobodyAnswers { ours, duck, .. } => {
                    if self.unanswered && duck.is_none() && opinions.duck.is_some() {
                        self.note(&mut report, seed, Kind::Unanswered, &case, query, opinions, second.as_deref_mut());
                    }
                    let also = if duck.is_some() { "" } else { " (DuckDB answers)" };
                    report.nobody.count(class(&ours) + also, example);
                    0
                }
                Judgement::Different(kind) => {
                    let settings: Vec<_> = opinions.ours.iter().map(|(settings, _)| *settings).collect();
                    let mut again = |case: &Case| case.ask_alone(query, &settings, second.as_deref_mut());
                    let finding = Finding { kind, case: &case, query, opinions };
                    match known(&finding, &mut again) {
                        Some(known) => *report.known.entry(known.name).or_default() += 1,
                        None => self.note(&mut report, seed, kind, &case, query, opinions, second.as_deref_mut()),
                    }
                    0
                }
            };
            report.with_rows += u64::from(rows > 0);
        }
        report
    }

    fn is_new(&self, difference: &(Kind, String)) -> bool {
        self.seen.lock().expect("no thread panics with it").insert(difference.clone())
    }

    #[allow(clippy::too_many_arguments, reason = "all of it is one finding")]
    fn note(
        &self,
        report: &mut Report,
        seed: u64,
        kind: Kind,
        case: &Case,
        query: &Query,
        opinions: &Opinions,
        second: Option<&mut SecondOpinion>,
    ) {
        let settings: Vec<_> = opinions.ours.iter().map(|(settings, _)| *settings).collect();
        let error = opinions.ours.iter().find_map(|(_, ours)| ours.as_ref().err());
        let difference = (kind, error.map(|error| class(error)).unwrap_or_default());
        if error.is_some() && !self.is_new(&difference) {
            // One of a kind is enough to be made smaller.
            let look = format!("{kind:?}: {}", difference.1);
            report.failures.entry(look).or_default().count += 1;
            return;
        }
        let smaller = if self.shrinks { shrink(case, query, &difference, &settings, second) } else { None };
        let (look, text) = match &smaller {
            Some(small) => {
                let title = format!("{kind:?}, made smaller");
                (look(&small.query), describe(seed, &title, &small.case, &small.query, &small.opinions))
            }
            None => {
                let title =
                    format!("{kind:?}{}", if self.shrinks { ", only beside other queries or by luck" } else { "" });
                (look(query), describe(seed, &title, case, query, opinions))
            }
        };
        let look = match error {
            Some(error) => format!("{kind:?}: {}", class(error)),
            None => format!("{kind:?}: {look}"),
        };
        match report.failures.get_mut(&look) {
            Some(failure) => failure.count += 1,
            None => drop(report.failures.insert(look, Failure { count: 1, text })),
        }
    }
}

/// The SQL without names and numbers.
fn look(query: &Query) -> String {
    class(&sql(query, Dialect::Tenaz).unwrap_or_default().replace('\'', ""))
}
