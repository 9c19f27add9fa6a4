//! The steam data keep the promises that the queries and their tests rely on.

mod made;

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use made::Made;
use tenaz_generate::Dataset;

const GAMES: &str = "AppID,Name,Release date,Estimated owners,Peak CCU,Required age,Price,DiscountDLC count,\
About the game,Supported languages,Full audio languages,Reviews,Header image,Website,Support url,Support email,\
Windows,Mac,Linux,Metacritic score,Metacritic url,User score,Positive,Negative,Score rank,Achievements,\
Recommendations,Notes,Average playtime forever,Average playtime two weeks,Median playtime forever,\
Median playtime two weeks,Developers,Publishers,Categories,Genres,Tags,Screenshots,Movies";
const REVIEWS: &str = "app_id,app_name,review_text,review_score,review_votes";

/// The scale at which the question about negative English reviews must have an answer; made once.
fn steam() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| Made::new(Dataset::Steam, 0.05, 11, 2))
}

fn games() -> Vec<csv::StringRecord> {
    steam().records("games.csv", GAMES, 40)
}

fn reviews() -> &'static [csv::StringRecord] {
    static REVIEWS_READ: OnceLock<Vec<csv::StringRecord>> = OnceLock::new();
    REVIEWS_READ.get_or_init(|| steam().records("reviews.csv", REVIEWS, 5))
}

fn per_mille(part: usize, whole: usize) -> usize {
    part * 1000 / whole
}

#[test]
fn the_header_names_39_columns_and_every_row_has_40() {
    assert_eq!(GAMES.split(',').count(), 39);
    let games = games();
    assert_eq!(games.len(), 4871);
    let ids: HashSet<&str> = games.iter().map(|game| &game[0]).collect();
    assert_eq!(ids.len(), games.len(), "ids are unique");
}

#[test]
fn games_have_the_real_forms_of_dates_booleans_and_lists() {
    let (mut days, mut months) = (0, 0);
    for game in games() {
        for boolean in 17..20 {
            assert!(matches!(&game[boolean], "True" | "False"), "{game:?}");
        }
        match game[2].split(' ').count() {
            3 => days += 1,
            2 => months += 1,
            _ => assert_eq!(&game[2], ""),
        }
        assert!(game[10].starts_with('[') && game[10].ends_with(']'));
    }
    assert!(months > 20 && days > 50 * months, "{days} {months}");
}

#[test]
fn some_games_lack_what_the_questions_need() {
    let games = games();
    let empty = |field: usize| games.iter().filter(|game| game[field].is_empty()).count();
    assert!((5..60).contains(&empty(1)), "names: {}", empty(1));
    assert!((1..40).contains(&empty(2)), "dates: {}", empty(2));
    assert!((150..300).contains(&empty(36)), "genres: {}", empty(36));
    assert!(empty(23) + empty(24) + empty(29) > 0, "numbers");
    let abouts = |what: &str| games.iter().filter(|game| game[9].contains(what)).count();
    assert!(abouts("\n") > 100 && abouts("\"") > 100 && abouts("<li>") > 100);
    assert!(games.iter().any(|game| game[1].contains('"')) && games.iter().any(|game| !game[1].is_ascii()));
}

#[test]
fn reviews_belong_to_games_and_look_like_the_real_ones() {
    let ids: HashSet<String> = games().iter().map(|game| game[0].to_owned()).collect();
    let reviews = reviews();
    assert_eq!(reviews.len(), 320_855);
    let (mut nameless, mut empty, mut foreign, mut long) = (0, 0, 0, 0);
    for review in reviews {
        assert!(ids.contains(&review[0]));
        assert!(matches!(&review[3], "1" | "-1") && matches!(&review[4], "0" | "1"), "{review:?}");
        let characters = review[2].chars().count();
        assert!(characters <= 8_000);
        long += usize::from(characters > 7_000);
        nameless += usize::from(review[1].is_empty());
        empty += usize::from(review[2].is_empty());
        foreign += usize::from(!review[2].is_ascii());
    }
    assert!((20..90).contains(&per_mille(nameless, reviews.len())));
    assert!(empty > 100 && empty < 1000 && long > 50);
    assert!((50..120).contains(&per_mille(foreign, reviews.len())));
    let negative = reviews.iter().filter(|review| &review[3] == "-1").count();
    assert!((150..330).contains(&per_mille(negative, reviews.len())), "{negative}");
}

#[test]
fn at_least_three_action_games_have_more_than_5000_negative_english_reviews() {
    let genres: HashMap<String, String> =
        games().iter().map(|game| (game[0].to_owned(), game[36].to_ascii_lowercase())).collect();
    let mut negative: HashMap<&str, u32> = HashMap::new();
    // Non-English texts are nearly all non-ASCII; the few that are not do not come close to the margin below.
    for review in reviews() {
        if &review[3] == "-1" && !review[2].is_empty() && review[2].is_ascii() && genres[&review[0]].contains("action")
        {
            *negative.entry(&review[0]).or_default() += 1;
        }
    }
    let passed = negative.values().filter(|&&count| count > 5_500).count();
    assert!((3..10).contains(&passed), "{passed}");
    assert!(negative.len() > 100, "many Action games have some");
}

#[test]
fn the_words_agree_with_the_score() {
    let share = |score: &str, words: &[&str]| {
        let texts: Vec<&str> = reviews().iter().filter(|review| &review[3] == score).map(|review| &review[2]).collect();
        per_mille(texts.iter().filter(|text| words.iter().any(|word| text.contains(word))).count(), texts.len())
    };
    let (kind, unkind) = (["recommended", "would play again"], ["refund", "I regret buying"]);
    assert!(share("1", &kind) > 3 * share("-1", &kind));
    assert!(share("-1", &unkind) > 3 * share("1", &unkind));
}
