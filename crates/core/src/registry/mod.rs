//! The registry of jobs: an event log that every process reads to the same state.
//!
//! ```text
//!  Created ──▶ (being made) ──Prepared──▶ Open ──Ended──▶ Done | Failed | Cancelled | Expired ──Removed──▶ (nothing)
//! ```
//!
//! The log is bounded, so a job that is still there is written down again before its last mention could be cut off
//! ([`Registry::due`]). Nothing grows with the number of jobs that are gone.
//!
//! **Reading.** With every new connection the log is read from its start again ([`Registry::begin_reading`]), up to a mark that
//! the reader itself has written; then what it says replaces what was known. Offsets prove nothing: a log that has lost its end
//! in a power cut uses the same offsets again, for other events. A job that is known and no longer in the log was lost with the
//! log's end, and is due to be written again. Where log and memory disagree about an end, the log is right: it is what all
//! processes read in the same order.
//!
//! **Late mentions.** A process that was stopped for a while may write a job again that was removed meanwhile, before it has read
//! that. So a mention after [`RegistryEvent::Removed`] says nothing, for as long as the removal is remembered
//! ([`MAX_REMEMBERED_REMOVALS`]); only [`RegistryEvent::Created`] makes a removed job anew.

mod event;

use std::collections::{BTreeMap, BTreeSet};

use crate::JobId;
use crate::limits::MAX_REMEMBERED_REMOVALS;

pub use event::{DoneSummary, End, JobCard, RegistryEvent};

/// A job of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What is known of it.
    pub card: JobCard,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// Whether all its queues and logs exist.
    pub prepared: bool,
}

impl Entry {
    /// The event that says all this.
    fn mention(&self) -> RegistryEvent {
        RegistryEvent::Still { card: self.card.clone(), end: self.end.clone(), prepared: self.prepared }
    }

    /// About as many bytes as [`Entry::mention`] takes in the log.
    fn mention_bytes(&self) -> u64 {
        const FIELDS: usize = 512;
        const PER_TABLE: usize = 4;
        let card = &self.card;
        let texts = card.tenant.len() + card.workload.len() + card.spec_digest.len() + card.plan_digest.len();
        let reason = match &self.end {
            Some(End::Failed { code, reason, .. }) => code.len() + reason.len(),
            _ => 0,
        };
        (FIELDS + PER_TABLE * card.tables.len() + texts + reason) as u64
    }

    /// Brings this to what the log says. What the log does not say is to be written there, and stays.
    fn follow(&mut self, card: &JobCard, prepared: bool, end: Option<&End>) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.card != *card {
            self.card.clone_from(card);
        }
        if prepared && !self.prepared {
            self.prepared = true;
            changes.push(Change::Prepared(self.card.id.clone()));
        }
        if let Some(end) = end.filter(|end| self.end.as_ref() != Some(end)) {
            self.end = Some(end.clone());
            changes.push(Change::Ended(self.card.id.clone()));
        }
        changes
    }

    /// Takes over what a later mention says. Its writer may have read more of the log than is left for others to read, so its
    /// word about the end counts.
    fn learn(&mut self, later: &Entry) {
        self.prepared |= later.prepared;
        if later.end.is_some() {
            self.end.clone_from(&later.end);
        }
    }
}

/// What an event changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A job that was not there before.
    Opened(JobId),
    /// All queues and logs of a job exist.
    Prepared(JobId),
    /// A job has ended. After the log has lost its end, this may be told again, with another end.
    Ended(JobId),
    /// A job is gone.
    Removed(JobId),
}

/// All jobs that are there, as one process knows them.
///
/// The driver calls [`Registry::begin_reading`] whenever it begins to read the log at its start, writes the mark into the log,
/// and passes every event on to [`Registry::apply`] in the log's order. It does so with every new connection; during one
/// connection no reader falls so far behind that the log drops what it has not read.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    known: BTreeMap<JobId, Entry>,
    log: LogState,
    /// The mark at which the present reading has seen all that was written before it began.
    awaited_mark: Option<u64>,
}

