//! The cluster for people and programs: who is there, what they do, what has happened.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use tenaz_api::{
    Broker, BrokerState, Cluster, ClusterEvent, Member, MemberClaim, MemberState, PartitionOwner, Supervision,
    TenantUse,
};
use tenaz_cluster::{JobView, Seen};
use tenaz_core::{JobId, Partition};
use tenaz_words::{rfc3339, unix_ms};
use tokio::time::Instant;

use crate::app::{App, Shared};
use crate::auth::Tenant;
use crate::events::event;
use crate::limits::EVENT_HEARTBEAT;
use crate::observer::{name_of, role_of};
use crate::problem::{Code, Problem};
use crate::state::progress;
use crate::stream::{self, Out};
use crate::supervision::Supervised;

/// `GET /v1/cluster`
pub(crate) async fn cluster(State(app): State<Shared>, tenant: Tenant) -> Json<Cluster> {
    let asked = match &app.supervision {
        Some(supervision) => supervision.ask().await,
        None => None,
    };
    let (supervision, supervised) = match (&app.supervision, asked) {
        (None, _) => (Supervision::None, Supervised::default()),
        (Some(_), None) => (Supervision::Unreachable, Supervised::default()),
        (Some(_), Some(told)) => (Supervision::Watched, told),
    };
    let sees_all = tenant.is_operator || app.tokens.is_none();
    let mut members = members(&app, supervised.members);
    if !sees_all {
        let owned = |job: &str| JobId::parse(job).and_then(|id| app.book.view(&id, |view| tenant.owns(&view.card)));
        for member in &mut members {
            member.claims.retain(|claim| owned(&claim.job) == Some(true));
            member.doing.retain(|task| owned(&task.job) == Some(true));
            (member.host, member.pid, member.url, member.text) = (None, None, None, None);
        }
    }
    let tenants = tenants(&app).into_iter().filter(|used| sees_all || used.tenant == tenant.name).collect();
    Json(Cluster {
        at: rfc3339(unix_ms()),
        seen_by: app.vitals.identity().name.to_string(),
        event_id: app.events.latest(),
        supervision,
        leader: supervised.leader,
        broker: broker(&app),
        members,
        tenants,
    })
}

fn broker(app: &App) -> Broker {
    match app.link.trouble() {
        Some(trouble) => Broker { state: BrokerState::Away, text: Some(trouble) },
        None if app.link.is_blocked() => {
            let text = "it takes no messages until memory or disk is freed".to_owned();
            Broker { state: BrokerState::Blocked, text: Some(text) }
        }
        None => Broker { state: BrokerState::Up, text: None },
    }
}

/// All processes: those that supervisors know, with what heartbeats say of them, and those that only heartbeats know.
fn members(app: &App, supervised: Vec<Member>) -> Vec<Member> {
    let own = Seen { beat: app.membership.own_beat(), at: std::time::Instant::now() };
    let mut heard: BTreeMap<String, Member> = BTreeMap::new();
    for seen in app.membership.seen().into_iter().chain([own]) {
        let member = of_seen(&seen);
        heard.insert(member.name.clone(), member);
    }
    let mut all: Vec<Member> = supervised
        .into_iter()
        .map(|known| match heard.remove(&known.name) {
            None => known,
            Some(said) => merged(known, said),
        })
        .collect();
    all.extend(heard.into_values());
    all.sort_by(|a, b| (&a.role, a.name.len(), &a.name).cmp(&(&b.role, b.name.len(), &b.name)));
    all
}

/// What supervisors say of a process has precedence, but for what they cannot know.
fn merged(known: Member, said: Member) -> Member {
    Member {
        host: said.host.or(known.host),
        build: said.build,
        memory_bytes: said.memory_bytes,
        threads: said.threads,
        cpu_seconds: said.cpu_seconds,
        pulse: said.pulse.or(known.pulse),
        state: if said.state == MemberState::StandsBack { said.state } else { known.state },
        text: said.text.or(known.text),
        url: known.url.or(said.url),
        claims: said.claims,
        doing: said.doing,
        ..known
    }
}

