//! Encryption under a key that is made for one message, or for one direction of one connection: ChaCha20-Poly1305.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// How much longer a text becomes.
pub const TAG_BYTES: usize = 16;

/// Hides messages, each under a number of its own.
pub struct Cipher(LessSafeKey);

impl Cipher {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).expect("keys have 32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// Hides a message. `number` must be another one for each message; `in_clear` is what travels beside it.
    pub fn hide(&self, number: u64, in_clear: &[u8], message: &mut Vec<u8>) {
        let hidden = self.0.seal_in_place_append_tag(nonce(number), Aad::from(in_clear), message);
        hidden.expect("a message is shorter than 256 GiB");
    }

    /// Shows what was hidden under this number beside `in_clear`; `None` if it was not, or was changed since.
    pub fn show<'a>(&self, number: u64, in_clear: &[u8], hidden: &'a mut [u8]) -> Option<&'a [u8]> {
        let shown = self.0.open_in_place(nonce(number), Aad::from(in_clear), hidden);
        shown.ok().map(|shown| &*shown)
    }
}

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cipher(secret)")
    }
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_shown_under_its_key_number_and_company_only() {
        let cipher = Cipher::new(&[1; 32]);
        let mut hidden = b"the plan".to_vec();
        cipher.hide(7, b"head", &mut hidden);
        assert_eq!(hidden.len(), 8 + TAG_BYTES);
        assert!(!hidden.windows(4).any(|part| part == b"plan"));
        let show = |cipher: &Cipher, number, in_clear: &[u8]| {
            cipher.show(number, in_clear, &mut hidden.clone()).map(<[u8]>::to_vec)
        };
        assert_eq!(show(&cipher, 7, b"head").as_deref(), Some(&b"the plan"[..]));
        assert_eq!(show(&cipher, 8, b"head"), None);
        assert_eq!(show(&cipher, 7, b"hear"), None);
        assert_eq!(show(&Cipher::new(&[2; 32]), 7, b"head"), None);
        assert_eq!(cipher.show(7, b"head", &mut hidden[..TAG_BYTES - 1].to_vec()), None);
    }
}
