//! Secrets and the command line, which everybody on the machine can read.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Bytes of a file with a token.
const MAX_TOKEN_BYTES: u64 = 4096;

/// The token of `--token`, or that in the first line of `--token-file`.
pub(crate) fn token(given: Option<&str>, file: Option<&Path>) -> Result<Option<String>> {
    let Some(file) = file else { return Ok(given.map(str::to_owned)) };
    let context = || format!("cannot read the token from {}", file.display());
    if std::fs::metadata(file).with_context(context)?.len() > MAX_TOKEN_BYTES {
        bail!("{} is no token: it has more than {MAX_TOKEN_BYTES} bytes", file.display());
    }
    let text = std::fs::read_to_string(file).with_context(context)?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(Some(token.to_owned())),
        _ => bail!("{} has no token in its first line", file.display()),
    }
}

/// A warning for each secret that stands on the command line, with the option that keeps it in a file.
pub(crate) fn warnings(args: impl Iterator<Item = OsString>) -> Vec<&'static str> {
    let mut warnings = Vec::new();
    for arg in args {
        let arg = arg.to_string_lossy();
        if arg == "--token" || arg.starts_with("--token=") {
            warnings.push(
                "warning: everybody on this machine can read a token on the command line: use --token-file FILE, or \
                 TENAZ_TOKEN in the environment",
            );
        }
        if has_password(&arg) {
            warnings.push(
                "warning: everybody on this machine can read a password in a URL on the command line: use \
                 --credentials-file FILE, or TENAZ_BROKER in the environment",
            );
        }
    }
    warnings
}

/// `scheme://user:password@host`, anywhere among several URLs.
fn has_password(arg: &str) -> bool {
    let mut urls = arg.split("://").skip(1);
    urls.any(|rest| {
        let authority = rest.split(['/', ',', '?', '#']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, word)| !word.is_empty()))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn warned(args: &[&str]) -> Vec<&'static str> {
        warnings(args.iter().map(OsString::from))
    }

    #[test]
    fn secrets_on_the_command_line_are_warned_of_with_the_option_for_a_file() {
        assert!(warned(&["submit", "--token", "x"]).iter().all(|text| text.contains("--token-file")));
        assert_eq!(warned(&["submit", "--token=x"]).len(), 1);
        assert!(warned(&["--broker", "amqp://a,amqp://me:secret@b:5672/v"])[0].contains("--credentials-file"));
        assert_eq!(warned(&["--broker=amqps://me:secret@b"]).len(), 1);
    }

    #[test]
    fn what_is_no_secret_is_not_warned_of() {
        for arg in ["--token-file", "amqp://me@host", "amqp://host:5672", "http://a:80/x@y:z", "SELECT 'a://b' AS u"] {
            assert_eq!(warned(&[arg]), Vec::<&str>::new(), "{arg}");
        }
    }

    #[test]
    fn a_token_is_the_first_line_of_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret\nmore\n").unwrap();
        assert_eq!(token(None, Some(file.path())).unwrap().as_deref(), Some("secret"));
        assert_eq!(token(Some("given"), None).unwrap().as_deref(), Some("given"));
        std::fs::write(file.path(), "\n").unwrap();
        assert!(token(None, Some(file.path())).unwrap_err().to_string().contains("no token"));
    }
}
