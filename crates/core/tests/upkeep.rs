//! What expires, what is cleaned up and what is written again, at simulated times.

use tenaz_core::limits::{MENTION_TURN_MS, MENTIONS_PER_SECOND, TRIM_AFTER_MS, URGENT_TURN_MS};
use tenaz_core::{Chore, JobId, JobSigns, MentionUrgency, Upkeep, UpkeepPatience};

const PATIENCE: UpkeepPatience = UpkeepPatience { idle_ms: 20_000, results_ms: 60_000 };

fn job(n: u16) -> JobId {
    let [high, low] = n.to_be_bytes();
    JobId::from_bytes([high, low, 0, 0, 0, 0, 0, 0])
}

/// An open job whose client is there no more.
fn signs(n: u16) -> JobSigns {
    JobSigns {
        job: job(n),
        ended: false,
        uploaded: false,
        heard_ms: 0,
        under_way: 0,
        progress: 0,
        mention: None,
        turn: 0,
    }
}

/// Looks once a second up to and including `until`, and returns what was ordered when.
fn looks(upkeep: &mut Upkeep, from_ms: u64, until_ms: u64, signs: &JobSigns) -> Vec<(u64, Chore)> {
    let times = (from_ms..=until_ms).step_by(1000);
    times.flat_map(|now| upkeep.look(now, std::slice::from_ref(signs)).into_iter().map(move |c| (now, c))).collect()
}

#[test]
fn a_job_that_nobody_works_on_or_uploads_expires_once() {
    let mut upkeep = Upkeep::new(PATIENCE);
    assert_eq!(looks(&mut upkeep, 0, 20_000, &signs(1)), []);
    let expired = looks(&mut upkeep, 21_000, 24_000, &signs(1));
    assert_eq!(expired, [(21_000, Chore::Expire(job(1)))], "ordered once, not with every look");
    let again = looks(&mut upkeep, 25_000, 29_000, &signs(1));
    assert_eq!(again, [(26_000, Chore::Expire(job(1)))], "it has not helped");
}

/// The chunk of a long task was called lost, because no queue held it, so that the upload counts as incomplete.
#[test]
fn a_job_lives_as_long_as_a_task_or_an_unacknowledged_chunk_of_it_is_under_way() {
    let mut upkeep = Upkeep::new(PATIENCE);
    let busy = JobSigns { under_way: 1, ..signs(1) };
    assert_eq!(looks(&mut upkeep, 0, 200_000, &busy), []);
    assert_eq!(looks(&mut upkeep, 201_000, 220_000, &signs(1)), [], "it has shown life until then");
    assert_eq!(looks(&mut upkeep, 221_000, 221_000, &signs(1)), [(221_000, Chore::Expire(job(1)))]);
}

#[test]
fn progress_and_the_control_log_are_signs_of_life_too() {
    let mut upkeep = Upkeep::new(PATIENCE);
    assert_eq!(looks(&mut upkeep, 0, 19_000, &signs(1)), []);
    let advanced = JobSigns { progress: 1, ..signs(1) };
    assert_eq!(looks(&mut upkeep, 20_000, 40_000, &advanced), []);
    let heard = JobSigns { heard_ms: 30_000, ..advanced };
    assert_eq!(looks(&mut upkeep, 41_000, 50_000, &heard), []);
    assert_eq!(looks(&mut upkeep, 51_000, 51_000, &heard), [(51_000, Chore::Expire(job(1)))]);
}

#[test]
fn a_job_whose_upload_is_complete_never_expires() {
    let mut upkeep = Upkeep::new(PATIENCE);
    assert_eq!(looks(&mut upkeep, 0, 1_000_000, &JobSigns { uploaded: true, ..signs(1) }), []);
}

#[test]
fn an_ended_job_is_trimmed_until_that_succeeds_and_then_removed() {
    let mut upkeep = Upkeep::new(PATIENCE);
    let ended = JobSigns { ended: true, uploaded: true, under_way: 1, ..signs(1) };
    let trims = looks(&mut upkeep, 0, 6_000, &ended);
    assert_eq!(trims, [(TRIM_AFTER_MS, Chore::Trim(job(1))), (6_000, Chore::Trim(job(1)))]);
    upkeep.trimmed(&job(1));
    let touched = JobSigns { heard_ms: 50_000, ..ended };
    assert_eq!(looks(&mut upkeep, 7_000, 110_000, &touched), []);
    assert_eq!(looks(&mut upkeep, 111_000, 111_000, &touched), [(111_000, Chore::Remove(job(1)))]);
}

