//! What happens in the cluster, found by comparing heartbeats, and written into the stream of events.
//!
//! All gateways see the same heartbeats. The one with the lowest id writes; when it dies another does, and what both have written
//! is told once ([`EventLog`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenaz_api::{ClusterEvent, ClusterEventKind as Kind};
use tenaz_cluster::{Beat, EventLog, JobView, Role};
use tenaz_core::{End, JobId, MemberId, Partition, QueryOutcome};
use tenaz_engine::Workload;
use tenaz_words::unix_ms;

use crate::app::{App, Shared};

/// How often heartbeats are compared: twice as often as they come.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Compares until the gateway ends.
pub(crate) async fn observe(app: Shared) {
    let closing = app.ending.closing.clone();
    let mut seen = Observed::default();
    let mut members = app.membership.changes();
    let app = Arc::downgrade(&app);
    while let Some(app) = app.upgrade() {
        let is_writer = is_writer(&app);
        let mut news = seen.compare(&app);
        if let Some(supervision) = &app.supervision {
            // What its own machine's supervisors have seen, every gateway tells.
            let own = supervision.news();
            write(&app.events, own).await;
        }
        if !is_writer {
            news.clear();
        }
        write(&app.events, news).await;
        drop(app);
        tokio::select! {
            () = closing.cancelled() => return,
            _ = members.changed() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

async fn write(log: &EventLog, events: Vec<(String, ClusterEvent)>) {
    for (key, event) in events {
        if let Err(error) = log.append(key, event).await {
            tracing::debug!(%error, "an event of the cluster could not be written");
        }
    }
}

fn is_writer(app: &App) -> bool {
    let gateways = app.membership.seen().into_iter().filter(|seen| seen.beat.role == Role::Gateway);
    gateways.map(|seen| seen.beat.member).all(|member| member > app.membership.me())
}

/// What was seen last.
#[derive(Debug, Default)]
struct Observed {
    members: BTreeMap<MemberId, Beat>,
    owners: BTreeMap<(JobId, Option<Partition>), MemberId>,
    jobs: BTreeMap<JobId, JobSeen>,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct JobSeen {
    has_ended: bool,
    ends: usize,
}

type Events = Vec<(String, ClusterEvent)>;

impl Observed {
    fn compare(&mut self, app: &App) -> Events {
        let mut events = Vec::new();
        let seen = app.membership.seen().into_iter().map(|seen| seen.beat);
        let now: BTreeMap<MemberId, Beat> =
            seen.chain([app.membership.own_beat()]).map(|beat| (beat.member, beat)).collect();
        self.compare_members(&now, |member| app.membership.has_left(member), &mut events);
        self.compare_owners(&now, &mut events);
        self.members = now;
        let jobs = app.book.each(|view| (view.card.id.clone(), self.compare_job(view, &mut events)));
        self.jobs = jobs.into_iter().collect();
        events
    }

    fn compare_members(
        &self,
        now: &BTreeMap<MemberId, Beat>,
        has_left: impl Fn(MemberId) -> bool,
        events: &mut Events,
    ) {
        for (member, beat) in now {
            let of = |kind| of_member(kind, beat);
            let Some(before) = self.members.get(member) else {
                events.push((format!("joined {member}"), of(Kind::Joined)));
                continue;
            };
            let (was, is) = (&before.signs, &beat.signs);
            if is.link_epoch > was.link_epoch && was.link_epoch > 0 {
                events.push((format!("link {member} {}", is.link_epoch), of(Kind::LinkRenewed)));
            }
            if is.duplicates > was.duplicates {
                let event = ClusterEvent { count: Some(is.duplicates - was.duplicates), ..of(Kind::DuplicatesDropped) };
                events.push((format!("duplicates {member} {}", is.duplicates), event));
            }
            if is.replays > was.replays {
                let event = ClusterEvent { count: Some(is.replays - was.replays), ..of(Kind::Replayed) };
                events.push((format!("replays {member} {}", is.replays), event));
            }
            for (job, reason) in beat.refused.iter().filter(|(job, _)| !before.refused.contains_key(*job)) {
                let (job, cause) = (Some(job.as_str().to_owned()), Some(reason.as_str().to_owned()));
                let key = format!("stood back {member} {}", job.as_deref().unwrap_or_default());
                events.push((key, ClusterEvent { job, cause, ..of(Kind::StoodBack) }));
            }
        }
        for (member, beat) in self.members.iter().filter(|(member, _)| !now.contains_key(member)) {
            let (kind, cause) = match has_left(*member) {
                true => (Kind::Left, None),
                false => (Kind::Died, Some("its queue on the broker is gone, or it is silent".to_owned())),
            };
            events.push((format!("gone {member}"), ClusterEvent { cause, ..of_member(kind, beat) }));
        }
    }

    /// Partitions that have another owner than before.
    fn compare_owners(&mut self, now: &BTreeMap<MemberId, Beat>, events: &mut Events) {
        let mut taken: BTreeMap<(JobId, MemberId, Option<MemberId>), Vec<u16>> = BTreeMap::new();
        for (&member, beat) in now {
            for (job, claim) in &beat.claims {
                let slots = claim.partitions.iter().copied().map(Some).chain(claim.results.then_some(None));
                for slot in slots {
                    let before = self.owners.insert((job.clone(), slot), member);
                    if let Some(before) = before.filter(|before| *before != member && !now.contains_key(before)) {
                        let partitions = taken.entry((job.clone(), member, Some(before))).or_default();
                        partitions.extend(slot.map(|partition| partition.0));
                    }
                }
            }
        }
        self.owners
            .retain(|(job, _), _| self.jobs.contains_key(job) || now.values().any(|b| b.claims.contains_key(job)));
        for ((job, member, before), partitions) in taken {
            let Some(beat) = now.get(&member) else { continue };
            let name = before.and_then(|before| self.members.get(&before)).map(name_of);
            let cause = name.map(|name| format!("{name}, which owned them, is gone"));
            let key = format!("took over {job} {member} {}", before.map(|m| m.to_string()).unwrap_or_default());
            let job = Some(job.as_str().to_owned());
            events.push((key, ClusterEvent { job, cause, partitions, ..of_member(Kind::TookOver, beat) }));
        }
    }

    fn compare_job(&self, view: &JobView, events: &mut Events) -> JobSeen {
        let id = &view.card.id;
        let job = Some(id.as_str().to_owned());
        let before = self.jobs.get(id);
        let of = |kind, at_ms| ClusterEvent { job: job.clone(), ..ClusterEvent::new(kind, at_ms) };
        if before.is_none() {
            events.push((format!("created {id}"), of(Kind::JobCreated, view.card.created_ms)));
        }
        let ends = view.facts.query_ends().count();
        if before.is_none_or(|before| before.ends < ends) {
            let names = names_of(view);
            for (query, end) in view.facts.query_ends() {
                if let QueryOutcome::Answered { rows, fingerprint } = &end.outcome {
                    let event = ClusterEvent {
                        question: names.get(usize::from(query.0)).cloned(),
                        rows: Some(*rows),
                        fingerprint: Some(fingerprint.clone()),
                        ..of(Kind::QuestionFinal, end.at_ms)
                    };
                    events.push((format!("final {id} {}", query.0), event));
                }
            }
        }
        if let (Some(end), false) = (&view.end, before.is_some_and(|before| before.has_ended)) {
            let cause = match end {
                End::Done(_) => "done".to_owned(),
                End::Failed { code, reason, .. } => format!("failed ({code}): {reason}"),
                End::Cancelled => "cancelled".to_owned(),
                End::Expired => "expired".to_owned(),
            };
            events.push((format!("ended {id}"), ClusterEvent { cause: Some(cause), ..of(Kind::JobEnded, unix_ms()) }));
        }
        JobSeen { has_ended: view.end.is_some(), ends }
    }
}

/// The names of a job's questions, in the order asked.
fn names_of(view: &JobView) -> Vec<String> {
    let workload = view.spec.as_ref().and_then(|spec| {
        let workload = Workload::from_text(&spec.workload).ok()?;
        workload.select(&spec.queries).ok()
    });
    workload.map_or_else(Vec::new, |workload| workload.queries.into_iter().map(|query| query.name).collect())
}

/// The name of a process, the same in every life; without one its role and id.
pub(crate) fn name_of(beat: &Beat) -> String {
    match beat.signs.name.as_str() {
        "" => format!("{}-{}", role_of(beat), beat.member),
        name => name.to_owned(),
    }
}

pub(crate) fn role_of(beat: &Beat) -> &'static str {
    match beat.role {
        Role::Worker => "worker",
        Role::Gateway => "gateway",
    }
}

fn of_member(kind: Kind, beat: &Beat) -> ClusterEvent {
    ClusterEvent {
        name: Some(name_of(beat)),
        role: Some(role_of(beat).to_owned()),
        life: Some(beat.signs.life).filter(|life| *life > 0),
        ..ClusterEvent::new(kind, unix_ms())
    }
}
