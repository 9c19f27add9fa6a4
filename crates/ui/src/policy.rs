//! What a browser lets the page do.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use crate::page::IMPORT_MAP;

/// The content security policy of the page: nothing from elsewhere, no inline script but the import map, no form, no frame, and
/// no text that becomes markup (`trusted-types 'none'`).
pub fn content_security_policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let digest = base64(&Sha256::digest(IMPORT_MAP.as_bytes()));
        format!(
            "default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'"
        )
    });
    &POLICY
}

/// Headers of every response with a file of the page.
pub(crate) const HEADERS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (text, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }

    #[test]
    fn the_policy_allows_no_other_origin_and_no_inline_script() {
        let policy = content_security_policy();
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self' 'sha256-"), "{policy}");
        for loose in ["unsafe", "http:", "https:", "*"] {
            assert!(!policy.contains(loose), "{loose} in {policy}");
        }
    }
}
