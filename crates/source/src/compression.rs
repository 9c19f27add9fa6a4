//! Compressed files, known by their first bytes and never by their names.

use std::fmt;
use std::io::{BufReader, Read};

use crate::limits::STEP_BYTES;

/// How the bytes of a file are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip, also of several members one after the other.
    Gzip,
    /// Zstandard, also of several frames.
    Zstd,
    /// bzip2, also of several streams.
    Bzip2,
    /// xz, also of several streams.
    Xz,
    /// LZ4 frames.
    Lz4,
}

const MAGIC: [(&[u8], Compression); 5] = [
    (b"\x1f\x8b", Compression::Gzip),
    (b"\x28\xb5\x2f\xfd", Compression::Zstd),
    (b"BZh", Compression::Bzip2),
    (b"\xfd7zXZ\0", Compression::Xz),
    (b"\x04\x22\x4d\x18", Compression::Lz4),
];

impl Compression {
    /// The compression of the file that starts with these bytes.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        let known = MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
        // Text may begin with "BZh": only a digit and the mark of a first or last block make it an archive.
        let is_archive = |compression: Compression| {
            compression != Self::Bzip2
                || head.len() < 10
                || (head[3].is_ascii_digit()
                    && (head[4..10] == *b"1AY&SY" || head[4..10] == [0x17, 0x72, 0x45, 0x38, 0x50, 0x90]))
        };
        known.map(|(_, compression)| *compression).filter(|c| is_archive(*c)).unwrap_or_default()
    }

    /// The bytes of the file whose packed bytes `input` reads.
    ///
    /// # Errors
    /// The decoder cannot be set up.
    pub fn unpack<'r>(self, input: impl Read + Send + 'r) -> std::io::Result<Box<dyn Read + Send + 'r>> {
        let input = BufReader::with_capacity(STEP_BYTES, input);
        Ok(match self {
            Self::None => Box::new(input),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(input)?),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new(input, true)),
            Self::Lz4 => Box::new(Lz4Frames::new(input)),
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
        })
    }
}

/// LZ4 frames one after the other, as `cat a.lz4 b.lz4` makes them: the decoder stops after each.
struct Lz4Frames<R: Read> {
    decoder: lz4_flex::frame::FrameDecoder<Tail<R>>,
}

impl<R: Read> Lz4Frames<R> {
    fn new(input: R) -> Self {
        Self { decoder: lz4_flex::frame::FrameDecoder::new(Tail { input, last: [1; 8] }) }
    }
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        // At a frame's end the decoder answers 0 once, and then goes on with the next frame if there is one.
        let read = match self.decoder.read(buf)? {
            0 if !buf.is_empty() => self.decoder.read(buf)?,
            read => read,
        };
        if read == 0 && !buf.is_empty() && !self.decoder.get_ref().ends_a_frame() {
            let cut_off = "the lz4 file ends in the middle: it was cut off";
            return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, cut_off));
        }
        Ok(read)
    }
}

/// Remembers the last bytes: the decoder takes the end of its input between two blocks for the end of the frame.
struct Tail<R> {
    input: R,
    last: [u8; 8],
}

impl<R> Tail<R> {
    /// Whether the last bytes are a frame's end: a block of no bytes, behind which a checksum may stand.
    fn ends_a_frame(&self) -> bool {
        self.last[4..] == [0; 4] || self.last[..4] == [0; 4]
    }
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buf)?;
        let new = &buf[read.saturating_sub(8)..read];
        self.last.rotate_left(new.len());
        self.last[8 - new.len()..].copy_from_slice(new);
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"id,name\n1,a\n2,b\n";

    fn packed(compression: Compression, text: &[u8]) -> Vec<u8> {
        match compression {
            Compression::None => text.to_vec(),
            Compression::Gzip => {
                let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                packer.write_all(text).unwrap();
                packer.finish().unwrap()
            }
            Compression::Zstd => zstd::stream::encode_all(text, 1).unwrap(),
            Compression::Bzip2 => {
                let mut packer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
                packer.write_all(text).unwrap();
                packer.finish().unwrap()
            }
            Compression::Xz => {
                let mut packer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
                packer.write_all(text).unwrap();
                packer.finish().unwrap()
            }
            Compression::Lz4 => {
                let mut packer = lz4_flex::frame::FrameEncoder::new(Vec::new());
                packer.write_all(text).unwrap();
                packer.finish().unwrap()
            }
        }
    }

    const ALL: [Compression; 6] = [
        Compression::None,
        Compression::Gzip,
        Compression::Zstd,
        Compression::Bzip2,
        Compression::Xz,
        Compression::Lz4,
    ];

    fn unpacked(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        Compression::of(bytes).unpack(bytes)?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn every_compression_is_known_by_its_bytes_and_gives_the_text_back() {
        for compression in ALL {
            let bytes = packed(compression, TEXT);
            assert_eq!(Compression::of(&bytes), compression);
            assert_eq!(unpacked(&bytes).unwrap(), TEXT, "{compression}");
        }
    }

    #[test]
    fn archives_of_several_members_are_read_to_their_end() {
        for compression in ALL {
            let mut bytes = packed(compression, TEXT);
            bytes.extend(packed(compression, b"3,c\n"));
            assert_eq!(unpacked(&bytes).unwrap(), [TEXT, b"3,c\n"].concat(), "{compression}");
        }
    }

    #[test]
    fn an_archive_that_was_cut_off_is_an_error_and_never_less_text() {
        let long: Vec<u8> =
            (0..200_000u32).flat_map(|n| format!("{n},{}\n", n.wrapping_mul(2_654_435_761)).into_bytes()).collect();
        for compression in ALL.into_iter().filter(|c| *c != Compression::None) {
            let bytes = packed(compression, &long);
            for keep in [bytes.len() / 2, bytes.len() - 3] {
                assert!(unpacked(&bytes[..keep]).is_err(), "{compression} cut to {keep} of {}", bytes.len());
            }
        }
    }

    #[test]
    fn text_that_begins_like_an_archive_is_text() {
        assert_eq!(Compression::of(b"BZh,name,amount\n1,2,3\n"), Compression::None);
        assert_eq!(Compression::of(b""), Compression::None);
    }
}
