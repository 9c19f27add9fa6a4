//! `tenaz gateway`

use std::sync::Arc;

use anyhow::Result;
use tenaz_core::ProcessRole;
use tenaz_gateway::{Gateway, GatewaySettings, Limits, Supervisors, TlsFiles};

use crate::cluster_args::GatewayArgs;
use crate::process;
use crate::screen::Screen;
use crate::supervisors::KnownSupervisors;

pub(crate) fn gateway(args: &GatewayArgs, screen: &Screen) -> Result<()> {
    process::run(&args.broker.log, screen, async |stop| {
        let mut limits = Limits::default();
        args.limit.iter().try_for_each(|limit| limits.set(limit)).map_err(crate::outcome::Usage)?;
        let settings = GatewaySettings {
            limits,
            url: args.url.clone(),
            tokens_file: args.tokens.clone(),
            tls: tls_files(args),
            patience: process::patience(&args.broker),
            ..GatewaySettings::new(args.listen)
        };
        settings.check().map_err(|error| crate::outcome::Usage(error.to_string()))?;
        // It answers questions about itself where it listens, too; who watches over it has a place of its own.
        let vitals = process::vitals(&args.vitals, ProcessRole::Gateway, args.http.http).await?;
        let supervisors = args.vitals.key_file.as_deref().and_then(KnownSupervisors::beside);
        let supervisors = supervisors.map(|known| Arc::new(known) as Arc<dyn Supervisors>);
        let settings = GatewaySettings { vitals: Some(vitals), supervisors, ..settings };
        let link = process::link(&args.broker, "gateway").await?;
        let gateway = Gateway::start(link.clone(), settings).await?;
        tracing::info!(url = gateway.url(), "listening");
        stop.cancelled().await;
        gateway.shutdown(args.drain).await;
        link.close().await;
        Ok(())
    })
}

fn tls_files(args: &GatewayArgs) -> Option<TlsFiles> {
    let (certificate, key) = (args.tls_cert.clone()?, args.tls_key.clone()?);
    Some(TlsFiles { certificate, key })
}
