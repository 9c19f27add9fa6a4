//! Reading and writing the few fields that travel in datagrams. Reading never panics: what is not there is `None`.

/// Appends fields.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Text with its length; longer than `max` counts as none, so that the field cannot break the format.
    pub(crate) fn text(&mut self, text: &str, max: usize) {
        let text = if text.len() <= max { text } else { "" };
        let length = u16::try_from(text.len()).expect("limits are far below");
        self.bytes(&length.to_be_bytes());
        self.bytes(text.as_bytes());
    }
}

/// Takes fields off.
#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        Some(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn eight(&mut self) -> Option<[u8; 8]> {
        self.array()
    }

    pub(crate) fn text(&mut self, max: usize) -> Option<&'a str> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        if length > max {
            return None;
        }
        std::str::from_utf8(self.take(length)?).ok()
    }

    /// There must be nothing more.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
