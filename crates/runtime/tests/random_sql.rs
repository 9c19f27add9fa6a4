//! Random SQL over small random tables: tenaz gives the same bytes at all settings, and the answers of DataFusion and DuckDB.
//!
//! A failure names its seed. `scripts/random-sql --seed S --queries 8` runs that case alone, `scripts/random-sql --queries 1000000` looks
//! longer. What is known to differ, and why, is in `random/known_differences.rs`.

#[allow(dead_code, unreachable_pub, reason = "a module of tests has no outside")]
mod random;
mod staged;

use std::collections::BTreeSet;

use random::case::Case;
use random::judge::{Judgement, Kind, Opinions};
use random::operations::{self, Operation};
use random::rng::Rng;
use random::runs::{Ours, Settings};
use random::second_opinion::{self, SecondOpinion};
use random::settings;
use random::shrink::shrink;
use random::sql_text::{Dialect, sql};
use random::tables::{tables, type_of};
use random::tree::{Expr, Join, On, Query, Relation, Select, Type};
use random::value::Value;

#[allow(clippy::print_stderr, reason = "what a long search has found so far is for whoever waits")]
fn say(text: &str) {
    eprintln!("{text}");
}

#[test]
fn random_sql_has_one_answer_and_it_is_that_of_the_others() {
    settings::silence_panics_of_jobs();
    let search = settings::search(say, settings::ENOUGH_FAILURES_OF_A_TEST);
    if search.python.is_none() {
        say(
            "skipped: the second opinion on random SQL, because there is no DuckDB; scripts/second-opinion installs it",
        );
    }
    let report = search.run();
    say(&settings::shown(&report));
    let failures: Vec<String> =
        report.failures.values().map(|failure| format!("{} times:\n{}", failure.count, failure.text)).collect();
    assert!(failures.is_empty(), "{} differences\n\n{}", failures.len(), failures.join("\n"));
    // Otherwise the test would promise more than it does.
    assert!(report.answered() * 10 >= report.queries * 8, "too few queries were answered");
    assert!(report.queries < 100 || report.with_rows * 3 >= report.queries, "too few answers had rows");
}

#[test]
fn every_function_that_is_offered_is_generated_or_listed() {
    let functions = operations::session_functions();
    let generated: BTreeSet<&String> =
        operations::all().flat_map(operations::Operation::names).filter_map(|name| functions.get(&name)).collect();
    let listed: BTreeSet<&str> = operations::NOT_GENERATED.iter().map(|(name, _)| *name).collect();
    let all: BTreeSet<&String> = functions.values().collect();
    let forgotten: Vec<_> =
        all.iter().filter(|name| !generated.contains(**name) && !listed.contains(name.as_str())).collect();
    assert!(forgotten.is_empty(), "neither generated nor in not_generated.rs: {forgotten:?}");
    let superfluous: Vec<_> =
        listed.iter().filter(|name| generated.iter().any(|g| g == *name) || !all.iter().any(|a| a == *name)).collect();
    assert!(superfluous.is_empty(), "in not_generated.rs, but generated or not offered: {superfluous:?}");
}

/// Opinions on a query with one column of this type.
fn opinions(of: Type, ours: Value, direct: Value, duck: Value) -> (Query, Opinions) {
    let query = Query::select(Select::new(vec![Expr::literal("1", of)], Vec::new()));
    let settings = Settings::random(&mut Rng::new(1), 1);
    let answer = Ours { csv: format!("c0\n{ours}\n"), fingerprint: String::new(), values: vec![vec![ours]] };
    let ours = vec![(settings, Ok(answer.clone())), (settings, Ok(answer))];
    (query, Opinions { ours, direct: Ok(vec![vec![direct]]), duck: Some(Ok(vec![vec![duck]])) })
}

fn difference(of: Type, ours: Value, direct: Value, duck: Value) -> Option<Kind> {
    let (query, opinions) = opinions(of, ours, direct, duck);
    opinions.difference(&query).map(|(kind, _)| kind)
}

#[test]
fn the_last_digit_of_an_exact_type_counts() {
    let number = |digits| Value::Number(digits, 9);
    assert_eq!(difference(Type::Decimal(9), number(1), number(1), number(1)), None);
    assert_eq!(difference(Type::Decimal(9), number(1), number(1), number(2)), Some(Kind::AgainstDuck));
    assert_eq!(difference(Type::Decimal(9), number(1), number(2), number(2)), Some(Kind::Alone));
    let (half, more) = (Value::Float(0.5), Value::Float(0.5_f64.next_up()));
    assert_eq!(difference(Type::Float, half.clone(), half.clone(), more), Some(Kind::AgainstDuck));
    assert_eq!(difference(Type::Text, Value::Text("a".into()), Value::Null, Value::Null), Some(Kind::Alone));
    // A number and a text that reads like it are not the same.
    assert_eq!(
        difference(Type::Int, Value::Number(1, 0), Value::Number(1, 0), Value::Text("1".into())),
        Some(Kind::AgainstDuck)
    );
}

