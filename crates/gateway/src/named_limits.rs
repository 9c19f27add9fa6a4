//! The limits of a deployment by name: to set them on the command line, and to show them.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde_json::Number;
use tenaz_api::TenantLimits;
use tenaz_words::parse_span;

use crate::Limits;
use crate::app::Shared;
use crate::auth::Tenant;

/// A limit that has a name.
struct NamedLimit<'a> {
    name: &'static str,
    /// For whom or what it holds.
    of: &'static str,
    value: LimitValue<'a>,
}

enum LimitValue<'a> {
    Count(&'a mut usize),
    Bytes(&'a mut u64),
    Time(&'a mut Duration),
}

impl Limits {
    /// All limits that have a name.
    fn named(&mut self) -> [NamedLimit<'_>; 9] {
        use LimitValue::{Bytes, Count, Time};
        let limit = |name, of, value| NamedLimit { name, of, value };
        [
            limit("open-jobs", "cluster", Count(&mut self.open_jobs)),
            limit("open-jobs-per-tenant", "tenant", Count(&mut self.open_jobs_per_tenant)),
            limit("jobs", "cluster", Count(&mut self.jobs)),
            limit("jobs-per-tenant", "tenant", Count(&mut self.jobs_per_tenant)),
            limit("requests-per-second", "tenant and gateway", Count(&mut self.requests_per_second)),
            limit("partitions", "job", Count(&mut self.partitions)),
            limit("data-bytes", "job", Bytes(&mut self.data_bytes)),
            limit("job-time", "job", Time(&mut self.job_time)),
            limit("planning-time", "job", Time(&mut self.planning)),
        ]
    }

    /// Sets a limit: `job-time=2h`.
    ///
    /// # Errors
    /// There is no such limit, or this is no value for it; the text says what to write.
    pub fn set(&mut self, setting: &str) -> Result<(), String> {
        let (name, text) = setting.split_once('=').ok_or_else(|| format!("{setting:?}: write NAME=VALUE"))?;
        let mut limits = self.named();
        let known = limits.iter().map(|limit| limit.name).collect::<Vec<_>>().join(", ");
        let limit = limits.iter_mut().find(|limit| limit.name == name);
        let limit = limit.ok_or_else(|| format!("there is no limit {name:?}: there are {known}"))?;
        let number = || text.parse::<u64>().ok().filter(|number| *number > 0);
        let set = match &mut limit.value {
            LimitValue::Count(value) => number().map(|number| **value = number as usize),
            LimitValue::Bytes(value) => number().map(|number| **value = number),
            LimitValue::Time(value) => parse_span(text).filter(|time| !time.is_zero()).map(|time| **value = time),
        };
        let wanted = if matches!(limit.value, LimitValue::Time(_)) { "a time such as 90s or 2h" } else { "a number" };
        set.ok_or_else(|| format!("{name}={text}: write {wanted}"))
    }

    fn describe(mut self) -> Vec<tenaz_api::NamedLimit> {
        let limits = self.named().map(|limit| {
            let value = match limit.value {
                LimitValue::Count(count) => Number::from(*count),
                LimitValue::Bytes(bytes) => Number::from(*bytes),
                LimitValue::Time(time) => Number::from_f64(time.as_secs_f64()).unwrap_or_else(|| 0.into()),
            };
            tenaz_api::NamedLimit { name: limit.name.to_owned(), of: limit.of.to_owned(), value }
        });
        limits.into()
    }
}

/// `GET /v1/limits`: what holds here, and how much of it the tenant uses.
pub(crate) async fn limits(State(app): State<Shared>, tenant: Tenant) -> Json<TenantLimits> {
    let mine = app.book.each(|view| tenant.owns(&view.card).then_some(view.end.is_none()));
    let mine: Vec<bool> = mine.into_iter().flatten().collect();
    let open = mine.iter().filter(|open| **open).count();
    let used = [("jobs-per-tenant", mine.len()), ("open-jobs-per-tenant", open)];
    let used = used.into_iter().map(|(name, count)| (name.to_owned(), count as u64)).collect();
    Json(TenantLimits { tenant: tenant.name, limits: app.limits.clone().describe(), used })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_set_and_shown_by_its_name() {
        let names: Vec<&str> = Limits::default().named().map(|limit| limit.name).to_vec();
        for name in names {
            let mut limits = Limits::default();
            let value = if name.ends_with("-time") { "7s" } else { "7" };
            limits.set(&format!("{name}={value}")).unwrap();
            let shown = limits.describe();
            let shown = shown.iter().find(|limit| limit.name == name).unwrap();
            assert_eq!(shown.value.as_f64(), Some(7.0), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_set_is_told() {
        let wrong = |setting: &str| Limits::default().set(setting).unwrap_err();
        assert!(wrong("jobs").contains("NAME=VALUE"));
        assert!(wrong("job=1").contains("open-jobs-per-tenant"));
        assert!(wrong("jobs=many").contains("a number"));
        assert!(wrong("jobs=0").contains("a number"));
        assert!(wrong("job-time=5").contains("90s"));
    }
}
