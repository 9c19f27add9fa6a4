//! Users of a private broker: one for each role, with a password of its own that is made of the cluster's key.
//!
//! Nothing has to be stored or agreed on: every machine that has the key knows the passwords, and another cluster has others.

use tenaz_vitals::Key;

const CONTEXT: &str = "tenaz broker user";

/// What a process does at the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerRole {
    /// It works.
    Worker,
    /// It serves clients.
    Gateway,
    /// It removes what jobs leave behind, at `tenaz down --discard-jobs`.
    Sweeper,
}

impl BrokerRole {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Worker, Self::Gateway, Self::Sweeper];

    /// Its user.
    pub fn user(self) -> &'static str {
        match self {
            Self::Worker => "tenaz-worker",
            Self::Gateway => "tenaz-gateway",
            Self::Sweeper => "tenaz-sweeper",
        }
    }

    /// Its password in the cluster with this key.
    pub fn password(self, key: &Key) -> String {
        key.password(CONTEXT, &[self.user().as_bytes()])
    }

    /// Where it finds the broker.
    pub(crate) fn url(self, port: u16, key: &Key) -> String {
        format!("amqp://{}:{}@127.0.0.1:{port}/%2f", self.user(), self.password(key))
    }
}

/// All users as `tenaz broker` is told them in its environment: `user:password`, with commas.
pub(crate) fn told(key: &Key) -> String {
    let users = BrokerRole::ALL.map(|role| format!("{}:{}", role.user(), role.password(key)));
    users.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_of_each_cluster_has_a_password_of_its_own() {
        let keys = [Key::from_bytes([1; 32]), Key::from_bytes([2; 32])];
        let passwords: std::collections::BTreeSet<String> =
            keys.iter().flat_map(|key| BrokerRole::ALL.map(|role| role.password(key))).collect();
        assert_eq!(passwords.len(), 6);
        assert!(passwords.iter().all(|password| password.len() == 64));
        assert!(told(&keys[0]).starts_with("tenaz-worker:"));
    }
}
