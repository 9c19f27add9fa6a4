//! The zones of times.

use crate::value::number;

/// Short names of zones with their minutes east of UTC. Names that mean several zones (`IST`) are not known; `CST` is America's.
const ZONES: [(&str, i64); 22] = [
    ("UTC", 0),
    ("GMT", 0),
    ("WET", 0),
    ("WEST", 60),
    ("BST", 60),
    ("CET", 60),
    ("MEZ", 60),
    ("CEST", 120),
    ("MESZ", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("JST", 540),
    ("AEST", 600),
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
];

/// The time without its zone, and the zone's minutes east of UTC. None: there is a zone, and it is not known.
pub(crate) fn offset(text: &str) -> Option<(&str, i64)> {
    // Java writes the zone's full name behind its offset: `+01:00[Europe/Berlin]`.
    let text = match text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
        Some((text, _)) => text.trim_end(),
        None => text,
    };
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return Some((time.trim_end(), 0));
    }
    // JavaScript: `GMT+0100 (Central European Standard Time)`.
    let text = match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        Some((text, _)) => text.trim_end(),
        None => text,
    };
    let letters = text.len() - text.trim_end_matches(|c: char| c.is_ascii_uppercase()).len();
    if letters > 2 {
        let (time, name) = text.split_at(text.len() - letters);
        return ZONES.iter().find(|(known, _)| *known == name).map(|(_, minutes)| (time.trim_end(), *minutes));
    }
    let Some(sign) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let digits: String = text[sign + 1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = match digits.len() {
        1 | 2 => (number(&digits, 2)?, 0),
        4 => (number(digits.get(..2)?, 2)?, number(digits.get(2..)?, 2)?),
        _ => return None,
    };
    let minutes = i64::from(hours * 60 + minutes);
    let time = text[..sign].trim_end();
    let time = time.strip_suffix("GMT").or_else(|| time.strip_suffix("UTC")).unwrap_or(time).trim_end();
    Some((time, if text[sign..].starts_with('-') { -minutes } else { minutes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_known_by_offset_and_by_name() {
        for (text, expected) in [
            ("10:00", Some(("10:00", 0))),
            ("10:00Z", Some(("10:00", 0))),
            ("10:00:00 UTC", Some(("10:00:00", 0))),
            ("10:00:00 PST", Some(("10:00:00", -480))),
            ("10:00:00 CEST", Some(("10:00:00", 120))),
            ("10:00 AM EST", Some(("10:00 AM", -300))),
            ("10:00 PM", Some(("10:00 PM", 0))),
            ("10:00+02:00", Some(("10:00", 120))),
            ("10:00-0530", Some(("10:00", -330))),
            ("10:00+01:00[Europe/Berlin]", Some(("10:00", 60))),
            ("10:00 GMT+0100 (Central European Standard Time)", Some(("10:00", 60))),
            ("10:00 IST", None),
            ("10:00+1:2:3:4", Some(("10:00", 754))),
        ] {
            assert_eq!(offset(text), expected, "{text}");
        }
    }
}
