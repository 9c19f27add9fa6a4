//! Who may use the gateway: a file of tenants and the digests of their tokens.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::limits::{MAX_TENANT_CHARS, MAX_TOKENS_BYTES};

/// Time between two looks at whether the file has changed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    tenant: String,
    digest: [u8; 32],
}

/// The tokens of a file, read again when it changes.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: PathBuf,
    entries: RwLock<Vec<Entry>>,
}

impl Tokens {
    /// Reads the file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let entries = read(path)?;
        Ok(Self { path: path.to_owned(), entries: RwLock::new(entries) })
    }

    /// The tenant of a token. It takes the same time whatever the token is.
    pub(crate) fn tenant(&self, token: &str) -> Option<String> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for entry in entries.iter() {
            if equal(&entry.digest, &digest) {
                found = Some(entry.tenant.clone());
            }
        }
        found
    }

    /// Reads the file again whenever it has changed. A file that is wrong changes nothing.
    pub(crate) async fn watch(&self, closing: CancellationToken) {
        let stamp = || std::fs::metadata(&self.path).ok().map(|found| (found.modified().ok(), found.len()));
        let mut seen: Option<(Option<SystemTime>, u64)> = stamp();
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let now = stamp();
            if now == seen {
                continue;
            }
            seen = now;
            match read(&self.path) {
                Ok(entries) => *self.entries.write().unwrap_or_else(PoisonError::into_inner) = entries,
                Err(error) => tracing::warn!(%error, "the tokens stay as they were"),
            }
        }
    }
}

/// Compares without telling by its duration where the difference is.
fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}

fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    let unreadable = |source| Error::TokensUnreadable { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > MAX_TOKENS_BYTES {
        let text = format!("it has {bytes} bytes; the limit is {MAX_TOKENS_BYTES}");
        return Err(unreadable(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text)));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    parse(&text).map_err(|(line, problem)| Error::Tokens { path: path.to_owned(), line, problem })
}

fn parse(text: &str) -> Result<Vec<Entry>, (usize, String)> {
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |problem: &str| (index + 1, problem.to_owned());
        let (tenant, digest) = line.split_once(':').ok_or_else(|| wrong("there is no colon"))?;
        let (tenant, digest) = (tenant.trim(), digest.trim());
        let plain = tenant.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if tenant.is_empty() || tenant.len() > MAX_TENANT_CHARS || !plain {
            return Err(wrong("a tenant has 1 to 64 letters, digits, '-', '_' or '.'"));
        }
        let digest = parse_digest(digest).ok_or_else(|| wrong("the digest is not 64 hexadecimal digits"))?;
        entries.push(Entry { tenant: tenant.to_owned(), digest });
    }
    if entries.is_empty() { Err((1, "it has no token".to_owned())) } else { Ok(entries) }
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// `printf secret | sha256sum`
    const SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    #[test]
    fn a_token_is_known_by_its_digest_only() {
        let entries = parse(&format!("# people\n\nana: {SECRET} # since May\n")).unwrap();
        let tokens = Tokens { path: PathBuf::new(), entries: RwLock::new(entries) };
        assert_eq!(tokens.tenant("secret").as_deref(), Some("ana"));
        assert_eq!(tokens.tenant(SECRET), None);
        assert_eq!(tokens.tenant(""), None);
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert_eq!(parse(&format!("ana:{SECRET}\nbob")).unwrap_err().0, 2);
        assert!(parse("ana:secret").unwrap_err().1.contains("64 hexadecimal"));
        assert!(parse(&format!("a b:{SECRET}")).is_err());
        assert!(parse("# nobody\n").unwrap_err().1.contains("no token"));
    }
}
