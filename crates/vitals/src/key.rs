//! The secret that a cluster's processes share, and what is sealed with it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::cipher::Cipher;
use crate::error::Error;
use crate::limits::MAX_KEY_FILE_BYTES;

/// A cluster's secret. Who has it is believed.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Makes a new key and writes it where only this user can read it. A key that is there stays.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
        let key = Self(bytes);
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => Error::KeyExists { path: path.to_owned() },
            _ => Error::KeyFile { path: path.to_owned(), what: "written", source },
        };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        file.write_all(key.to_hex().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(key)
    }

    /// Reads a key. Refuses one that everybody can read, or others replace; warns of one that a group can read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::KeyFile { path: path.to_owned(), what: "read", source };
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o026 != 0 {
            return Err(Error::KeyExposed { path: path.to_owned(), mode });
        }
        if mode & 0o040 != 0 {
            tracing::warn!(path = %path.display(), "the group can read the cluster's key; `chmod 600` closes it");
        }
        let mut text = String::new();
        (&file).take(MAX_KEY_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        Self::from_hex(text.trim()).map_err(|found| Error::NotAKey { path: path.to_owned(), found })
    }

    /// A key that is known already, for tests and for keys that come another way.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Proves that whoever has this key said `parts`, in this order and so divided, in this context.
    pub fn seal(&self, context: &str, parts: &[&[u8]]) -> [u8; 32] {
        self.mac(context, parts).finalize().into_bytes().into()
    }

    /// Whether `mac` is the seal of this. Takes the same time for every wrong one.
    pub fn verify(&self, context: &str, parts: &[&[u8]], mac: &[u8]) -> bool {
        self.mac(context, parts).verify_slice(mac).is_ok()
    }

    /// A key for one purpose, from which this one cannot be found out.
    pub fn derive(&self, context: &str, parts: &[&[u8]]) -> Key {
        // A seal that travels must never equal a derived key.
        let mut mac = self.mac("derive", &[context.as_bytes()]);
        feed(&mut mac, parts);
        Key(mac.finalize().into_bytes().into())
    }

    /// The key of heartbeats, which workers, gateways and the broker have: it gives no orders to supervisors, and the cluster's key
    /// cannot be found out from it. `deploy/make-secrets` makes the same one with `sha256sum`.
    pub fn for_heartbeats(&self) -> Key {
        let mut hash = Sha256::new();
        hash.update(b"tenaz heartbeats\n");
        hash.update(self.to_hex().as_bytes());
        Key(hash.finalize().into())
    }

    /// A password for one purpose, from which this key cannot be found out.
    pub fn password(&self, context: &str, parts: &[&[u8]]) -> String {
        self.derive(context, parts).to_hex().trim().to_owned()
    }

    /// Encryption with this key, which must be used for nothing else.
    pub fn cipher(&self) -> Cipher {
        Cipher::new(&self.0)
    }

    /// Writes the key where only this user can read it, in place of what is there.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |source: io::Error| Error::KeyFile { path: path.to_owned(), what: "written", source };
        let fresh = path.with_extension(format!("new-{}", std::process::id()));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh).map_err(failed)?;
        file.write_all(self.to_hex().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        std::fs::rename(&fresh, path).map_err(failed)
    }

    fn mac(&self, context: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        feed(&mut mac, &[context.as_bytes()]);
        feed(&mut mac, parts);
        mac
    }

    fn to_hex(&self) -> String {
        let mut text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push('\n');
        text
    }

    fn from_hex(text: &str) -> Result<Self, String> {
        if text.len() != 64 {
            return Err(format!("{} characters", text.chars().count()));
        }
        let digits: Option<Vec<u8>> =
            text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
        // The text stays out of the message: all but one digit may be right.
        let digits = digits.ok_or_else(|| "a character that is no hexadecimal digit".to_owned())?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(Self(bytes))
    }
}

/// Each part goes in with its length before it, so that no two divisions of the same bytes have the same seal.
fn feed(mac: &mut Hmac<Sha256>, parts: &[&[u8]]) {
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
}

impl PartialEq for Key {
    /// Takes the same time for every other key.
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |difference, (a, b)| difference | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.fill(0);
        // Else the compiler sees that nobody reads it any more.
        std::hint::black_box(&mut self.0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_created_key_is_read_again_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let key = Key::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Key::read(&path).unwrap().0, key.0);
        assert!(matches!(Key::create(&path), Err(Error::KeyExists { .. })));
        assert_eq!(Key::read(&path).unwrap().0, key.0);
        assert!(matches!(Key::create(&dir.path().join("no/key")), Err(Error::KeyFile { .. })));
    }

    #[test]
    fn bad_key_files_are_named_with_the_cure() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        assert!(Key::read(&path).unwrap_err().to_string().contains("cannot be read"));
        let good = "00ff".repeat(16);
        for (text, says) in [
            (String::new(), "0 characters"),
            ("ab".repeat(31), "62 characters"),
            ("zz".repeat(32), "no hexadecimal digit"),
            (good.repeat(100), "256 characters"),
        ] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = Key::read(&path).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("openssl"), "{error}");
        }
        fs::write(&path, format!("  {good}\n\n")).unwrap();
        assert!(Key::read(&path).is_ok());
        for mode in [0o644, 0o660, 0o604, 0o622] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Key::read(&path).unwrap_err().to_string();
            assert!(error.contains("chmod 600"), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
        assert!(Key::read(&path).is_ok());
    }

    #[test]
    fn the_key_of_heartbeats_is_another_one_and_the_one_that_the_shell_makes() {
        let key = Key::from_bytes([0xab; 32]);
        let heartbeats = key.for_heartbeats();
        // { echo "tenaz heartbeats"; cat cluster-key; } | sha256sum
        let script = "{ echo 'tenaz heartbeats'; printf 'ab%.0s' $(seq 32); echo; } | sha256sum";
        let made = std::process::Command::new("bash").args(["-c", script]).output().unwrap();
        assert_eq!(String::from_utf8(made.stdout).unwrap()[..64], heartbeats.to_hex()[..64]);
        let sealed = heartbeats.seal("an order", &[b"stop"]);
        assert!(!key.verify("an order", &[b"stop"], &sealed));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("heartbeat-key");
        heartbeats.write(&path).unwrap();
        heartbeats.write(&path).unwrap();
        assert_eq!(Key::read(&path).unwrap().0, heartbeats.0);
        assert_ne!(key.password("broker", &[b"worker"]), key.password("broker", &[b"gateway"]));
    }

    #[test]
    fn a_seal_is_of_one_key_context_and_division() {
        let key = Key::from_bytes([1; 32]);
        let seal = key.seal("a", &[b"bc", b"d"]);
        assert!(key.verify("a", &[b"bc", b"d"], &seal));
        assert!(!key.verify("a", &[b"b", b"cd"], &seal));
        assert!(!key.verify("a", &[b"bcd"], &seal));
        assert!(!key.verify("ab", &[b"c", b"d"], &seal));
        assert!(!key.verify("a", &[b"bc", b"d"], &seal[..31]));
        assert!(!key.verify("a", &[b"bc", b"d"], &[]));
        assert!(!Key::from_bytes([2; 32]).verify("a", &[b"bc", b"d"], &seal));
        let derived = key.derive("a", &[b"bc"]);
        assert_ne!(derived.0, key.0);
        assert_ne!(derived.0, key.seal("a", &[b"bc"]));
        assert_eq!(derived.0, key.derive("a", &[b"bc"]).0);
        assert_eq!(format!("{key:?}"), "Key(secret)");
    }
}
