//! Cutting a file that is still arriving, on a thread of its own.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use tenaz_core::{ChunkDigest, FaultClass};
use tenaz_csv::{Chunk, Chunker, Layout};
use tenaz_source::{FileFormat, open_stream};
use tokio::sync::mpsc;

use crate::encoding::{BodyEncoding, Ratio, decoder};
use crate::limits::MAX_FILE_BYTES;
use crate::problem::{Code, Problem};

/// What a file was cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) chunks: u64,
    pub(crate) records: u64,
    /// Decompressed.
    pub(crate) bytes: u64,
    /// Bytes of the body that were read.
    pub(crate) taken: u64,
}

/// The reading end of a body, for a thread that may wait.
#[derive(Debug)]
pub(crate) struct Pipe {
    parts: mpsc::Receiver<Option<Bytes>>,
    part: Bytes,
    ended: bool,
    taken: Arc<AtomicU64>,
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct PipeWriter(mpsc::Sender<Option<Bytes>>);

impl Pipe {
    /// Both ends; at most `ahead` parts wait in between.
    pub(crate) fn new(ahead: usize) -> (Self, PipeWriter) {
        let (sender, parts) = mpsc::channel(ahead);
        (Self { parts, part: Bytes::new(), ended: false, taken: Arc::default() }, PipeWriter(sender))
    }
}

impl PipeWriter {
    /// Hands a part over. False: nobody reads any more.
    pub(crate) async fn part(&self, part: Bytes) -> bool {
        self.0.send(Some(part)).await.is_ok()
    }

