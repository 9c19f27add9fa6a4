//! Who may log in at a private node, and what for.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::files::new_secret;

/// A user of a private node.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeUser {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: String,
    /// A pattern of the queues and exchanges that it may make and delete.
    pub configure: String,
    /// A pattern of those that it may write to.
    pub write: String,
    /// A pattern of those that it may read.
    pub read: String,
}

impl NodeUser {
    /// A user with rights to all names of a deployment and to no others.
    pub fn of_prefix(name: &str, password: &str, prefix: &str) -> Self {
        // A prefix has letters, digits, '-' and '_', which stand for themselves in a pattern.
        let own = format!("^{prefix}\\.");
        Self {
            name: name.to_owned(),
            password: password.to_owned(),
            configure: own.clone(),
            // Messages reach queues through the default exchange.
            write: format!("{own}|^amq\\.default$"),
            read: own,
        }
    }

    /// The user by which a node is asked whether it is ready, and given its first stream.
    pub(super) fn of_the_node(stream: &str) -> Self {
        let own = format!("^{}$", stream.replace('.', "\\."));
        Self {
            name: "tenaz-node".to_owned(),
            password: new_secret(),
            configure: own.clone(),
            write: own.clone(),
            read: own,
        }
    }
}

impl std::fmt::Debug for NodeUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeUser({})", self.name)
    }
}

/// The definitions that a node reads at every start. With them it makes no `guest`.
pub(super) fn definitions(users: &[NodeUser]) -> String {
    let accounts: Vec<Value> = users
        .iter()
        .map(|user| {
            json!({
                "name": user.name,
                "password_hash": password_hash(&user.password, new_salt()),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": [],
            })
        })
        .collect();
    let permissions: Vec<Value> = users
        .iter()
        .map(|user| {
            json!({"user": user.name, "vhost": "/", "configure": user.configure, "write": user.write, "read": user.read})
        })
        .collect();
    json!({"vhosts": [{"name": "/"}], "users": accounts, "permissions": permissions}).to_string()
}

fn new_salt() -> [u8; 4] {
    let mut salt = [0; 4];
    getrandom::fill(&mut salt).expect("the system gives random numbers");
    salt
}

/// As RabbitMQ keeps it: four bytes of salt and the SHA-256 of salt and password, in Base64.
fn password_hash(password: &str, salt: [u8; 4]) -> String {
    let mut hash = Sha256::new();
    hash.update(salt);
    hash.update(password.as_bytes());
    base64(&[salt.as_slice(), hash.finalize().as_slice()].concat())
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_everybody() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn definitions_have_no_guest_and_no_password() {
        let text = definitions(&[NodeUser::of_prefix("tenaz-worker", "secret", "blue")]);
        assert!(!text.contains("guest") && !text.contains("secret"), "{text}");
        assert!(text.contains(r#""configure":"^blue\\.""#), "{text}");
    }
}
