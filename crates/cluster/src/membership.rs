//! Who is there: heartbeats out and in, and a look at the neighbours' queues.
//!
//! Each member has an exclusive queue, which the broker deletes at once when the member's connection breaks. Members look
//! whether their neighbours' queues are still there, so a death is known within a fraction of a second; a member that
//! hangs is known by its silence. Wrong beliefs cost time, never an answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tenaz_core::{JobId, MemberId, Members};
use tenaz_rabbit::{Consumer, Properties, Target};
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::book::random_number;
use crate::limits::{BEAT_EVERY, PROBE_EVERY, PROBED_MEMBERS, SILENCE};
use crate::{Beat, Error, JobProgress, Link, Role, Session};

/// A member as last heard of.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its last heartbeat.
    pub beat: Beat,
    /// When it came.
    pub at: Instant,
}

#[derive(Debug, Default)]
struct State {
    everybody: Members,
    workers: Members,
    seen: BTreeMap<MemberId, Seen>,
    /// When silence was last looked at.
    looked_ms: u64,
}

/// What a process says of itself with every heartbeat.
type Say = Box<dyn Fn(&mut Beat) + Send + Sync>;

/// The members as one process sees them.
pub struct Membership {
    me: MemberId,
    link: Link,
    role: Role,
    say: Say,
    state: Mutex<State>,
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
            state: Mutex::default(),
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

    /// Looks at the workers believed alive.
    pub fn workers<T>(&self, look: impl FnOnce(&Members) -> T) -> T {
        look(&self.lock().workers)
    }

    /// Looks at all members believed alive.
    pub fn everybody<T>(&self, look: impl FnOnce(&Members) -> T) -> T {
        look(&self.lock().everybody)
    }

    /// How many workers are believed alive, not counting this process.
    pub fn worker_count(&self) -> usize {
        self.lock().workers.alive().count()
    }

    /// All members as last heard of.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.values().cloned().collect()
    }

    /// How far a job is, as far as anybody has said.
    pub fn progress(&self, job: &JobId) -> Option<JobProgress> {
        let state = self.lock();
        let said = state.seen.values().filter_map(|seen| seen.beat.progress.get(job));
        said.copied().max_by_key(|progress| (progress.answers, progress.chunks))
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        session.reading.declare_exclusive(&queue, Some(&names.members())).await?;
        let mut beats = Consumer::open(&session.reading, &queue, 256).await?;
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
                    self.expire();
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
            if session.writing.is_blocked() {
                break;
            }
            if !session.publisher.probe(&self.link.names().member(member)).await? {
                tracing::info!(%member, "a member is gone");
                self.lost(member);
                self.send(session, false, Some(member)).await;
            }
        }
        Ok(())
    }

    async fn send(&self, session: &Session, leaving: bool, gone: Option<MemberId>) {
        let mut beat = Beat {
            member: self.me,
            role: self.role,
            host: hostname(),
            pid: std::process::id(),
            url: None,
            claims: BTreeMap::new(),
            progress: BTreeMap::new(),
            leaving,
            gone,
        };
        (self.say)(&mut beat);
        if leaving {
            beat.claims.clear();
        }
        let body = serde_json::to_vec(&beat).expect("heartbeats are plain data");
        // A heartbeat that is lost is followed by another; a broker that blocks publishers must not hold this task.
        if !session.writing.is_blocked()
            && let Err(error) = session
                .publisher
                .publish_transient(Target::Fanout(&self.link.names().members()), body, &Properties::of_kind("beat"))
                .await
        {
            session.met_publishing(&error);
        }
    }

    fn heard(&self, beat: Beat) {
        if beat.member == self.me {
            return;
        }
        let now = self.now_ms();
        let mut state = self.lock();
        let mut news = false;
        if let Some(gone) = beat.gone.filter(|gone| *gone != self.me) {
            news |= state.everybody.lost(gone);
            state.workers.lost(gone);
            state.seen.remove(&gone);
        }
        if beat.leaving {
            news |= state.everybody.left(beat.member, now);
            state.workers.left(beat.member, now);
            state.seen.remove(&beat.member);
        } else {
            news |= state.everybody.heard(beat.member, BTreeMap::new(), now);
            news |= state.seen.get(&beat.member).is_none_or(|seen| seen.beat.claims != beat.claims);
            if beat.role == Role::Worker {
                state.workers.heard(beat.member, beat.claims.clone(), now);
            }
            if state.everybody.is_alive(beat.member) {
                state.seen.insert(beat.member, Seen { beat, at: Instant::now() });
            }
        }
        drop(state);
        if news {
            self.changed.send_modify(|version| *version += 1);
        }
    }

    fn lost(&self, member: MemberId) {
        let mut state = self.lock();
        state.everybody.lost(member);
        state.workers.lost(member);
        state.seen.remove(&member);
        drop(state);
        self.changed.send_modify(|version| *version += 1);
    }

    fn expire(&self) {
        let now = self.now_ms();
        let silence = SILENCE.as_millis() as u64;
        let mut state = self.lock();
        // If this process itself stood still (stopped, or the broker blocked it), it could not hear anybody.
        let stood_still = now.saturating_sub(state.looked_ms) > silence / 2;
        state.looked_ms = now;
        if stood_still {
            state.everybody.forgive(now);
            state.workers.forgive(now);
            return;
        }
        let silent = state.everybody.expire(now, silence);
        state.workers.expire(now, silence);
        for member in &silent {
            tracing::info!(%member, "a member is silent and believed dead");
            state.seen.remove(member);
        }
        drop(state);
        if !silent.is_empty() {
            self.changed.send_modify(|version| *version += 1);
        }
    }

    fn forgive(&self) {
        let now = self.now_ms();
        let mut state = self.lock();
        state.everybody.forgive(now);
        state.workers.forgive(now);
    }
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned())
}
