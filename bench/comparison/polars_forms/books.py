"""The books queries for Polars, without sentiment."""

import polars as pl

TEXT = pl.String
BOOKS = ["title", "description", "authors", "image", "preview_link", "publisher", "published_date", "info_link", "categories",
         "ratings_count"]
RATINGS = ["id", "title", "price", "user_id", "profile_name", "review_helpfulness", "review_score", "review_time", "review_summary",
           "review_text"]
YEAR = pl.col("published_date").str.extract(r"(\d{4})").cast(pl.Int32, strict=False)


def tables(data):
    # Columns go by position: headers such as review/score are awkward names.
    no_header = {"has_header": False, "skip_rows": 1}
    books = pl.scan_csv(f"{data}/books_data.csv", schema=dict.fromkeys(BOOKS, TEXT), **no_header)
    schema = dict.fromkeys(RATINGS, TEXT) | {"review_score": pl.Float64}
    return books, pl.scan_csv(f"{data}/Books_rating.csv", schema=schema, **no_header)


def python_list(column):
    """The elements of a Python list text: quoted by ' or ", in which a backslash protects the next character."""
    elements = pl.col(column).str.extract_all(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
    bare = pl.element().str.slice(1, pl.element().str.len_chars() - 2).str.replace_all(r"\\(.)", "${1}")
    return elements.list.eval(bare)


def in_category(books, category):
    return books.filter(python_list("categories").list.contains(category))


def queries(data):
    books, ratings = tables(data)
    nineties = books.filter(pl.col("title").is_not_null(), YEAR.is_between(1990, 1999)).select("title", "authors").unique()
    # Per title before the join: the titles are fewer than the ratings.
    per_title = ratings.group_by("title").agg(pl.len().alias("reviews"), pl.col("review_score").mean().alias("mean_score"))
    often = per_title.filter(pl.col("reviews") >= 500).join(nineties, on="title")
    fiction = in_category(books, "Fiction").select("title").unique()
    felt = (
        ratings.filter(pl.col("review_text") != "", pl.col("review_score").is_not_null())
        .join(fiction, on="title", how="semi")
        .group_by("title")
        .agg(pl.col("review_score").mean().alias("mean_score"))
    )
    # The value at place floor(9n/10), from 0, in ascending order.
    least = pl.col("mean_score").sort().get(pl.len() * 9 // 10)
    written = books.select(python_list("authors").alias("author"), (YEAR // 10).alias("decade")).drop_nulls().explode("author")
    return {
        "q1": in_category(books.filter(pl.col("title").str.to_lowercase().str.contains("distributed", literal=True)), "Computers")
        .filter(YEAR.is_between(2000, 2023))
        .select("title", "authors", "publisher")
        .sort("title", "authors", "publisher"),
        "q2": written.filter(pl.col("author").is_not_null())
        .group_by("author")
        .agg(pl.col("decade").n_unique())
        .filter(pl.col("decade") >= 10)
        .select("author"),
        "q3": often.select("title", "authors").sort("title"),
        "q4": often.filter(pl.col("mean_score").is_not_null())
        .sort("mean_score", "title", descending=[True, False])
        .select("title", "mean_score")
        .head(10),
        "q5": felt.filter(pl.col("mean_score") >= least).sort("title"),
    }