fn of_seen(seen: &Seen) -> Member {
    let (beat, signs) = (&seen.beat, &seen.beat.signs);
    let is_measured = !signs.name.is_empty();
    let claims = beat.claims.iter().map(|(job, claim)| MemberClaim {
        job: job.as_str().to_owned(),
        partitions: claim.partitions.iter().map(|partition| partition.0).collect(),
        results: claim.results,
        under_way: beat.under_way.get(job).copied().unwrap_or(0),
    });
    let refusal = beat.refused.values().next();
    let silent = seen.at.elapsed().as_secs_f64();
    let state = match (refusal, silent > 1.5) {
        (_, true) => MemberState::Silent,
        (Some(_), _) => MemberState::StandsBack,
        (None, _) => MemberState::Up,
    };
    Member {
        name: name_of(beat),
        role: role_of(beat).to_owned(),
        life: Some(signs.life).filter(|_| is_measured),
        state,
        text: refusal.map(|reason| reason.as_str().to_owned()),
        host: Some(beat.host.clone()),
        pid: Some(beat.pid),
        url: beat.url.clone(),
        build: Some(beat.build.to_string()),
        silent_seconds: Some(silent),
        up_seconds: Some(signs.up_ms as f64 / 1000.0).filter(|_| is_measured),
        pulse: Some(signs.pulse).filter(|_| is_measured),
        memory_bytes: Some(signs.memory_bytes).filter(|_| is_measured),
        threads: Some(signs.threads).filter(|_| is_measured),
        cpu_seconds: Some(signs.cpu_ms as f64 / 1000.0).filter(|_| is_measured),
        restarts: None,
        last_ending: None,
        claims: claims.collect(),
        doing: Vec::new(),
    }
}

fn tenants(app: &App) -> Vec<TenantUse> {
    let mut used: BTreeMap<String, TenantUse> = BTreeMap::new();
    let add = |view: &JobView| {
        let tenant = view.card.tenant.clone();
        let nothing = TenantUse { tenant: tenant.clone(), jobs: 0, open_jobs: 0, bytes: 0, cpu_seconds: 0.0 };
        (tenant, nothing, view.end.is_none(), progress(app, view).bytes)
    };
    for (tenant, nothing, is_open, bytes) in app.book.each(add) {
        let used = used.entry(tenant).or_insert(nothing);
        used.jobs += 1;
        used.open_jobs += u64::from(is_open);
        used.bytes += bytes;
    }
    used.into_values().collect()
}

/// The owners of a job's partitions, and of its answers.
pub(crate) fn owners(app: &App, job: &JobId, partitions: u16) -> Vec<PartitionOwner> {
    let seen = app.membership.seen();
    let owner = |slot: Option<Partition>| {
        let holds = |seen: &&Seen| {
            let claim = seen.beat.claims.get(job);
            claim.is_some_and(|claim| slot.map_or(claim.results, |slot| claim.partitions.contains(&slot)))
        };
        PartitionOwner { partition: slot.map(|slot| slot.0), member: seen.iter().find(holds).map(|s| name_of(&s.beat)) }
    };
    (0..partitions).map(|n| owner(Some(Partition(n)))).chain([owner(None)]).collect()
}

/// `GET /v1/cluster/events`
pub(crate) async fn events(
    State(app): State<Shared>,
    tenant: Tenant,
    Query(parameters): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let header = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let last =
        match header.or(parameters.get("last_event_id").map(String::as_str)) {
            None | Some("") => None,
            Some(text) => Some(text.trim().parse::<u64>().map_err(|_| {
                Problem::new(Code::BadRequest, "Last-Event-ID is not an id of this stream: leave it out")
            })?),
        };
    let (out, response) = stream::open(&app, "text/event-stream")?;
    tokio::spawn(async move {
        tokio::select! {
            () = tell(&app, &tenant, last, &out) => {}
            () = out.closed() => {}
            () = app.ending.closing.cancelled() => {}
        }
    });
    Ok(response)
}

async fn tell(app: &App, tenant: &Tenant, mut last: Option<u64>, out: &Out) {
    let mut changes = app.events.changes();
    let mut spoken = Instant::now();
    let mut has_told_all = false;
    loop {
        changes.borrow_and_update();
        // A broker that has lost the end of the stream uses its places again.
        if last.is_some_and(|last| app.events.latest().is_some_and(|latest| latest < last)) {
            last = None;
        }
        let mut bytes = Vec::new();
        for (at, happened) in app.events.after(last) {
            last = Some(at);
            if may_see(app, tenant, &happened) {
                bytes.extend(event("cluster", Some(at), &happened));
            }
        }
        if !std::mem::replace(&mut has_told_all, true) {
            bytes.extend_from_slice(b": all\n\n");
        }
        if bytes.is_empty() && spoken.elapsed() >= EVENT_HEARTBEAT {
            bytes = b": still here\n\n".to_vec();
        }
        if !bytes.is_empty() {
            spoken = Instant::now();
            if !out.send(bytes).await {
                return;
            }
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(EVENT_HEARTBEAT) => {}
        }
    }
}

/// Tenants are told of their own jobs, and of processes without hosts and addresses; operators of everything.
fn may_see(app: &App, tenant: &Tenant, happened: &ClusterEvent) -> bool {
    if tenant.is_operator || app.tokens.is_none() {
        return true;
    }
    match &happened.job {
        None => true,
        Some(job) => {
            let id = JobId::parse(job);
            id.and_then(|id| app.book.view(&id, |view| tenant.owns(&view.card))).unwrap_or(false)
        }
    }
}
