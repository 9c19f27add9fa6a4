//! Inner tasks: from complete input to confirmed output.

use std::collections::BTreeSet;

use super::{Action, Attempt, JobWorker, Work};
use crate::{Partition, Source, StageId};

/// An inner task of an owned partition whose input is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InnerWork {
    /// Tells this run from one that was begun before the partition was given away and came back.
    pub(super) by: Attempt,
    state: InnerState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum InnerState {
    /// Waiting until it may be announced.
    Waiting,
    /// Waiting to read our own announcement back.
    Announced,
    Running,
    /// Messages that the broker has not confirmed.
    Publishing(BTreeSet<u32>),
    Published,
}

impl InnerWork {
    pub(super) fn is_published(&self) -> bool {
        self.state == InnerState::Published
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.state == InnerState::Waiting
    }

    pub(super) fn is_announced(&self) -> bool {
        self.state == InnerState::Announced
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == InnerState::Running
    }

    pub(super) fn announce(&mut self, alone: bool) {
        self.by.alone = alone;
        self.state = InnerState::Announced;
    }

    /// What to do again after the connection was lost.
    pub(super) fn again(&self, stage: StageId, partition: Partition, actions: &mut Vec<Action>) {
        match &self.state {
            InnerState::Announced => {
                actions.push(Action::Announce { source: Source::Task { stage, partition }, by: self.by });
            }
            InnerState::Waiting | InnerState::Running | InnerState::Published => {}
            InnerState::Publishing(open) => {
                let work = Work::Inner(stage, partition, self.by);
                actions.extend(open.iter().map(|&message| Action::Publish { work, message }));
            }
        }
    }
}

impl JobWorker {
    /// Every stage of an owned partition that has all its rows, and those of its broadcasts, is to be announced.
    pub(super) fn start_ready_stages(&mut self, actions: &mut Vec<Action>) {
        let partitions: Vec<Partition> = self.owned.keys().copied().collect();
        let mut news = false;
        for partition in partitions {
            news |= self.collect_ready_stages(partition);
        }
        if news {
            self.announce_next(actions);
        }
    }

    /// The same for one partition.
    pub(super) fn start_ready_stages_of(&mut self, partition: Partition, actions: &mut Vec<Action>) {
        if self.collect_ready_stages(partition) {
            self.announce_next(actions);
        }
    }

    fn collect_ready_stages(&mut self, partition: Partition) -> bool {
        let Some(owned) = self.owned.get_mut(&partition) else { return false };
        owned.waiting.extend(owned.mailbox.inbox_mut().take_ready());
        let (topology, complete) = (&self.topology, &self.complete_broadcasts);
        let can_run = |stage: &StageId| topology.stage(*stage).broadcasts.iter().all(|edge| complete.contains(edge));
        let ready: Vec<StageId> = owned.waiting.iter().copied().filter(can_run).collect();
        owned.waiting.retain(|stage| !ready.contains(stage));
        for &stage in &ready {
            let by = self.next_attempt();
            self.inner.insert((stage, partition), InnerWork { by, state: InnerState::Waiting });
        }
        !ready.is_empty()
    }

    /// Whether this run of an inner task is under way, and its output wanted.
    pub fn runs(&self, stage: StageId, partition: Partition, by: Attempt) -> bool {
        self.inner.get(&(stage, partition)).is_some_and(|work| work.by == by && work.is_running())
    }

    fn inner_work(&mut self, stage: StageId, partition: Partition, by: Attempt) -> Option<&mut InnerWork> {
        self.inner.get_mut(&(stage, partition)).filter(|work| work.by == by)
    }

    /// The announcement of a task has come back: it begins, or has to wait all the same.
    pub(super) fn begin_inner(
        &mut self,
        stage: StageId,
        partition: Partition,
        by: Attempt,
        must_wait: bool,
    ) -> Option<Work> {
        let work = self.inner_work(stage, partition, by)?;
        if work.state != InnerState::Announced {
            return None;
        }
        work.state = if must_wait { InnerState::Waiting } else { InnerState::Running };
        Some(Work::Inner(stage, partition, by))
    }

    /// How many outputs an inner task reads.
    pub(super) fn sources_of(&self, work: Work) -> u64 {
        let Work::Inner(stage, partition, _) = work else { return 0 };
        let reads = &self.topology.stage(stage).reads;
        self.owned.get(&partition).map_or(0, |owned| owned.mailbox.inbox().arrived_over(reads))
    }

    /// False if nobody wants the output: the partition has another owner by now, or was begun anew.
    pub(super) fn inner_finished(&mut self, stage: StageId, partition: Partition, by: Attempt, messages: u32) -> bool {
        match self.inner_work(stage, partition, by) {
            Some(work) => {
                work.state = InnerState::Publishing((0..messages).collect());
                true
            }
            None => false,
        }
    }

    pub(super) fn inner_confirmed(&mut self, stage: StageId, partition: Partition, by: Attempt, message: u32) {
        if let Some(InnerWork { state: InnerState::Publishing(open), .. }) = self.inner_work(stage, partition, by) {
            open.remove(&message);
        }
    }

    pub(super) fn settle_inner(&mut self, stage: StageId, partition: Partition, actions: &mut Vec<Action>) {
        let Some(work) = self.inner.get_mut(&(stage, partition)) else { return };
        if matches!(&work.state, InnerState::Publishing(open) if open.is_empty()) {
            work.state = InnerState::Published;
            actions.push(Action::Forget { work: Work::Inner(stage, partition, work.by) });
        }
    }
}
