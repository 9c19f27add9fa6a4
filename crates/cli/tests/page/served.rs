//! `tenaz ui`, as a user starts it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) struct Served {
    process: Child,
    /// The whole address, with the token.
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn start(data: Option<&Path>, options: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", data, options)
    }

    pub(crate) fn start_at(listen: &str, data: Option<&Path>, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenaz"));
        command.args(["ui", "--no-open", "--listen", listen]).args(options);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        command.env_remove("TENAZ_DATA").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://127.0.0.1:"), "{url:?}");
        Self { process, url: url.trim().to_owned() }
    }

    /// The address without path and token.
    pub(crate) fn origin(&self) -> &str {
        self.url.split("/#").next().unwrap()
    }

    pub(crate) fn token(&self) -> &str {
        self.url.split("token=").nth(1).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