/// What the log says, as far as it was read.
#[derive(Debug, Clone, Default)]
struct LogState {
    /// Jobs with the place, in bytes read, of the last mention from which on the log says all this.
    jobs: BTreeMap<JobId, (Entry, u64)>,
    /// Jobs of which the log has said that they are gone, since what it says was last compared with what is known.
    removed: BTreeSet<JobId>,
    /// What it has said in that time of jobs that it does not hold: whether they are prepared, and how they ended. It may have
    /// lost them.
    unplaced: BTreeMap<JobId, (bool, Option<End>)>,
    /// The last jobs that it has called removed, with the place, in bytes read, where it did.
    buried: BTreeMap<JobId, u64>,
    bytes_read: u64,
}

/// How soon a job must be written into the registry again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MentionUrgency {
    /// Before long.
    Due,
    /// At once: half of the time is over in which the log still keeps what it says of the job.
    Urgent,
}

impl Registry {
    /// The log is read from its start, perhaps not for the first time. What is known stays until the event
    /// [`RegistryEvent::Mark`] with this number is read.
    pub fn begin_reading(&mut self, mark: u64) {
        self.log = LogState::default();
        self.awaited_mark = Some(mark);
    }

    /// Whether everything was read that had been written when the present reading began.
    pub fn is_caught_up(&self) -> bool {
        self.awaited_mark.is_none()
    }

    /// Takes the next event of the log in, which takes `bytes` there.
    pub fn apply(&mut self, bytes: u64, event: RegistryEvent) -> Vec<Change> {
        let touched = event.job().cloned();
        let is_awaited = matches!(event, RegistryEvent::Mark { number } if self.awaited_mark == Some(number));
        self.log.apply(bytes, event);
        if is_awaited {
            self.awaited_mark = None;
        }
        if !self.is_caught_up() {
            return Vec::new();
        }
        let changes = match touched {
            Some(id) => self.compare(&id),
            None if is_awaited => {
                let all: BTreeSet<JobId> = self.known.keys().chain(self.log.jobs.keys()).cloned().collect();
                all.iter().flat_map(|id| self.compare(id)).collect()
            }
            None => Vec::new(),
        };
        (self.log.removed, self.log.unplaced) = Default::default();
        changes
    }

    /// Brings what is known of a job to what the log says of it.
    fn compare(&mut self, id: &JobId) -> Vec<Change> {
        let said = self.log.jobs.get(id).map(|(said, _)| said);
        let Some(entry) = self.known.get_mut(id) else {
            let Some(said) = said else { return Vec::new() };
            self.known.insert(id.clone(), said.clone());
            return vec![Change::Opened(id.clone())];
        };
        match said {
            Some(said) => entry.follow(&said.card, said.prepared, said.end.as_ref()),
            None if self.log.removed.contains(id) => {
                self.known.remove(id);
                vec![Change::Removed(id.clone())]
            }
            None => {
                let card = entry.card.clone();
                let (prepared, end) = self.log.unplaced.get(id).cloned().unwrap_or_default();
                // Of two ends of a job that the log has lost, the one that is known came first.
                let end = end.filter(|_| entry.end.is_none());
                entry.follow(&card, prepared, end.as_ref())
            }
        }
    }

    /// A job.
    pub fn get(&self, id: &JobId) -> Option<&Entry> {
        self.known.get(id)
    }

    /// All jobs.
    pub fn jobs(&self) -> impl Iterator<Item = &Entry> {
        self.known.values()
    }

    /// Jobs that have not ended.
    pub fn open_jobs(&self) -> impl Iterator<Item = &Entry> {
        self.known.values().filter(|entry| entry.end.is_none())
    }

