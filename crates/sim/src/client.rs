//! A client: has its job made, sends chunks in any order or whole files, closes tables, and sends again what is missing. All it
//! keeps can be found out again by another one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenaz_core::{CreationWatch, TableId};

use crate::broker::Job;
use crate::gateway::{Answer, Ask, RequestId};
use crate::mutation::Mutation;
use crate::options::JobSetup;
use crate::rng::Rng;
use crate::scenario::Version;

/// So many requests at a time.
const MAX_REQUESTS: usize = 3;

/// So often a gateway may not know the job before it is made again.
const NOT_FOUND_GRACE: u64 = 20;

/// A request under way.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    ask: Ask,
    gateway: usize,
}

/// What was found out in the present life.
#[derive(Debug, Clone, Default)]
struct Known {
    is_created: bool,
    /// What is missing was asked once.
    is_asked: bool,
    /// Chunks to be sent.
    to_send: BTreeSet<(TableId, u64)>,
    closed: BTreeSet<TableId>,
    /// When it may ask again what is missing.
    ask_at: u64,
}

/// The client of a job.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    job: Job,
    /// Until when nobody starts it again.
    pub(crate) away_until: u64,
    /// The answers that have come and were not read.
    answers: VecDeque<(RequestId, Answer)>,
    under_way: BTreeMap<RequestId, UnderWay>,
    known: Known,
    /// The gateway that is asked at present.
    gateway: usize,
    last_request: u64,
    /// It has heard that the job has ended.
    is_over: bool,
    wants_cancel: bool,
    /// The version of each chunk that was refused in the other.
    second: BTreeSet<(TableId, u64)>,
    /// Tables that are sent as whole files.
    files: BTreeSet<TableId>,
    /// How often it was started.
    lives: u64,
    /// How often a gateway did not know the job.
    not_found: u64,
    /// Whether the creation of the job must be repeated.
    creation: CreationWatch,
}

impl Client {
    /// A client that has not begun.
    pub(crate) fn new(job: Job, files: BTreeSet<TableId>) -> Self {
        Self {
            job,
            away_until: 0,
            answers: VecDeque::new(),
            under_way: BTreeMap::new(),
            known: Known::default(),
            gateway: job,
            last_request: 0,
            is_over: false,
            wants_cancel: false,
            second: BTreeSet::new(),
            files,
            lives: 1,
            not_found: 0,
            creation: CreationWatch::default(),
        }
    }

    /// It is killed: another comes some time and goes on.
    pub(crate) fn kill(&mut self, away_until: u64) {
        let fresh = Self::new(self.job, BTreeSet::new());
        let (last_request, is_over, lives) = (self.last_request, self.is_over, self.lives + 1);
        *self = Self { last_request, is_over, away_until, lives, gateway: self.gateway + 1, ..fresh };
    }

    /// Its connections are cut.
    pub(crate) fn cut(&mut self) {
        self.answers.clear();
        let lost: Vec<RequestId> = self.under_way.keys().copied().collect();
        lost.into_iter().for_each(|id| self.answers.push_back((id, Answer::Lost)));
    }

    /// Somebody does not want the job any more. False if it has ended.
    pub(crate) fn cancel(&mut self) -> bool {
        self.wants_cancel = !self.is_over;
        self.wants_cancel
    }

    /// Whether it has nothing left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether it has something under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// An answer has come.
    pub(crate) fn answered(&mut self, id: RequestId, answer: Answer) {
        if self.under_way.contains_key(&id) {
            self.answers.push_back((id, answer));
        }
    }

    /// Whether there is an answer to be read.
    pub(crate) fn can_hear(&self) -> bool {
        !self.answers.is_empty()
    }

