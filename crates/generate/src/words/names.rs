//! Names of people, as authors and reviewers bear them.

use crate::rng::Rng;

const FIRST: &[&str] = &[
    "James", "Mary", "John", "Patricia", "Robert", "Jennifer", "Michael", "Linda", "William", "Elizabeth", "David",
    "Barbara", "Richard", "Susan", "Joseph", "Jessica", "Thomas", "Sarah", "Charles", "Karen", "Daniel", "Nancy",
    "Matthew", "Lisa", "Anthony", "Betty", "Mark", "Margaret", "Paul", "Sandra", "Steven", "Ashley", "Andrew",
    "Kimberly", "Kenneth", "Emily", "Joshua", "Donna", "Kevin", "Michelle", "Brian", "Carol", "George", "Amanda",
    "Edward", "Dorothy", "Ronald", "Melissa", "Timothy", "Deborah", "Jason", "Stephanie", "José", "María", "Søren",
    "Jürgen", "François", "Zoë", "Björn", "Agnès", "Chloé", "Łukasz", "Aleksandra", "Yuki", "Haruki", "Mei", "Ingrid",
    "Olga", "Dmitri", "Priya", "Arjun", "Fatima", "Omar", "Chiara", "Giovanni", "Anke", "Pádraig", "Siobhán",
];

const LAST: &[&str] = &[
    "Smith", "Johnson", "Williams", "Brown", "Jones", "Garcia", "Miller", "Davis", "Rodriguez", "Martinez",
    "Hernandez", "Lopez", "Wilson", "Anderson", "Thomas", "Taylor", "Moore", "Jackson", "Martin", "Lee", "Thompson",
    "White", "Harris", "Clark", "Lewis", "Robinson", "Walker", "Young", "Allen", "King", "Wright", "Scott", "Hill",
    "Green", "Adams", "Nelson", "Baker", "Hall", "Campbell", "Mitchell", "Carter", "Roberts", "Phillips", "Evans",
    "Turner", "Parker", "Collins", "Edwards", "Stewart", "Morris", "Murphy", "Cook", "Rogers", "Morgan", "Cooper",
    "Peterson", "Reed", "Bailey", "Kelly", "Howard", "Ward", "Watson", "Brooks", "Sanders", "Price", "Bennett",
    "Wood", "Barnes", "Ross", "Henderson", "Coleman", "Jenkins", "Perry", "Powell", "Long", "Patterson", "Hughes",
    "Müller", "Römer", "García Márquez", "Núñez", "Ørsted", "Dvořák", "Kowalski", "Nakamura", "Tanaka", "Chen",
    "Petrov", "Ivanova", "Rossi", "Bianchi", "Dubois", "Lefèvre", "van der Berg", "de la Cruz", "Haugen", "El-Amin",
    "Okafor", "Mbeki", "Singh", "Patel", "Kapoor", "Levy", "Cohen", "Weiss", "Hoffmann", "Schneider", "Fischer",
];

/// Last names with an apostrophe, which make Python print the list with double quotes.
const LAST_WITH_APOSTROPHE: &[&str] = &["O'Neill", "O'Donnell", "O'Brien", "D'Angelo", "O'Connor", "L'Amour", "D'Souza", "M'Gregor"];

const SUFFIXES: &[&str] = &[", Jr.", ", PhD", ", M.D.", " III", ", Esq."];

/// Appends a first and a last name, sometimes with an initial, seldom with an apostrophe or with a comma in it.
pub(crate) fn person(rng: &mut Rng, out: &mut Vec<u8>) {
    let first = rng.pick(FIRST);
    out.extend_from_slice(first.as_bytes());
    out.push(b' ');
    if rng.chance(300) {
        out.extend_from_slice(&[b'A' + rng.below(26) as u8, b'.', b' ']);
    }
    let last = if rng.chance(25) { rng.pick(LAST_WITH_APOSTROPHE) } else { rng.pick(LAST) };
    out.extend_from_slice(last.as_bytes());
    if rng.chance(12) {
        out.extend_from_slice(rng.pick(SUFFIXES).as_bytes());
    }
}

/// Appends a first name alone.
pub(crate) fn first(rng: &mut Rng, out: &mut Vec<u8>) {
    out.extend_from_slice(rng.pick(FIRST).as_bytes());
}

/// Appends a last name alone.
pub(crate) fn last(rng: &mut Rng, out: &mut Vec<u8>) {
    out.extend_from_slice(rng.pick(LAST).as_bytes());
}
