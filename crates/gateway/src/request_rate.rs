//! How many requests a second a tenant may make of one gateway: a bucket that fills by the limit each second, and holds a few seconds' worth.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Seconds of unused requests that may be made up for at once.
const BURST_SECONDS: f64 = 4.0;
/// Tenants that are remembered; the others have full buckets.
const MAX_TENANTS: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    requests: f64,
    at: Instant,
}

/// The requests that each tenant may still make.
#[derive(Debug)]
pub(crate) struct RequestRate {
    per_second: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl RequestRate {
    pub(crate) fn new(per_second: usize) -> Self {
        Self { per_second: per_second as f64, buckets: Mutex::default() }
    }

    /// Whether the tenant may make a request now; if so, it counts.
    pub(crate) fn allows(&self, tenant: &str, now: Instant) -> bool {
        let full = self.per_second * BURST_SECONDS;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_TENANTS {
            buckets.retain(|_, bucket| now.duration_since(bucket.at).as_secs_f64() < BURST_SECONDS);
        }
        let bucket = buckets.entry(tenant.to_owned()).or_insert(Bucket { requests: full, at: now });
        let filled = now.duration_since(bucket.at).as_secs_f64() * self.per_second;
        let requests = (bucket.requests + filled).min(full);
        *bucket = Bucket { requests: if requests >= 1.0 { requests - 1.0 } else { requests }, at: now };
        requests >= 1.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_tenant_that_asks_too_often_is_refused_and_another_is_not() {
        let (rate, start) = (RequestRate::new(10), Instant::now());
        let allowed = |tenant: &str, now: Instant| (0..100).filter(|_| rate.allows(tenant, now)).count();
        assert_eq!(allowed("ana", start), 40, "a burst");
        assert_eq!(allowed("ana", start), 0);
        assert_eq!(allowed("bob", start), 40);
        assert_eq!(allowed("ana", start + Duration::from_secs(1)), 10, "then by the second");
    }
}
