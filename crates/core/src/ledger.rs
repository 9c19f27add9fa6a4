//! Rows are conserved: records in = accepted + rejected, per table, or the job fails and says where.

use std::fmt;

/// The counts of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableLedger {
    /// Records that whoever cut the files into chunks counted.
    pub records: u64,
    /// Records that became rows.
    pub accepted: u64,
    /// Records that were rejected, each with a reason.
    pub rejected: u64,
}

/// The counts of a job, one entry per table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    tables: Vec<TableLedger>,
}

/// A table whose records do not add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imbalance {
    /// The table, by its place in the workload.
    pub table: usize,
    /// Its counts.
    pub counts: TableLedger,
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableLedger { records, accepted, rejected } = self.counts;
        write!(
            f,
            "{records} records were read, but {accepted} accepted + {rejected} rejected = {}",
            accepted + rejected
        )
    }
}

impl std::error::Error for Imbalance {}

impl Ledger {
    /// An empty ledger for `tables` tables.
    pub fn new(tables: usize) -> Self {
        Self { tables: vec![TableLedger::default(); tables] }
    }

    /// The counts of all tables, in the workload's order.
    pub fn tables(&self) -> &[TableLedger] {
        &self.tables
    }

    /// Adds what the chunker counted.
    pub fn read(&mut self, table: usize, records: u64) {
        self.tables[table].records += records;
    }

    /// Adds what a leaf task found. Call it once per chunk, after de-duplication.
    pub fn decoded(&mut self, table: usize, accepted: u64, rejected: u64) {
        self.tables[table].accepted += accepted;
        self.tables[table].rejected += rejected;
    }

    /// The closing check of a job.
    pub fn check(&self) -> Result<(), Imbalance> {
        (0..self.tables.len()).try_for_each(|table| self.check_table(table))
    }

    /// The closing check of one table.
    pub fn check_table(&self, table: usize) -> Result<(), Imbalance> {
        let counts = self.tables[table];
        match counts.records == counts.accepted + counts.rejected {
            true => Ok(()),
            false => Err(Imbalance { table, counts }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_record_is_named_with_its_table() {
        let mut ledger = Ledger::new(2);
        ledger.read(0, 3);
        ledger.decoded(0, 2, 1);
        assert_eq!(ledger.check(), Ok(()));
        ledger.read(1, 5);
        ledger.decoded(1, 4, 0);
        let imbalance = ledger.check().expect_err("one record is missing");
        assert_eq!(imbalance.table, 1);
        assert_eq!(imbalance.to_string(), "5 records were read, but 4 accepted + 0 rejected = 4");
    }
}
