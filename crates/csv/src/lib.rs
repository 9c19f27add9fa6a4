//! CSV records: from a file to typed Arrow columns.
//!
//! A [`Chunker`] cuts a file into [`Chunk`]s of whole records, cheaply enough to be shared by threads. A [`Decoder`] turns a chunk
//! into a batch of the columns asked for and a list of [`Reject`]s: every record is accepted or rejected with a reason. Which it is
//! depends on the record and the [`Layout`] alone: never on the chunk size, the projection or the processor.
//!
//! ```
//! use std::sync::Arc;
//! use tenaz_csv::{Chunker, Column, Decoder, Kind, Layout};
//!
//! let layout = Layout::new(vec![
//!     Column::new("item", Kind::Text).required(),
//!     Column::new("price", Kind::Decimal { precision: 12, scale: 3 }),
//! ]);
//! let file = "item,price\n\"Latte, large\",79.515\nMocha,\nTea,cheap\n";
//!
//! let mut chunker = Chunker::new(file.as_bytes(), &layout, 1 << 20);
//! let mut decoder = Decoder::new(Arc::new(layout), vec![0, 1])?;
//! while let Some(chunk) = chunker.next_chunk()? {
//!     let decoded = decoder.decode(&chunk.data, chunk.byte, chunk.line)?;
//!     assert_eq!(decoded.records, 3);
//!     assert_eq!(decoded.batch.num_rows(), 2);
//!     let reject = decoded.rejects.first().expect("one is bad");
//!     assert_eq!(reject.line, 4);
//!     assert_eq!(reject.reason.to_string(), "\"cheap\" is not a decimal number");
//! }
//! # Ok::<(), tenaz_csv::Error>(())
//! ```
//!
//! # What a record is
//! - It ends with `\n` or `\r\n`, or with the file; a lone `\r` is data. Blank lines are no records.
//! - A field is quoted iff its first byte is `"`. Inside, `""` is a quote, and delimiters and line ends are data. A quote in an
//!   unquoted field is literal.
//! - After a closing quote only a delimiter or the record's end may follow. Otherwise the record is rejected.
//! - A quoted field that is still open [`MAX_RECORD_BYTES`](limits::MAX_RECORD_BYTES) after its record's start costs the record's
//!   first line, not the file.
//! - Checks come in this order, and the first that fails is the reason: structure, number of fields, UTF-8, columns from left to
//!   right. Every column is checked, projected or not.
//!
//! # What this crate never does
//! It guesses no types, knows no queries, opens no files and starts no threads; it never rounds, and no input makes it panic.

mod bits;
mod blocks;
mod chunker;
mod column;
mod cutter;
mod decoder;
mod error;
mod fields;
mod filling;
mod header;
mod index;
mod layout;
pub mod limits;
mod parse;
mod records;
mod reject;
mod rejects;
mod row_lines;
mod simd;
mod spares;
mod text;
mod wanted;
mod window;

pub use blocks::{Block, BlockCutter};
pub use chunker::{Chunk, Chunker};
pub use decoder::{Added, Decoded, Decoder};
pub use error::Error;
pub use index::Marks;
pub use layout::{Column, Header, Kind, Layout};
pub use records::{Records, line_starts};
pub use reject::{Reason, Reject};
pub use rejects::{RejectRef, Rejects};
pub use row_lines::line_of_row;
pub use spares::Spares;
pub use wanted::Within;
