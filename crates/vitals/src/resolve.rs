//! Where supervisors are: host names are looked up beside the sending, because a slow name server must not stop a heart.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::limits::{RESOLVE_AGAIN, RESOLVE_EVERY};

/// The supervisors' addresses, as far as they are known.
#[derive(Debug)]
pub(crate) struct Addresses {
    names: Vec<String>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    addresses: Vec<Option<SocketAddr>>,
    doubtful: bool,
    ended: bool,
}

impl Addresses {
    /// Knows numeric addresses at once, and looks up names in a thread of its own.
    pub(crate) fn start(names: Vec<String>) -> Result<Arc<Self>, Error> {
        for name in &names {
            let port = name.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(1..))) {
                return Err(Error::Setting { what: format!("{name:?} is no supervisor's address: write HOST:PORT") });
            }
        }
        let addresses: Vec<Option<SocketAddr>> = names.iter().map(|name| name.parse().ok()).collect();
        let known = addresses.iter().all(Option::is_some);
        let state = Mutex::new(State { addresses, doubtful: false, ended: false });
        let found = Arc::new(Self { names, state, changed: Condvar::new() });
        if !known {
            let thread_s = Arc::clone(&found);
            let spawned = thread::Builder::new().name("supervisor names".to_owned()).spawn(move || thread_s.look_up());
            // Not waited for: it may stand in a name server's timeout when the process ends.
            drop(spawned.map_err(Error::Sending)?);
        }
        Ok(found)
    }

    /// Where each is, in the order in which they were given.
    pub(crate) fn now(&self) -> Vec<Option<SocketAddr>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).addresses.clone()
    }

    /// Sending to one of them failed: they are looked up again soon.
    pub(crate) fn doubt(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.doubtful {
            state.doubtful = true;
            self.changed.notify_all();
        }
    }

    /// No longer needed.
    pub(crate) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.changed.notify_all();
    }

    fn look_up(&self) {
        loop {
            let mut all = true;
            for (at, name) in self.names.iter().enumerate() {
                let found = name.to_socket_addrs().ok().and_then(|mut found| found.next());
                all &= found.is_some();
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                // One that was known and cannot be looked up just now may well be where it was.
                if found.is_some() {
                    state.addresses[at] = found;
                }
            }
            if self.wait(RESOLVE_AGAIN, |state| state.ended) {
                return;
            }
            if all && self.wait(RESOLVE_EVERY, |state| state.ended || state.doubtful) {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.ended {
                    return;
                }
                state.doubtful = false;
            }
        }
    }

    /// Waits until `until` holds, but no longer than `at_most`; says whether it holds.
    fn wait(&self, at_most: Duration, until: impl Fn(&State) -> bool) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, at_most, |state| !until(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        until(&state)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_known_at_once_and_names_soon() {
        let addresses = Addresses::start(vec!["127.0.0.1:7501".into(), "localhost:7502".into()]).unwrap();
        assert_eq!(addresses.now()[0], Some("127.0.0.1:7501".parse().unwrap()));
        while addresses.now()[1].is_none() {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(addresses.now()[1].unwrap().port(), 7502);
        addresses.end();
        for bad in ["", "host", "host:", ":1", "host:x", "host:70000", "host:0"] {
            let error = Addresses::start(vec![bad.into()]).unwrap_err().to_string();
            assert!(error.contains("HOST:PORT"), "{error}");
        }
    }
}
