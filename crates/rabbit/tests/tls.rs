//! Encrypted connections, with a certificate authority of our own.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use std::{path::Path, process::Command};

use common::{fresh_dir, insist, run};
use tenaz_rabbit::{
    BrokerSettings, Connection, Error, QueueSpec,
    node::{NodeOptions, PrivateNode},
};

#[test]
fn a_broker_is_trusted_only_through_its_ca() {
    run(async {
        let dir = fresh_dir("tls");
        std::fs::create_dir_all(&dir).unwrap();
        if !make_certificates(&dir) {
            return eprintln!("skipped: openssl is not installed");
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut options = NodeOptions::new(dir.join("node"), "tls");
        options.extra_config = vec![
            format!("listeners.ssl.1 = 127.0.0.1:{port}"),
            format!("ssl_options.cacertfile = {}", dir.join("ca.pem").display()),
            format!("ssl_options.certfile = {}", dir.join("server.pem").display()),
            format!("ssl_options.keyfile = {}", dir.join("server.key").display()),
        ];
        let node = match PrivateNode::start(options).await {
            Ok(node) => node,
            Err(error @ Error::NotInstalled { .. }) => return eprintln!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        };
        let mut settings = node.settings();
        settings.urls[0].tls = true;
        settings.urls[0].port = port;
        settings.urls[0].host = "localhost".to_owned();
        // The node answers on its plain port a moment before this one.
        let refusal = async |settings: &BrokerSettings| {
            insist(async || match Connection::open(settings, "test").await {
                Err(error) if !error.is_temporary() => Ok(error),
                opened => opened.map(|_| panic!("this was to be refused")),
            })
            .await
        };
        let unknown = refusal(&settings).await;
        assert!(matches!(unknown, Error::Tls { .. }), "{unknown:?}");
        settings.ca_file = Some(dir.join("ca.pem"));
        let depth = insist(async || {
            let connection = Connection::open(&settings, "test").await?;
            connection.declare_queue(&QueueSpec::new("encrypted")).await?;
            connection.queue_depth("encrypted").await
        });
        assert_eq!(depth.await, Some(0));
        settings.urls[0].password = "wrong".to_owned();
        let wrong = refusal(&settings).await;
        assert!(matches!(wrong, Error::WrongPassword { .. }), "{wrong:?}");
    });
}

/// A CA and a certificate for localhost; false if there is no openssl.
fn make_certificates(dir: &Path) -> bool {
    std::fs::write(dir.join("ext"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n").unwrap();
    let steps = [
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.pem",
    ];
    steps.iter().all(|step| {
        let made = Command::new("openssl").args(step.split(' ')).current_dir(dir).output();
        made.is_ok_and(|output| output.status.success())
    })
}
