//! A ZIP archive written front to back, as Excel wants its files packed: no part of it has to be known before it is written.

use std::io::{self, Write};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// Sizes are 32 bits.
const MAX_BYTES: u64 = u32::MAX as u64;

/// Version 2.0 of the format, in which a part may be deflated.
const VERSION: u16 = 20;
/// Sizes and checksum follow behind the part, and its name is UTF-8.
const FLAGS: u16 = 0x0808;
const DEFLATED: u16 = 8;
/// The first of January 1980: the same answer has the same bytes.
const DATE: u16 = 0x0021;

/// Counts what it passes on.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buf)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A part that is complete.
struct Entry {
    name: &'static str,
    offset: u64,
    crc: u32,
    packed: u64,
    plain: u64,
}

/// An archive between two parts.
pub(super) struct Zip<W: Write> {
    out: Counted<W>,
    entries: Vec<Entry>,
}

/// A part that is being written.
pub(super) struct Part<W: Write> {
    encoder: DeflateEncoder<Counted<W>>,
    entries: Vec<Entry>,
    name: &'static str,
    offset: u64,
    begin: u64,
    crc: Crc,
}

impl<W: Write> Zip<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out: Counted { out, bytes: 0 }, entries: Vec::new() }
    }

    pub(super) fn begin(mut self, name: &'static str) -> io::Result<Part<W>> {
        let offset = self.out.bytes;
        let mut header = Vec::new();
        header.extend(0x0403_4b50_u32.to_le_bytes());
        [VERSION, FLAGS, DEFLATED, 0, DATE].iter().for_each(|field| header.extend(field.to_le_bytes()));
        // Checksum and both sizes follow behind the part.
        header.extend([0; 12]);
        [name.len() as u16, 0].iter().for_each(|field| header.extend(field.to_le_bytes()));
        header.extend(name.as_bytes());
        self.out.write_all(&header)?;
        let begin = self.out.bytes;
        let encoder = DeflateEncoder::new(self.out, Compression::default());
        Ok(Part { encoder, entries: self.entries, name, offset, begin, crc: Crc::new() })
    }

    /// A whole part.
    pub(super) fn put(self, name: &'static str, text: &str) -> io::Result<Self> {
        let mut part = self.begin(name)?;
        part.write(text.as_bytes())?;
        part.end()
    }

    /// The directory of all parts, which ends the archive.
    pub(super) fn end(mut self) -> io::Result<()> {
        let start = self.out.bytes;
        let mut directory = Vec::new();
        for entry in &self.entries {
            directory.extend(0x0201_4b50_u32.to_le_bytes());
            [VERSION, VERSION, FLAGS, DEFLATED, 0, DATE].iter().for_each(|field| directory.extend(field.to_le_bytes()));
            [entry.crc, entry.packed as u32, entry.plain as u32].iter().for_each(|f| directory.extend(f.to_le_bytes()));
            [entry.name.len() as u16, 0, 0, 0, 0].iter().for_each(|field| directory.extend(field.to_le_bytes()));
            [0, entry.offset as u32].iter().for_each(|field| directory.extend(field.to_le_bytes()));
            directory.extend(entry.name.as_bytes());
        }
        let count = self.entries.len() as u16;
        let bytes = directory.len() as u32;
        directory.extend(0x0605_4b50_u32.to_le_bytes());
        [0, 0, count, count].iter().for_each(|field| directory.extend(field.to_le_bytes()));
        [bytes, start as u32].iter().for_each(|field| directory.extend(field.to_le_bytes()));
        directory.extend(0_u16.to_le_bytes());
        self.out.write_all(&directory)?;
        self.out.flush()
    }
}

impl<W: Write> Part<W> {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        if self.encoder.total_in() + bytes.len() as u64 > MAX_BYTES {
            return Err(io::Error::other("the sheet has more than 4 GiB of text; write .csv or .arrow"));
        }
        self.encoder.write_all(bytes)
    }

    pub(super) fn end(self) -> io::Result<Zip<W>> {
        let plain = self.encoder.total_in();
        let mut out = self.encoder.finish()?;
        let (crc, packed) = (self.crc.sum(), out.bytes - self.begin);
        let mut behind = Vec::new();
        [0x0807_4b50, crc, packed as u32, plain as u32].iter().for_each(|field| behind.extend(field.to_le_bytes()));
        out.write_all(&behind)?;
        if out.bytes > MAX_BYTES {
            return Err(io::Error::other("the file has more than 4 GiB; write .csv or .arrow"));
        }
        let mut entries = self.entries;
        entries.push(Entry { name: self.name, offset: self.offset, crc, packed, plain });
        Ok(Zip { out, entries })
    }
}
