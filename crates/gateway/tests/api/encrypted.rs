//! HTTPS with real certificates, and with the client of the program.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tenaz_client::{Error, Gateways, Settings, Transport};
use tenaz_gateway::TlsFiles;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{eventually, soon, with_broker};

/// What `deploy/make-secrets` makes.
fn secrets() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/make-secrets");
    let made = Command::new(script).arg(dir.path().join("secrets")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    dir
}

async fn ask(port: u16, authority: &Path) -> Result<usize, Error> {
    let settings = Settings {
        urls: vec![format!("https://localhost:{port}")],
        token: Some("secret".to_owned()),
        transport: Transport { ca_file: Some(authority.join("secrets/ca")), ..Transport::default() },
        patience: Duration::from_secs(20),
        parallel: 1,
        stop: Arc::new(AtomicBool::new(false)),
    };
    let asked = tokio::task::spawn_blocking(move || Ok(Gateways::new(settings)?.jobs()?.len()));
    soon("asking over HTTPS", asked).await.unwrap()
}

#[allow(clippy::print_stderr, reason = "a test that is left out says so")]
#[test]
fn clients_believe_the_certificate_of_their_authority_only_and_a_new_one_is_used_at_once() {
    if Command::new("openssl").arg("version").output().is_err() {
        return eprintln!("skipped: openssl is not installed");
    }
    with_broker(async |deployment| {
        let (first, second) = (secrets(), secrets());
        let served = tempfile::tempdir().unwrap();
        let serve = |from: &Path| {
            for name in ["gateway-key", "gateway-cert"] {
                std::fs::copy(from.join("secrets").join(name), served.path().join(name)).unwrap();
            }
        };
        serve(first.path());
        let tls = TlsFiles { certificate: served.path().join("gateway-cert"), key: served.path().join("gateway-key") };
        let gateway = deployment.gateway_with(|settings| settings.tls = Some(tls)).await;
        assert!(gateway.gateway.url().starts_with("https://"));
        let port = gateway.gateway.local_addr().port();
        assert_eq!(ask(port, first.path()).await.unwrap(), 0);
        let distrust = ask(port, second.path()).await.unwrap_err();
        assert!(matches!(&distrust, Error::Untrusted { .. }), "{distrust}");
        assert!(distrust.to_string().contains("--ca-file"), "{distrust}");
        // In clear nothing is answered.
        let mut plain = TcpStream::connect(gateway.gateway.local_addr()).await.unwrap();
        plain.write_all(b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = soon("a client without TLS is sent away", plain.read_to_end(&mut answer)).await;
        assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
        serve(second.path());
        eventually("the new certificate is used", || async { ask(port, second.path()).await.is_ok() }).await;
        assert!(ask(port, first.path()).await.is_err());
        gateway.stop().await;
    });
}