    /// What it asks next.
    fn wants(&self, setup: &JobSetup, now: u64, mutation: Mutation) -> Option<Ask> {
        let is_asking = |ask: Ask| self.under_way.values().any(|under_way| under_way.ask == ask);
        let one = |ask: Ask| (!is_asking(ask)).then_some(ask);
        if self.is_over || now < self.away_until {
            return None;
        }
        if self.asks_for_losses(now, mutation) && !is_asking(Ask::Missing) {
            return Some(Ask::Missing);
        }
        if self.under_way.len() >= MAX_REQUESTS {
            return None;
        }
        if self.wants_cancel && self.known.is_created {
            return one(Ask::Cancel);
        }
        if !self.known.is_created {
            return one(Ask::Create);
        }
        if !self.known.is_asked {
            return one(Ask::Missing);
        }
        let tables = (0..setup.scenario.topology.tables() as u16).map(TableId);
        let is_sent = |table: TableId| self.has_sent(table, mutation);
        let mut to_close = tables.filter(|&table| !self.known.closed.contains(&table) && is_sent(table));
        if let Some(ask) = to_close.find_map(|table| one(Ask::Close(table))) {
            return Some(ask);
        }
        let file = |(table, _): &&(TableId, u64)| self.files.contains(table);
        if let Some(&(table, _)) = self.known.to_send.iter().find(file)
            && let Some(ask) = one(Ask::File(table))
        {
            return Some(ask);
        }
        let is_single = |chunk: &&(TableId, u64)| !self.files.contains(&chunk.0);
        if let Some(&(table, number)) = self.known.to_send.iter().find(is_single) {
            return Some(Ask::Chunk(table, number, self.version(table, number)));
        }
        None
    }

    /// Whether it is time to ask what got lost: also while it is still sending, because a full queue may wait for that.
    fn asks_for_losses(&self, now: u64, mutation: Mutation) -> bool {
        self.known.is_asked && now >= self.known.ask_at && mutation != Mutation::LostIgnored
    }

    fn version(&self, table: TableId, number: u64) -> Version {
        if self.second.contains(&(table, number)) { Version::Second } else { Version::First }
    }

    fn has_sent(&self, table: TableId, mutation: Mutation) -> bool {
        let is_under_way = |under_way: &UnderWay| match under_way.ask {
            Ask::Chunk(of, ..) | Ask::File(of) => of == table,
            _ => false,
        };
        let waits = self.known.to_send.iter().any(|(of, _)| *of == table);
        !waits && (mutation == Mutation::CloseEarly || !self.under_way.values().any(is_under_way))
    }

    /// Whether it has something to ask.
    pub(crate) fn can_ask(&self, setup: &JobSetup, now: u64, mutation: Mutation) -> bool {
        self.wants(setup, now, mutation).is_some()
    }

    /// Asks something, of the gateway with the number that is returned. A chunk whose file was changed is sent by another
    /// client, too, in the other version and by another gateway.
    pub(crate) fn ask(
        &mut self,
        setup: &JobSetup,
        now: u64,
        gateways: usize,
        twice_percent: u64,
        mutation: Mutation,
        rng: &mut Rng,
    ) -> Vec<(usize, RequestId, Ask)> {
        let Some(mut ask) = self.wants(setup, now, mutation) else { return Vec::new() };
        let gateway = self.gateway % gateways;
        let mut asked = Vec::new();
        if let Ask::Chunk(..) = ask {
            let single: Vec<(TableId, u64)> =
                self.known.to_send.iter().copied().filter(|chunk| !self.files.contains(&chunk.0)).collect();
            let (table, number) = single[rng.index(single.len())];
            ask = Ask::Chunk(table, number, self.version(table, number));
            self.known.to_send.remove(&(table, number));
            let changed = setup.scenario.changed.as_ref().map(|changed| changed.source);
            if changed == Some(tenaz_core::Source::Chunk { table, number }) && self.second.is_empty() {
                asked.push(self.put((gateway + 1) % gateways, Ask::Chunk(table, number, Version::Second)));
            } else if rng.chance(twice_percent) {
                asked.push(self.put((gateway + 1) % gateways, ask));
            }
        }
        if let Ask::File(table) = ask {
            self.known.to_send.retain(|(of, _)| *of != table);
        }
        asked.push(self.put(gateway, ask));
        asked
    }

