//! A description that people have written becomes that of a cluster's directory.

use std::path::Path;

use tenaz_vitals::{ClusterId, Key};

use crate::config::Config;
use crate::error::Error;
use crate::home::Home;
use crate::records::write_whole;

impl Home {
    /// Takes over a `cluster.toml` from elsewhere, and the key that it names, which all machines of a cluster share. A
    /// cluster of one machine can do with the directory's own key.
    ///
    /// The cluster's id is made of the key, so that it is the same on all machines.
    ///
    /// # Errors
    /// Something cannot be read or written, or several machines have no key to share.
    pub fn adopt(&self, file: &Path, config: &Config) -> Result<Self, Error> {
        let text = std::fs::read(file).map_err(Error::file("read", file))?;
        let theirs = file.parent().unwrap_or(Path::new("")).join(&config.key_file);
        let ours = self.key_path(config);
        if theirs.exists() {
            Key::read(&theirs)?;
            write_whole(&ours, &std::fs::read(&theirs).map_err(Error::file("read", &theirs))?)?;
        } else if config.machines.len() > 1 {
            return Err(Error::NoKey { path: theirs });
        } else if !ours.exists() {
            Key::create(&ours)?;
        }
        write_whole(&self.config_path(), &text)?;
        write_whole(&self.dir().join("id"), format!("{}\n", ClusterId::of(&Key::read(&ours)?)).as_bytes())?;
        Self::open(self.dir())
    }
}
