//! Who may use the gateway, and for what: a file of tenants, the digests of their tokens, scopes and times of expiry.
//!
//! ```text
//!  # tenant:sha256-of-the-token [scope=submit,read,operate] [expires=2027-01-31]
//!  ana: 2bb8…a25b
//!  board: 77af…09c1 scope=read expires=2027-01-31T18:00:00Z
//! ```
//!
//! The file is the truth: a token counts while the file that is there now has it. It is looked at for every request, and again and
//! again for streams that are open. A file that is gone, empty or wrong has no tokens.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::file_stamp::{FileStamp, file_stamp};
use crate::limits::{MAX_TENANT_CHARS, MAX_TOKENS_BYTES};

/// Time between two looks at the file while streams are open.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What a token may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Scopes {
    /// To create jobs, send their data, cancel and delete them.
    pub(crate) submit: bool,
    /// To see jobs and read their results.
    pub(crate) read: bool,
    /// To see, cancel and delete the jobs of all tenants, but not their data.
    pub(crate) operate: bool,
}

impl Scopes {
    /// What a token may that says nothing about it: all with its own jobs.
    const USUAL: Self = Self { submit: true, read: true, operate: false };

    fn parse(text: &str) -> Option<Self> {
        text.split(',').try_fold(Self::default(), |scopes, name| match name {
            "submit" => Some(Self { submit: true, ..scopes }),
            "read" => Some(Self { read: true, ..scopes }),
            "operate" => Some(Self { operate: true, ..scopes }),
            _ => None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    tenant: String,
    digest: [u8; 32],
    scopes: Scopes,
    expires: Option<SystemTime>,
}

/// Whose token it is, and what it may be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) tenant: String,
    pub(crate) scopes: Scopes,
}

#[derive(Debug)]
struct Known {
    stamp: FileStamp,
    entries: Vec<Entry>,
}

/// The tokens of a file, read again when it changes.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: PathBuf,
    known: RwLock<Known>,
}

impl Tokens {
    /// Reads the file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let known = Known { stamp: file_stamp(path), entries: read(path)? };
        Ok(Self { path: path.to_owned(), known: RwLock::new(known) })
    }

    /// Who has this token now. It takes the same time whatever the token is.
    pub(crate) fn holder(&self, token: &str) -> Option<Holder> {
        self.refresh();
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let (known, now) = (self.known.read().unwrap_or_else(PoisonError::into_inner), SystemTime::now());
        let mut found = None;
        for entry in &known.entries {
            if equal(&entry.digest, &digest) && entry.expires.is_none_or(|end| now < end) {
                found = Some(Holder { tenant: entry.tenant.clone(), scopes: entry.scopes });
            }
        }
        found
    }

    /// Reads the file again if it has changed.
    fn refresh(&self) {
        let now = file_stamp(&self.path);
        if self.known.read().unwrap_or_else(PoisonError::into_inner).stamp == now {
            return;
        }
        let entries = read(&self.path).unwrap_or_else(|error| {
            tracing::error!(%error, "no token is valid until the tokens file is right again");
            Vec::new()
        });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known { stamp: now, entries };
    }

