//! Rules of the optimizer that look at the clock: planning ends when its time is over, between two rules or two nodes of a plan.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;

use crate::stop::check;

/// A rule that is applied only while there is time.
#[derive(Debug)]
pub(super) struct Timed<R: ?Sized>(Arc<R>);

/// The same logical rules, each of which looks at the clock.
pub(super) fn timed(rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(Timed(rule)) as Arc<dyn OptimizerRule + Send + Sync>).collect()
}

/// The same rules of the analyzer, each of which looks at the clock.
pub(super) fn timed_analysis(
    rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>>,
) -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(Timed(rule)) as Arc<dyn AnalyzerRule + Send + Sync>).collect()
}

/// The same physical rule, which looks at the clock.
pub(super) fn timed_physical(
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
) -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(Timed(rule))
}

impl OptimizerRule for Timed<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        check()?;
        self.0.rewrite(plan, config)
    }
}

impl AnalyzerRule for Timed<dyn AnalyzerRule + Send + Sync> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        check()?;
        self.0.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl PhysicalOptimizerRule for Timed<dyn PhysicalOptimizerRule + Send + Sync> {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
