//! The simulator finds mistakes: each of these breaks one rule and is found out within some thousand seeds.

mod parallel;

use parallel::in_parallel;
use tenaz_sim::{Fault, MUTATIONS, Mutation, Options, Plan, Shape, run};

/// Within so many seeds every mistake shows.
const SEEDS: u64 = 1_500;

const UNSAFE_ACK: &str = "was acknowledged before its output was in log";
const WRONG: &str = "is right";
const HANGS: &str = "a job has not ended";
const NOTHING_LED: &str = "in a way that nothing has led to";
const SHOULD_NOT: &str = "a job failed that should not";
const INPUT: &str = "were taken in";
const LOST: &str = "were called lost, but none is";
const UNREADY: &str = "was begun before broadcast";

/// Mistakes that are not found, each with the reason. All but the first change no answer and keep no job from its end.
const NOT_FOUND: [(Mutation, &str); 9] = [
    // crates/cli/tests/cluster/flapping.rs finds it with real processes. Here it was seldom found before, too.
    (Mutation::LookUpLate, "a partition must be lost and regained while its task waits for a thread: 0 of 20,000 runs"),
    (Mutation::OtherPlanServes, "the simulated rows have one plan"),
    (Mutation::RefusedReceipt, "the client asks what is missing, and sends it again"),
    (Mutation::NoReceiptCheck, "the lineage of the answers shows two versions of a chunk, too"),
    (Mutation::SameLife, "deaths are counted by member, and a member that joins again has not died"),
    (Mutation::ReadBeyondEnd, "what is missed is searched for, and sent again"),
    (Mutation::StaleReading, "messages are known by their identity, not by their reading"),
    (Mutation::CloseEarly, "how many chunks a table has is known before they have arrived"),
    (Mutation::EndOnce, "whoever owns the results announces the end again when nothing moves"),
];

/// Within so many seeds a mistake must show.
fn seeds(mutation: Mutation) -> u64 {
    match mutation {
        Mutation::NoLineage | Mutation::LookUpLate => 4 * SEEDS,
        _ => SEEDS,
    }
}

/// What was broken first, and in which seed.
fn found(mutation: Mutation, seeds: u64) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| {
        let (plan, faults) = (plan(mutation, seed), faults(mutation, seed));
        // A table that waits for another.
        let shape = (mutation == Mutation::PlacesHeld).then_some(Shape::Dimension);
        let beside_poison = mutation == Mutation::CompanyIgnored;
        let report = run(&Options { seed, mutation, plan, faults, shape, beside_poison, ..Options::default() });
        report.expect("shapes are valid").violation.map(|rule| (seed, rule))
    })
}

/// Faults that bring a mistake to light which chance alone seldom does.
fn plan(mutation: Mutation, seed: u64) -> Option<Plan> {
    match mutation {
        // A partition is lost and regained in a moment.
        Mutation::LookUpLate => Some(flaps(seed)),
        // The disk stays full, but another worker has room.
        Mutation::ClaimAfterStandingBack => Some(vec![(0, Fault::FullDisk(0, 1_000_000))]),
        Mutation::StaleFinished | Mutation::KeepIncoming => Some(full_disks()),
        _ => None,
    }
}

