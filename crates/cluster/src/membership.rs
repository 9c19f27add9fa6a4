//! Who is there: heartbeats out and in, and a look at the neighbours' queues.
//!
//! Each member has an exclusive queue, which the broker deletes at once when the member's connection breaks. Members look
//! whether their neighbours' queues are still there, so a death is known within a fraction of a second; a member that
//! hangs is known by its silence. Wrong beliefs cost time, never an answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tenaz_core::{Announcement, BoundedText, JobId, LifeSign, MemberId, Members, Roster};
use tenaz_rabbit::{Consumer, Properties, Target};
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::book::random_number;
use crate::limits::{BEAT_EVERY, PROBE_EVERY, PROBED_MEMBERS, SILENCE};
use crate::{Beat, Error, JobActivity, JobProgress, Link, ProcessSigns, Role, Session, build_id};

/// So many members that have left in order are told from those that died.
const REMEMBERED_FAREWELLS: usize = 64;

/// A member as last heard of.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its last heartbeat.
    pub beat: Beat,
    /// When it came.
    pub at: Instant,
}

/// What a process says of itself with every heartbeat.
type Say = Box<dyn Fn(&mut Beat) + Send + Sync>;

/// The members as one process sees them.
pub struct Membership {
    me: MemberId,
    link: Link,
    role: Role,
    say: Say,
    roster: Mutex<Roster<Seen>>,
    /// Members that have said that they leave: the latest of them.
    left: Mutex<VecDeque<MemberId>>,
    changed: watch::Sender<u64>,
    beat_now: Notify,
    started: Instant,
    leaving: CancellationToken,
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Membership").field("me", &self.me).field("role", &self.role).finish_non_exhaustive()
    }
}

impl Membership {
    /// Joins. `say` fills in what the process has to say with each heartbeat.
    pub fn join(link: &Link, role: Role, me: MemberId, say: impl Fn(&mut Beat) + Send + Sync + 'static) -> Arc<Self> {
        let (changed, _) = watch::channel(0);
        let membership = Arc::new(Self {
            me,
            link: link.clone(),
            role,
            say: Box::new(say),
            roster: Mutex::new(Roster::new(me)),
            left: Mutex::default(),
            changed,
            beat_now: Notify::new(),
            started: Instant::now(),
            leaving: CancellationToken::new(),
        });
        tokio::spawn(Arc::clone(&membership).run());
        membership
    }

    /// A new member's id.
    pub fn new_id() -> Result<MemberId, Error> {
        Ok(MemberId(random_number()?))
    }

    /// This member.
    pub fn me(&self) -> MemberId {
        self.me
    }

