//! HTTPS: the certificate and the key of a gateway, read again when their files change.
//!
//! A pair that is damaged, or whose halves do not belong together (one file is replaced before the other), changes nothing: the pair
//! that was read before stays in use, and the log says loudly what is wrong, until the files are right again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::file_stamp::{FileStamp, file_stamp};
use crate::limits::{CERTIFICATES_LOOK_EVERY, MAX_CERTIFICATE_BYTES};

/// Where a gateway's certificate is, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those between it and its authority, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// The certificate with which connections are accepted.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: TlsFiles,
    current: RwLock<Current>,
}

#[derive(Debug)]
struct Current {
    stamps: [FileStamp; 2],
    config: Arc<ServerConfig>,
}

impl Certificates {
    /// Reads the files.
    pub(crate) fn open(files: &TlsFiles) -> Result<Self, Error> {
        let stamps = stamps(files);
        Ok(Self { files: files.clone(), current: RwLock::new(Current { stamps, config: read(files)? }) })
    }

    /// Accepts a connection with the certificate that is in use now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).config))
    }

    /// Reads the files again if they have changed.
    pub(crate) fn refresh(&self) {
        let now = stamps(&self.files);
        if self.current.read().unwrap_or_else(PoisonError::into_inner).stamps == now {
            return;
        }
        let fresh = read(&self.files);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.stamps = now;
        match fresh {
            Ok(config) => {
                current.config = config;
                tracing::info!(certificate = %self.files.certificate.display(), "a new certificate is in use");
            }
            Err(error) => tracing::error!(%error, "the certificate that was read before stays in use"),
        }
    }

    /// Looks at the files again and again.
    pub(crate) async fn watch(&self, closing: CancellationToken) {
        let mut look = tokio::time::interval(CERTIFICATES_LOOK_EVERY.max(Duration::from_millis(1)));
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                _ = look.tick() => self.refresh(),
            }
        }
    }
}

fn stamps(files: &TlsFiles) -> [FileStamp; 2] {
    [file_stamp(&files.certificate), file_stamp(&files.key)]
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, Error> {
    let wrong = |path: &Path, problem: String| Error::Certificate { path: path.to_owned(), problem };
    let text = read_small(&files.certificate)?;
    let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(&files.certificate, format!("it is no PEM ({error})")))?;
    if chain.is_empty() {
        return Err(wrong(&files.certificate, "it has no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&read_small(&files.key)?);
    let key = key.map_err(|error| wrong(&files.key, format!("it has no private key ({error})")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)
        .map_err(|error| wrong(&files.certificate, error.to_string()))?;
    let config = config.with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(|error| {
        wrong(&files.certificate, format!("it does not go with the key {} ({error})", files.key.display()))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_small(path: &Path) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::CertificateUnreadable { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > MAX_CERTIFICATE_BYTES {
        let text = format!("it has {bytes} bytes; the limit is {MAX_CERTIFICATE_BYTES}");
        return Err(unreadable(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text)));
    }
    std::fs::read(path).map_err(unreadable)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stderr)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A directory with a certificate of a new authority, and its key.
    fn issued() -> Option<tempfile::TempDir> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("skipped: openssl is not installed");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/make-secrets");
        let made = Command::new(script).arg(dir.path().join("secrets")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(dir)
    }

    fn files(dir: &Path) -> TlsFiles {
        TlsFiles { certificate: dir.join("secrets/gateway-cert"), key: dir.join("secrets/gateway-key") }
    }

    #[test]
    fn a_damaged_pair_changes_nothing_and_a_whole_one_is_used() {
        let (Some(dir), Some(other)) = (issued(), issued()) else { return };
        let (files, others) = (files(dir.path()), files(other.path()));
        let certificates = Certificates::open(&files).unwrap();
        let in_use = || Arc::as_ptr(&certificates.current.read().unwrap().config);
        let first = in_use();
        certificates.refresh();
        assert_eq!(in_use(), first);
        // Half of a new pair, nonsense, nothing.
        std::fs::copy(&others.certificate, &files.certificate).unwrap();
        certificates.refresh();
        assert_eq!(in_use(), first, "the certificate without its key");
        std::fs::write(&files.certificate, "damaged").unwrap();
        certificates.refresh();
        std::fs::remove_file(&files.key).unwrap();
        certificates.refresh();
        assert_eq!(in_use(), first);
        std::fs::copy(&others.key, &files.key).unwrap();
        std::fs::copy(&others.certificate, &files.certificate).unwrap();
        certificates.refresh();
        assert_ne!(in_use(), first);
    }

    #[test]
    fn what_is_wrong_with_a_pair_is_told_with_its_file() {
        let (Some(dir), Some(other)) = (issued(), issued()) else { return };
        let (files, others) = (files(dir.path()), files(other.path()));
        let wrong = |files: &TlsFiles| Certificates::open(files).unwrap_err().to_string();
        let mixed = TlsFiles { key: others.key, ..files.clone() };
        assert!(wrong(&mixed).contains("does not go with the key"), "{}", wrong(&mixed));
        let swapped = TlsFiles { certificate: files.key.clone(), key: files.certificate.clone() };
        assert!(wrong(&swapped).contains("no certificate"), "{}", wrong(&swapped));
        let missing = TlsFiles { key: dir.path().join("nothing"), ..files };
        assert!(wrong(&missing).contains("--tls-key"), "{}", wrong(&missing));
    }
}
