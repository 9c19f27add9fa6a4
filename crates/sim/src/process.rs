//! What every simulated process has, be it a worker or a gateway: a connection, the book of jobs, the members it knows, and
//! its part in the upkeep of jobs. All decisions are those of `tenaz-core`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenaz_core::limits::STALL_MS;
use tenaz_core::{
    Announcement, BuildId, Chore, Clearance, ControlLog, CreationSigns, End, Exposure, Isolation, JobId, JobSigns,
    LifeSign, MemberId, Registry, RegistryEvent, Roster, SpecWatch, StreamSilence, Upkeep,
};

use crate::broker::{Broker, ConnectionId, ControlEntry, Envelope, Job, PublishId};
use crate::checks::Checks;
use crate::mutation::Mutation;
use crate::options::{JobSetup, Setup};
use crate::trace::Trace;

/// How many heartbeats a process keeps before it drops the oldest.
const MAX_NEWS: usize = 8;

/// What a process hears of others.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// A sign of life, or a farewell.
    Sign(LifeSign),
    /// A member seems to be gone, until it speaks again.
    Lost(MemberId),
}

impl News {
    /// The connection of a member is gone.
    pub(crate) fn left(member: MemberId) -> Self {
        let said = Announcement::default();
        Self::Sign(LifeSign { member, is_worker: true, said, under_way: BTreeMap::new(), leaving: true, gone: None })
    }
}

/// A job in the book of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct BookedJob {
    /// Its control log.
    pub(crate) control: ControlLog,
    at: u64,
    /// When its control log last said something.
    active_ms: u64,
    /// Whether it was read what the job asks, and is still there. A later reading does not take the knowledge back.
    spec: SpecWatch,
}

impl BookedJob {
    /// Whether all that the job needs from its client has arrived.
    fn is_uploaded(&self, setup: &JobSetup) -> bool {
        self.spec.is_known() && self.control.facts.is_uploaded(setup.card.tables.iter().copied())
    }

    /// When its control log last said something.
    pub(crate) fn active_ms(&self) -> u64 {
        self.active_ms
    }
}

/// A process.
pub(crate) struct Process {
    /// Its identity in this life.
    pub(crate) member: MemberId,
    /// The code that it runs.
    pub(crate) build: BuildId,
    /// Its connection; perhaps dead without its knowledge.
    pub(crate) connection: Option<ConnectionId>,
    /// How many connections it has had.
    pub(crate) epoch: u64,
    /// It has found its connection useless.
    pub(crate) gives_session_up: bool,
    /// Until when it is stopped.
    pub(crate) paused_until: u64,
    /// Until when its heartbeats are heard only now and then.
    pub(crate) flaps_until: u64,
    /// Until when the broker forgets to wake its readers, unless they subscribe again.
    pub(crate) silent_until: u64,
    /// When its readers subscribe again.
    subscriptions: StreamSilence,
    /// What it has heard and not yet read.
    pub(crate) news: Vec<News>,
    /// The members it knows.
    pub(crate) roster: Roster<()>,
    /// The registry as it has read it.
    pub(crate) registry: Registry,
    /// The jobs whose control logs it reads.
    pub(crate) jobs: BTreeMap<Job, BookedJob>,
    registry_at: u64,
    marks: u64,
    upkeep: Upkeep,
    /// Registry events and marks that the broker has not confirmed.
    pending: BTreeMap<PublishId, Envelope>,
    /// What its parts in jobs may begin beside each other.
    isolation: Isolation<Job>,
    /// What its parts in jobs have not been told yet.
    cleared: VecDeque<(Job, Clearance)>,
}

impl Process {
    /// A new process.
    pub(crate) fn new(member: MemberId, build: BuildId, setup: &Setup) -> Self {
        Self {
            member,
            build,
            connection: None,
            epoch: 0,
            gives_session_up: false,
            paused_until: 0,
            flaps_until: 0,
            silent_until: 0,
            subscriptions: StreamSilence::new(0),
            news: Vec::new(),
            roster: Roster::new(member),
            registry: Registry::default(),
            jobs: BTreeMap::new(),
            registry_at: 0,
            marks: 0,
            upkeep: Upkeep::new(setup.patience),
            pending: BTreeMap::new(),
            isolation: Isolation::default(),
            cleared: VecDeque::new(),
        }
    }

