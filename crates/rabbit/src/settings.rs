//! Where the broker is and how to log in.

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use crate::error::{Error, Result};

/// How to reach the broker: one node, or several nodes of one cluster.
#[derive(Debug, Clone)]
pub struct BrokerSettings {
    /// The nodes, tried in random order.
    pub urls: Vec<BrokerUrl>,
    /// How long to wait for one node until the next is tried.
    pub connect_timeout: Duration,
    /// How long to wait for the answer to a question; a connection on which none comes is given up.
    pub answer_timeout: Duration,
    /// For the confirm of a message, not counting alarms.
    pub confirm_timeout: Duration,
    /// AMQP heartbeat. Below 5 s a busy machine gives false alarms.
    pub heartbeat: Duration,
    /// Certificates (PEM) to trust besides those of the system.
    pub ca_file: Option<PathBuf>,
    /// A file with `user:password` in its first line; it overrides the URLs. Read at every connect.
    pub credentials_file: Option<PathBuf>,
}

impl BrokerSettings {
    /// Settings for these nodes, with the default timeouts.
    pub fn new(urls: Vec<BrokerUrl>) -> Self {
        Self {
            urls,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            confirm_timeout: Duration::from_secs(10),
            heartbeat: Duration::from_secs(5),
            ca_file: None,
            credentials_file: None,
        }
    }

    /// The URLs with the credentials of the file, if there is one.
    pub(crate) fn resolved_urls(&self) -> Result<Vec<BrokerUrl>> {
        if self.urls.is_empty() {
            return Err(Error::Settings("no broker URL was given; write amqp://HOST:5672".into()));
        }
        let mut urls = self.urls.clone();
        if let Some(path) = &self.credentials_file {
            let text = read(path)?;
            let (user, password) = parse_credentials(&text).ok_or_else(|| {
                Error::Settings(format!("the first line of '{}' must be 'user:password'", path.display()))
            })?;
            for url in &mut urls {
                url.user = user.to_owned();
                url.password = password.to_owned();
            }
        }
        Ok(urls)
    }

    /// The text of the CA file, if there is one.
    pub(crate) fn ca_text(&self) -> Result<Option<String>> {
        self.ca_file.as_ref().map(read).transpose()
    }
}

impl FromStr for BrokerSettings {
    type Err = Error;

    /// Reads one or more URLs, separated by commas.
    fn from_str(text: &str) -> Result<Self> {
        let urls = text.split(',').map(str::trim).filter(|url| !url.is_empty());
        let urls = urls.map(BrokerUrl::from_str).collect::<Result<Vec<_>>>()?;
        if urls.is_empty() {
            return Err(Error::Settings("no broker URL was given; write amqp://HOST:5672".into()));
        }
        Ok(Self::new(urls))
    }
}

/// One broker node. Neither `Display` nor `Debug` show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerUrl {
    /// Whether to encrypt (`amqps`).
    pub tls: bool,
    /// The user; `guest` unless given.
    pub user: String,
    /// The password; `guest` unless given.
    pub password: String,
    /// Host name or address, IPv6 without brackets.
    pub host: String,
    /// The port; 5672, or 5671 with TLS.
    pub port: u16,
    /// The virtual host; `/` unless given.
    pub vhost: String,
}

impl BrokerUrl {
    /// `host:port`, for messages.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for BrokerUrl {
    type Err = Error;

    /// Reads `amqp[s]://[user[:password]@]host[:port][/vhost]`. An empty vhost means `/`, as people expect.
    fn from_str(text: &str) -> Result<Self> {
        // The text may hold a password, so errors only repeat the parts that cannot.
        let wrong =
            |why: &str| Error::Settings(format!("a broker URL {why}; write amqp://USER:PASSWORD@HOST:5672/VHOST"));
        let (tls, rest) = if let Some(rest) = text.strip_prefix("amqp://") {
            (false, rest)
        } else if let Some(rest) = text.strip_prefix("amqps://") {
            (true, rest)
        } else {
            return Err(wrong("must begin with amqp:// or amqps://"));
        };
        // The last '@' ends the login, so that an unescaped '/' or '@' in a password does no harm.
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (place, vhost) = rest.split_once('/').unwrap_or((rest, ""));
        if rest.contains(['?', '#']) {
            return Err(wrong("takes no parameters after '?' or '#'"));
        }
        let (user, password) = match login {
            Some(login) => login.split_once(':').unwrap_or((login, "")),
            None => ("guest", "guest"),
        };
        let (host, port) = split_port(place).ok_or_else(|| wrong("has a port that is not a number from 1 to 65535"))?;
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        let decode = |part: &str, name: &str| {
            percent_decode(part).ok_or_else(|| wrong(&format!("has a broken %-escape in its {name}")))
        };
        let vhost = decode(vhost, "virtual host")?;
        Ok(Self {
            tls,
            user: decode(user, "user")?,
            password: decode(password, "password")?,
            host: host.to_owned(),
            port: port.unwrap_or(if tls { 5671 } else { 5672 }),
            vhost: if vhost.is_empty() { "/".to_owned() } else { vhost },
        })
    }
}

