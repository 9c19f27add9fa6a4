//! Writing values as text, by hand: the hot loops append to a byte buffer and never format.

/// `00` to `99`, for numbers two digits at a time.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `value` in decimal.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    while value >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(pair((value % 100) as usize));
        value /= 100;
    }
    if value >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(pair(value as usize));
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends the last two digits of `value`.
#[inline]
pub(crate) fn two_digits(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(pair((value % 100) as usize));
}

/// Appends thousandths the way Python prints a float: as many decimals as needed, but at least one (`38.0`, `79.515`).
#[inline]
pub(crate) fn thousandths(out: &mut Vec<u8>, value: u64) {
    number(out, value / 1000);
    let rest = value % 1000;
    out.push(b'.');
    out.push(b'0' + (rest / 100) as u8);
    if !rest.is_multiple_of(100) {
        out.push(b'0' + (rest / 10 % 10) as u8);
        if !rest.is_multiple_of(10) {
            out.push(b'0' + (rest % 10) as u8);
        }
    }
}

/// Appends the lower 4 * `digits` bits of `value` in lower-case hexadecimal.
#[inline]
pub(crate) fn hex(out: &mut Vec<u8>, value: u64, digits: u32) {
    for digit in (0..digits).rev() {
        out.push(HEX[(value >> (4 * digit)) as usize & 15]);
    }
}

/// The text of a random (version 4) UUID made of 128 random bits.
#[inline]
pub(crate) fn uuid(high: u64, low: u64) -> [u8; 36] {
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            at += 1;
        }
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
        at += 2;
    }
    text
}

/// Appends `text` as a CSV field, quoted only when it must be (as pandas writes).
pub(crate) fn minimal(out: &mut Vec<u8>, text: &[u8]) {
    if text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        quoted(out, text);
    } else {
        out.extend_from_slice(text);
    }
}

/// Appends `text` as a CSV field in quotes, its own quotes doubled.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut parts = text.split(|&byte| byte == b'"');
    if let Some(first) = parts.next() {
        out.extend_from_slice(first);
    }
    for part in parts {
        out.extend_from_slice(b"\"\"");
        out.extend_from_slice(part);
    }
    out.push(b'"');
}

#[inline]
fn pair(value: usize) -> &'static [u8] {
    &PAIRS[2 * value..2 * value + 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for value in [0, 7, 10, 99, 100, 12_345, 1_000_000, u64::MAX] {
            assert_eq!(text(|out| number(out, value)), value.to_string());
        }
    }

    #[test]
    fn thousandths_look_like_python_floats() {
        for (value, expected) in
            [(0, "0.0"), (38_000, "38.0"), (45_500, "45.5"), (5_880, "5.88"), (79_515, "79.515"), (1_005, "1.005")]
        {
            assert_eq!(text(|out| thousandths(out, value)), expected);
        }
    }

    #[test]
    fn uuids_are_version_4() {
        assert_eq!(&uuid(u64::MAX, u64::MAX), b"ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(&uuid(0x0123_4567_89ab_cdef, 1), b"01234567-89ab-4def-8000-000000000001");
    }

    #[test]
    fn fields_are_quoted_only_when_needed_and_quotes_are_doubled() {
        assert_eq!(text(|out| minimal(out, b"plain text")), "plain text");
        assert_eq!(text(|out| minimal(out, b"a, b")), "\"a, b\"");
        assert_eq!(text(|out| minimal(out, b"a \"b\"")), "\"a \"\"b\"\"\"");
        assert_eq!(text(|out| quoted(out, b"")), "\"\"");
        assert_eq!(text(|out| hex(out, 0xabc, 4)), "0abc");
    }
}