    /// Whether a part in a job is to be told what it may begin.
    pub(crate) fn has_cleared(&self) -> bool {
        !self.cleared.is_empty()
    }

    /// Whether it is connected, and the connection is there.
    pub(crate) fn is_served(&self, broker: &Broker) -> bool {
        self.connection.is_some_and(|connection| broker.is_open(connection))
    }

    /// Whether the registry has something to read.
    pub(crate) fn can_read_registry(&self, broker: &Broker) -> bool {
        self.registry_at < broker.registry().end()
    }

    /// The jobs whose control logs have something to read.
    pub(crate) fn readable_controls<'a>(&'a self, broker: &'a Broker) -> impl Iterator<Item = Job> + 'a {
        let has_more = |(job, booked): &(&Job, &BookedJob)| (booked.at as usize) < broker.control(**job).len();
        self.jobs.iter().filter(has_more).map(|(job, _)| *job)
    }

    /// How a job ended, as far as it knows. `None`: it is open, or unknown.
    pub(crate) fn end_of(&self, id: &JobId) -> Option<&End> {
        self.registry.get(id).and_then(|entry| entry.end.as_ref())
    }

    /// Whether the process knows the job as one that can be worked on.
    pub(crate) fn is_open(&self, id: &JobId) -> bool {
        self.registry.get(id).is_some_and(|entry| entry.end.is_none() && entry.prepared)
    }

    /// One of its readers was given a message.
    pub(crate) fn was_read(&mut self, now_ms: u64) {
        self.subscriptions.heard(now_ms);
    }

    /// Whether the process knows what the job asks, and can work on it or serve its client.
    pub(crate) fn is_ready(&self, job: Job, id: &JobId) -> bool {
        self.is_open(id) && self.jobs.get(&job).is_some_and(|booked| booked.spec.is_known())
    }

    /// What is known of a job that a client wants created.
    pub(crate) fn creation_signs(&self, job: Job, id: &JobId) -> Option<CreationSigns> {
        let (entry, booked) = (self.registry.get(id)?, self.jobs.get(&job));
        Some(CreationSigns {
            same_request: true,
            ended: entry.end.is_some(),
            prepared: entry.prepared,
            caught_up: booked.is_some_and(|booked| booked.control.is_caught_up()),
            has_spec: booked.is_some_and(|booked| booked.spec.is_known()),
        })
    }

    /// Keeps something that was heard.
    pub(crate) fn tell(&mut self, news: News) {
        if self.news.len() == MAX_NEWS {
            self.news.remove(0);
        }
        self.news.push(news);
    }
}

/// What a process can see and touch besides itself, and what it is.
pub(crate) struct Surroundings<'a> {
    /// What every process has.
    pub(crate) base: &'a mut Process,
    /// The jobs and the conditions of this run.
    pub(crate) setup: &'a Setup,
    /// The broker.
    pub(crate) broker: &'a mut Broker,
    /// Where all is written down.
    pub(crate) trace: &'a mut Trace,
    /// What must hold.
    pub(crate) checks: &'a mut Checks,
    /// The mistake it makes on purpose.
    pub(crate) mutation: Mutation,
    /// The step, which stands for the time.
    pub(crate) now: u64,
    /// The time in milliseconds.
    pub(crate) now_ms: u64,
    /// Whether the disk of the process's machine is full.
    pub(crate) disk_is_full: bool,
    /// When the broker last came out of an alarm, or will: no confirm is missed before.
    pub(crate) blocked_until: u64,
    /// Whether the disk of the broker stands still.
    pub(crate) is_stalled: bool,
}

