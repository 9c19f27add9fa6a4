//! Compressed bodies: which encoding, and what they become, without keeping it.

use std::io::{self, Read};

use axum::http::{HeaderMap, header};
use tenaz_cluster::Encoding;
use tenaz_core::{ChunkDigest, ChunkHasher};

use crate::limits::{FREE_RATIO_BYTES, MAX_CHUNK_BYTES, MAX_RATIO, MAX_ZSTD_WINDOW_LOG};
use crate::problem::{Code, Problem};

/// How the body of a request is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEncoding {
    /// As chunks travel inside the cluster, too.
    Frame(Encoding),
    /// As most programs that speak HTTP do it, with one member or several; unpacked here.
    Gzip,
}

impl BodyEncoding {
    /// Not compressed.
    pub(crate) const IDENTITY: Self = Self::Frame(Encoding::Identity);
}

/// The encoding of a body.
pub(crate) fn encoding_of(headers: &HeaderMap) -> Result<BodyEncoding, Problem> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(BodyEncoding::IDENTITY) };
    match value.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(BodyEncoding::IDENTITY),
        "lz4" => Ok(BodyEncoding::Frame(Encoding::Lz4)),
        "zstd" => Ok(BodyEncoding::Frame(Encoding::Zstd)),
        "gzip" | "x-gzip" => Ok(BodyEncoding::Gzip),
        other => {
            let text = format!("Content-Encoding {other:?} is not supported: use gzip, lz4 (frames), zstd or identity");
            Err(Problem::new(Code::UnsupportedEncoding, text))
        }
    }
}

/// What a chunk's body becomes when it is decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawChunk {
    pub(crate) bytes: u64,
    pub(crate) digest: ChunkDigest,
}

/// Counts and hashes what a chunk's body becomes, and refuses what is no chunk.
pub(crate) fn measure(encoding: Encoding, body: &[u8]) -> Result<RawChunk, Problem> {
    let raw = match encoding {
        Encoding::Identity => RawChunk { bytes: body.len() as u64, digest: ChunkDigest::of(body) },
        Encoding::Lz4 | Encoding::Zstd => decompressed(encoding, body)?,
    };
    if raw.bytes > MAX_CHUNK_BYTES {
        let text = format!("the chunk has more than {MAX_CHUNK_BYTES} bytes: cut smaller chunks");
        return Err(Problem::new(Code::TooLarge, text));
    }
    Ok(raw)
}

fn broken(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Code::Unprocessable, format!("the body cannot be decompressed: {error}; send it again"))
}

/// What a chunk's body in gzip becomes: never more than a chunk may have, nor than its ratio allows.
pub(crate) fn gunzipped(body: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut reader = decoder(BodyEncoding::Gzip, body).map_err(|error| broken(&error))?;
    let mut limit = Ratio::new(MAX_CHUNK_BYTES);
    let (mut raw, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match reader.read(&mut buffer).map_err(|error| broken(&error))? {
            0 => return Ok(raw),
            read => {
                limit.take(read, body.len() as u64)?;
                raw.extend_from_slice(&buffer[..read]);
            }
        }
    }
}

fn decompressed(encoding: Encoding, body: &[u8]) -> Result<RawChunk, Problem> {
    let mut rest = body;
    let mut limit = Ratio::new(MAX_CHUNK_BYTES);
    let mut hasher = ChunkHasher::default();
    let mut buffer = vec![0; 64 << 10];
    #[expect(clippy::needless_borrows_for_generic_args, reason = "what is left of it is looked at afterwards")]
    let mut reader = decoder(BodyEncoding::Frame(encoding), &mut rest).map_err(|error| broken(&error))?;
    loop {
        let read = reader.read(&mut buffer).map_err(|error| broken(&error))?;
        if read == 0 {
            break;
        }
        limit.take(read, body.len() as u64)?;
        hasher.update(&buffer[..read]);
    }
    drop(reader);
    if !rest.is_empty() {
        return Err(broken(&format!("{} bytes follow its end", rest.len())));
    }
    Ok(RawChunk { bytes: limit.raw(), digest: hasher.finish() })
}

/// A reader of what a body becomes.
pub(crate) fn decoder<'a>(
    encoding: BodyEncoding,
    body: impl Read + Send + 'a,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match encoding {
        BodyEncoding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(body)),
        BodyEncoding::Frame(Encoding::Identity) => Box::new(body),
        BodyEncoding::Frame(Encoding::Lz4) => Box::new(Lz4::new(body)),
        BodyEncoding::Frame(Encoding::Zstd) => {
            let mut decoder = zstd::stream::read::Decoder::new(body)?;
            decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
    })
}

/// One lz4 frame. lz4_flex takes a frame that is cut off between two blocks for a whole one, and drops the reader's own
/// error on the way, so the end counts only if the decoder found it before its input ended.
struct Lz4<R: Read> {
    decoder: lz4_flex::frame::FrameDecoder<Watched<R>>,
    is_complete: bool,
}

struct Watched<R> {
    reader: R,
    has_ended: bool,
}

impl<R: Read> Lz4<R> {
    fn new(reader: R) -> Self {
        let watched = Watched { reader, has_ended: false };
        Self { decoder: lz4_flex::frame::FrameDecoder::new(watched), is_complete: false }
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_complete || buffer.is_empty() {
            return Ok(0);
        }
        let read = self.decoder.read(buffer)?;
        if read == 0 && self.decoder.get_ref().has_ended {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the lz4 frame is cut off"));
        }
        self.is_complete = read == 0;
        Ok(read)
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer);
        self.has_ended |= !buffer.is_empty() && !matches!(read, Ok(1..));
        read
    }
}