/// The same in jobs of any size.
fn faults(mutation: Mutation, seed: u64) -> Option<Plan> {
    match mutation {
        // The upload is not complete, and one task takes long.
        Mutation::ExpireUnacked => {
            let busy = (0..4).map(|slot| (150, Fault::LongTask(slot, 20_000)));
            Some(busy.chain([(150, Fault::LeaveClient(0, 1_000_000))]).collect())
        }
        Mutation::ExpireUploaded => {
            Some(pauses(300).into_iter().chain([(301, Fault::LeaveClient(0, 1_000_000))]).collect())
        }
        Mutation::ExpireTouched | Mutation::NoTouch => {
            Some(pauses(100).into_iter().chain([(101, Fault::LeaveClient(0, 1))]).collect())
        }
        // The job lasts for longer than the registry remembers.
        Mutation::NoMention => Some(pauses(200)),
        Mutation::ConfirmClockEarly | Mutation::BeatsInLine => Some(vec![(60, Fault::SlowBroker(1_000_000))]),
        Mutation::DeleteConfirmed => Some(vec![(120, Fault::StalledDisk(8_000))]),
        Mutation::CancelIgnored => Some(vec![(100, Fault::Cancel(0))]),
        Mutation::NoQueueMend | Mutation::NoConfirmDeadline => {
            Some((0..12).map(|n| (20 * n, Fault::DeadQueue(0))).collect())
        }
        // The answers are made, and somebody believes that nothing moves.
        Mutation::ConcludeTwice => {
            Some((10..80).flat_map(|n| (0..4).map(move |slot| (15 * n, Fault::Stall(slot)))).collect())
        }
        // Workers die in the middle of what they send.
        Mutation::NoLineage => Some((0..4).map(|n| (250 + 100 * n, Fault::KillWorker((n % 4) as usize))).collect()),
        // A partition is taken over when nothing has arrived for long, and is read late.
        Mutation::SearchAtTakeover => {
            let busy = (0..2).map(|slot| (100, Fault::LongTask(slot, 20_000)));
            let takeover = 700 + seed * 7 % 3_000;
            let late = (1..4).map(|slot| (takeover, Fault::SilentStreams(slot, 2_000)));
            Some(busy.chain([(takeover, Fault::KillWorker(0))]).chain(late).collect())
        }
        Mutation::SearchWhileOthersWork => Some((0..2).map(|slot| (150, Fault::LongTask(slot, 20_000))).collect()),
        Mutation::NoRejoin => Some((0..4).map(|slot| (150, Fault::FullDisk(slot, 30))).collect()),
        // A power cut takes the end of the creation, and whoever knew it dies.
        Mutation::NoRecreation => {
            let cut = 30 + seed % 100;
            let gateways = (0..2).map(|slot| (cut + 40, Fault::KillGateway(slot)));
            let workers = (0..4).map(|slot| (cut + 40, Fault::KillWorker(slot)));
            Some([(cut, Fault::PowerCut)].into_iter().chain(gateways).chain(workers).collect())
        }
        // Others work for long, and then all happens in a moment.
        Mutation::IdleForAMoment => {
            let busy = (0..4).map(|slot| (100 + seed % 200, Fault::LongTask(slot, 1_500 + 400 * slot as u64)));
            Some(busy.collect())
        }
        // A worker sleeps through the end of a job.
        Mutation::LateMention => Some(vec![(300 + seed % 300, Fault::Pause(0, 6_000))]),
        Mutation::ResumeSendsNothing => Some(vec![(150, Fault::KillClient)]),
        // The log of a job that has just been made ends with what it asks.
        Mutation::SpecNotRestored => Some(vec![(30 + seed % 60, Fault::PowerCut)]),
        Mutation::NoResubscribe => Some((0..4).map(|slot| (100, Fault::SilentStreams(slot, 10_000_000))).collect()),
        _ => None,
    }
}

/// All workers stand still for long.
fn pauses(step: u64) -> Plan {
    (0..4).map(|slot| (step, Fault::Pause(slot, 20_000))).collect()
}

/// Disks are full for a moment, again and again.
fn full_disks() -> Plan {
    (0..6).flat_map(|time| (0..2).map(move |slot| (30 + 60 * time, Fault::FullDisk(slot, 10)))).collect()
}

fn flaps(seed: u64) -> Plan {
    [40, 300, 560]
        .into_iter()
        .map(move |step| step + seed % 120)
        .flat_map(|step| (0..2).map(move |slot| (step, Fault::Flap(slot, 200))))
        .collect()
}

