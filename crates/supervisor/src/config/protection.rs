//! Protections of a description: what keeps strangers out of a cluster, and whether another description still has it.

use std::net::SocketAddr;

use super::{Config, Machine};

/// The option by which a gateway asks its clients for tokens.
const TOKENS: &str = "--tokens";
/// The option by which a gateway speaks HTTPS.
const TLS: &str = "--tls-cert";

impl Config {
    /// The protections of this description that `after` lacks, each as a sentence without its full stop. Empty if every
    /// stranger who is kept out by this description is kept out by `after`, too.
    pub fn protections_lost(&self, after: &Self) -> Vec<String> {
        let mut lost = Vec::new();
        let (open_before, open_after) = (self.open_gateways(), after.open_gateways());
        let newly_open: Vec<String> =
            open_after.iter().filter(|gateway| !open_before.contains(gateway)).map(ToString::to_string).collect();
        if self.machines.iter().any(|machine| asks_for_tokens(machine) && !machine.gateways.is_empty())
            && !newly_open.is_empty()
        {
            let open = newly_open.join(", ");
            lost.push(format!("its gateways ask for tokens ({TOKENS} in gateway-options), and {open} would not"));
        }
        let in_clear = |config: &Self| config.machines.iter().any(|m| !m.gateways.is_empty() && !has_option(m, TLS));
        if self.machines.iter().any(|m| !m.gateways.is_empty()) && !in_clear(self) && in_clear(after) {
            lost.push(format!("its gateways speak HTTPS ({TLS} in gateway-options), and then would not"));
        }
        let encrypted = |config: &Self| config.broker.as_ref().is_none_or(|broker| broker.is_encrypted());
        if self.broker.is_some() && encrypted(self) && !encrypted(after) {
            lost.push("it speaks to its broker over TLS (amqps://), and then would not (amqp://)".to_owned());
        }
        lost
    }

    /// The gateways that serve clients without a token.
    fn open_gateways(&self) -> Vec<SocketAddr> {
        let open = self.machines.iter().filter(|machine| !asks_for_tokens(machine));
        open.flat_map(|machine| machine.gateways.iter().copied()).collect()
    }
}

fn asks_for_tokens(machine: &Machine) -> bool {
    has_option(machine, TOKENS)
}

fn has_option(machine: &Machine, name: &str) -> bool {
    machine.gateway_options.iter().any(|option| option.split('=').next() == Some(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::Config;

    const CLOSED: &str = r#"
name = "demo"
broker = "amqps://host"
[[machine]]
name = "here"
address = "127.0.0.1"
gateways = ["127.0.0.1:7400"]
gateway-options = ["--tokens", "/etc/tokens"]
[[supervisor]]
id = 1
machine = "here"
listen = "127.0.0.1:7501"
"#;

    fn lost(from: &str, to: &str) -> Vec<String> {
        let before = Config::parse(CLOSED, "before").unwrap();
        before.protections_lost(&Config::parse(&CLOSED.replacen(from, to, 1), "after").unwrap())
    }

    #[test]
    fn a_gateway_without_tokens_and_a_broker_without_tls_are_losses() {
        let open = lost("gateway-options = [\"--tokens\", \"/etc/tokens\"]", "");
        assert!(open.len() == 1 && open[0].contains("127.0.0.1:7400"), "{open:?}");
        let plain = lost("amqps://", "amqp://");
        assert!(plain.len() == 1 && plain[0].contains("TLS"), "{plain:?}");
    }

    #[test]
    fn a_gateway_without_https_is_a_loss() {
        let https = CLOSED.replace("\"/etc/tokens\"", "\"/etc/tokens\", \"--tls-cert\", \"/etc/cert\"");
        let (before, after) = (Config::parse(&https, "a").unwrap(), Config::parse(CLOSED, "b").unwrap());
        assert!(before.protections_lost(&after)[0].contains("HTTPS"));
        assert_eq!(before.protections_lost(&before), Vec::<String>::new());
        assert_eq!(after.protections_lost(&before), Vec::<String>::new());
    }

    #[test]
    fn other_tokens_more_gateways_and_fewer_gateways_are_none() {
        for (from, to) in [
            ("\"--tokens\", \"/etc/tokens\"", "\"--tokens=/etc/others\""),
            ("\"127.0.0.1:7400\"", "\"127.0.0.1:7400\", \"127.0.0.1:7401\""),
            ("[\"127.0.0.1:7400\"]", "[]"),
            ("amqps://host", "amqps://host,amqps://other"),
        ] {
            assert_eq!(lost(from, to), Vec::<String>::new(), "{from} to {to}");
        }
    }

    #[test]
    fn what_was_open_before_may_stay_open() {
        let open = CLOSED.replace("gateway-options", "worker-options").replace("amqps", "amqp");
        let open = Config::parse(&open.replace("\"--tokens\", \"/etc/tokens\"", ""), "before").unwrap();
        assert_eq!(open.protections_lost(&open), Vec::<String>::new());
    }
}
