//! Wherever several fields are read at once, each is what the slow way says.

use std::fmt::Debug;

use super::{Lanes, Spans};
use crate::fields::Fields;
use crate::parse::Parser;
use crate::parse::decimal::DecimalParser;
use crate::parse::int::IntParser;
use crate::parse::timestamp::{DateParser, TimestampParser};
use crate::simd::Simd;

/// The same numbers every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// With a probability of one in `one_in`, a byte of the text becomes another.
    fn spoil(&mut self, text: &mut [u8], one_in: u64) {
        if !text.is_empty() && self.below(one_in) == 0 {
            let place = self.below(text.len() as u64) as usize;
            text[place] = self.below(256) as u8;
        }
    }

    /// A few characters that are a number more often than not.
    fn number(&mut self) -> Vec<u8> {
        let mut text: Vec<u8> = (0..self.below(9)).map(|_| b'0' + self.below(10) as u8).collect();
        match self.below(8) {
            0 | 1 if !text.is_empty() => {
                let place = self.below(text.len() as u64) as usize;
                text[place] = b'.';
            }
            2 => text.extend_from_slice(b".0"),
            3 => self.spoil(&mut text, 8),
            4 => text.insert(0, b'-'),
            _ => {}
        }
        text
    }

    /// A day of two months that mostly exists.
    fn date(&mut self) -> Vec<u8> {
        let month = if self.below(40) == 0 { "2024-03" } else { "2024-02" };
        let day = if self.below(16) == 0 { self.below(35) } else { 1 + self.below(29) };
        let mut text = format!("{month}-{day:02}").into_bytes();
        self.spoil(&mut text, 80);
        text
    }

    /// A time of day that mostly exists.
    fn time(&mut self) -> Vec<u8> {
        let mut text = self.date();
        let separator = if self.below(3) == 0 { 'T' } else { ' ' };
        let number = |random: &mut Self, bound| if random.below(60) == 0 { bound } else { random.below(bound) };
        let (hour, minute, second) = (number(self, 24), number(self, 60), number(self, 60));
        text.extend_from_slice(format!("{separator}{hour:02}:{minute:02}:{second:02}").as_bytes());
        self.spoil(&mut text, 80);
        if self.below(60) == 0 {
            text.extend_from_slice(b".25");
        }
        text
    }
}

/// Few where every instruction is looked at (`scripts/memcheck`).
fn cases() -> usize {
    if few_cases() { 500 } else { 100_000 }
}

fn few_cases() -> bool {
    std::env::var_os("TENAZ_FEW_CASES").is_some()
}

/// Reads random texts several at a time. Returns how often they were read so.
fn check_with<L: Lanes, P: Parser>(lanes: L, parser: &mut P, before: &[u8], text: fn(&mut Random) -> Vec<u8>) -> usize
where
    P::Value: PartialEq + Debug,
{
    let mut random = Random(11);
    let mut read = 0;
    for _ in 0..cases() {
        let fields: Vec<Vec<u8>> = (0..L::COUNT).map(|_| text(&mut random)).collect();
        let mut data = before.to_vec();
        let mut seps = vec![(data.len() as u32).wrapping_sub(1)];
        for field in &fields {
            data.extend_from_slice(field);
            seps.push(data.len() as u32);
            data.push(b',');
        }
        data.pop();
        // One of them alone shows the parser what the others are like.
        let (start, end) = (before.len(), before.len() + fields[0].len());
        let _ = start < end && parser.fast_check(&data, start, end);
        let spans = Fields { seps: &seps, stride: 1, rows: L::COUNT, doubled: true }.several(lanes, 0, 0);
        for (i, field) in fields.iter().enumerate() {
            assert_eq!(spans.filled() >> i & 1 == 0, field.is_empty());
        }
        let values = parser.several(&data, spans).map(Lanes::words);
        assert_eq!(values.is_some(), parser.check_several(&data, spans), "{fields:?}");
        let Some(values) = values else { continue };
        read += 1;
        for (field, word) in fields.iter().zip(values.as_ref()) {
            let expected = if field.is_empty() { Ok(P::Value::default()) } else { parser.slow(field) };
            assert_eq!(Ok(P::value(*word)), expected, "{field:?}");
        }
    }
    read
}

/// The least of what all ways of this processor read so.
fn check<P: Parser>(parser: &mut P, before: &[u8], text: fn(&mut Random) -> Vec<u8>) -> Option<usize>
where
    P::Value: PartialEq + Debug,
{
    let ways = Simd::all().into_iter().filter_map(|simd| match simd {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has it.
        Simd::Avx512 => Some(check_with(unsafe { super::avx512::Eight::new() }, parser, before, text)),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has it.
        Simd::Avx2 => Some(check_with(unsafe { super::avx2::Four::new() }, parser, before, text)),
        Simd::Portable => None,
    });
    ways.min()
}

#[test]
fn several_numbers_at_once_are_what_each_is_alone() {
    for before in [&b""[..], b"9", b"12345678,"] {
        // At the start of the data there are no eight bytes before the first field.
        let often = if before.len() < 8 || few_cases() { 0 } else { 1000 };
        let is_often = |read: Option<usize>| read.is_none_or(|read| read >= often);
        assert!(is_often(check(&mut IntParser { float_text: false }, before, Random::number)));
        assert!(is_often(check(&mut IntParser { float_text: true }, before, Random::number)));
        for (precision, scale) in [(15, 3), (12, 0), (18, 9)] {
            let mut parser = DecimalParser::new(precision, scale);
            assert!(is_often(check(&mut parser, before, Random::number).map(|read| read * 5)), "{precision},{scale}");
        }
    }
    // Not roomy, factors too large, and no factors at all: never several at once.
    for (precision, scale) in [(5, 2), (30, 11), (3, -2)] {
        let read = check(&mut DecimalParser::new(precision, scale), b"12345678,", Random::number);
        assert_eq!(read.unwrap_or(0), 0);
    }
}

#[test]
fn several_times_at_once_are_what_each_is_alone() {
    for before in [&b""[..], b"12345678,"] {
        for (name, read) in [
            ("dates", check(&mut DateParser::default(), before, Random::date)),
            ("times", check(&mut TimestampParser::default(), before, Random::time)),
        ] {
            assert!(few_cases() || read.is_none_or(|read| read >= 5_000), "{name}: {read:?}");
        }
    }
}

/// No byte outside the data is read, wherever fields are said to be.
#[test]
fn fields_that_lie_outside_are_not_loaded() {
    fn try_all<L: Lanes>(lanes: L) {
        for len in 0..40 {
            let data = vec![b'1'; len];
            for at in 0..48u64 {
                let loaded = lanes.splat(at).load(&data).is_some();
                assert_eq!(loaded, at as usize + 8 <= len, "{at} of {len}");
            }
            for wild in [u64::MAX, u64::MAX - 7, 1 << 63, u64::from(u32::MAX), (1 << 63) + 5] {
                assert!(lanes.splat(wild).load(&data).is_none());
            }
            let spans = Spans { starts: lanes.splat(0), ends: lanes.splat(len as u64) };
            assert_eq!(spans.digits(&data).is_some(), len == 8, "a field of {len}");
        }
    }
    for simd in Simd::all() {
        match simd {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has it.
            Simd::Avx512 => try_all(unsafe { super::avx512::Eight::new() }),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has it.
            Simd::Avx2 => try_all(unsafe { super::avx2::Four::new() }),
            Simd::Portable => {}
        }
    }
}
