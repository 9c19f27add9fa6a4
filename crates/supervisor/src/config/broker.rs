//! Where a broker is: a text with a password in it.

use std::fmt;

/// One or several `amqp://` URLs, with commas. Their passwords are not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerAddress(String);

impl BrokerAddress {
    /// Whether these are URLs of a broker.
    ///
    /// # Errors
    /// What is wrong, without the password.
    pub fn new(text: &str) -> Result<Self, String> {
        for url in text.split(',') {
            let rest = url.strip_prefix("amqp://").or_else(|| url.strip_prefix("amqps://"));
            let host = rest.map(|rest| rest.rsplit('@').next().unwrap_or(rest));
            if host.is_none_or(|host| host.is_empty() || host.starts_with(['/', ':']))
                || url.chars().any(|c| c.is_whitespace() || c.is_control())
            {
                return Err(format!("{:?} is no broker", without_password(url)));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The URLs, with passwords.
    pub fn url(&self) -> &str {
        &self.0
    }

    /// Whether every one of the URLs asks for TLS.
    pub fn is_encrypted(&self) -> bool {
        self.0.split(',').all(|url| url.starts_with("amqps://"))
    }

    /// The URLs as people may see them.
    pub fn without_passwords(&self) -> String {
        self.0.split(',').map(without_password).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Debug for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BrokerAddress").field(&self.without_passwords()).finish()
    }
}

fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let shown = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { shown.to_owned() } else { format!("{scheme}://{shown}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let address = BrokerAddress::new("amqp://me:se@cret@a:5672/%2f,amqps://b").unwrap();
        assert_eq!(format!("{address:?}"), "BrokerAddress(\"amqp://a:5672/%2f,amqps://b\")");
        assert!(!BrokerAddress::new("http://me:secret@a").unwrap_err().contains("secret"));
        for wrong in ["", "amqp://", "amqp://a,", "amqp://a, amqp://b", "amqp://u:p@/x"] {
            assert!(BrokerAddress::new(wrong).is_err(), "{wrong}");
        }
    }
}