    /// Jobs to be written down again in a log that keeps `kept_bytes`: those of which it does not say all that is known, and
    /// those whose last mention it would soon drop. None before everything is read: until then everything looks old.
    pub fn due(&self, kept_bytes: u64) -> BTreeMap<JobId, MentionUrgency> {
        if !self.is_caught_up() {
            return BTreeMap::new();
        }
        let stale_bytes = self.stale_bytes(kept_bytes);
        let urgent_bytes = stale_bytes + kept_bytes.saturating_sub(stale_bytes) / 2;
        let due = |(id, entry): (&JobId, &Entry)| {
            let Some((said, at)) = self.log.jobs.get(id) else { return Some((id.clone(), MentionUrgency::Due)) };
            let urgency = match self.log.bytes_read - at {
                bytes if bytes > urgent_bytes => MentionUrgency::Urgent,
                bytes if bytes > stale_bytes || said != entry => MentionUrgency::Due,
                _ => return None,
            };
            Some((id.clone(), urgency))
        };
        self.known.iter().filter_map(due).collect()
    }

    /// How far back a job's last mention may lie. Writing all jobs again must take less than that, or each round of it would
    /// make the next one necessary.
    fn stale_bytes(&self, kept_bytes: u64) -> u64 {
        let all: u64 = self.known.values().map(Entry::mention_bytes).sum();
        (kept_bytes / 4).max(2 * all).min(kept_bytes / 4 * 3)
    }

    /// The event that writes a job down again.
    pub fn mention(&self, id: &JobId) -> Option<RegistryEvent> {
        self.known.get(id).map(Entry::mention)
    }
}

impl LogState {
    fn apply(&mut self, bytes: u64, event: RegistryEvent) {
        self.bytes_read += bytes;
        match event {
            RegistryEvent::Created { card } => {
                self.buried.remove(&card.id);
                self.mention(Entry { card, end: None, prepared: false });
            }
            // Its writer had not read that the job is gone.
            RegistryEvent::Still { card, .. } if self.buried.contains_key(&card.id) => {}
            RegistryEvent::Still { card, end, prepared } => self.mention(Entry { card, end, prepared }),
            RegistryEvent::Prepared { id } => match self.jobs.get_mut(&id) {
                Some((entry, _)) => entry.prepared = true,
                None => self.unplaced.entry(id).or_default().0 = true,
            },
            RegistryEvent::Ended { id, end } => match self.jobs.get_mut(&id) {
                Some((entry, _)) => drop(entry.end.get_or_insert(end)),
                None => drop(self.unplaced.entry(id).or_default().1.get_or_insert(end)),
            },
            RegistryEvent::Mark { .. } => {}
            RegistryEvent::Removed { id } => {
                self.jobs.remove(&id);
                self.removed.insert(id.clone());
                self.bury(id);
            }
        }
    }

    fn bury(&mut self, id: JobId) {
        self.buried.insert(id, self.bytes_read);
        if self.buried.len() > MAX_REMEMBERED_REMOVALS {
            let oldest = self.buried.iter().min_by_key(|(_, at)| **at).map(|(id, _)| id.clone());
            oldest.map(|id| self.buried.remove(&id));
        }
    }

