//! Files that are named like CSV and are something else.

/// What the bytes at the start of a file show it to be, if that is no text table: (name, cure).
#[must_use]
pub fn known_as(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const MAGIC: [(&[u8], &str, &str); 12] = [
        (b"PAR1", "a Parquet file", "convert it to CSV, or ask a program that reads Parquet"),
        (b"%PDF", "a PDF document", "export the data as CSV instead"),
        (b"SQLite format 3\0", "an SQLite database", "export its tables: sqlite3 -csv -header FILE 'SELECT * FROM t'"),
        (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", "save it as CSV UTF-8"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
        (b"Rar!", "a RAR archive", "unpack it first"),
        (b"ARROW1", "an Arrow file", "convert it to CSV"),
        (b"Obj\x01", "an Avro file", "convert it to CSV"),
        (b"\x89PNG", "a picture", "leave it out"),
        (b"\xff\xd8\xff", "a picture", "leave it out"),
        (b"\x7fELF", "a program", "leave it out"),
        (b"{\\rtf", "an RTF document", "save it as CSV"),
    ];
    if let Some((_, what, cure)) = MAGIC.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Some((what, cure));
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        let is_workbook =
            memchr::memmem::find(head, b"xl/").is_some() || memchr::memmem::find(head, b"[Content_Types]").is_some();
        return Some(match is_workbook {
            true => ("an Excel workbook (.xlsx)", "save its sheet as CSV UTF-8"),
            false => ("a ZIP archive", "unpack it first"),
        });
    }
    if head.len() > 262 && &head[257..262] == b"ustar" {
        return Some(("a tar archive", "unpack it first"));
    }
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let begins = |with: &str| start.len() >= with.len() && start[..with.len()].eq_ignore_ascii_case(with.as_bytes());
    if begins("<!doctype html") || begins("<html") {
        return Some((
            "an HTML page",
            "the download may have failed or asked for a login: look at it in a browser and fetch the CSV again",
        ));
    }
    let is_json = begins("[{") || (begins("{\"") && memchr::memmem::find(start, b"\":").is_some());
    if is_json {
        return Some(("a JSON document", "export the data as CSV instead"));
    }
    if begins("<?xml") {
        return Some(("an XML document", "export the data as CSV instead"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_tables_are_called_what_they_are() {
        let what = |head: &[u8]| known_as(head).map(|(what, _)| what);
        assert_eq!(what(b"PK\x03\x04\x14\0\x06\0...[Content_Types].xml"), Some("an Excel workbook (.xlsx)"));
        assert_eq!(what(b"PK\x03\x04\x14\0\0\0data.csv"), Some("a ZIP archive"));
        assert_eq!(what(b"%PDF-1.7\n"), Some("a PDF document"));
        assert_eq!(what(b"\n <!DOCTYPE HTML><html>"), Some("an HTML page"));
        assert_eq!(what(b"id,name\n1,<html>\n"), None);
        assert_eq!(what(b""), None);
    }
}