/// Found by the simulator: a worker that was stopped for longer than jobs may idle wakes up, and has not read yet what happened.
#[test]
fn a_process_that_stood_still_lets_no_job_expire_for_what_it_has_not_read() {
    let mut upkeep = Upkeep::new(PATIENCE);
    assert_eq!(looks(&mut upkeep, 0, 3_000, &signs(1)), []);
    assert_eq!(looks(&mut upkeep, 90_000, 110_000, &signs(1)), [], "it was stopped, or cut off");
    assert_eq!(looks(&mut upkeep, 111_000, 111_000, &signs(1)), [(111_000, Chore::Expire(job(1)))]);
}

#[test]
fn only_the_member_whose_turn_it_is_acts() {
    let mut upkeep = Upkeep::new(PATIENCE);
    let waiting = JobSigns { turn: 1, ..signs(1) };
    assert_eq!(looks(&mut upkeep, 0, 100_000, &waiting), []);
    assert_eq!(looks(&mut upkeep, 101_000, 101_000, &signs(1)), [(101_000, Chore::Expire(job(1)))]);
}

#[test]
fn a_job_is_written_again_once_by_the_first_member_and_later_by_the_next() {
    let due = |turn| JobSigns { mention: Some(MentionUrgency::Due), uploaded: true, turn, ..signs(1) };
    let mut first = Upkeep::new(PATIENCE);
    let ordered = looks(&mut first, 0, MENTION_TURN_MS, &due(0));
    assert_eq!(ordered, [(0, Chore::Mention(job(1))), (MENTION_TURN_MS, Chore::Mention(job(1)))]);
    let mut third = Upkeep::new(PATIENCE);
    let ordered = looks(&mut third, 0, 2 * MENTION_TURN_MS, &due(2));
    assert_eq!(ordered, [(2 * MENTION_TURN_MS, Chore::Mention(job(1)))]);
    // Where the first one has done it, the others have nothing to do, and count anew the next time.
    let mut second = Upkeep::new(PATIENCE);
    assert_eq!(looks(&mut second, 0, 5_000, &due(1)), []);
    assert_eq!(looks(&mut second, 6_000, 6_000, &JobSigns { mention: None, ..due(1) }), []);
    assert_eq!(looks(&mut second, 7_000, 16_000, &due(1)), []);
}

/// Found by the simulator: the first three members had died, each before its turn, when the registry forgot the job.
#[test]
fn a_job_that_is_about_to_be_forgotten_is_not_left_to_each_member_for_long() {
    let of = |mention, turn| JobSigns { mention: Some(mention), uploaded: true, turn, ..signs(1) };
    let mut fourth = Upkeep::new(PATIENCE);
    assert_eq!(looks(&mut fourth, 0, MENTION_TURN_MS, &of(MentionUrgency::Due, 3)), []);
    let urgent = of(MentionUrgency::Urgent, 3);
    let since = MENTION_TURN_MS + 1_000;
    let ordered = looks(&mut fourth, since, since + 3 * URGENT_TURN_MS, &urgent);
    assert_eq!(ordered, [(since + 3 * URGENT_TURN_MS, Chore::Mention(job(1)))], "the three before it come first");
}

#[test]
fn however_many_jobs_are_due_only_so_many_are_written_per_second() {
    let mut upkeep = Upkeep::new(PATIENCE);
    let all: Vec<JobSigns> =
        (0..1000).map(|n| JobSigns { mention: Some(MentionUrgency::Due), uploaded: true, ..signs(n) }).collect();
    // A look for every event that comes.
    let count = |upkeep: &mut Upkeep, second: u64| -> usize {
        (0..1000).step_by(10).map(|ms| upkeep.look(1000 * second + ms, &all).len()).sum()
    };
    assert_eq!(count(&mut upkeep, 0), MENTIONS_PER_SECOND as usize);
    assert_eq!(count(&mut upkeep, 1), MENTIONS_PER_SECOND as usize);
}
