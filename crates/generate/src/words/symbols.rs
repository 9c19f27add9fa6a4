//! Texts in no language at all: faces, hearts, stars and pictures made of characters.

use crate::rng::Rng;

const TEXTS: &[&str] = &[
    "♥♥♥♥ ♥♥♥♥♥", "♥♥♥♥in ♥♥♥♥", "¯\\_(ツ)_/¯", "(╯°□°)╯︵ ┻━┻", "( ͡° ͜ʖ ͡°)", "+1", "10/10", "11/10", ":)", "gg",
    "★★★★★", "☆☆☆★★", "👍", "👎👎👎", "🔥🔥🔥 10/10 🔥🔥🔥", "🎮❤️", "???", ".", "lol", "ಠ_ಠ", "♪♫♪", "-_-", "\u{feff}ok", "(•_•) ( •_•)>⌐■-■ (⌐■_■)",
];

const PIXELS: &[&str] = &["░", "▒", "▓", "█", "▄", "▀", "♥", "☠", "⬛", "⬜", " "];

/// Appends a short text of symbols, or now and then a picture of several lines run into one.
pub(crate) fn write(rng: &mut Rng, out: &mut Vec<u8>) {
    if !rng.chance(150) {
        out.extend_from_slice(rng.pick(TEXTS).as_bytes());
        return;
    }
    let width = rng.between(8, 40);
    for _ in 0..rng.between(4, 20) {
        let mut pixel = rng.pick(PIXELS);
        for _ in 0..width {
            if rng.chance(300) {
                pixel = rng.pick(PIXELS);
            }
            out.extend_from_slice(pixel.as_bytes());
        }
        out.push(b' ');
    }
}
