//! `books_data.csv`: the books, with lists as Python prints them and dates as libraries write them.

use crate::books::book::{Book, Books};
use crate::books::lists::{CATEGORIES, PUBLISHERS};
use crate::field::{minimal, number, two_digits};
use crate::rng::{Rng, mix};
use crate::shuffle::Shuffle;
use crate::sink::Sink;
use crate::words::{english, names};
use crate::{Error, Run, Written, parallel};

const HEADER: &str =
    "Title,description,authors,image,previewLink,publisher,publishedDate,infoLink,categories,ratingsCount";
const NAME: &str = "books_data.csv";
const ROWS_PER_BLOCK: u64 = 512;
/// Letters of the ids that Google gives to volumes.
const VOLUME_ID: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Writes the file. Rows are not in the order of popularity.
pub(super) fn write(run: &Run<'_>, books: &Books) -> Result<Written, Error> {
    let mut sink = Sink::create(run.out.join(NAME), HEADER, &run.progress)?;
    let order = Shuffle::new(books.count, mix(run.seed ^ 0x524f_5753));
    parallel::blocks(&mut sink, run.threads, books.count.div_ceil(ROWS_PER_BLOCK), |block, out| {
        let rows = block * ROWS_PER_BLOCK..books.count.min((block + 1) * ROWS_PER_BLOCK);
        let records = rows.end - rows.start;
        let mut row = Row { out, text: Vec::new() };
        for position in rows {
            row.book(books.at(order.at(position)));
        }
        records
    })?;
    sink.finish()
}

/// Writes one row, quoting only what must be; `text` is scratch space.
struct Row<'a> {
    out: &'a mut Vec<u8>,
    text: Vec<u8>,
}

impl Row<'_> {
    fn book(&mut self, mut book: Book) {
        let dated = book.is_dated();
        let rng = &mut book.rng;
        minimal(self.out, book.title.as_bytes());
        self.field(|text| {
            if rng.chance(700) {
                description(rng, text)
            }
        });
        self.field(|text| match book.classic_author {
            Some(author) => python_list(text, &[author.as_bytes()]),
            None => authors(rng, text),
        });
        let mut volume = [0; 12];
        volume.fill_with(|| VOLUME_ID[rng.below(64) as usize]);
        self.field(|text| {
            if rng.chance(790) {
                text.extend_from_slice(b"http://books.google.com/books/content?id=");
                text.extend_from_slice(&volume);
                text.extend_from_slice(b"&printsec=frontcover&img=1&zoom=1");
                if rng.chance(500) {
                    text.extend_from_slice(b"&edge=curl");
                }
                text.extend_from_slice(b"&source=gbs_api");
            }
        });
        let linked = !rng.chance(45);
        self.field(|text| {
            if linked {
                link(text, &volume, &book.title, "&hl=&cd=1&source=gbs_api")
            }
        });
        self.field(|text| {
            if rng.chance(650) {
                text.extend_from_slice(rng.pick(PUBLISHERS).as_bytes())
            }
        });
        self.field(|text| published(rng, text, book.year, dated));
        self.field(|text| {
            if linked {
                link(text, &volume, &book.title, "&hl=&source=gbs_api")
            }
        });
        self.field(|text| {
            if let Some(category) = book.category {
                categories(rng, text, category)
            }
        });
        self.field(|text| {
            if rng.chance(240) {
                let most = 1 << rng.between(1, 10);
                number(text, rng.between(1, most));
                text.extend_from_slice(b".0");
            }
        });
        self.out.push(b'\n');
    }

    fn field(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.text.clear();
        write(&mut self.text);
        self.out.push(b',');
        minimal(self.out, &self.text);
    }
}

fn description(rng: &mut Rng, text: &mut Vec<u8>) {
    let length = match rng.below(100) {
        0..20 => rng.between(60, 150),
        20..97 => rng.between(150, 1_100),
        _ => rng.between(1_100, 3_800),
    };
    english::BLURBS.write(rng, text, &[2, 5, 1], length as usize);
}

fn authors(rng: &mut Rng, text: &mut Vec<u8>) {
    let count = match rng.below(100) {
        0..9 => return,
        9..80 => 1,
        80..93 => 2,
        93..98 => 3,
        _ => 5,
    };
    let mut authors = Vec::with_capacity(count);
    for _ in 0..count {
        let mut author = Vec::new();
        names::person(rng, &mut author);
        authors.push(author);
    }
    python_list(text, &authors);
}

fn categories(rng: &mut Rng, text: &mut Vec<u8>, category: usize) {
    let first = CATEGORIES[category].0.as_bytes();
    if rng.chance(10) {
        let second = CATEGORIES[rng.below(CATEGORIES.len() as u64) as usize].0.as_bytes();
        python_list(text, &[first, second]);
    } else {
        python_list(text, &[first]);
    }
}

/// `['A', "O'B"]`: Python quotes with apostrophes unless the text has one.
fn python_list(text: &mut Vec<u8>, elements: &[impl AsRef<[u8]>]) {
    text.push(b'[');
    for (index, element) in elements.iter().enumerate() {
        let element = element.as_ref();
        if index > 0 {
            text.extend_from_slice(b", ");
        }
        let quote = if element.contains(&b'\'') { b'"' } else { b'\'' };
        text.push(quote);
        text.extend_from_slice(element);
        text.push(quote);
    }
    text.push(b']');
}

/// `1996`, `2005-01-01`, `2000-10`, nothing, or something odd.
fn published(rng: &mut Rng, text: &mut Vec<u8>, year: u64, dated: bool) {
    let form = if dated { rng.between(70, 999) } else { rng.below(1000) };
    match form {
        0..58 => {}
        58..62 => text.extend_from_slice(b"19??"),
        62..70 => {
            number(text, year);
            text.push(b'*');
        }
        70..520 => number(text, year),
        520..600 => {
            number(text, year);
            text.push(b'-');
            two_digits(text, rng.between(1, 12));
        }
        _ => {
            number(text, year);
            text.push(b'-');
            two_digits(text, rng.between(1, 12));
            text.push(b'-');
            two_digits(text, rng.between(1, 28));
        }
    }
}

fn link(text: &mut Vec<u8>, volume: &[u8; 12], title: &str, end: &str) {
    text.extend_from_slice(b"http://books.google.nl/books?id=");
    text.extend_from_slice(volume);
    text.extend_from_slice(b"&dq=");
    for byte in title.bytes() {
        match byte {
            b' ' => text.push(b'+'),
            b'"' => text.extend_from_slice(b"%22"),
            b'\'' => text.extend_from_slice(b"%27"),
            b'&' => text.extend_from_slice(b"%26"),
            0x80.. => {
                text.push(b'%');
                text.extend_from_slice(&[
                    b"0123456789ABCDEF"[usize::from(byte >> 4)],
                    b"0123456789ABCDEF"[usize::from(byte & 15)],
                ]);
            }
            plain => text.push(plain),
        }
    }
    text.extend_from_slice(end.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_quoted_as_python_quotes_them() {
        let text = |elements: &[&str]| {
            let mut out = Vec::new();
            python_list(&mut out, elements);
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(text(&["Arno Puder", "Kay Römer"]), "['Arno Puder', 'Kay Römer']");
        assert_eq!(text(&["Nena O'Neill"]), "[\"Nena O'Neill\"]");
        assert_eq!(text(&["Body, Mind & Spirit"]), "['Body, Mind & Spirit']");
    }
}
