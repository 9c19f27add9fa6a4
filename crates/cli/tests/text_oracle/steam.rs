//! Games and reviews.

use std::collections::HashMap;
use std::path::Path;

use super::{Answers, cut, first_of, present, records};

struct Game {
    app_id: i64,
    name: String,
    year: Option<i32>,
    windows: bool,
    mac: bool,
    linux: bool,
    genres: String,
    playtime: i64,
}

/// A game counts when none of ten columns is null.
fn game(record: &csv::StringRecord) -> Option<Game> {
    assert_eq!(record.len(), 40, "every row has 40 fields: {record:?}");
    let field = |place: usize| present(&record[place]);
    let number = |place: usize| field(place).map(|text| text.parse::<i64>().expect("a whole number"));
    let flag = |place: usize| field(place).map(|text| text == "True");
    number(23)?;
    number(24)?;
    Some(Game {
        app_id: number(0)?,
        name: field(1)?.to_owned(),
        year: tenaz_text::year(field(2)?),
        windows: flag(17)?,
        mac: flag(18)?,
        linux: flag(19)?,
        genres: field(36)?.to_lowercase(),
        playtime: number(29)?,
    })
}

#[derive(Default, Clone, Copy)]
struct Reviews {
    positive: u64,
    negative: u64,
    negative_english: u64,
}

fn count_reviews(path: &Path) -> HashMap<i64, Reviews> {
    let mut counts: HashMap<i64, Reviews> = HashMap::new();
    for record in records(path) {
        assert_eq!(record.len(), 5, "{record:?}");
        let (Some(app_id), Some(text), Some(score)) = (present(&record[0]), present(&record[2]), present(&record[3]))
        else {
            continue;
        };
        let count = counts.entry(app_id.parse().expect("a whole number")).or_default();
        match score.parse::<i64>().expect("a whole number") {
            1 => count.positive += 1,
            -1 => {
                count.negative += 1;
                count.negative_english += u64::from(tenaz_text::is_english(text));
            }
            _ => {}
        }
    }
    counts
}

pub fn answers(dir: &Path) -> Answers {
    let games: Vec<Game> = records(&dir.join("games.csv")).iter().filter_map(game).collect();
    let reviews = count_reviews(&first_of(dir, &["reviews.csv", "dataset.csv"]));
    let of = |game: &Game| reviews.get(&game.app_id).copied().unwrap_or_default();
    let genre = |word: &str| games.iter().filter(|g| g.genres.contains(word)).collect::<Vec<_>>();
    let (indie, action) = (genre("indie"), genre("action"));

    let supported = |on: fn(&Game) -> bool| games.iter().filter(|g| on(g)).count().to_string();
    let q1 = vec![vec![supported(|g| g.windows), supported(|g| g.linux), supported(|g| g.mac)]];

    let mut played: Vec<&&Game> = indie.iter().filter(|g| g.year.is_some_and(|y| (2010..=2019).contains(&y))).collect();
    played.sort_by_key(|g| (-g.playtime, g.app_id));
    let q2 = played.iter().take(10).map(|g| vec![g.name.clone(), g.playtime.to_string()]).collect();

    let mut liked: Vec<(u64, &Game)> = indie.iter().map(|g| (of(g).positive, *g)).filter(|(n, _)| *n > 0).collect();
    liked.sort_by_key(|(n, g)| (u64::MAX - n, g.app_id));
    let q3 = liked.iter().take(5).map(|(n, g)| vec![g.name.clone(), n.to_string()]).collect();

    let mut panned: Vec<&&Game> = action.iter().filter(|g| of(g).negative_english > 5000).collect();
    panned.sort_by_key(|g| (g.app_id, g.name.clone()));
    let q4 = panned.iter().map(|g| vec![g.app_id.to_string(), g.name.clone()]).collect();

    let disliked: Vec<(u64, &Game)> = action.iter().map(|g| (of(g).negative, *g)).filter(|(n, _)| *n > 0).collect();
    let cut = cut(disliked.iter().map(|(n, _)| *n)).unwrap_or_default();
    let mut worst: Vec<_> = disliked.into_iter().filter(|(n, _)| *n >= cut).collect();
    worst.sort_by_key(|(_, g)| g.app_id);
    let q5 = worst.iter().map(|(n, g)| vec![g.app_id.to_string(), g.name.clone(), n.to_string()]).collect();

    Answers::from([("q1", q1), ("q2", q2), ("q3", q3), ("q4", q4), ("q5", q5)])
}
