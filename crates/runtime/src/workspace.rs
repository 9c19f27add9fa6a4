//! Where answers are put together from rows that come from elsewhere.

use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use tenaz_engine::PlannedQuery;

use crate::job_rows::working_memory;
use crate::{Answer, Budget, Error, Options, Spool};

/// Memory and temporary files for answers outside a job of this process.
#[derive(Debug)]
pub struct Workspace {
    env: Arc<RuntimeEnv>,
    budget: Arc<Budget>,
}

impl Workspace {
    /// A workspace with the memory and the place for temporary files that the options name.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let budget = Budget::new(options.memory_bytes, options.temp_dir.clone());
        Ok(Self { env: working_memory(options.memory_bytes, &options.temp_dir, 1)?, budget })
    }

    /// A place for the rows of one answer.
    pub fn spool(&self) -> Spool {
        Spool::new(Arc::clone(&self.budget))
    }

    /// The answer to a query from all its rows: sorted, unless the query says how, and fingerprinted. The same code makes
    /// the answers of a job on this machine.
    pub fn answer(&self, query: &PlannedQuery, rows: Spool) -> Result<Answer, Error> {
        Answer::new(query, rows, &self.env, &self.budget)
    }

    /// Bytes that went through temporary files.
    pub fn spilled_bytes(&self) -> u64 {
        self.budget.spilled_bytes()
    }
}