    /// The body is complete. Without this the reader finds it cut off.
    pub(crate) async fn end(&self) {
        let _ = self.0.send(None).await;
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() && !self.ended {
            match self.parts.blocking_recv() {
                Some(Some(part)) => self.part = part,
                Some(None) => self.ended = true,
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the body is cut off")),
            }
        }
        let count = buffer.len().min(self.part.len());
        buffer[..count].copy_from_slice(&self.part.split_to(count));
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Counts what comes out of a decompressor.
struct Measured<R> {
    reader: R,
    taken: Arc<AtomicU64>,
    ratio: Ratio,
    problem: Option<Problem>,
}

impl<R: Read> Read for &mut Measured<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        if let Err(problem) = self.ratio.take(count, self.taken.load(Ordering::Relaxed)) {
            self.problem = Some(problem);
            return Err(io::Error::other("too large"));
        }
        Ok(count)
    }
}

/// Cuts a whole file and hands its chunks over, as a client would: also one in another encoding or dialect, where the table's
/// format says so or the bytes show it. It waits, so it needs a thread of its own.
pub(crate) fn cut(
    pipe: Pipe,
    encoding: BodyEncoding,
    (layout, format): (&Layout, &FileFormat),
    target: usize,
    taker: &mpsc::Sender<(Chunk, ChunkDigest)>,
) -> Result<Cut, Problem> {
    let taken = Arc::clone(&pipe.taken);
    let body = decoder(encoding, pipe).map_err(Problem::internal)?;
    let of_data = |text: String| Problem::new(Code::Unprocessable, text).of_class(FaultClass::Data);
    let reader = open_stream(body, format, &[]).map_err(|error| of_data(error.to_string()))?;
    // What comes out at the end is measured: a body may also be an archive without saying so.
    let mut measured = Measured { reader, taken, ratio: Ratio::new(MAX_FILE_BYTES), problem: None };
    let mut chunker = Chunker::new(&mut measured, layout, target);
    let (mut chunks, mut records) = (0, 0);
    let stopped = loop {
        match chunker.next_chunk() {
            Ok(None) => break None,
            Ok(Some(chunk)) => {
                chunks += 1;
                records += chunk.records;
                let digest = ChunkDigest::of(&chunk.data);
                if taker.blocking_send((chunk, digest)).is_err() {
                    break Some(Problem::new(Code::BadRequest, "the upload was given up"));
                }
            }
            Err(error) => {
                break Some(of_data(error.to_string()));
            }
        }
    };
    drop(chunker);
    match measured.problem.take().or(stopped) {
        Some(problem) => Err(problem),
        None => {
            let taken = measured.taken.load(Ordering::Relaxed);
            Ok(Cut { chunks, records, bytes: measured.ratio.raw(), taken })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use tenaz_cluster::Encoding;
    use tenaz_csv::{Column, Kind};

    use super::*;

    fn layout() -> Layout {
        Layout::new(vec![Column::new("n", Kind::Int { float_text: false }), Column::new("t", Kind::Text)])
    }

    fn file() -> Vec<u8> {
        let lines = (0..5000).map(|n| format!("{n},\"line\n{n}\"\n"));
        std::iter::once("n,t\n".to_owned()).chain(lines).collect::<String>().into_bytes()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn format() -> FileFormat {
        FileFormat { has_header: true, ..FileFormat::default() }
    }

    fn cut_whole(
        body: &[u8],
        encoding: BodyEncoding,
        step: usize,
        complete: bool,
    ) -> (Result<Cut, Problem>, Vec<Chunk>) {
        let (pipe, writer) = Pipe::new(2);
        let (sender, mut chunks) = mpsc::channel(1);
        let body = body.to_vec();
        let cutting = std::thread::spawn(move || cut(pipe, encoding, (&layout(), &format()), 4096, &sender));
        let feeding = std::thread::spawn(move || {
            for part in body.chunks(step) {
                if writer.0.blocking_send(Some(Bytes::copy_from_slice(part))).is_err() {
                    return;
                }
            }
            if complete {
                let _ = writer.0.blocking_send(None);
            }
        });
        let mut taken = Vec::new();
        while let Some((chunk, digest)) = chunks.blocking_recv() {
            assert_eq!(digest, ChunkDigest::of(&chunk.data));
            taken.push(chunk);
        }
        feeding.join().unwrap();
        (cutting.join().unwrap(), taken)
    }

    #[test]
    fn where_a_file_is_cut_depends_on_its_bytes_alone() {
        let file = file();
        let mut chunker = Chunker::new(&file[..], &layout(), 4096);
        let expected: Vec<Chunk> = std::iter::from_fn(|| chunker.next_chunk().unwrap()).collect();
        assert!(expected.len() > 10);
        let as_zstd = zstd::encode_all(&file[..], 1).unwrap();
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(&file).unwrap();
        let as_lz4 = encoder.finish().unwrap();
        let as_gzip = [gzip(&file[..100]), gzip(&file[100..])].concat();
        for (body, encoding, step) in [
            (&file, BodyEncoding::IDENTITY, 7),
            (&file, BodyEncoding::IDENTITY, 100_000),
            (&as_zstd, BodyEncoding::Frame(Encoding::Zstd), 11),
            (&as_lz4, BodyEncoding::Frame(Encoding::Lz4), 5),
            (&as_gzip, BodyEncoding::Gzip, 9),
        ] {
            let (cut, chunks) = cut_whole(body, encoding, step, true);
            assert_eq!(chunks, expected);
            let (count, bytes) = (expected.len() as u64, file.len() as u64);
            let taken = body.len() as u64;
            assert_eq!(cut.unwrap(), Cut { chunks: count, records: 5000, bytes, taken });
        }
    }

    #[test]
    fn a_file_in_another_encoding_or_with_other_record_ends_is_cut_as_what_it_says() {
        let (plain, expected) = cut_whole("n,t\n1,ü\n2,y\n".as_bytes(), BodyEncoding::IDENTITY, 5, true);
        let wide: Vec<u8> = "\u{feff}n,t\n1,ü\n2,y\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for body in [&wide[..], "n,t\r1,ü\r2,y\r".as_bytes(), &gzip("n,t\n1,ü\n2,y\n".as_bytes())] {
            let (cut, chunks) = cut_whole(body, BodyEncoding::IDENTITY, 5, true);
            assert_eq!(chunks, expected);
            assert_eq!(cut.unwrap().records, plain.as_ref().unwrap().records);
        }
        let (cut, _) = cut_whole(b"%PDF-1.7\n", BodyEncoding::IDENTITY, 5, true);
        assert!(cut.unwrap_err().detail().contains("a PDF document"));
        // An archive that does not say so has the same bounds.
        let (cut, _) = cut_whole(&gzip(&vec![b'\n'; 8 << 20]), BodyEncoding::IDENTITY, 1000, true);
        assert_eq!(cut.unwrap_err().code(), Code::TooLarge);
    }

    #[test]
    fn a_body_that_is_cut_off_is_never_taken_for_a_whole_file() {
        let (cut, _) = cut_whole(&file(), BodyEncoding::IDENTITY, 1000, false);
        assert_eq!(cut.unwrap_err().code(), Code::Unprocessable);
        let bomb = zstd::encode_all(&vec![b'\n'; 64 << 20][..], 19).unwrap();
        let (cut, _) = cut_whole(&bomb, BodyEncoding::Frame(Encoding::Zstd), 1000, true);
        assert_eq!(cut.unwrap_err().code(), Code::TooLarge);
        let (cut, _) = cut_whole(&gzip(&vec![b'\n'; 8 << 20]), BodyEncoding::Gzip, 1000, true);
        assert_eq!(cut.unwrap_err().code(), Code::TooLarge);
        let whole = gzip(&file());
        let (cut, _) = cut_whole(&whole[..whole.len() - 9], BodyEncoding::Gzip, 1000, true);
        assert_eq!(cut.unwrap_err().code(), Code::Unprocessable);
        let (cut, _) = cut_whole(b"a,b\n1,x\n", BodyEncoding::IDENTITY, 3, true);
        assert!(cut.unwrap_err().detail().contains("header"));
    }
}