    fn mention(&mut self, entry: Entry) {
        let at = self.bytes_read;
        let known = self.jobs.entry(entry.card.id.clone()).or_insert_with(|| (entry.clone(), at));
        known.0.learn(&entry);
        // One that says less than was said before does not replace that: a process that begins to read here would know less.
        if known.0 == entry {
            known.1 = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FaultClass;

    const KEPT: u64 = 4 * 1024;

    fn card(n: u8) -> JobCard {
        JobCard {
            id: JobId::from_bytes([n; 8]),
            tenant: "public".to_owned(),
            workload: "coffee".to_owned(),
            partitions: 1,
            waves: 1,
            tables: BTreeSet::new(),
            spec_digest: String::new(),
            build: Default::default(),
            plan_digest: String::new(),
            created_ms: 0,
        }
    }

    fn created(n: u8) -> RegistryEvent {
        RegistryEvent::Created { card: card(n) }
    }

    fn ended(n: u8, end: End) -> RegistryEvent {
        RegistryEvent::Ended { id: card(n).id, end }
    }

    fn failed(reason: &str) -> End {
        End::Failed { code: "task".to_owned(), reason: reason.into(), class: FaultClass::Query }
    }

    fn removed(n: u8) -> RegistryEvent {
        RegistryEvent::Removed { id: card(n).id }
    }

    fn due(registry: &Registry) -> BTreeSet<JobId> {
        registry.due(KEPT).into_keys().collect()
    }

    /// Found by the simulator: a worker was stopped, the job was done and removed, and then the worker wrote it again.
    #[test]
    fn a_mention_that_comes_after_the_removal_does_not_bring_a_job_back() {
        let mut registry = Registry::default();
        let still = RegistryEvent::Still { card: card(1), end: None, prepared: true };
        let is_there = |registry: &Registry| registry.get(&card(1).id).is_some();
        registry.apply(10, created(1));
        registry.apply(10, removed(1));
        assert_eq!(registry.apply(10, still.clone()), []);
        assert!(!is_there(&registry) && registry.due(KEPT).is_empty());
        // Nor for a process that starts later.
        let mut late = Registry::default();
        late.begin_reading(7);
        for event in [created(1), removed(1), still.clone(), RegistryEvent::Mark { number: 7 }] {
            late.apply(10, event);
        }
        assert!(!is_there(&late));
        // The client may have made it anew.
        assert_eq!(registry.apply(10, created(1)), [Change::Opened(card(1).id)]);
        registry.apply(10, still);
        assert!(registry.get(&card(1).id).is_some_and(|entry| entry.prepared));
    }

    #[test]
    fn a_mention_becomes_urgent_when_half_of_the_time_for_it_is_over() {
        let mut registry = Registry::default();
        registry.apply(10, created(1));
        let stale_bytes = registry.stale_bytes(KEPT);
        let mut urgency = |bytes: u64| {
            registry.apply(bytes, RegistryEvent::Mark { number: 0 });
            registry.due(KEPT).get(&card(1).id).copied()
        };
        assert_eq!(urgency(stale_bytes), None);
        assert_eq!(urgency((KEPT - stale_bytes) / 2), Some(MentionUrgency::Due));
        assert_eq!(urgency(1), Some(MentionUrgency::Urgent));
    }

    fn end_of(registry: &Registry, n: u8) -> Option<End> {
        registry.get(&card(n).id).and_then(|entry| entry.end.clone())
    }

    #[test]
    fn an_end_says_whose_fault_it_is_and_old_ends_without_that_are_still_read() {
        let end = failed("overflow");
        let text = serde_json::to_string(&end).expect("JSON");
        assert_eq!(text, r#"{"state":"failed","code":"task","reason":"overflow","class":"query"}"#);
        assert_eq!(serde_json::from_str::<End>(&text).expect("an end"), end);
        let old = r#"{"state":"failed","code":"no_disk","reason":"full"}"#;
        let End::Failed { class, .. } = serde_json::from_str(old).expect("an end of an older version") else {
            panic!("another end")
        };
        assert_eq!(class, FaultClass::Data);
    }

    #[test]
    fn the_first_end_counts_and_a_removed_job_leaves_nothing() {
        let mut registry = Registry::default();
        let id = card(1).id;
        assert_eq!(registry.apply(10, created(1)), [Change::Opened(id.clone())]);
        assert_eq!(registry.apply(10, created(1)), []);
        assert_eq!(registry.apply(10, ended(1, End::Done(DoneSummary::default()))), [Change::Ended(id.clone())]);
        assert_eq!(registry.apply(10, ended(1, End::Cancelled)), []);
        assert_eq!(end_of(&registry, 1), Some(End::Done(DoneSummary::default())));
        assert_eq!(registry.apply(10, removed(1)), [Change::Removed(id)]);
        assert_eq!(registry.apply(10, ended(1, End::Expired)), []);
        assert_eq!(registry.jobs().count(), 0);
    }

    #[test]
    fn a_job_that_is_still_there_is_written_down_again_before_the_log_forgets_it() {
        let mut registry = Registry::default();
        registry.apply(700, created(1));
        registry.apply(700, created(2));
        registry.apply(300, removed(2));
        assert!(registry.due(KEPT).is_empty());
        registry.apply(300, RegistryEvent::Mark { number: 1 });
        assert_eq!(due(&registry), BTreeSet::from([card(1).id]));
        let mention = registry.mention(&card(1).id).expect("a job");
        assert_eq!(mention, RegistryEvent::Still { card: card(1), end: None, prepared: false });
        registry.apply(700, mention.clone());
        assert!(registry.due(KEPT).is_empty());
        // A process that starts later, after the beginning was cut off, knows the job all the same.
        let mut late = Registry::default();
        late.apply(700, mention);
        assert!(late.get(&card(1).id).is_some());
    }

    #[test]
    fn writing_all_jobs_again_does_not_make_it_necessary_to_write_them_again() {
        let mut registry = Registry::default();
        let reason = "x".repeat(100);
        (0..8).for_each(|n| {
            registry.apply(600, created(n));
            registry.apply(600, ended(n, failed(&reason)));
        });
        let mut rounds = 0;
        loop {
            let due = due(&registry);
            if due.is_empty() {
                break;
            }
            rounds += 1;
            assert!(rounds < 3, "this does not end");
            for id in due {
                let mention = registry.mention(&id).expect("a job");
                registry.apply(300, mention);
            }
        }
        assert!(rounds > 0, "nothing was due");
    }

    #[test]
    fn a_log_that_has_lost_its_end_is_read_again_and_completed_and_is_right_about_ends() {
        let mut registry = Registry::default();
        (1..=3).for_each(|n| drop(registry.apply(10, created(n))));
        registry.apply(10, ended(1, End::Done(DoneSummary::default())));
        registry.apply(10, ended(2, End::Done(DoneSummary::default())));
        registry.apply(10, created(9));
        // The log has lost everything after the first two jobs; then other things were written.
        registry.begin_reading(7);
        assert_eq!(registry.apply(10, created(1)), []);
        assert_eq!(registry.apply(10, created(2)), []);
        assert_eq!(registry.apply(10, ended(2, End::Cancelled)), []);
        assert_eq!(registry.apply(10, created(4)), []);
        assert_eq!(registry.apply(10, removed(9)), []);
        assert_eq!(registry.apply(10, RegistryEvent::Mark { number: 6 }), [], "the mark of an earlier reading");
        assert!(registry.due(KEPT).is_empty() && !registry.is_caught_up());
        let changes = registry.apply(10, RegistryEvent::Mark { number: 7 });
        let told = [Change::Ended(card(2).id), Change::Opened(card(4).id), Change::Removed(card(9).id)];
        assert_eq!(changes, told);
        assert_eq!(
            (end_of(&registry, 1), end_of(&registry, 2)),
            (Some(End::Done(DoneSummary::default())), Some(End::Cancelled))
        );
        assert_eq!(due(&registry), BTreeSet::from([card(1).id, card(3).id]));
        // It ends before anybody has written it again.
        assert_eq!(registry.apply(10, ended(3, End::Done(DoneSummary::default()))), [Change::Ended(card(3).id)]);
        registry.apply(10, RegistryEvent::Still { card: card(3), end: None, prepared: true });
        assert_eq!(due(&registry), BTreeSet::from([card(1).id, card(3).id]));
        for n in [1, 3] {
            let mention = registry.mention(&card(n).id).expect("a job");
            assert_eq!(registry.apply(10, mention), []);
        }
        assert!(registry.due(KEPT).is_empty());
    }
}
