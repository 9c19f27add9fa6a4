//! Who may ask: the page that we have opened, and nobody else.
//!
//! A server on loopback is reached by every page of every site that the user's browser shows, and by every user of the machine.
//! So three things are checked. The host that a request names is the one we listen on (a site whose name is made to point at
//! 127.0.0.1 names itself). The request comes from our own page, where a browser says where it comes from. And every request
//! for data carries the token, which stands in the fragment of the address that was printed and opened.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tenaz_core::ProblemCode;

use crate::problem::Problem;

/// What a request must carry.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    token: String,
}

impl Guard {
    pub(crate) fn new(address: SocketAddr, token: String) -> Self {
        let port = address.port();
        let names = [address.ip().to_string(), "localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        let hosts = names.into_iter().map(|name| match name.contains(':') && !name.starts_with('[') {
            true => format!("[{name}]:{port}"),
            false => format!("{name}:{port}"),
        });
        Self { hosts: hosts.collect(), token }
    }

    fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let ours = |host: &str| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
        let refused = |detail: &str| Err(Problem::new(ProblemCode::Forbidden, detail));
        if !text(header::HOST).is_some_and(ours) {
            return refused("the request names another host: open the address that tenaz ui has printed");
        }
        if let Some(origin) = text(header::ORIGIN)
            && !origin.strip_prefix("http://").is_some_and(ours)
        {
            return refused("the request comes from another site");
        }
        let site = headers.get("sec-fetch-site").map(|value| value.to_str().unwrap_or("?"));
        if path.starts_with("/v1/") && site.is_some_and(|site| site != "same-origin" && site != "none") {
            return refused("the request comes from another site");
        }
        if !path.starts_with("/v1/") {
            return Ok(());
        }
        let given = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        match given {
            Some(given) if same(given.trim(), &self.token) => Ok(()),
            _ => Err(Problem::new(
                ProblemCode::Unauthorized,
                "a token is needed: open the whole address that tenaz ui has printed",
            )),
        }
    }
}

/// Compares in a time that does not tell where the first difference is.
fn same(given: &str, expected: &str) -> bool {
    let (given, expected) = (given.as_bytes(), expected.as_bytes());
    let different = given.iter().zip(expected).fold(0u8, |different, (a, b)| different | (a ^ b));
    given.len() == expected.len() && different == 0
}

/// Lets a request pass, or refuses it.
pub(crate) async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check(request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn status(path: &str, headers: &[(&'static str, &'static str)]) -> u16 {
        let guard = Guard::new("127.0.0.1:7500".parse().unwrap(), "secret".to_owned());
        let headers = headers
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_static(value)));
        let refused = guard.check(path, &headers.collect()).err();
        refused.map_or(200, |problem| problem.into_response().status().as_u16())
    }

    #[test]
    fn only_our_own_page_with_the_token_may_ask() {
        let ours = [("host", "127.0.0.1:7500"), ("authorization", "Bearer secret")];
        assert_eq!(status("/v1/jobs", &ours), 200);
        assert_eq!(status("/v1/jobs", &[("host", "localhost:7500"), ("authorization", "Bearer secret")]), 200);
        assert_eq!(status("/", &[("host", "127.0.0.1:7500")]), 200, "the page itself holds no data");
        assert_eq!(status("/v1/jobs", &[("host", "127.0.0.1:7500")]), 401);
        assert_eq!(status("/v1/jobs", &[("host", "127.0.0.1:7500"), ("authorization", "Bearer secreT")]), 401);
    }

    #[test]
    fn names_that_point_at_us_and_other_sites_are_refused() {
        let with = |more: (&'static str, &'static str)| [ours().as_slice(), &[more]].concat();
        fn ours() -> Vec<(&'static str, &'static str)> {
            vec![("host", "127.0.0.1:7500"), ("authorization", "Bearer secret")]
        }
        assert_eq!(status("/", &[("host", "evil.example:7500")]), 403);
        assert_eq!(status("/", &[("host", "127.0.0.1:7501")]), 403);
        assert_eq!(status("/", &[]), 403);
        assert_eq!(status("/v1/jobs", &with(("origin", "http://evil.example"))), 403);
        assert_eq!(status("/v1/jobs", &with(("origin", "null"))), 403);
        assert_eq!(status("/v1/jobs", &with(("origin", "http://127.0.0.1:7500"))), 200);
        assert_eq!(status("/v1/jobs", &with(("sec-fetch-site", "cross-site"))), 403);
        assert_eq!(status("/v1/jobs", &with(("sec-fetch-site", "same-origin"))), 200);
    }
}