fn expected(mutation: Mutation) -> &'static [&'static str] {
    use Mutation as M;
    match mutation {
        M::AckBeforeConfirm
        | M::FirstMessageOnly
        | M::NoEmptyMessages
        | M::WrongLog
        | M::RefusalIsConfirm
        | M::AckMultiple
        | M::DrainAcks => &[UNSAFE_ACK],
        M::NoDedup => &[INPUT, "was accounted for twice", "records were read, but", WRONG],
        M::KeepReleased => &[INPUT, WRONG],
        M::ComputeOnPartialInput | M::ForgetFailures => &[WRONG],
        M::ConcludeEarly | M::AnswerEarly | M::MixContents | M::LookUpLate | M::ConcludeTwice | M::NoLineage => {
            &[WRONG]
        }
        M::SnapshotEarly | M::TakeLastPart => &[WRONG, INPUT],
        M::IgnoreWaves | M::CompleteFinishedEarly => &[UNREADY],
        M::TakeFinishedEarly => &[INPUT, WRONG, SHOULD_NOT],
        M::NoRejoin => &[NOTHING_LED, HANGS],
        M::StandBackFails => &[NOTHING_LED],
        M::NoQueueMend => &[HANGS, "expired although"],
        M::NoExoneration | M::CompanyIgnored => &[SHOULD_NOT],
        M::JobsMixed => &["came though nobody asked for it", LOST, HANGS],
        M::LostChannel => &[HANGS, LOST],
        M::StaleFinished => &["was begun twice", UNREADY],
        M::TaskTwice => &["were handed out before"],
        M::NoReread | M::ReadFromNext | M::KeepChunks | M::KeepIncoming => &[LOST, HANGS],
        M::SearchAtTakeover => &["ms after a takeover"],
        M::StaleConsumer => &["was acknowledged over another connection than it came by"],
        M::AttemptUnwritten => &["is the limit", HANGS],
        M::ExonerateUnfinished => &["is the limit", HANGS],
        M::EndIgnored => &["has not heard of the end", "was not removed", HANGS],
        M::SentIsConfirmed => &["which is not in its queue"],
        M::OneChunkShort => &["chunks, but chunk", NOTHING_LED],
        M::ReceiptOfOtherBytes | M::FactsOfOther => &[SHOULD_NOT, WRONG, HANGS, "panicked", UNSAFE_ACK],
        M::WrongWave => &[UNREADY, SHOULD_NOT],
        M::ReceiptOfNext => &["which is not in its queue"],
        M::ExpireUnacked | M::ExpireUploaded | M::ExpireTouched | M::NoTouch => &["expired although", NOTHING_LED],
        M::NoResubscribe | M::NoRecreation => &["expired although", HANGS],
        // A chunk whose receipt was on its way is lost with its queue, and is called so.
        M::DeleteConfirmed => &["a work queue was deleted", LOST],
        M::MentionByAll => &["was written into the registry", "the registry has forgotten"],
        M::NoMention => &["the registry has forgotten"],
        // It pushes the end of the job out of the registry before everybody has heard of it.
        M::UnboundedText => &["the registry has forgotten", HANGS],
        M::KeepRegistryOffset | M::RefusedEvent => &["has not heard of the end", "was not removed", HANGS],
        M::TrimOpenJobs => &["although it has not ended"],
        M::TrimResults => &["when it had just ended"],
        M::NoTrim | M::NoRemove => &["was not removed", "is not removed"],
        M::CancelIgnored => &["is cancelled, but it is not"],
        M::SearchWhileOthersWork | M::IdleForAMoment => &[LOST],
        M::LateMention => &["is not removed", "was not removed", "has not heard of the end", HANGS],
        M::ConfirmClockEarly => &[SHOULD_NOT, HANGS, "a work queue was deleted"],
        M::NoUnserved | M::OtherBuildOwns | M::PlacesHeld | M::ChannelLimitSilent => &[HANGS, LOST],
        M::OneRecordShort => &["records were read, but"],
        // A worker that sends much is believed dead.
        M::BeatsInLine => &["given up although a worker serves it", HANGS],
        _ => &[HANGS],
    }
}

#[test]
fn every_mistake_is_found() {
    let is_sought = |mutation: &Mutation| !NOT_FOUND.iter().any(|(not_found, _)| not_found == mutation);
    let sought: Vec<Mutation> = MUTATIONS.iter().copied().filter(is_sought).collect();
    assert!(sought.len() >= 80, "{} mistakes", sought.len());
    let mut wrong = Vec::new();
    for (mutation, found) in in_parallel(sought, |&mutation| (mutation, found(mutation, seeds(mutation)))) {
        match found {
            None => wrong.push(format!("{mutation:?} was not found in {} seeds", seeds(mutation))),
            Some((seed, rule)) if !expected(mutation).iter().any(|text| rule.contains(text)) => {
                wrong.push(format!("{mutation:?}, seed {seed}: {rule}"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_faults_that_bring_mistakes_to_light_break_nothing_without_one() {
    let has_faults = |mutation: &Mutation| plan(*mutation, 0).is_some() || faults(*mutation, 0).is_some();
    let mutations: Vec<Mutation> = MUTATIONS.iter().copied().filter(has_faults).collect();
    in_parallel(mutations, |&mutation| {
        for seed in 0..40 {
            let (plan, faults) = (plan(mutation, seed), faults(mutation, seed));
            let report = run(&Options { seed, plan, faults, ..Options::default() }).expect("shapes are valid");
            assert_eq!(report.violation, None, "the faults for {mutation:?}, seed {seed}");
        }
    });
}
