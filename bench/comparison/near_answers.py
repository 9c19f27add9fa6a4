#!/usr/bin/env python3
"""Does a language library's answer to steam q4 agree with tenaz's, but for games near the limit?

usage: near_answers.py EXPECTED GOT

Detectors disagree about some reviews (langid and whichlang about 3 % of real ones), so a game may have a little more
than 5,000 English reviews for one and a little less for the other. A game that only one of them names must have a
count within a tenth of the limit in GOT/english_counts.csv.
"""

import csv
import os
import sys

LIMIT = 5000
NEAR = LIMIT // 10


def rows(dir, name):
    with open(os.path.join(dir, name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main():
    expected, got = sys.argv[1:]
    counts = {row["app_id"]: int(row["english"]) for row in rows(got, "english_counts.csv")}
    ours, theirs = ({(row["app_id"], row["name"]) for row in rows(dir, "q4.csv")} for dir in (expected, got))
    if not ours:
        sys.exit("q4: the answer is empty, so nothing is checked; use a larger --text-scale")
    for app_id, name in sorted(ours ^ theirs):
        if abs(counts.get(app_id, 0) - LIMIT) > NEAR:
            who = "tenaz" if (app_id, name) in ours else "the library"
            sys.exit(f"q4: only {who} names {app_id} {name!r}, which has {counts.get(app_id, 0)} English reviews by the library")


if __name__ == "__main__":
    main()
