//! Registered users. A user is a function of the seed and the id, so that no table of users is ever held.

use crate::calendar::Date;
use crate::coffee::hours;
use crate::coffee::month::{MONTHS, Month};
use crate::field::number;
use crate::rng::mix;
use crate::scale::Scale;
use crate::sink::Sink;
use crate::{Error, Run, Written};

const HEADER: &str = "user_id,gender,birthdate,registered_at";

/// Registrations per month at scale 1. The first four are the real counts; the rest pass through the ids seen in real
/// transactions (255,2xx on 2024-07-01, 296,142 twelve days later) and end at 2.2 million.
const REGISTRATIONS: [u64; MONTHS] = [
    580, 938, 1_601, 2_655, 4_250, 6_800, 10_800, 17_000, 26_000, 39_000, 60_000, 85_500, 105_000, 125_000, 142_000,
    154_000, 163_000, 168_000, 172_000, 175_000, 178_000, 181_000, 184_000, 197_876,
];

/// 2009-06-30, the birthday of the youngest user, in days from 1970-01-01.
const YOUNGEST_BORN: i64 = 14_425;
/// From the oldest to the youngest user: 45 years.
const BIRTH_SPAN_DAYS: u64 = 16_436;

/// How many users register when: what a month's files need to know of the users.
pub(super) struct Registrations {
    before_month: u64,
    in_month: u64,
    days: u64,
}

impl Registrations {
    pub(super) fn of(month: Month, scale: Scale) -> Self {
        let before_month = REGISTRATIONS[..month.index].iter().map(|&real| scale.count(real)).sum();
        Self { before_month, in_month: scale.count(REGISTRATIONS[month.index]), days: month.days }
    }

    /// Users of `day` (from 0): the number of ids given out before it, and how many register on it.
    pub(super) fn on(&self, day: u64) -> Day {
        let start = self.in_month * day / self.days;
        let end = self.in_month * (day + 1) / self.days;
        Day { before: self.before_month + start, count: end - start }
    }
}

/// The registrations of one day. They lie evenly between the fractions of the day's business.
#[derive(Clone, Copy)]
pub(super) struct Day {
    before: u64,
    count: u64,
}

impl Day {
    /// The highest id that has surely registered by `second`; 0 when nobody has.
    #[inline]
    pub(super) fn registered_by(self, second: u64) -> u64 {
        // One less than the even spacing says: rounding must never let a user buy before registering.
        self.before + ((hours::fraction_of(second) * self.count) >> 32).saturating_sub(1)
    }

    fn second_of(self, nth: u64) -> u64 {
        hours::second_of(((2 * nth + 1) << 31) / self.count)
    }
}

/// Writes the file of one month.
pub(super) fn write(run: &Run<'_>, month: Month) -> Result<Written, Error> {
    let path = run.out.join(format!("users/users_{}.csv", month.compact()));
    let mut sink = Sink::create(path, HEADER, &run.progress)?;
    let registrations = Registrations::of(month, run.scale);
    for day in 0..month.days {
        let users = registrations.on(day);
        let date = month.date_text(day);
        for nth in 0..users.count {
            write_user(sink.buffer(), run.seed, users.before + nth + 1, &date, users.second_of(nth));
            sink.appended(1)?;
        }
    }
    sink.finish()
}

fn write_user(out: &mut Vec<u8>, seed: u64, id: u64, date: &[u8], second: u64) {
    let traits = mix(mix(seed) ^ id);
    number(out, id);
    out.extend_from_slice(if traits % 100 < 49 { b",male,".as_slice() } else { b",female," });
    let age_days = (u128::from(traits) * u128::from(BIRTH_SPAN_DAYS)) >> 64;
    Date::from_days(YOUNGEST_BORN - age_days as i64).write(out);
    out.push(b',');
    out.extend_from_slice(date);
    out.push(b' ');
    hours::write(out, second);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_volume_has_two_point_two_million_users() {
        assert_eq!(REGISTRATIONS.iter().sum::<u64>(), 2_200_000);
        assert!(REGISTRATIONS.is_sorted());
    }

    #[test]
    fn nobody_counts_as_registered_before_registering() {
        let day = Day { before: 100, count: 37 };
        for second in 0..13 * 3600 {
            let known = day.registered_by(second);
            if known > 100 {
                assert!(day.second_of(known - 101) <= second);
            }
        }
    }
}
