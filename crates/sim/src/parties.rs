//! Who takes part in a step, and whom a fault strikes: what tells positions of a fault apart.
//!
//! A fault that comes before a step leaves the cluster in the same state as one that comes after it, if the step's parties are
//! none of those that the fault strikes: the two do not see each other. (Only clocks differ, by one step.) So of neighbouring
//! positions between which nobody whom the fault strikes has done anything, the earliest is enough: all that may follow from the
//! others may follow from it, because the steps between may just as well come after the fault. What does follow is one random
//! continuation either way. A fault that strikes nobody leaves the state as it is, and is not worth a run.

use crate::faults::Fault;
use crate::step::Step;

/// A set of parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Parties(u32);

impl Parties {
    /// Whatever the broker keeps, and what is under way to it or from it, over any connection.
    pub(crate) const BROKER: Self = Self(1);
    /// The chunks that wait in queues, for which workers compete.
    pub(crate) const QUEUES: Self = Self(2);
    /// The clients.
    pub(crate) const CLIENTS: Self = Self(4);
    /// What the broker takes, or does not.
    pub(crate) const ACCEPTING: Self = Self(8);
    /// What processes have heard of each other and not yet read.
    pub(crate) const NEWS: Self = Self(16);
    /// Everybody.
    pub(crate) const ALL: Self = Self(u32::MAX);
    /// All processes.
    const PROCESSES: Self = Self(u32::MAX << 5);

    /// The process in this slot, and what is under way over its own connection.
    pub(crate) fn process(slot: usize) -> Self {
        // The last bit stands for all slots that have none of their own.
        Self(32 << slot.min(26))
    }

    /// These and those.
    pub(crate) fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether some party is in both.
    pub(crate) fn meet(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Who takes part in a step. `owner` is the process whose connection the broker accepts something from; `has_published` tells
    /// whether something was handed to the broker.
    pub(crate) fn of_step(step: Step, owner: Option<usize>, has_published: bool, workers: usize) -> Self {
        let own = step.slot().map_or(Self::default(), Self::process);
        let sent = if has_published { Self::BROKER } else { Self::default() };
        match step {
            Step::Accept(_) => Self::BROKER.and(Self::ACCEPTING).and(owner.map_or(Self::PROCESSES, Self::process)),
            Step::AcceptGhost => Self::BROKER.and(Self::ACCEPTING),
            Step::ClientAsk(_) | Step::ClientHear(_) => Self::CLIENTS.and(Self::PROCESSES),
            Step::Heartbeat(_) => own.and(Self::NEWS),
            // Whoever is there hears of the deaths of others.
            Step::Start(_) | Step::Connect(_) | Step::Notice(_) => Self::ALL,
            // It runs rows through a function.
            Step::Work(..) => own,
            Step::Hear(_) => own.and(sent).and(Self::NEWS),
            Step::HearClearance(_) => own.and(sent),
            // It may ask how much waits in the queues.
            Step::Tick(_) => own.and(sent).and(Self::QUEUES),
            Step::Deliver(..) => own.and(Self::BROKER).and(Self::QUEUES),
            Step::Serve(slot) | Step::GoOn(slot) => {
                debug_assert!(slot >= workers, "gateways serve");
                own.and(Self::BROKER).and(Self::CLIENTS)
            }
            _ => own.and(Self::BROKER),
        }
    }

    /// Whom a fault strikes. `workers` is how many slots workers have; gateways come behind them.
    pub(crate) fn of_fault(fault: Fault, workers: usize) -> Self {
        let gateway = |at: usize| Self::process(workers + at).and(Self::CLIENTS);
        match fault {
            // What it has goes back into the queues.
            Fault::KillWorker(slot)
            | Fault::CutWorker(slot)
            | Fault::Pause(slot, _)
            | Fault::Drain(slot)
            | Fault::LoseChannel(slot)
            | Fault::ForgetConsumer(slot) => Self::process(slot).and(Self::QUEUES),
            // It asks how much waits, and says that something is lost.
            Fault::Stall(slot) => Self::process(slot).and(Self::QUEUES),
            Fault::FullDisk(slot, _) | Fault::SilentStreams(slot, _) | Fault::LongTask(slot, _) => Self::process(slot),
            // The others hear something.
            Fault::Suspect(_) | Fault::Flap(..) => Self::NEWS,
            Fault::KillClient | Fault::CutClient | Fault::LeaveClient(..) | Fault::Cancel(_) => Self::CLIENTS,
            Fault::KillGateway(at) | Fault::CutGateway(at) | Fault::RefusingChannel(at) => gateway(at),
            Fault::RestartBroker | Fault::PowerCut => Self::BROKER,
            Fault::DeadQueue(_) => Self::ACCEPTING.and(Self::QUEUES),
            Fault::FullQueues(_) | Fault::Alarm(_) | Fault::StalledDisk(_) | Fault::SlowBroker(_) => Self::ACCEPTING,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_computes_meets_only_faults_of_its_own() {
        let work = Parties::of_step(Step::Work(1, 0), None, false, 2);
        for fault in crate::faults::ONE_OF_EACH {
            let strikes_it = matches!(
                fault,
                Fault::Drain(1)
                    | Fault::FullDisk(1, _)
                    | Fault::SilentStreams(1, _)
                    | Fault::LoseChannel(1)
                    | Fault::LongTask(1, _)
            );
            assert_eq!(Parties::of_fault(fault, 2).meet(work), strikes_it, "{fault}");
        }
    }

    #[test]
    fn what_the_broker_accepts_meets_its_sender_and_faults_of_the_broker() {
        let accept = Parties::of_step(Step::Accept(7), Some(0), false, 2);
        assert!(Parties::of_fault(Fault::KillWorker(0), 2).meet(accept));
        assert!(Parties::of_fault(Fault::PowerCut, 2).meet(accept));
        assert!(!Parties::of_fault(Fault::KillWorker(1), 2).meet(accept));
        assert!(!Parties::of_fault(Fault::KillGateway(0), 2).meet(accept));
        assert!(!Parties::of_fault(Fault::Suspect(0), 2).meet(accept));
        let of_gateway = Parties::of_step(Step::Accept(8), Some(2), false, 2);
        assert!(Parties::of_fault(Fault::KillGateway(0), 2).meet(of_gateway));
    }
}
