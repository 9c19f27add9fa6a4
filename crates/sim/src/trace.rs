//! What happened, step by step: as a digest always, as text on request.

use std::fmt::{self, Write};

/// The trace of one run.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    digest: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// An empty trace, which keeps its text if asked to.
    pub(crate) fn new(keep_lines: bool) -> Self {
        Self { digest: 0xcbf2_9ce4_8422_2325, lines: keep_lines.then(Vec::new) }
    }

    /// Adds a line.
    pub(crate) fn note(&mut self, line: fmt::Arguments<'_>) {
        // Writing into a digest cannot fail.
        let _ = writeln!(Digest(&mut self.digest), "{line}");
        if let Some(lines) = &mut self.lines {
            lines.push(line.to_string());
        }
    }

    /// The digest of all lines: equal traces, equal digests.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// The lines, where they were kept.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

struct Digest<'a>(&'a mut u64);

impl Write for Digest<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            *self.0 = (*self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}
