//! When the first rows of a table are enough: a LIMIT without an order takes them, and the rest of the files is not read.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tenaz_core::StageId;
use tenaz_engine::JobPlan;

use super::Options;
use crate::job_rows::TaskProduct;

/// The rows that the chunks of a table have given, from the first chunk on without a gap.
#[derive(Debug)]
pub(super) struct FirstRows {
    /// For each leaf stage, the rows that are still missing.
    missing: BTreeMap<StageId, u64>,
    /// The first chunk that is not counted yet.
    next: u64,
    /// Chunks that were done before an earlier one.
    waiting: BTreeMap<u64, BTreeMap<StageId, u64>>,
}

/// For each scan of the plan of which the first rows are enough. A strict job looks at every record.
pub(super) fn first_rows(plan: &JobPlan, options: &Options) -> Vec<Option<Mutex<FirstRows>>> {
    let of_scan = |enough: &Vec<(StageId, u64)>| Mutex::new(FirstRows::new(enough));
    let wanted = plan.scans.iter().map(|scan| scan.order.enough.as_ref().filter(|_| !options.strict).map(of_scan));
    wanted.collect()
}

impl FirstRows {
    fn new(enough: &[(StageId, u64)]) -> Self {
        Self { missing: enough.iter().copied().collect(), next: 0, waiting: BTreeMap::new() }
    }

    /// Counts the rows that a chunk has given; tells whether there are enough now.
    pub(super) fn add(&mut self, chunk: u64, product: &TaskProduct) -> bool {
        let mut rows: BTreeMap<StageId, u64> = BTreeMap::new();
        for (stage, batch) in product.output.partitions.iter().flatten() {
            *rows.entry(*stage).or_default() += batch.num_rows() as u64;
        }
        self.add_rows(chunk, rows)
    }

    fn add_rows(&mut self, chunk: u64, rows: BTreeMap<StageId, u64>) -> bool {
        self.waiting.insert(chunk, rows);
        while let Some(rows) = self.waiting.remove(&self.next) {
            self.next += 1;
            for (stage, missing) in &mut self.missing {
                *missing = missing.saturating_sub(rows.get(stage).copied().unwrap_or(0));
            }
        }
        self.is_enough()
    }

    /// Whether every stage has the rows that it needs.
    pub(super) fn is_enough(&self) -> bool {
        self.missing.values().all(|missing| *missing == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_count_once_all_chunks_before_theirs_are_done() {
        let (one, two) = (StageId(1), StageId(2));
        let mut rows = FirstRows::new(&[(one, 5), (two, 1)]);
        let gave = |first, second| BTreeMap::from([(one, first), (two, second)]);
        assert!(!rows.add_rows(2, gave(5, 0)), "chunks 0 and 1 may have rows that come first");
        assert!(!rows.add_rows(0, gave(1, 0)));
        assert!(!rows.add_rows(1, gave(0, 0)), "stage 2 has none");
        assert!(!rows.is_enough());
        assert!(rows.add_rows(3, gave(0, 1)));
    }
}