impl Surroundings<'_> {
    /// A job of this run.
    pub(crate) fn job(&self, job: Job) -> &JobSetup {
        &self.setup.jobs[job]
    }

    /// A part in a job comes, or begins anew: what it may begin.
    pub(crate) fn join_isolation(&mut self, job: Job) -> Clearance {
        self.base.cleared.retain(|&(of, _)| of != job);
        self.base.isolation.join(job)
    }

    /// A part in a job has begun or ended something.
    pub(crate) fn report_exposure(&mut self, job: Job, exposure: Exposure) {
        let told = self.base.isolation.report(job, exposure);
        self.base.cleared.extend(told);
    }

    /// A part in a job is over.
    pub(crate) fn leave_isolation(&mut self, job: Job) {
        let told = self.base.isolation.leave(job);
        self.base.cleared.retain(|&(of, _)| of != job);
        self.base.cleared.extend(told);
    }

    /// What is to be told next, and to which part.
    pub(crate) fn next_cleared(&mut self) -> Option<(Job, Clearance)> {
        self.base.cleared.pop_front()
    }

    /// So many steps are as long as the time that a confirm may take.
    pub(crate) fn confirm_steps(&self) -> u64 {
        self.setup.steps_of(STALL_MS)
    }

    /// A new connection: the registry and all control logs are read from their starts.
    pub(crate) fn connect(&mut self) {
        self.base.connection = Some(self.broker.connect());
        self.base.epoch += 1;
        self.base.gives_session_up = false;
        self.base.subscriptions = StreamSilence::new(self.now_ms);
        self.base.roster.forgive(self.now);
        if self.mutation != Mutation::KeepRegistryOffset || self.base.epoch == 1 {
            let number = self.next_mark();
            self.base.registry.begin_reading(number);
            self.base.registry_at = self.broker.registry().first();
            self.write_registry(RegistryEvent::Mark { number });
        }
        let jobs: Vec<Job> = self.base.jobs.keys().copied().collect();
        jobs.into_iter().for_each(|job| self.read_control_anew(job));
    }

    /// The connection is gone, and the process has found out.
    pub(crate) fn disconnected(&mut self) {
        self.base.connection = None;
        self.base.gives_session_up = false;
        self.base.pending.clear();
    }

    fn next_mark(&mut self) -> u64 {
        self.base.marks += 1;
        (self.base.member.0 << 20) + self.base.marks
    }

    /// Publishes something that belongs to nobody in particular. It is sent again if it is refused.
    fn send(&mut self, envelope: Envelope) {
        let Some(connection) = self.base.connection else { return };
        let id = self.broker.publish(connection, envelope.clone(), self.now);
        self.base.pending.insert(id, envelope);
    }

    /// Writes an event into the registry.
    pub(crate) fn write_registry(&mut self, event: RegistryEvent) {
        let bytes = registry_bytes(&event, self.mutation);
        self.send(Envelope::Registry(event, bytes));
    }

    /// Whether a confirm was for something of the process itself.
    pub(crate) fn settled(&mut self, id: PublishId, is_accepted: bool) -> bool {
        let Some(envelope) = self.base.pending.remove(&id) else { return false };
        let is_wanted = match &envelope {
            Envelope::Control(job, _) => self.base.jobs.contains_key(job),
            _ => self.mutation != Mutation::RefusedEvent,
        };
        if !is_accepted && is_wanted {
            self.send(envelope);
        }
        true
    }

    /// Readers that have heard nothing for long subscribe again, and are woken from then on.
    fn subscribe_again(&mut self) {
        let is_due = self.now_ms >= self.base.subscriptions.due_ms();
        if self.base.connection.is_some() && is_due && self.mutation != Mutation::NoResubscribe {
            self.base.subscriptions.subscribed_again(self.now_ms);
            self.base.silent_until = 0;
        }
    }

    fn read_control_anew(&mut self, job: Job) {
        let is_first = !self.base.jobs.contains_key(&job);
        if self.mutation == Mutation::KeepControlOffset && !is_first {
            return;
        }
        let (mark, now_ms) = (self.next_mark(), self.now_ms);
        let booked = self.base.jobs.entry(job).or_default();
        if self.mutation == Mutation::NoControlMark {
            booked.control = ControlLog::default();
        }
        booked.control.begin_reading(mark);
        booked.spec.begin_reading();
        (booked.at, booked.active_ms) = (0, now_ms);
        if self.mutation == Mutation::NoControlMark {
            // What was read before is forgotten, and whatever is read counts at once.
            booked.control.marked(mark);
        }
        self.send(Envelope::Control(job, ControlEntry::Mark(mark)));
    }

    /// Reads the next event of the registry.
    pub(crate) fn read_registry(&mut self) {
        let at = self.base.registry_at.max(self.broker.registry().first());
        let Some((event, bytes)) = self.broker.registry().get(at).cloned() else { return };
        self.base.registry_at = at + 1;
        self.base.was_read(self.now_ms);
        let is_ignored = self.mutation == Mutation::EndIgnored && matches!(event, RegistryEvent::Ended { .. });
        if let (Mutation::LateMention, RegistryEvent::Still { card, .. }) = (self.mutation, &event) {
            self.base.registry.apply(0, RegistryEvent::Created { card: card.clone() });
        }
        if !is_ignored {
            self.base.registry.apply(bytes, event);
        }
        for (job, setup) in self.setup.jobs.iter().enumerate() {
            match self.base.registry.get(&setup.card.id) {
                Some(entry) if entry.prepared && !self.base.jobs.contains_key(&job) => self.read_control_anew(job),
                None => drop(self.base.jobs.remove(&job)),
                Some(_) => {}
            }
        }
    }

    /// Reads the next fact of a control log.
    pub(crate) fn read_control(&mut self, job: Job) {
        let Some(booked) = self.base.jobs.get_mut(&job) else { return };
        let Some(entry) = self.broker.control(job).get(booked.at as usize) else { return };
        let offset = booked.at;
        booked.at += 1;
        self.base.subscriptions.heard(self.now_ms);
        match entry {
            ControlEntry::Mark(mark) => {
                let was_caught_up = booked.control.is_caught_up();
                booked.control.marked(*mark);
                let is_read_anew = !was_caught_up && booked.control.is_caught_up();
                if is_read_anew && booked.spec.is_lost() && self.mutation != Mutation::SpecNotRestored {
                    self.send(Envelope::Control(job, ControlEntry::Spec));
                }
            }
            ControlEntry::Spec => {
                booked.spec.read();
                booked.active_ms = self.now_ms;
            }
            ControlEntry::Fact(fact) => {
                booked.active_ms = self.now_ms;
                booked.control.take(offset, fact.clone());
            }
        }
    }

    /// Hears what others do.
    pub(crate) fn hear(&mut self, news: News) {
        let believes_deaths = self.mutation != Mutation::NoTakeover;
        match news {
            News::Sign(sign) if sign.leaving && !believes_deaths => {}
            News::Sign(mut sign) => {
                if self.mutation == Mutation::OtherBuildOwns {
                    sign.said.build = self.setup.jobs[0].card.build.clone();
                }
                self.base.roster.heard(sign, (), self.now);
            }
            News::Lost(member) if believes_deaths => drop(self.base.roster.lost(member)),
            News::Lost(_) => {}
        }
    }

    /// Time has passed: who is silent is believed dead, and a connection that confirms nothing is given up.
    pub(crate) fn look_around(&mut self) {
        if self.mutation != Mutation::NoTakeover {
            self.base.roster.expire(self.now, self.setup.silence);
        }
        self.subscribe_again();
        let from_hand_over = self.mutation == Mutation::ConfirmClockEarly;
        let since = self.base.connection.and_then(|at| self.broker.unconfirmed_since(at, from_hand_over));
        let is_overdue = |since: u64| self.now.saturating_sub(since.max(self.blocked_until)) > self.confirm_steps();
        if since.is_some_and(is_overdue) && self.mutation != Mutation::NoConfirmDeadline {
            self.trace.note(format_args!("  nothing was confirmed for long"));
            self.base.gives_session_up = true;
        }
    }

    /// Does the process's part in the upkeep of jobs. `under_way` is what it works on itself.
    pub(crate) fn tend_jobs(&mut self, under_way: &BTreeMap<JobId, u64>) {
        if !self.base.is_served(self.broker) {
            return;
        }
        let (signs, now_ms) = (self.job_signs(under_way), self.now_ms);
        let mut chores = self.base.upkeep.look(now_ms, &signs);
        if self.mutation == Mutation::MentionByAll {
            // One that remembers nothing.
            let again = Upkeep::new(self.setup.patience).look(now_ms, &signs);
            chores.extend(again.into_iter().filter(|chore| matches!(chore, Chore::Mention(_))));
        }
        for chore in chores {
            self.trace.note(format_args!("  {chore:?}"));
            self.do_chore(&chore);
        }
    }

    fn job_signs(&self, own: &BTreeMap<JobId, u64>) -> Vec<JobSigns> {
        let due = self.base.registry.due(self.setup.registry_bytes);
        let mutation = self.mutation;
        let signs = |(job, setup): (Job, &JobSetup)| {
            let id = &setup.card.id;
            let entry = self.base.registry.get(id)?;
            let booked = self.base.jobs.get(&job);
            let elsewhere = self.base.roster.under_way(id);
            let under_way = elsewhere + own.get(id).copied().unwrap_or(0);
            let turn = self.base.roster.everybody().chore_turn(self.base.member, id);
            Some(JobSigns {
                job: id.clone(),
                ended: entry.end.is_some() || mutation == Mutation::TrimOpenJobs,
                uploaded: booked.is_some_and(|booked| booked.is_uploaded(setup))
                    && mutation != Mutation::ExpireUploaded,
                heard_ms: booked.map_or(0, |booked| booked.active_ms).min(if mutation == Mutation::ExpireTouched {
                    0
                } else {
                    u64::MAX
                }),
                under_way: if mutation == Mutation::ExpireUnacked { 0 } else { under_way },
                progress: 0,
                mention: match due.get(id).copied() {
                    Some(_) if mutation == Mutation::NoMention => None,
                    mention => mention,
                },
                turn: if mutation == Mutation::MentionByAll { 0 } else { turn },
            })
        };
        self.setup.jobs.iter().enumerate().filter_map(signs).collect()
    }

    fn do_chore(&mut self, chore: &Chore) {
        let Some(job) = self.setup.jobs.iter().position(|setup| setup.card.id == *chore.job()) else { return };
        match chore {
            Chore::Expire(id) => {
                let booked = self.base.jobs.get(&job);
                let is_uploaded = booked.is_some_and(|booked| booked.is_uploaded(&self.setup.jobs[job]));
                self.checks.expired(job, is_uploaded, self.now);
                self.write_registry(RegistryEvent::Ended { id: id.clone(), end: End::Expired });
            }
            Chore::Mention(id) => {
                if let Some(event) = self.base.registry.mention(id) {
                    self.checks.mentioned(job, self.now, self.setup.silence);
                    self.write_registry(event);
                }
            }
            Chore::Trim(id) if self.mutation != Mutation::NoTrim => {
                let everything = self.mutation == Mutation::TrimResults;
                self.checks.deleted(job, everything, true);
                self.broker.delete(job, everything);
                self.base.upkeep.trimmed(id);
            }
            Chore::Remove(id) if self.mutation != Mutation::NoRemove => {
                self.checks.deleted(job, true, false);
                self.broker.delete(job, true);
                self.write_registry(RegistryEvent::Removed { id: id.clone() });
            }
            Chore::Trim(_) | Chore::Remove(_) => {}
        }
    }

    /// What the process says of itself with a heartbeat.
    pub(crate) fn life_sign(base: &Process, is_worker: bool, part: SignParts) -> LifeSign {
        let SignParts { claims, refused, under_way } = part;
        let said = Announcement { build: base.build.clone(), claims, refused };
        LifeSign { member: base.member, is_worker, said, under_way, leaving: false, gone: None }
    }
}

/// What a worker says of its jobs.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignParts {
    /// What it owns.
    pub(crate) claims: BTreeMap<JobId, tenaz_core::Claim>,
    /// What it cannot serve.
    pub(crate) refused: BTreeSet<JobId>,
    /// What it has under way.
    pub(crate) under_way: BTreeMap<JobId, u64>,
}

/// About as many bytes as an event takes in the log.
pub(crate) fn registry_bytes(event: &RegistryEvent, mutation: Mutation) -> u64 {
    let of_end = |end: &End| match end {
        End::Failed { .. } if mutation == Mutation::UnboundedText => 5_000_000,
        End::Failed { reason, .. } => reason.len() as u64,
        _ => 0,
    };
    match event {
        RegistryEvent::Created { .. } => 560,
        RegistryEvent::Still { end, .. } => 560 + end.as_ref().map_or(0, of_end),
        RegistryEvent::Ended { end, .. } => 100 + of_end(end),
        _ => 60,
    }
}
