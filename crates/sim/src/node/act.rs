//! How a simulated worker makes the machine's actions real.

use tenaz_core::{Action, End, Fact, Failure, Log, RegistryEvent, Source, StageId, Tag, Work};

use super::{Node, Run, Surroundings};
use crate::broker::{Envelope, PublishId};
use crate::mutation::Mutation;
use crate::rows::Row;

impl Node {
    pub(super) fn act(&mut self, action: Action, at: &mut Surroundings<'_>) {
        match action {
            Action::Read { log, from } => {
                self.readers.insert(log, at.broker.start(log, from));
            }
            Action::Release { log } => {
                self.readers.remove(&log);
                if at.mutation != Mutation::KeepReleased {
                    self.store.remove(&log);
                }
            }
            Action::Take | Action::Hold | Action::Drop => {
                at.checks.broken("a message was judged that nobody has read".to_owned());
            }
            Action::Complete { edge } => {
                self.complete.insert(edge);
            }
            Action::TakeChunks { wave } => {
                self.taking.insert(wave);
            }
            Action::Announce { source, by } => {
                self.send(Envelope::Fact(Fact::Attempted { source, by }), at);
            }
            Action::Exonerate { source } => {
                self.send(Envelope::Fact(Fact::Exonerated { source }), at);
            }
            Action::Run { work } => self.run(work, at),
            Action::Publish { work, message } => self.publish(work, message, at),
            Action::Ack { tag } => self.ack(tag, at),
            Action::Forget { work } => {
                self.outputs.remove(&work);
            }
            Action::Conclude => self.conclude(at),
            Action::ReportLost { table, chunks } => {
                if at.mutation != Mutation::NoReport {
                    self.send(Envelope::Fact(Fact::Lost { table, chunks }), at);
                }
            }
            Action::Fail { failure } => self.fail(&failure, at),
        }
    }

    fn send(&mut self, envelope: Envelope, at: &mut Surroundings<'_>) -> Option<PublishId> {
        self.connection.map(|connection| at.broker.publish(connection, envelope))
    }

    fn run(&mut self, work: Work, at: &mut Surroundings<'_>) {
        if self.running.iter().any(|run| run.work == work) {
            return at.checks.broken(format!("{work:?} was begun twice"));
        }
        let broadcast = |edge| self.store.get(&Log::Broadcast).map_or_else(Vec::new, |state| state.rows_of(edge));
        let (source, stages, made) = match work {
            Work::Chunk(tag) => {
                let Some(delivery) = self.deliveries.get(&tag) else {
                    return at.checks.broken(format!("{work:?} was begun, but there is no such delivery"));
                };
                let Source::Chunk { table, number } = delivery.source else { return };
                let stages: Vec<StageId> = at.scenario.topology.leaves(table).collect();
                (delivery.source, stages, at.scenario.run_chunk(table, number, broadcast))
            }
            Work::Inner(stage, partition, _) => {
                let state = self.store.entry(Log::Partition(partition)).or_default();
                let reads = &at.scenario.topology.stage(stage).reads;
                let inputs: Vec<Vec<Row>> = reads.iter().map(|&edge| state.rows_of(edge)).collect();
                let broadcast =
                    |edge| self.store.get(&Log::Broadcast).map_or_else(Vec::new, |state| state.rows_of(edge));
                let rows = at.scenario.run(stage, &inputs, broadcast);
                (Source::Task { stage, partition }, vec![stage], vec![(stage, rows)])
            }
        };
        let needs = stages.iter().flat_map(|&stage| &at.scenario.topology.stage(stage).broadcasts);
        if let Some(edge) = needs.into_iter().find(|edge| !self.complete.contains(edge)) {
            at.checks.broken(format!("{source} was begun before broadcast {} was complete", edge.0));
        }
        let output = at.scenario.messages(source, &made, self.member.0);
        self.running.push(Run { work, source, output });
    }

    fn publish(&mut self, work: Work, message: u32, at: &mut Surroundings<'_>) {
        let Some((log, body)) = self.outputs.get(&work).and_then(|output| output.get(message as usize)).cloned() else {
            return at.checks.broken(format!("message {message} of {work:?} was to be sent after it was forgotten"));
        };
        if let Some(id) = self.send(Envelope::Rows(log, body), at) {
            self.unconfirmed.insert(id, (work, message));
        }
    }

    pub(super) fn ack(&mut self, tag: Tag, at: &mut Surroundings<'_>) {
        let Some(delivery) = self.deliveries.get_mut(&tag) else {
            return at.checks.broken(format!("{tag:?} was acknowledged, but there is no such delivery"));
        };
        if std::mem::replace(&mut delivery.acked, true) {
            return at.checks.broken(format!("{} was acknowledged twice", delivery.source));
        }
        at.checks.ack(delivery.source, &self.machine, at.broker);
        if let Some(connection) = self.connection {
            at.broker.ack(connection, delivery.wave, delivery.place);
        }
    }

    fn conclude(&mut self, at: &mut Surroundings<'_>) {
        at.checks.conclude(at.scenario, self.store.entry(Log::Results).or_default());
        self.farewell = Some(End::Done);
        self.say_farewell(at);
    }

    fn fail(&mut self, failure: &Failure, at: &mut Surroundings<'_>) {
        if at.mutation == Mutation::NoQuarantine {
            return;
        }
        at.checks.fail(failure);
        self.farewell = Some(End::Failed { code: "quarantined".to_owned(), reason: failure.to_string() });
        self.say_farewell(at);
    }

    pub(super) fn say_farewell(&mut self, at: &mut Surroundings<'_>) {
        if let Some(end) = self.farewell.clone() {
            let event = RegistryEvent::Ended { id: at.job.clone(), end };
            self.farewell_sent = self.send(Envelope::Registry(event), at);
        }
    }
}
