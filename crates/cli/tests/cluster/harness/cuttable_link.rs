//! A network namespace behind a link that can be taken down. It takes root and `ip` (iproute2).

use std::net::Ipv4Addr;
use std::process::Command;

/// A namespace and the link to it. Both are gone with this value, once nothing runs in the namespace any more.
///
/// The addresses are of a range for measurements that no network routes (RFC 2544), so nothing leaves this machine.
pub struct CuttableLink {
    pub namespace: String,
    /// The end of the link in this process's namespace.
    pub here: Ipv4Addr,
    /// The end in the namespace.
    pub there: Ipv4Addr,
}

const BEHIND: &str = "behind";

impl CuttableLink {
    pub fn new() -> Self {
        let pid = std::process::id();
        remove_leftovers();
        let (high, low) = ((pid >> 6) as u8, (pid as u8 & 0x3f) << 2);
        let (here, there) = (Ipv4Addr::new(198, 18, high, low + 1), Ipv4Addr::new(198, 18, high, low + 2));
        let link = Self { namespace: format!("tenaz-{pid}"), here, there };
        let (namespace, outer) = (&link.namespace, &format!("tz{pid}"));
        ip(&["netns", "add", namespace]);
        ip(&["link", "add", outer, "type", "veth", "peer", "name", BEHIND, "netns", namespace]);
        ip(&["address", "add", &format!("{here}/30"), "dev", outer]);
        ip(&["link", "set", outer, "up"]);
        ip(&["-n", namespace, "address", "add", &format!("{there}/30"), "dev", BEHIND]);
        ip(&["-n", namespace, "link", "set", "lo", "up"]);
        link.mend();
        link
    }

    /// From now on nothing gets through, and nobody is told.
    pub fn cut(&self) {
        ip(&["-n", &self.namespace, "link", "set", BEHIND, "down"]);
    }

    pub fn mend(&self) {
        ip(&["-n", &self.namespace, "link", "set", BEHIND, "up"]);
    }
}

impl Drop for CuttableLink {
    fn drop(&mut self) {
        remove(&self.namespace);
    }
}

/// Namespaces of test processes that were killed.
fn remove_leftovers() {
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix("tenaz-").and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()) {
            remove(&name);
        }
    }
}

fn remove(namespace: &str) {
    // What cannot be removed does no harm, and is tried again by the next test.
    let _ = Command::new("ip").args(["netns", "delete", namespace]).status();
}

fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).output().expect("`ip` runs: apt-get install iproute2");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {} (it takes root): {said}", arguments.join(" "));
}
