//! Rows, and the exact functions that tasks apply to them.

use std::collections::BTreeMap;

use tenaz_core::{FailedStages, Header, Lineage, Source, StageId};

use crate::engine::LogBytes;

/// A row: as little as suffices to be grouped, joined and summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    /// What it is partitioned by.
    pub(crate) key: u32,
    /// What is summed.
    pub(crate) value: i64,
}

/// What a stage does. The order of its rows follows the order of its input, so that two workers that got their input in
/// different orders make different bytes of the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// The rows as they are.
    Scan,
    /// Rows with an even value.
    Even,
    /// The sum of the values of each key.
    Sum,
    /// As `Sum`, and then the sums become keys: rows move on to other partitions.
    SumAndRekey,
    /// How many rows each key has.
    Count,
    /// Pairs of rows of the two inputs with the same key.
    Join,
    /// Rows whose key is in the broadcast rows, with the value found there added.
    Lookup,
    /// The largest values.
    Top(usize),
}

impl Op {
    /// The rows made of `inputs`, one list per edge read, and of the broadcast rows.
    pub(crate) fn apply(self, inputs: &[Vec<Row>], broadcast: &[Row]) -> Vec<Row> {
        let all = || inputs.iter().flatten().copied();
        match self {
            Self::Scan => all().collect(),
            Self::Even => all().filter(|row| row.value % 2 == 0).collect(),
            Self::Sum => grouped(all()),
            Self::SumAndRekey => grouped(all())
                .into_iter()
                .map(|row| Row { key: row.value.rem_euclid(5) as u32, value: i64::from(row.key) })
                .collect(),
            Self::Count => grouped(all().map(|row| Row { value: 1, ..row })),
            Self::Join => {
                let [left, right] = inputs else { return Vec::new() };
                let pairs = left.iter().flat_map(|l| right.iter().filter(|r| r.key == l.key).map(move |r| (l, r)));
                pairs.map(|(l, r)| Row { key: l.key, value: l.value * 1_000 + r.value }).collect()
            }
            Self::Lookup => all()
                .filter(|row| broadcast.iter().any(|known| known.key == row.key))
                .map(|row| {
                    let found: i64 =
                        broadcast.iter().filter(|known| known.key == row.key).map(|known| known.value).sum();
                    Row { value: row.value + found, ..row }
                })
                .collect(),
            Self::Top(n) => {
                let mut rows: Vec<Row> = all().collect();
                rows.sort_by_key(|row| (std::cmp::Reverse(row.value), row.key));
                rows.truncate(n);
                rows
            }
        }
    }
}

fn grouped(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    let mut place: BTreeMap<u32, usize> = BTreeMap::new();
    let mut sums: Vec<Row> = Vec::new();
    for row in rows {
        match place.get(&row.key) {
            Some(&at) => sums[at].value += row.value,
            None => {
                place.insert(row.key, sums.len());
                sums.push(row);
            }
        }
    }
    sums
}

/// A message of a log: its header and the rows it carries, each with the edge it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// What it says about itself.
    pub(crate) header: Header,
    /// Rows and their edges.
    pub(crate) rows: Vec<(StageId, Row)>,
    /// The account of a chunk: how many records it had. In the first part of its message to the results only.
    pub(crate) records: Option<u64>,
    /// Stages whose rows would be here if they had not failed. In the first part.
    pub(crate) failed: FailedStages,
    /// The message of a real engine: it carries all of that itself.
    pub(crate) real: Option<LogBytes>,
}

impl Message {
    /// A message of a real engine.
    pub(crate) fn of_real(header: Header, real: LogBytes) -> Self {
        Self { header, rows: Vec::new(), records: None, failed: FailedStages::default(), real: Some(real) }
    }

    /// Whether it only hints at rows that come again.
    pub(crate) fn is_early(&self) -> bool {
        self.real.as_ref().is_some_and(|real| real.is_early)
    }
}

/// What a task has made.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskRows {
    /// The rows of each stage.
    pub(crate) rows: Vec<(StageId, Vec<Row>)>,
    /// Stages that have no rows.
    pub(crate) failed: FailedStages,
}

/// A task's output for one log, cut into messages of at most `rows_per_part` rows.
pub(crate) fn cut(
    (source, lineage): (Source, Lineage),
    rows: &[(StageId, Row)],
    (records, failed): (Option<u64>, &FailedStages),
    rows_per_part: usize,
) -> Vec<Message> {
    let content = digest(lineage, rows);
    let parts = rows.len().div_ceil(rows_per_part).max(1);
    let slice = |part: usize| rows.iter().skip(part * rows_per_part).take(rows_per_part).copied().collect();
    (0..parts)
        .map(|part| Message {
            header: Header { source, content, part: part as u32, parts: parts as u32, lineage },
            rows: slice(part),
            records: records.filter(|_| part == 0),
            failed: if part == 0 { failed.clone() } else { FailedStages::default() },
            real: None,
        })
        .collect()
}

fn digest(lineage: Lineage, rows: &[(StageId, Row)]) -> u64 {
    rows.iter().fold(0xcbf2_9ce4_8422_2325 ^ lineage.input ^ lineage.broadcasts, |hash: u64, (stage, row)| {
        let word = (u64::from(stage.0) << 48) ^ (u64::from(row.key) << 32) ^ (row.value as u64);
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
    })
}

/// The partition that a key belongs to.
pub(crate) fn partition_of(key: u32, partitions: u16) -> u16 {
    (key.wrapping_mul(2_654_435_761) >> 16) as u16 % partitions
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenaz_core::TableId;

    const SOURCE: (Source, Lineage) =
        (Source::Chunk { table: TableId(0), number: 0 }, Lineage { input: 1, broadcasts: 0 });

    #[test]
    fn an_output_travels_in_parts_and_says_so() {
        let rows: Vec<(StageId, Row)> = (0..5).map(|key| (StageId(0), Row { key, value: 1 })).collect();
        let messages = cut(SOURCE, &rows, (Some(9), &FailedStages::default()), 2);
        assert_eq!(messages.len(), 3);
        assert!(messages.iter().all(|m| m.header.parts == 3 && m.header.content == messages[0].header.content));
        assert_eq!(messages.iter().filter_map(|m| m.records).sum::<u64>(), 9);
        assert_eq!(cut(SOURCE, &[], (None, &FailedStages::default()), 2).len(), 1, "no rows are news, too");
    }

    #[test]
    fn another_order_of_rows_is_another_content() {
        let rows = [(StageId(0), Row { key: 1, value: 1 }), (StageId(0), Row { key: 2, value: 1 })];
        let turned = [rows[1], rows[0]];
        let content = |rows| cut(SOURCE, rows, (None, &FailedStages::default()), 9)[0].header.content;
        assert_ne!(content(&rows), content(&turned));
    }
}
