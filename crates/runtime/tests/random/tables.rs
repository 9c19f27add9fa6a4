//! Random tables: few distinct values that meet often, nulls, copies of rows, tables with no row and with one.

use tenaz_csv::Kind;
use tenaz_engine::Role;

use super::rng::Rng;
use super::tree::Type;
use crate::staged::Rows;

/// Names of columns begin with the letter of their type.
const COLUMNS: [&str; 12] = ["i1", "i2", "i3", "s1", "s2", "d1", "d2", "x1", "x2", "f1", "y1", "z1"];
const NAMES: [(&str, Role); 5] =
    [("t", Role::Fact), ("u", Role::Fact), ("v", Role::Dimension), ("w", Role::Dimension), ("o", Role::Fact)];
const WORDS: [&str; 14] =
    ["x", "y", "xy", "zz", "X", "ab", "é", "12", "7", "x y", "ÉaB", "zebra 1999", "['x', 'y']", "yx%"];

/// The type of a column, by its name.
pub fn type_of(column: &str) -> Type {
    match &column[..1] {
        "i" => Type::Int,
        "s" => Type::Text,
        "d" => Type::Decimal(if column == "d1" { 2 } else { 4 }),
        "x" => Type::Float,
        "f" => Type::Bool,
        "y" => Type::Date,
        _ => Type::Timestamp,
    }
}

fn kind_of(column: &str) -> Kind {
    match type_of(column) {
        Type::Int => Kind::Int { float_text: false },
        Type::Decimal(scale) => Kind::Decimal { precision: 8, scale: scale as i8 },
        Type::Float => Kind::Float,
        Type::Bool => Kind::Bool { yes: vec!["true".to_owned()], no: vec!["false".to_owned()] },
        Type::Date => Kind::Date,
        Type::Timestamp => Kind::Timestamp,
        _ => Kind::Text,
    }
}

/// The name of a column's type in DuckDB.
pub fn duck_type(kind: &Kind) -> String {
    match kind {
        Kind::Int { .. } => "BIGINT".to_owned(),
        Kind::Decimal { precision, scale } => format!("DECIMAL({precision}, {scale})"),
        Kind::Float => "DOUBLE".to_owned(),
        Kind::Timestamp => "TIMESTAMP".to_owned(),
        Kind::Date => "DATE".to_owned(),
        Kind::Bool { .. } => "BOOLEAN".to_owned(),
        Kind::Text => "VARCHAR".to_owned(),
    }
}

/// Tables of a case. The last one has one row; any may have none.
pub fn tables(rng: &mut Rng) -> Vec<Rows> {
    // Once in a while a table has more rows than fit into a few chunks, and texts that do not fit into the least memory.
    let many = rng.one_in(40);
    let table = |(name, role): (&'static str, Role)| {
        let columns: Vec<&'static str> = COLUMNS.into_iter().filter(|name| *name == "i1" || !rng.one_in(4)).collect();
        let count = match (name, rng.below(12)) {
            ("o", _) => 1,
            (_, 0) => 0,
            (_, 1) => 1 + rng.below(2),
            ("t", _) if many => 200 + rng.below(1_000),
            (_, _) => 2 + rng.below(12),
        };
        let mut rows: Vec<Vec<Option<String>>> = Vec::new();
        for _ in 0..count {
            let copy = rng.one_in(6) && !rows.is_empty();
            rows.push(if copy { rng.pick(&rows).clone() } else { row(rng, &columns) });
            if many
                && let Some(text) = columns.iter().position(|name| *name == "s2")
                && let Some(Some(field)) = rows.last_mut().map(|row| &mut row[text])
            {
                *field += &" long".repeat(rng.below(80));
            }
        }
        Rows { name, role, columns: columns.into_iter().map(|name| (name, kind_of(name))).collect(), rows }
    };
    NAMES.into_iter().map(table).collect()
}

fn row(rng: &mut Rng, columns: &[&str]) -> Vec<Option<String>> {
    columns.iter().map(|column| if rng.one_in(6) { None } else { Some(field(rng, column)) }).collect()
}

fn field(rng: &mut Rng, column: &str) -> String {
    match column {
        "i1" => rng.below(6).to_string(),
        "i2" => (rng.below(20) as i64 - 10).to_string(),
        "i3" => (*rng.pick(&["-1000", "0", "3", "999", "12345", "1"])).to_owned(),
        "s1" => (*rng.pick(&WORDS[..4])).to_owned(),
        "s2" => (*rng.pick(&WORDS)).to_owned(),
        "d1" => format!("{}{}.{:02}", rng.pick(&["", "-"]), rng.below(9), rng.below(4) * 25),
        "d2" => format!("{}.{:04}", rng.below(100), rng.pick(&[0, 5, 3333, 1250, 9999])),
        "x1" => format!("{}{}", rng.pick(&["", "-"]), rng.below(40) as f64 / 4.0),
        "x2" => (*rng.pick(&["0.1", "0.2", "0.7", "3.3", "1e3", "0", "2.5"])).to_owned(),
        "f1" => (*rng.pick(&["true", "false"])).to_owned(),
        "y1" => format!("{}-{:02}-{:02}", rng.pick(&[1969, 2023, 2024]), 1 + rng.below(12), rng.pick(&[1, 28, 15])),
        _ => format!(
            "{}-0{}-{} {:02}:{:02}:{}",
            rng.pick(&[1970, 2024]),
            1 + rng.below(3),
            rng.pick(&["01", "28", "15"]),
            rng.below(24),
            rng.pick(&[0, 30, 59]),
            rng.pick(&["00", "59", "07.5", "00.000001"])
        ),
    }
}
