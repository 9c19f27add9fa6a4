//! Any bytes as an export, packed or not: canonical UTF-8 or an error, within bounds of memory, never a panic.
#![allow(missing_docs)]

use std::io::{Cursor, Read};

use tenaz_fuzz::Target;
use tenaz_source::{FileFormat, open_stream};

/// Whoever reads decides how much; here no more than that.
const READ_BYTES: u64 = 1 << 20;

#[test]
fn exports_are_read_or_refused() {
    Target::new("exports", env!("CARGO_MANIFEST_DIR")).run(|input| {
        let format = FileFormat { has_header: true, drop_totals: true, lenient: true, ..FileFormat::default() };
        let opened = open_stream(Cursor::new(input.to_vec()), &format, &[]);
        let mut reader = match opened {
            Ok(reader) => reader,
            Err(error) => return format!("{:.20}", error.to_string()),
        };
        let mut read = Vec::new();
        match reader.by_ref().take(READ_BYTES).read_to_end(&mut read) {
            Ok(bytes) => format!("{} {}", bytes.ilog2_or_none(), std::str::from_utf8(&read).is_ok()),
            Err(error) => format!("{:.20}", error.to_string()),
        }
    });
}

trait Size {
    fn ilog2_or_none(self) -> u32;
}

impl Size for usize {
    /// Sizes that are worth telling apart.
    fn ilog2_or_none(self) -> u32 {
        self.checked_ilog2().map_or(0, |log| log + 1)
    }
}