/// Watches how much a compressed body becomes.
#[derive(Debug)]
pub(crate) struct Ratio {
    raw: u64,
    limit: u64,
}

impl Ratio {
    /// At most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { raw: 0, limit }
    }

    /// How many came out so far.
    pub(crate) fn raw(&self) -> u64 {
        self.raw
    }

    /// `read` more bytes came out; so far `compressed` have gone in.
    pub(crate) fn take(&mut self, read: usize, compressed: u64) -> Result<(), Problem> {
        self.raw += read as u64;
        if self.raw > self.limit {
            let text = format!("decompressed it has more than {} bytes: cut smaller pieces", self.limit);
            return Err(Problem::new(Code::TooLarge, text));
        }
        if self.raw > FREE_RATIO_BYTES && self.raw / MAX_RATIO > compressed {
            let text = format!("it becomes more than {MAX_RATIO} times larger when decompressed: send it as it is");
            return Err(Problem::new(Code::TooLarge, text));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    fn lines(count: usize) -> Vec<u8> {
        (0..count).flat_map(|n| format!("{n},{}\n", n * 7919 % 1009).into_bytes()).collect()
    }

    #[test]
    fn bodies_are_measured_by_what_they_become() {
        let csv = lines(50_000);
        let raw = RawChunk { bytes: csv.len() as u64, digest: ChunkDigest::of(&csv) };
        assert_eq!(measure(Encoding::Identity, &csv).unwrap(), raw);
        assert_eq!(measure(Encoding::Lz4, &lz4(&csv)).unwrap(), raw);
        assert_eq!(measure(Encoding::Zstd, &zstd(&csv)).unwrap(), raw);
        let nothing = RawChunk { bytes: 0, digest: ChunkDigest::of(b"") };
        assert_eq!(measure(Encoding::Zstd, &zstd(b"")).unwrap(), nothing);
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn chunks_in_gzip_are_unpacked_within_the_limits_of_a_chunk() {
        let csv = lines(50_000);
        assert_eq!(gunzipped(&gzip(&csv)).unwrap(), csv);
        let members = [gzip(b"1,a\n"), gzip(b"2,b\n")].concat();
        assert_eq!(gunzipped(&members).unwrap(), b"1,a\n2,b\n");
        let code = |body: &[u8]| gunzipped(body).unwrap_err().code();
        let zeros = vec![b'0'; 16 << 20];
        assert_eq!(code(&gzip(&zeros)), Code::TooLarge, "by its size");
        assert_eq!(code(&gzip(&zeros[..7 << 20])), Code::TooLarge, "by its ratio");
        let whole = gzip(&lines(1000));
        for cut in [0, 5, 12, whole.len() / 2, whole.len() - 1] {
            assert_eq!(code(&whole[..cut]), Code::Unprocessable, "cut at {cut}");
        }
        assert_eq!(code(b"a,b\n"), Code::Unprocessable);
    }

    #[test]
    fn bombs_and_broken_bodies_are_refused() {
        let code = |outcome: Result<RawChunk, Problem>| outcome.unwrap_err().code();
        let zeros = vec![b'0'; 100 << 20];
        assert_eq!(code(measure(Encoding::Zstd, &zstd(&zeros))), Code::TooLarge);
        assert_eq!(code(measure(Encoding::Lz4, &lz4(&zeros))), Code::TooLarge);
        assert_eq!(code(measure(Encoding::Zstd, &zstd(&zeros[..7 << 20]))), Code::TooLarge, "by its ratio");
        assert!(measure(Encoding::Zstd, &zstd(&zeros[..1 << 20])).is_ok(), "a default chunk may be of one letter");
        let whole = zstd(&lines(1000));
        assert_eq!(code(measure(Encoding::Zstd, &whole[..whole.len() - 3])), Code::Unprocessable);
        let whole = lz4(&lines(1000));
        for cut in 0..whole.len() {
            assert_eq!(code(measure(Encoding::Lz4, &whole[..cut])), Code::Unprocessable, "cut at {cut}");
        }
        assert_eq!(code(measure(Encoding::Lz4, b"a,b\n")), Code::Unprocessable);
        assert_eq!(code(measure(Encoding::Identity, &zeros)), Code::TooLarge);
        let trailing = [lz4(b"a\n"), b"more".to_vec()].concat();
        assert_eq!(code(measure(Encoding::Lz4, &trailing)), Code::Unprocessable);
    }

    /// Whatever a body claims to become, it becomes no more than a chunk may have, and never takes the process down.
    #[test]
    fn any_bytes_are_unpacked_or_refused() {
        let text = "1,a\n".repeat(100);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz4.write_all(text.as_bytes()).unwrap();
        let target = tenaz_fuzz::Target::new("bodies", env!("CARGO_MANIFEST_DIR"));
        let target = target.seed(gzip.finish().unwrap()).seed(lz4.finish().unwrap());
        let target = target.seed(zstd::encode_all(text.as_bytes(), 1).unwrap()).seed(text);
        target.run(|body| {
            let gzip = gunzipped(body).map(|raw| raw.len() as u64);
            let measured = [Encoding::Identity, Encoding::Lz4, Encoding::Zstd]
                .map(|encoding| measure(encoding, body).map(|raw| raw.bytes));
            let all = measured.into_iter().chain([gzip]).map(|found| match found {
                Ok(bytes) => {
                    assert!(bytes <= MAX_CHUNK_BYTES, "{bytes}");
                    bytes.checked_ilog2().map_or(0, |log| log + 1)
                }
                Err(_) => u32::MAX,
            });
            all.collect::<Vec<_>>()
        });
    }
}