#[test]
fn statistics_may_differ_a_little_from_duckdb_and_from_nobody_else() {
    let (exact, near, far) = (Value::Float(0.1), Value::Float(0.1_f64.next_up()), Value::Float(0.1001));
    let of = Type::Approximate;
    assert_eq!(difference(of, exact.clone(), exact.clone(), near.clone()), None);
    assert_eq!(difference(of, exact.clone(), exact.clone(), far.clone()), Some(Kind::AgainstDuck));
    assert_eq!(difference(of, exact.clone(), far, exact.clone()), None, "DataFusion alone is not our fault");
    let (query, mut opinions) = opinions(of, exact.clone(), exact.clone(), exact);
    if let Ok(second) = &mut opinions.ours[1].1 {
        second.csv = format!("c0\n{near}\n");
    }
    assert_eq!(opinions.difference(&query).map(|(kind, _)| kind), Some(Kind::OwnRuns));
}

#[test]
fn what_everybody_reads_from_a_table_is_the_same() {
    let Some(python) = second_opinion::python() else { return };
    let mut second = SecondOpinion::new(python);
    let mut rng = Rng::new(1);
    let tables = tables(&mut rng);
    let case = Case { tables, queries: Vec::new() };
    for table in &case.tables {
        let list: Vec<Expr> = table
            .columns
            .iter()
            .map(|(name, _)| Expr::Column { name: format!("q.{name}"), of: type_of(name) })
            .collect();
        let relation = Relation::Named { name: table.name.to_owned(), alias: "q".to_owned() };
        let query = Query::select(Select::new(list, vec![Join { kind: "", relation, on: On::Nothing }]));
        let settings = [(); 2].map(|()| Settings::random(&mut rng, 1));
        let opinions = case.ask_alone(&query, &settings, Some(&mut second));
        let judged = opinions.judge(&query);
        assert!(
            matches!(judged, Judgement::Agreed { opinions: 3, rows } if rows == table.rows.len()),
            "{judged:?}: {opinions:?}"
        );
    }
}

#[test]
fn the_same_seed_is_the_same_case() {
    let texts = |seed| {
        let case = Case::random(&mut Rng::new(seed));
        let queries: Vec<_> = case.queries.iter().map(|query| sql(query, Dialect::Tenaz)).collect();
        format!("{:?}{queries:?}", case.tables)
    };
    assert_eq!(texts(7), texts(7));
    assert_ne!(texts(7), texts(8));
}

#[test]
fn a_planted_difference_is_found_and_made_smaller() {
    let Some(python) = second_opinion::python() else { return };
    // For whom the smallest value is the largest: a mistake that only answers with rows show.
    static PLANTED: Operation = Operation {
        tenaz: "min({0}){f}",
        direct: None,
        duck: Some("max({0}){f}"),
        takes: &[operations::Arg::Of(Type::Int)],
        gives: operations::Gives::Type(Type::Int),
    };
    let mut second = SecondOpinion::new(python);
    let mut rng = Rng::new(1);
    let mut case = Case::random(&mut rng);
    let relation = |name: &str| Relation::Named { name: name.to_owned(), alias: "q".to_owned() };
    let column = |name: &str| Expr::Column { name: format!("q.{name}"), of: type_of(name) };
    case.tables.retain(|table| table.rows.len() > 4);
    let name = case.tables.first().expect("a table with rows").name;
    let list = vec![column("i1"), Expr::call(&PLANTED, Type::Int, vec![column("i1")])];
    let mut select = Select::new(list.clone(), vec![Join { kind: "", relation: relation(name), on: On::Nothing }]);
    select.list[0] = Expr::literal("7", Type::Int);
    let query = Query::select(select);
    let settings = [(); 2].map(|()| Settings::random(&mut rng, 1));
    let found = case.ask_alone(&query, &settings, Some(&mut second)).difference(&query).expect("a difference");
    assert_eq!(found.0, Kind::AgainstDuck);
    let small = shrink(&case, &query, &found, &settings, Some(&mut second)).expect("it is still there");
    assert_eq!(small.query.columns.len(), 1);
    let rows: Vec<usize> = small.case.tables.iter().map(|table| table.rows.len()).collect();
    assert_eq!(rows.iter().sum::<usize>(), 2, "two values that differ: {rows:?}");
}