    /// Waits until the token no longer belongs to this holder.
    pub(crate) async fn revoked(self: Arc<Self>, token: String, holder: Holder) {
        while self.holder(&token).as_ref() == Some(&holder) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Says in the log when the file becomes wrong, though nobody asks.
    pub(crate) async fn watch(&self, closing: CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => self.refresh(),
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
        if !line.is_empty() {
            entries.push(parse_line(line).map_err(|problem| (index + 1, problem))?);
        }
    }
    if entries.is_empty() { Err((1, "it has no token".to_owned())) } else { Ok(entries) }
}

fn parse_line(line: &str) -> Result<Entry, String> {
    let (tenant, rest) = line.split_once(':').ok_or("there is no colon")?;
    let (tenant, mut words) = (tenant.trim(), rest.split_whitespace());
    let plain = tenant.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if tenant.is_empty() || tenant.len() > MAX_TENANT_CHARS || !plain {
        return Err("a tenant has 1 to 64 letters, digits, '-', '_' or '.'".to_owned());
    }
    let digest = parse_digest(words.next().unwrap_or_default()).ok_or("the digest is not 64 hexadecimal digits")?;
    let mut entry = Entry { tenant: tenant.to_owned(), digest, scopes: Scopes::USUAL, expires: None };
    for word in words {
        match word.split_once('=') {
            Some(("scope", names)) => {
                let wrong = || format!("{names:?} are no scopes: write some of submit,read,operate");
                entry.scopes = Scopes::parse(names).ok_or_else(wrong)?;
            }
            Some(("expires", time)) => {
                let wrong = || format!("{time:?} is no time: write 2027-01-31 or 2027-01-31T18:00:00Z");
                entry.expires = Some(parse_time(time).ok_or_else(wrong)?);
            }
            _ => return Err(format!("{word:?} is not known: write scope=… or expires=…")),
        }
    }
    Ok(entry)
}

/// A time in UTC.
fn parse_time(text: &str) -> Option<SystemTime> {
    let nanoseconds = string_to_timestamp_nanos(text).ok()?;
    Some(UNIX_EPOCH + Duration::from_nanos(u64::try_from(nanoseconds).ok()?))
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

    fn written(text: &str) -> (tempfile::NamedTempFile, Result<Tokens, Error>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let tokens = Tokens::open(file.path());
        (file, tokens)
    }

    fn tenant(tokens: &Tokens) -> Option<String> {
        tokens.holder("secret").map(|holder| holder.tenant)
    }

    #[test]
    fn a_token_is_known_by_its_digest_only() {
        let (_file, tokens) = written(&format!("# people\n\nana: {SECRET} # since May\n"));
        let tokens = tokens.unwrap();
        let holder = tokens.holder("secret").unwrap();
        assert_eq!((holder.tenant.as_str(), holder.scopes), ("ana", Scopes::USUAL));
        assert_eq!(tokens.holder(SECRET), None);
        assert_eq!(tokens.holder(""), None);
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert_eq!(parse(&format!("ana:{SECRET}\nbob")).unwrap_err().0, 2);
        assert!(parse("ana:secret").unwrap_err().1.contains("64 hexadecimal"));
        assert!(parse(&format!("a b:{SECRET}")).is_err());
        assert!(parse("# nobody\n").unwrap_err().1.contains("no token"));
        assert!(parse(&format!("ana:{SECRET} scope=all")).unwrap_err().1.contains("submit,read,operate"));
        assert!(parse(&format!("ana:{SECRET} expires=soon")).unwrap_err().1.contains("2027-01-31"));
        assert!(parse(&format!("ana:{SECRET} until=2027-01-31")).unwrap_err().1.contains("expires="));
    }

    #[test]
    fn an_empty_deleted_or_damaged_file_revokes_at_once_and_a_right_one_counts_at_once() {
        let right = format!("ana:{SECRET}\n");
        let (file, tokens) = written(&right);
        let (path, tokens) = (file.path().to_owned(), tokens.unwrap());
        for wrong in [Some(String::new()), Some(format!("{right}bob\n")), None] {
            assert_eq!(tenant(&tokens).as_deref(), Some("ana"));
            match &wrong {
                Some(text) => std::fs::write(&path, text).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            assert_eq!(tenant(&tokens), None, "{wrong:?}");
            std::fs::write(&path, &right).unwrap();
        }
        assert_eq!(tenant(&tokens).as_deref(), Some("ana"));
    }

    #[test]
    fn a_token_ends_at_its_time() {
        let (_file, tokens) = written(&format!("ana:{SECRET} expires=2020-01-01\n"));
        assert_eq!(tenant(&tokens.unwrap()), None);
        let (_file, tokens) = written(&format!("ana:{SECRET} scope=read expires=2200-01-31T18:00:00Z\n"));
        let holder = tokens.unwrap().holder("secret").unwrap();
        assert_eq!(holder.scopes, Scopes { read: true, ..Scopes::default() });
    }
}