    /// Changes whenever somebody comes or goes, or a worker's claims change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Whether a member has said that it leaves, not long ago.
    pub fn has_left(&self, member: MemberId) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).contains(&member)
    }

    /// Looks at the workers believed alive.
    pub fn workers<T>(&self, look: impl FnOnce(&Members) -> T) -> T {
        look(self.lock().workers())
    }

    /// Looks at all members believed alive.
    pub fn everybody<T>(&self, look: impl FnOnce(&Members) -> T) -> T {
        look(self.lock().everybody())
    }

    /// How many workers are believed alive, not counting this process.
    pub fn worker_count(&self) -> usize {
        self.lock().workers().alive().count()
    }

    /// All members as last heard of.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().kept().cloned().collect()
    }

    /// What is going on in all members believed alive, this one included, per job.
    pub fn activity(&self) -> BTreeMap<JobId, JobActivity> {
        let mut all: BTreeMap<JobId, JobActivity> = BTreeMap::new();
        let own = self.own_beat();
        let roster = self.lock();
        for beat in roster.kept().map(|seen| &seen.beat).chain([&own]) {
            for (job, count) in &beat.under_way {
                let activity = all.entry(job.clone()).or_default();
                activity.under_way = activity.under_way.saturating_add(*count);
            }
            for (job, progress) in &beat.progress {
                let activity = all.entry(job.clone()).or_default();
                activity.steps = activity.steps.max(progress.steps());
            }
        }
        all
    }

    /// How many chunks and tasks of a job are under way in other members believed alive.
    pub fn under_way_elsewhere(&self, job: &JobId) -> u64 {
        self.lock().under_way(job)
    }

    /// How far a job is, as far as anybody has said.
    pub fn progress(&self, job: &JobId) -> Option<JobProgress> {
        let roster = self.lock();
        let said = roster.kept().filter_map(|seen| seen.beat.progress.get(job));
        said.copied().max_by_key(|progress| (progress.answers, progress.chunks))
    }

    /// Why a worker believed alive cannot serve a job of its own build, if there is one. Of several reasons, that of the member
    /// with the lowest id.
    pub fn refusal(&self, job: &JobId) -> Option<BoundedText> {
        self.lock().kept().find_map(|seen| seen.beat.refused.get(job).cloned())
    }

    /// Says something now, because what there is to say has changed.
    pub fn beat_now(&self) {
        self.beat_now.notify_one();
    }

    /// Tells the others that this member leaves: its part goes to them at once.
    pub async fn leave(&self) {
        self.leaving.cancel();
        if self.link.trouble().is_none() {
            let session = self.link.session().await;
            self.send(&session, true, None).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Roster<Seen>> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    async fn run(self: Arc<Self>) {
        while !self.leaving.is_cancelled() {
            let session = self.link.session().await;
            if let Err(error) = self.live(&session).await {
                session.met(&error);
                if !session.is_lost() {
                    tracing::warn!(%error, "membership is interrupted");
                    tokio::time::sleep(BEAT_EVERY).await;
                }
            }
        }
    }

    /// One session's life as a member.
    async fn live(&self, session: &Session) -> Result<(), tenaz_rabbit::Error> {
        let names = self.link.names();
        let queue = names.member(self.me);
        let mut beats = Consumer::open_exclusive(&session.beating, &queue, Some(&names.members()), 256).await?;
        // Everybody gets time to come back after the broker was away.
        self.forgive();
        let mut beat = interval(BEAT_EVERY);
        let mut probe = interval(PROBE_EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let calm_until = Instant::now() + SILENCE;
        loop {
            tokio::select! {
                () = self.leaving.cancelled() => return Ok(()),
                () = session.lost() => return Ok(()),
                delivery = beats.next() => {
                    let delivery = delivery?;
                    beats.ack(delivery.tag).await?;
                    match serde_json::from_slice::<Beat>(&delivery.body) {
                        Ok(beat) => self.heard(beat),
                        Err(error) => tracing::warn!(%error, "a heartbeat cannot be read"),
                    }
                }
                _ = beat.tick() => {
                    self.send(session, false, None).await;
                    // Under an alarm no process can say anything, and silence says nothing of it.
                    if session.beating.is_blocked() { self.forgive() } else { self.expire() }
                }
                () = self.beat_now.notified() => self.send(session, false, None).await,
                _ = probe.tick() => {
                    if Instant::now() >= calm_until {
                        self.look_after_neighbours(session).await?;
                    }
                }
            }
        }
    }

    async fn look_after_neighbours(&self, session: &Session) -> Result<(), tenaz_rabbit::Error> {
        let neighbours = self.everybody(|members| members.successors(self.me, PROBED_MEMBERS));
        for member in neighbours {
            // A broker that blocks publishers would hold this task, and nobody could be heard meanwhile.
            if session.beating.is_blocked() {
                break;
            }
            let probed = session.beat_publisher.probe(&self.link.names().member(member)).await;
            if !probed.inspect_err(|error| session.met_publishing(error))? {
                tracing::info!(%member, "a member is gone");
                self.lost(member);
                self.send(session, false, Some(member)).await;
            }
        }
        Ok(())
    }

    /// What this member says of itself.
    pub fn own_beat(&self) -> Beat {
        let mut beat = Beat {
            member: self.me,
            role: self.role,
            host: hostname(),
            pid: std::process::id(),
            url: None,
            build: build_id(),
            refused: BTreeMap::new(),
            claims: BTreeMap::new(),
            progress: BTreeMap::new(),
            under_way: BTreeMap::new(),
            signs: ProcessSigns::default(),
            leaving: false,
            gone: None,
        };
        beat.signs.measure();
        beat.signs.link_epoch = self.link.epoch();
        (self.say)(&mut beat);
        beat
    }

    async fn send(&self, session: &Session, leaving: bool, gone: Option<MemberId>) {
        let mut beat = Beat { leaving, gone, ..self.own_beat() };
        if leaving {
            beat.claims.clear();
        }
        let body = serde_json::to_vec(&beat).expect("heartbeats are plain data");
        // A heartbeat that is lost is followed by another; a broker that blocks publishers must not hold this task.
        if !session.beating.is_blocked()
            && let Err(error) = session
                .beat_publisher
                .publish_transient(Target::Fanout(&self.link.names().members()), body, &Properties::of_kind("beat"))
                .await
        {
            session.met_publishing(&error);
        }
    }

    fn heard(&self, beat: Beat) {
        if beat.leaving {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            left.push_back(beat.member);
            while left.len() > REMEMBERED_FAREWELLS {
                left.pop_front();
            }
        }
        let (build, claims, refused) =
            (beat.build.clone(), beat.claims.clone(), beat.refused.keys().cloned().collect());
        let sign = LifeSign {
            member: beat.member,
            is_worker: beat.role == Role::Worker,
            said: Announcement { build, claims, refused },
            under_way: beat.under_way.clone(),
            leaving: beat.leaving,
            gone: beat.gone,
        };
        let is_news = self.lock().heard(sign, Seen { beat, at: Instant::now() }, self.now_ms());
        self.tell_if(is_news);
    }

    fn lost(&self, member: MemberId) {
        self.lock().lost(member);
        self.tell_if(true);
    }

    fn expire(&self) {
        let silent = self.lock().expire(self.now_ms(), SILENCE.as_millis() as u64);
        for member in &silent {
            tracing::info!(%member, "a member is silent and believed dead");
        }
        self.tell_if(!silent.is_empty());
    }

    fn tell_if(&self, is_news: bool) {
        if is_news {
            self.changed.send_modify(|version| *version += 1);
        }
    }

    fn forgive(&self) {
        self.lock().forgive(self.now_ms());
    }
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned())
}
