//! How a client makes sure that it speaks to its gateways, and that nobody else hears its token.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ureq::http::Uri;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::Error;
use crate::limits::MAX_CA_BYTES;

/// What a client believes, and what it risks.
#[derive(Debug, Clone, Default)]
pub struct Transport {
    /// The certificates (PEM) of the authorities that are believed. `None`: those that browsers believe.
    pub ca_file: Option<PathBuf>,
    /// Whether a token may travel in clear to other machines.
    pub allows_token_in_clear: bool,
}

impl Transport {
    /// The settings of TLS.
    pub(crate) fn tls(&self) -> Result<TlsConfig, Error> {
        let roots = match &self.ca_file {
            Some(path) => read_authorities(path)?,
            None => RootCerts::WebPki,
        };
        Ok(TlsConfig::builder().root_certs(roots).build())
    }

    /// Refuses to send a token to another machine in clear.
    pub(crate) fn check_token(&self, url: &str, token: Option<&str>) -> Result<(), Error> {
        if token.is_none() || self.allows_token_in_clear || !travels_in_clear(url) {
            return Ok(());
        }
        Err(Error::TokenInClear { url: url.to_owned() })
    }
}

/// Whether others between here and there can read along.
fn travels_in_clear(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return true };
    if uri.scheme_str() == Some("https") {
        return false;
    }
    let host = uri.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    !(host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback()))
}

fn read_authorities(path: &Path) -> Result<RootCerts, Error> {
    let wrong = |problem: String| Error::Authorities { path: path.to_owned(), problem };
    let unreadable = |error: std::io::Error| wrong(error.to_string());
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > MAX_CA_BYTES {
        return Err(wrong(format!("it has {bytes} bytes; the limit is {MAX_CA_BYTES}")));
    }
    let text = std::fs::read(path).map_err(unreadable)?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        return Err(wrong("it has no certificate".to_owned()));
    }
    Ok(RootCerts::Specific(Arc::new(found)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_token_travels_in_clear_only_on_this_machine_unless_told_otherwise() {
        let careful = Transport::default();
        for url in
            ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:80", "http://127.9.9.9", "https://far.example"]
        {
            assert!(careful.check_token(url, Some("secret")).is_ok(), "{url}");
        }
        let bold = Transport { allows_token_in_clear: true, ..Transport::default() };
        for url in [
            "http://far.example",
            "http://10.0.0.1:8080",
            "http://localhost.far.example",
            "http://[::2]/",
            "http://127.0.0.1.far",
        ] {
            let error = careful.check_token(url, Some("secret")).unwrap_err().to_string();
            assert!(error.contains("https://") && error.contains("--insecure-token-over-http"), "{error}");
            assert!(careful.check_token(url, None).is_ok(), "{url}");
            assert!(bold.check_token(url, Some("secret")).is_ok(), "{url}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let wrong = |path: &Path| {
            let transport = Transport { ca_file: Some(path.to_owned()), ..Transport::default() };
            transport.tls().unwrap_err().to_string()
        };
        std::fs::write(file.path(), "hello").unwrap();
        assert!(wrong(file.path()).contains("no certificate"));
        assert!(wrong(Path::new("/no/such/file")).contains("/no/such/file"));
    }
}
