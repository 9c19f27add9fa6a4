//! How commands that speak to gateways make sure of them.

use std::path::PathBuf;

use clap::Args;
use tenaz_client::Transport;

/// How to make sure of the gateways, and that nobody else hears the token.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TransportArgs {
    /// Certificates (PEM) of the authority to believe for https:// [default: those that browsers believe].
    #[arg(long = "ca-file", value_name = "FILE", env = "TENAZ_GATEWAY_CA_FILE")]
    pub(crate) gateway_ca_file: Option<PathBuf>,
    /// Send the token to other machines over http:// too, where everybody on the way can read it.
    #[arg(long, env = "TENAZ_INSECURE_TOKEN_OVER_HTTP")]
    pub(crate) insecure_token_over_http: bool,
}

impl TransportArgs {
    /// As the client takes it.
    pub(crate) fn transport(&self) -> Transport {
        Transport { ca_file: self.gateway_ca_file.clone(), allows_token_in_clear: self.insecure_token_over_http }
    }
}
