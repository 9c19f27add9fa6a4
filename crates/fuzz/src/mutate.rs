//! Mutations of inputs: small ones mostly, several at once now and then.

/// Bytes and numbers at which code is often wrong.
const TELLING: [&[u8]; 24] = [
    b"\0",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\n",
    b"\r\n",
    b"\"",
    b"\"\"",
    b",",
    b";",
    b"'",
    b"\\",
    b"-",
    b"%",
    b"\xef\xbb\xbf",
    b"\xc3\x28",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"\x80\0\0\0",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"1e400",
    b"NaN",
    b"99999999999999999999999999999999999999",
];

/// Makes new inputs of old ones, the same for the same seed.
#[derive(Debug)]
pub struct Mutator(u64);

impl Mutator {
    /// A mutator with a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() >> 33) as usize % end }
    }

    /// A part of something of this length: where it begins and ends.
    fn part(&mut self, length: usize) -> (usize, usize) {
        let begin = self.below(length + 1);
        let most = if self.below(4) == 0 { length - begin } else { (length - begin).min(16) };
        (begin, begin + self.below(most + 1))
    }

    /// One of the inputs, or parts of two, changed in a few places.
    pub fn mutate(&mut self, inputs: &[Vec<u8>], longest: usize) -> Vec<u8> {
        let mut input = inputs[self.below(inputs.len())].clone();
        for _ in 0..=self.below(4) {
            self.step(&mut input, inputs);
        }
        input.truncate(longest);
        input
    }

    fn step(&mut self, input: &mut Vec<u8>, inputs: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.next() as u8,
            2 if at < input.len() => input[at] = input[at].wrapping_add([1, 255][self.below(2)]),
            3 => {
                let (begin, end) = self.part(input.len());
                input.drain(begin..end);
            }
            4 => {
                // A part again, up to many times.
                let (begin, end) = self.part(input.len());
                let times = 1 << self.below(6);
                let again = input[begin..end].repeat(times);
                input.splice(at..at, again);
            }
            5 => {
                let other = &inputs[self.below(inputs.len())];
                let (begin, end) = self.part(other.len());
                input.splice(at..at, other[begin..end].iter().copied());
            }
            6 => {
                let (begin, end) = self.part(input.len());
                let telling = TELLING[self.below(TELLING.len())];
                input.splice(begin..end, telling.iter().copied());
            }
            _ => {
                let telling = TELLING[self.below(TELLING.len())];
                input.splice(at..at, telling.iter().copied());
            }
        }
    }
}
