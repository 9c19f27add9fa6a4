//! Whose request it is.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use tenaz_core::JobCard;

use crate::app::Shared;
use crate::problem::{Code, Problem};
use crate::strangers::Introduction;
use crate::tokens::Scopes;

/// The tenant of everybody, where there are no tokens.
const PUBLIC: &str = "public";

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tenant {
    /// The tenant whose token it is.
    pub(crate) name: String,
    /// Whether the jobs of all tenants may be seen and ended.
    pub(crate) is_operator: bool,
}

impl Tenant {
    /// A tenant that has to do with its own jobs only.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), is_operator: false }
    }

    pub(crate) fn owns(&self, card: &JobCard) -> bool {
        card.tenant == self.name
    }

    /// Whether it may know that the job is there, and end it.
    pub(crate) fn may_see(&self, card: &JobCard) -> bool {
        self.is_operator || self.owns(card)
    }

    /// Refuses what has to do with the data of a job of another tenant.
    pub(crate) fn check_owns(&self, card: &JobCard) -> Result<(), Problem> {
        match self.owns(card) {
            true => Ok(()),
            false => {
                Err(Problem::new(Code::Forbidden, "an operator sees and ends the jobs of others, but not their data"))
            }
        }
    }
}

impl FromRequestParts<Shared> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        if app.ending.closing.is_cancelled() {
            return Err(Problem::new(Code::ShuttingDown, "this gateway is shutting down: use another one"));
        }
        let Some(tokens) = &app.tokens else {
            check_site(&parts.headers)?;
            introduce(parts);
            check_rate(app, PUBLIC)?;
            return Ok(Self::named(PUBLIC));
        };
        let holder = bearer_token(&parts.headers).and_then(|token| tokens.holder(token)).ok_or_else(unknown)?;
        introduce(parts);
        check_rate(app, &holder.tenant)?;
        check_scope(&parts.method, parts.uri.path(), holder.scopes)?;
        Ok(Self { name: holder.tenant, is_operator: holder.scopes.operate })
    }
}

/// The connection of the request belongs to a known client from now on.
fn introduce(parts: &Parts) {
    if let Some(introduction) = parts.extensions.get::<Introduction>() {
        introduction.accept();
    }
}

/// Refuses requests beyond the limit of their tenant.
fn check_rate(app: &Shared, tenant: &str) -> Result<(), Problem> {
    match app.request_rate.allows(tenant, Instant::now()) {
        true => Ok(()),
        false => {
            let limit = app.limits.requests_per_second;
            let text = format!(
                "tenant {tenant} makes more requests than the limit requests-per-second of {limit}: ask less often"
            );
            Err(Problem::new(Code::Busy, text))
        }
    }
}

fn unknown() -> Problem {
    Problem::new(
        Code::Unauthorized,
        "send 'Authorization: Bearer TOKEN' with a token of this gateway that has not expired",
    )
}

/// The token that a request brings.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Refuses what a token is not for.
fn check_scope(method: &Method, path: &str, scopes: Scopes) -> Result<(), Problem> {
    let ends_a_job = *method == Method::DELETE || (*method == Method::POST && path.ends_with("/cancel"));
    let (may, needed) = match *method {
        Method::GET | Method::HEAD => (scopes.read || scopes.operate, "read"),
        _ if ends_a_job => (scopes.submit || scopes.operate, "submit or operate"),
        _ => (scopes.submit, "submit"),
    };
    let refused = || {
        let text = format!("the token is not for this: it needs the scope {needed} in the gateway's tokens file");
        Problem::new(Code::Forbidden, text)
    };
    if may { Ok(()) } else { Err(refused()) }
}

/// Without tokens a browser on this machine is trusted, but not the web sites that it shows: neither by a request from one
/// of their pages, nor by a name of theirs that leads here.
fn check_site(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let refused = |what: &str| Err(Problem::new(Code::Forbidden, format!("{what}; use a tokens file to allow it")));
    let Some(host) = text(header::HOST) else { return Ok(()) };
    if !is_local_name(host) {
        return refused("without tokens the gateway must be called by its address or as localhost");
    }
    match text(header::ORIGIN) {
        Some(origin) if origin.split_once("://").is_none_or(|(_, site)| !site.eq_ignore_ascii_case(host)) => {
            refused("the request comes from another web site")
        }
        _ => Ok(()),
    }
}

fn is_local_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        check_site(&headers).is_ok()
    }

    #[test]
    fn a_token_is_good_for_its_scopes_only() {
        let may = |scopes: Scopes| {
            let asked = [
                (Method::GET, "/v1/jobs/j"),
                (Method::POST, "/v1/jobs"),
                (Method::PUT, "/v1/jobs/j/tables/t/chunks/0"),
                (Method::POST, "/v1/jobs/j/cancel"),
                (Method::DELETE, "/v1/jobs/j"),
            ];
            asked.map(|(method, path)| check_scope(&method, path, scopes).is_ok())
        };
        assert_eq!(may(Scopes { read: true, ..Scopes::default() }), [true, false, false, false, false]);
        assert_eq!(may(Scopes { submit: true, ..Scopes::default() }), [false, true, true, true, true]);
        assert_eq!(may(Scopes { operate: true, ..Scopes::default() }), [true, false, false, true, true]);
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        assert!(check("127.0.0.1:8080", None));
        assert!(check("localhost", Some("http://localhost")));
        assert!(check("[::1]:80", Some("http://[::1]:80")));
        assert!(!check("127.0.0.1:8080", Some("https://evil.example")));
        assert!(!check("127.0.0.1:8080", Some("null")));
        assert!(!check("evil.example", None));
    }
}
