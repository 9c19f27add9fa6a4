//! The page and its files as HTTP responses.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::assets::{assets, compressed, content_hash};
use crate::page::{Host, document};
use crate::policy::{HEADERS, content_security_policy};

/// Whether a request for `/` comes from a browser that shows pages, and not from a program such as curl.
pub fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/html")
    })
}

/// The page. It may not be kept: it names the files of this build.
pub fn page(host: Host, headers: &HeaderMap) -> Response {
    let document = document(host).into_bytes();
    let (bytes, encoding) = if takes_gzip(headers) { (compressed(&document), Some("gzip")) } else { (document, None) };
    let mut response = file(bytes.into(), "text/html; charset=utf-8", encoding);
    set(&mut response, "cache-control", "no-cache");
    set(&mut response, "content-security-policy", content_security_policy());
    response
}

/// A file of the page by its path below `/ui/`: `<digest>/<path>`.
pub fn asset(path: &str, headers: &HeaderMap) -> Response {
    let ours = path.strip_prefix(content_hash()).and_then(|path| path.strip_prefix('/'));
    let Some(asset) = ours.and_then(|path| assets().iter().find(|asset| asset.path == path)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (bytes, encoding) = match takes_gzip(headers) {
        true => (Body::from(asset.gzip.as_slice()), Some("gzip")),
        false => (Body::from(asset.bytes), None),
    };
    let mut response = file(bytes, content_type(asset.path), encoding);
    set(&mut response, "cache-control", "public, max-age=31536000, immutable");
    response
}

fn file(body: Body, content_type: &'static str, encoding: Option<&'static str>) -> Response {
    let mut response = Response::new(body);
    set(&mut response, "content-type", content_type);
    set(&mut response, "vary", "accept, accept-encoding");
    if let Some(encoding) = encoding {
        set(&mut response, "content-encoding", encoding);
    }
    HEADERS.iter().for_each(|(name, value)| set(&mut response, name, value));
    response
}

fn set(response: &mut Response, name: &'static str, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|encoding| {
        let (name, quality) = encoding.split_once(';').unwrap_or((encoding, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn browsers_get_the_page_and_curl_does_not() {
        assert!(wants_page(&headers(header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8")));
        assert!(!wants_page(&headers(header::ACCEPT, "*/*")));
        assert!(!wants_page(&HeaderMap::new()));
    }

    #[test]
    fn files_are_found_under_the_digest_of_this_build_only() {
        let path = format!("{}/app/main.js", content_hash());
        let found = asset(&path, &headers(header::ACCEPT_ENCODING, "gzip, br"));
        assert_eq!(found.status(), StatusCode::OK);
        assert_eq!(found.headers()["content-encoding"], "gzip");
        assert_eq!(found.headers()["content-type"], "text/javascript; charset=utf-8");
        assert!(
            asset(&path, &headers(header::ACCEPT_ENCODING, "gzip;q=0")).headers().get("content-encoding").is_none()
        );
        for wrong in ["app/main.js", "0000000000000000/app/main.js", "", "../Cargo.toml"] {
            assert_eq!(asset(wrong, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{wrong}");
        }
    }

    #[test]
    fn the_page_has_no_place_left_to_fill_in() {
        let page = page(Host::Local, &HeaderMap::new());
        assert!(page.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
        assert!(!document(Host::Local).contains("{{"), "{}", document(Host::Local));
    }
}
