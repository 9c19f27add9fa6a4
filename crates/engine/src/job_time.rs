//! The time of a job: what `now()` is for all of its queries, on every worker.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::arrow::temporal_conversions::{MICROSECONDS_IN_DAY, timestamp_us_to_datetime};

/// A moment in UTC, to the microsecond. It is fixed when a job is made and travels with it, so that a question about "the last
/// 30 days" has one answer, and can be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobTime(i64);

/// A text that is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time; write 2025-06-30, 2025-06-30T12:00:00Z or 2025-06-30T12:00:00+02:00")]
pub struct NoTime(String);

impl JobTime {
    /// The present, by this machine's clock.
    pub fn of_clock() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// Days since 1970.
    pub fn days(self) -> i32 {
        i32::try_from(self.0.div_euclid(MICROSECONDS_IN_DAY)).unwrap_or(i32::MAX)
    }
}

impl FromStr for JobTime {
    type Err = NoTime;

    /// A date (its first moment) or a date and a time, in UTC where no zone is said.
    fn from_str(text: &str) -> Result<Self, NoTime> {
        let nanos = string_to_timestamp_nanos(text.trim()).map_err(|_| NoTime(text.to_owned()))?;
        Ok(Self(nanos.div_euclid(1_000)))
    }
}

impl fmt::Display for JobTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match timestamp_us_to_datetime(self.0) {
            Some(time) => write!(f, "{}Z", time.format("%Y-%m-%dT%H:%M:%S%.f")),
            None => write!(f, "{} µs after 1970", self.0),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_back_as_it_was_written() {
        for (text, shown) in [
            ("2025-06-30T12:00:00Z", "2025-06-30T12:00:00Z"),
            ("2025-06-30", "2025-06-30T00:00:00Z"),
            ("2025-06-30 12:00:00.5", "2025-06-30T12:00:00.500Z"),
            ("2025-06-30T01:00:00+02:00", "2025-06-29T23:00:00Z"),
            ("1969-12-31T23:59:59.000001Z", "1969-12-31T23:59:59.000001Z"),
        ] {
            let time: JobTime = text.parse().unwrap();
            assert_eq!(time.to_string(), shown);
            assert_eq!(shown.parse::<JobTime>().unwrap(), time);
        }
        assert_eq!("1969-12-31T23:59:59Z".parse::<JobTime>().unwrap().days(), -1);
        for text in ["", "yesterday", "2025-13-01", "12:00"] {
            assert!(text.parse::<JobTime>().is_err(), "{text}");
        }
    }
}
