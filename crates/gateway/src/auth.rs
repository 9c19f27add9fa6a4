//! Whose request it is.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::app::Shared;
use crate::problem::{Code, Problem};

/// The tenant of everybody, where there are no tokens.
const PUBLIC: &str = "public";

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tenant(pub(crate) String);

impl FromRequestParts<Shared> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        if app.ending.closing.is_cancelled() {
            return Err(Problem::new(Code::ShuttingDown, "this gateway is shutting down: use another one"));
        }
        let Some(tokens) = &app.tokens else {
            check_site(&parts.headers)?;
            return Ok(Self(PUBLIC.to_owned()));
        };
        let token = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let tenant = token.and_then(|token| tokens.tenant(token));
        let unknown =
            || Problem::new(Code::Unauthorized, "send 'Authorization: Bearer TOKEN' with a token of this gateway");
        tenant.map(Self).ok_or_else(unknown)
    }
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
    fn pages_of_other_sites_are_refused() {
        assert!(check("127.0.0.1:8080", None));
        assert!(check("localhost", Some("http://localhost")));
        assert!(check("[::1]:80", Some("http://[::1]:80")));
        assert!(!check("127.0.0.1:8080", Some("https://evil.example")));
        assert!(!check("127.0.0.1:8080", Some("null")));
        assert!(!check("evil.example", None));
    }
}
