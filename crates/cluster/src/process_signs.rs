//! What a process says of itself for people: its name, its life, what it uses.

use serde::{Deserialize, Serialize};

/// Signs of one process, as they go with its heartbeats. Nothing is decided by them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessSigns {
    /// Its name, such as `worker-2`: the same in every life.
    pub name: String,
    /// Which of its lives this is.
    pub life: u64,
    /// A counter that its own loops advance.
    pub pulse: u64,
    /// Milliseconds since it was started.
    pub up_ms: u64,
    /// Resident memory.
    pub memory_bytes: u64,
    /// Threads.
    pub threads: u32,
    /// CPU time since it was started.
    pub cpu_ms: u64,
    /// The connections to the broker that it has made, one after the other.
    pub link_epoch: u64,
    /// Messages that it has dropped because they came twice.
    pub duplicates: u64,
    /// Logs that it has read again from their start, to take partitions over.
    pub replays: u64,
}

impl ProcessSigns {
    /// Fills in what the kernel knows of this process.
    pub fn measure(&mut self) {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program, in parentheses, may have blanks.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let number = |field: usize| fields.get(field).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        // Fields 14, 15, 20 and 24 of proc(5); these begin with field 3. A tick is 10 ms, a page 4 KiB, on all that we run on.
        self.cpu_ms = (number(11) + number(12)) * 10;
        self.threads = u32::try_from(number(17)).unwrap_or(u32::MAX);
        self.memory_bytes = number(21) * 4096;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_what_it_uses() {
        let mut signs = ProcessSigns::default();
        signs.measure();
        assert!(signs.threads >= 1 && signs.memory_bytes > 1 << 20, "{signs:?}");
    }
}
