"""books q5 as a Python user would write it: Polars for reading, joining and averaging, a library for the sentiment.

usage: books_text.py LIBRARY DATA OUT PROCESSES     (LIBRARY: textblob)

As tenaz does, it computes the sentiment only of reviews of Fiction titles.
"""

import os
import sys

from pool import pool, results

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    library, data, out, processes = sys.argv[1:]
    with pool(library, processes) as workers:
        import polars as pl

        from polars_forms.books import in_category, tables

        books, ratings = tables(data)
        fiction = in_category(books, "Fiction").select("title").unique()
        wanted = ratings.filter(pl.col("review_text") != "").select("title", "review_text")
        asked = wanted.join(fiction, on="title", how="semi").collect(engine="streaming")
        felt = pl.Series("mean_sentiment", results(workers, asked["review_text"]), dtype=pl.Float64)
        workers.close()
        workers.join()
    means = asked.select("title").with_columns(felt).group_by("title").agg(pl.col("mean_sentiment").mean())
    # The value at place floor(9n/10), from 0, in ascending order.
    least = pl.col("mean_sentiment").sort().get(pl.len() * 9 // 10)
    os.makedirs(out, exist_ok=True)
    means.filter(pl.col("mean_sentiment") >= least).sort("title").write_csv(os.path.join(out, "q5.csv"))


main()