impl fmt::Display for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "amqps" } else { "amqp" };
        let vhost = percent_encode(&self.vhost);
        write!(f, "{scheme}://{}:***@{}/{vhost}", percent_encode(&self.user), self.address())
    }
}

impl fmt::Debug for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokerUrl({self})")
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`; `None` if the port is no port.
fn split_port(place: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    match port {
        None => Some((host, None)),
        Some(port) => port.parse().ok().filter(|port| *port != 0).map(|port| (host, Some(port))),
    }
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first == b'%' {
            let (digits, tail) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
            rest = tail;
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

fn percent_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn parse_credentials(text: &str) -> Option<(&str, &str)> {
    let (user, password) = text.lines().next()?.trim().split_once(':')?;
    (!user.is_empty()).then_some((user, password))
}

fn read(path: &PathBuf) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| Error::SettingsFile { path: path.clone(), source: Arc::new(source) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> BrokerUrl {
        text.parse().expect("a good URL")
    }

    #[test]
    fn defaults_are_guest_on_the_standard_port() {
        let plain = url("amqp://broker");
        assert_eq!((plain.user.as_str(), plain.password.as_str()), ("guest", "guest"));
        assert_eq!((plain.host.as_str(), plain.port, plain.vhost.as_str(), plain.tls), ("broker", 5672, "/", false));
        assert_eq!(url("amqps://broker/").port, 5671);
    }

    #[test]
    fn every_part_is_read() {
        let full = url("amqps://us%40er:p%3Aass@[::1]:7000/my%2fhost");
        assert_eq!((full.user.as_str(), full.password.as_str()), ("us@er", "p:ass"));
        assert_eq!((full.host.as_str(), full.port, full.vhost.as_str()), ("::1", 7000, "my/host"));
        assert_eq!(full.address(), "[::1]:7000");
        assert_eq!(url("amqp://u:p/w@d@h").password, "p/w@d");
    }

    #[test]
    fn passwords_are_never_shown() {
        let secret = url("amqp://user:secret@host/%2f");
        assert_eq!(secret.to_string(), "amqp://user:***@host:5672/%2F");
        assert!(!format!("{:?}", BrokerSettings::new(vec![secret])).contains("secret"));
        for wrong in [
            "amqp://u:secret@h:99999",
            "http://u:secret@h",
            "amqp://u:secret@",
            "amqp://u:secret%zz@h",
            "amqp://u:secret@h?x=1",
        ] {
            let message = BrokerSettings::from_str(wrong).expect_err(wrong).to_string();
            assert!(!message.contains("secret"), "{message}");
            assert!(message.contains("amqp://USER:PASSWORD@HOST:5672/VHOST"), "{message}");
        }
    }

    #[test]
    fn several_nodes_are_separated_by_commas() {
        let settings: BrokerSettings = "amqp://a:1, amqp://b:2,".parse().expect("two nodes");
        assert_eq!(settings.urls.iter().map(BrokerUrl::address).collect::<Vec<_>>(), ["a:1", "b:2"]);
        assert!(" ,".parse::<BrokerSettings>().is_err());
    }

    #[test]
    fn a_credentials_file_overrides_the_url() {
        let file = std::env::temp_dir().join(format!("tenaz-credentials-{}", std::process::id()));
        std::fs::write(&file, "me:a:b\n").expect("a temporary file");
        let mut settings: BrokerSettings = "amqp://a,amqp://x:y@b".parse().expect("two nodes");
        settings.credentials_file = Some(file.clone());
        let urls = settings.resolved_urls().expect("credentials");
        std::fs::remove_file(&file).expect("removed");
        assert!(urls.iter().all(|url| url.user == "me" && url.password == "a:b"));
        assert!(matches!(settings.resolved_urls(), Err(Error::SettingsFile { .. })));
    }
}
