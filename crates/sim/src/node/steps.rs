//! Steps of the driver: each waits for a thread, and what comes of it waits for the driver.

use tenaz_core::{Finished, Input, Log, Product, Source, Step, StepOutcome, Ticket, Work};

use super::Part;
use crate::engine::{SimEngine, StepError};
use crate::mutation::Mutation;
use crate::process::Surroundings;

/// Where tasks look their rows up late, threads are busy: one step in so many finds one that is free.
const BUSY_STEPS: u64 = 16;

/// A step that waits for a thread.
pub(super) struct QueuedStep {
    step: Step<SimEngine>,
    /// What it works on, where that has an id.
    source: Option<Source>,
}

impl Part {
    /// How many steps wait for a thread.
    pub(crate) fn queued(&self) -> usize {
        self.queued.len()
    }

    /// How many results wait for the driver.
    pub(crate) fn finished(&self) -> usize {
        self.finished.len()
    }

    pub(super) fn queue(&mut self, step: Step<SimEngine>, at: &mut Surroundings<'_>) {
        let ticket = step.ticket;
        at.trace.note(format_args!("  queued {ticket:?}"));
        if self.queued.iter().any(|queued| queued.step.ticket == ticket) {
            return at.checks.broken(format!("{ticket:?} was begun twice"));
        }
        let source = match ticket {
            Ticket::Chunk(tag) => self.deliveries.get(&tag).map(|delivery| delivery.chunk.source),
            Ticket::Task(Work::Inner(stage, partition, _)) => Some(Source::Task { stage, partition }),
            _ => None,
        };
        if matches!((ticket, source), (Ticket::Chunk(_), None)) {
            return at.checks.broken(format!("{ticket:?} was begun, but there is no such delivery"));
        }
        self.queued.push(QueuedStep { step, source });
        if is_called_finished(ticket, at.mutation) {
            self.handle(Input::Finished(Finished { ticket, outcome: Ok(Product::Nothing) }), at);
        }
    }

    /// A thread runs a step. False if the worker died of it.
    pub(crate) fn run_step(&mut self, index: usize, at: &mut Surroundings<'_>) -> bool {
        let QueuedStep { step, source } = self.queued.remove(index);
        let ticket = step.ticket;
        if at.job(self.job).poison.is_some() && at.job(self.job).poison == source {
            at.checks.poisoned[self.job] += 1;
            return false;
        }
        if at.mutation == Mutation::LookUpLate
            && matches!(ticket, Ticket::Task(_))
            && !at.now.is_multiple_of(BUSY_STEPS)
        {
            self.queued.push(QueuedStep { step, source });
            return true;
        }
        let finished = if at.disk_is_full {
            Finished { ticket, outcome: Err(StepError::DiskFull) }
        } else if at.mutation == Mutation::LookUpLate && matches!(ticket, Ticket::Task(_)) {
            Finished { ticket, outcome: self.run_late(ticket) }
        } else {
            step.run(&self.engine)
        };
        at.trace.note(format_args!("  ran {ticket:?}{}", if finished.outcome.is_err() { ": failed" } else { "" }));
        if at.mutation == Mutation::TaskTwice && matches!(ticket, Ticket::Task(_)) && finished.outcome.is_ok() {
            let outcome = self.run_late(ticket);
            self.finished.push(Finished { ticket, outcome });
        } else if !is_called_finished(ticket, at.mutation) {
            self.finished.push(finished);
        }
        self.report_findings(at);
        true
    }

    /// Runs an inner task over the rows that its partition has now, whatever reading they come from.
    fn run_late(&self, ticket: Ticket) -> StepOutcome<SimEngine> {
        let Ticket::Task(Work::Inner(stage, partition, _)) = ticket else { return Ok(Product::Released) };
        let Some(engine) = self.engine.toy() else { return Ok(Product::Released) };
        let Some(rows) = engine.rows(Log::Partition(partition)) else { return Ok(Product::Released) };
        engine.run_over((stage, partition), None, &rows).map(Product::Messages)
    }

    /// The driver gets what came of a step.
    pub(crate) fn hand_in_finished(&mut self, index: usize, at: &mut Surroundings<'_>) {
        if at.mutation == Mutation::StaleFinished && !self.is_working() {
            return;
        }
        let finished = self.finished.swap_remove(index);
        let ticket = finished.ticket;
        at.trace.note(format_args!("  {ticket:?}"));
        self.handle(Input::Finished(finished), at);
        self.after_finished(ticket, at);
        self.report_findings(at);
    }
}

/// Whether the driver is told of the end of such a step before it has run.
fn is_called_finished(ticket: Ticket, mutation: Mutation) -> bool {
    match ticket {
        Ticket::Take { .. } => mutation == Mutation::TakeFinishedEarly,
        Ticket::Complete { .. } => mutation == Mutation::CompleteFinishedEarly,
        _ => false,
    }
}
