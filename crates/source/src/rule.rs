//! Lines that are drawn between records, as in lists of SAP and in the output of database clients.

/// Whether a line that begins with this byte may be drawn.
pub(crate) fn may_rule(byte: u8) -> bool {
    matches!(byte, b'-' | b'+' | b'=' | b'|' | b' ')
}

/// Whether a line consists of dashes, with marks between columns: `-----`, `+----+---+`, `----|----`, and `--,----`, where no column
/// has a dash alone, which may stand for null.
#[must_use]
pub fn is_rule(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let dashes = line.iter().filter(|byte| matches!(byte, b'-' | b'=')).count();
    let is_under = |part: &[u8]| part.len() > 1 && part.iter().all(|byte| *byte == b'-');
    let is_under_names = || line.split(|byte| matches!(byte, b',' | b';')).all(is_under);
    dashes >= 3 && (line.iter().all(|byte| may_rule(*byte) || *byte == b'\t') || is_under_names())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_dashes_are_drawn_and_nulls_that_are_dashes_are_not() {
        for drawn in ["-----", "+----+---+", "----|----", "---- ----", "--,----\r", "====="] {
            assert!(is_rule(drawn.as_bytes()), "{drawn:?}");
        }
        for record in ["-,-,-", "--,x", "-1,--2", "-", "", "|a|--|"] {
            assert!(!is_rule(record.as_bytes()), "{record:?}");
        }
    }
}
