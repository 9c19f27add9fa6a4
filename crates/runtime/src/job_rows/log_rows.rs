//! The rows taken from one log.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tenaz_core::StageId;

use super::Results;
use crate::partition::PartitionRows;
use crate::spool::Spool;

/// The rows taken from one log since this process began to read it.
pub(crate) enum LogRows {
    /// Broadcast edges whose rows are still arriving.
    Broadcast(Mutex<BTreeMap<StageId, Spool>>),
    /// The input of one partition's tasks.
    Partition(Mutex<PartitionRows>),
    /// Rows of answers and the accounts of chunks.
    Results(Mutex<Results>),
}