    fn put(&mut self, gateway: usize, ask: Ask) -> (usize, RequestId, Ask) {
        self.last_request += 1;
        let id = (self.job, self.last_request);
        self.under_way.insert(id, UnderWay { ask, gateway });
        (gateway, id, ask)
    }

    /// Reads an answer.
    pub(crate) fn hear(&mut self, setup: &JobSetup, (now, now_ms): (u64, u64), ask_every: u64, mutation: Mutation) {
        let Some((id, answer)) = self.answers.pop_front() else { return };
        let Some(UnderWay { ask, gateway }) = self.under_way.remove(&id) else { return };
        if answer != Answer::BeingCreated && answer != Answer::Lost {
            self.creation.ready();
        }
        match (ask, answer) {
            (_, Answer::Ended) => self.is_over = true,
            (Ask::Cancel, Answer::Done) => self.wants_cancel = false,
            (Ask::Create, Answer::Done) => self.known.is_created = true,
            (Ask::Missing, Answer::Missing(tables)) => self.take_missing(&tables, now + ask_every, mutation),
            (Ask::Close(table), Answer::Done) => drop(self.known.closed.insert(table)),
            (Ask::Chunk(..) | Ask::File(_), Answer::Done) => {}
            (Ask::Chunk(table, number, version), Answer::Conflict) => {
                // The cluster has the other version.
                match version {
                    Version::First => drop(self.second.insert((table, number))),
                    Version::Second => drop(self.second.remove(&(table, number))),
                }
                self.known.ask_at = now;
            }
            (_, Answer::BeingCreated) => {
                self.gateway += 1;
                self.again(ask, setup);
                if self.creation.unready(now_ms) && mutation != Mutation::NoRecreation {
                    self.known.is_created = false;
                }
            }
            (_, Answer::NotFound) => {
                // A gateway may not have heard of the job yet; one that nobody knows any more is made again.
                self.not_found += 1;
                self.gateway += 1;
                match self.not_found.is_multiple_of(NOT_FOUND_GRACE) {
                    true => self.known = Known::default(),
                    false => self.again(ask, setup),
                }
            }
            (ask, answer) => {
                if answer == Answer::Lost && gateway == self.gateway {
                    self.gateway += 1;
                }
                self.again(ask, setup);
            }
        }
    }

    /// What was asked in vain is asked again.
    fn again(&mut self, ask: Ask, setup: &JobSetup) {
        match ask {
            Ask::Chunk(table, number, _) => drop(self.known.to_send.insert((table, number))),
            Ask::File(table) => {
                let chunks = setup.scenario.chunks(table);
                self.known.to_send.extend((0..chunks).map(|number| (table, number)));
            }
            _ => {}
        }
    }

    fn take_missing(&mut self, tables: &[(bool, Vec<(u64, u64)>)], ask_at: u64, mutation: Mutation) {
        let is_resumed = self.lives > 1;
        self.known.is_asked = true;
        self.known.ask_at = ask_at;
        for (table, (is_closed, missing)) in tables.iter().enumerate() {
            let table = TableId(table as u16);
            match is_closed {
                true => drop(self.known.closed.insert(table)),
                false => drop(self.known.closed.remove(&table)),
            }
            if is_resumed && mutation == Mutation::ResumeSendsNothing {
                continue;
            }
            let numbers = missing.iter().flat_map(|&(first, end)| first..end).map(|number| (table, number));
            let is_under_way = |chunk: &(TableId, u64)| {
                let mut asks = self.under_way.values().map(|under_way| under_way.ask);
                asks.any(|ask| {
                    matches!(ask, Ask::Chunk(table, number, _) if (table, number) == *chunk)
                        || ask == Ask::File(chunk.0)
                })
            };
            let lost: Vec<(TableId, u64)> = numbers.filter(|chunk| !is_under_way(chunk)).collect();
            self.known.to_send.extend(lost);
        }
    }
}
