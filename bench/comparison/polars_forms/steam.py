"""The steam queries for Polars, without language detection."""

import polars as pl

GAMES = (
    "app_id name release_date estimated_owners peak_ccu required_age price discount dlc_count about_the_game "
    "supported_languages full_audio_languages reviews header_image website support_url support_email windows mac linux "
    "metacritic_score metacritic_url user_score positive negative score_rank achievements recommendations notes "
    "average_playtime_forever average_playtime_two_weeks median_playtime_forever median_playtime_two_weeks developers "
    "publishers categories genres tags screenshots movies"
).split()
NUMBERS = ["app_id", "positive", "negative", "average_playtime_forever"]
# A game counts only when none of these is null. Booleans are read as text: Polars knows `true`, the file has `True`.
KEYS = ["app_id", "name", "release_date", "windows", "mac", "linux", "genres", "average_playtime_forever", "positive", "negative"]


def tables(data):
    schema = {name: pl.Int64 if name in NUMBERS else pl.String for name in GAMES}
    # The header has 39 names for 40 fields: it is skipped.
    games = pl.scan_csv(f"{data}/games.csv", schema=schema, has_header=False, skip_rows=1)
    games = games.filter(*(there(name) for name in KEYS))
    reviews = pl.scan_csv(f"{data}/reviews.csv", schema={
        "app_id": pl.Int64, "app_name": pl.String, "review_text": pl.String, "review_score": pl.Int8, "review_votes": pl.String,
    })
    return games, reviews.filter(there("review_text"))


def there(name):
    """An empty field is null for Polars, but a quoted empty one is a text."""
    return pl.col(name).is_not_null() if name in NUMBERS else pl.col(name) != ""


def of_genre(games, genre):
    return games.filter(pl.col("genres").str.to_lowercase().str.contains(genre, literal=True))


def counted(reviews, games, score, name):
    """Reviews with this score per game. Counted before the join: the games are few, the reviews many."""
    counts = reviews.filter(pl.col("review_score") == score).group_by("app_id").agg(pl.len().alias(name))
    return counts.join(games.select("app_id", "name"), on="app_id")


def queries(data):
    games, reviews = tables(data)
    on = lambda platform: (pl.col(platform) == "True").sum().alias(platform)
    indie = of_genre(games, "indie")
    year = pl.col("release_date").str.extract(r"(\d{4})").cast(pl.Int32, strict=False)
    negative = counted(reviews, of_genre(games, "action"), -1, "negative_reviews")
    # The value at place floor(9n/10), from 0, in ascending order.
    least = pl.col("negative_reviews").sort().get(pl.len() * 9 // 10)
    return {
        "q1": games.select(on("windows"), on("linux"), on("mac")),
        "q2": indie.filter(year.is_between(2010, 2019))
        .sort("average_playtime_forever", "app_id", descending=[True, False])
        .select("name", "average_playtime_forever")
        .head(10),
        "q3": counted(reviews, indie, 1, "positive_reviews")
        .sort("positive_reviews", "app_id", descending=[True, False])
        .select("name", "positive_reviews")
        .head(5),
        "q4": negative.filter(pl.col("negative_reviews") > 5000).select("app_id", "name"),
        "q5": negative.filter(pl.col("negative_reviews") >= least).select("app_id", "name", "negative_reviews").sort("app_id"),
    }
