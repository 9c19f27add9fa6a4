#!/usr/bin/env python3
"""Do two directories of answers say the same?

usage: answers.py EXPECTED GOT QUERY[:ordered][:near=TOLERANCE] ...

For each query, EXPECTED/QUERY.csv and GOT/QUERY.csv must have the same rows: in the same order if the query has
one, else in any. Texts must be equal. Numbers must be equal as decimals, after rounding what was got to the places
that were expected (a system may print 79.5 or 79.500, and a mean as a double); with `near`, numbers may differ by
that much. The first row that differs is named, and the exit code is 1.
"""

import csv
import os
import sys
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

csv.field_size_limit(1 << 30)


def number(text):
    """The decimal of a text that is one, else nothing. Only plain forms: an id such as `1e5` in hex stays text."""
    if not text or not (text[0].isdigit() or text[0] == "-"):
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def read(path):
    """Names of columns, and rows."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    if not rows:
        sys.exit(f"{path}: empty, without even a header")
    return rows[0], [[Field(text) for text in row] for row in rows[1:]]


class Field:
    """A field's text and, if it is one, its number. Sorts by number, then text."""

    __slots__ = ("text", "value")

    def __init__(self, text):
        self.text, self.value = text, number(text)

    def key(self):
        return (0, self.value, "") if self.value is not None else (1, 0, self.text)

    def agrees(self, got, near):
        if self.text == got.text:
            return True
        if self.value is None or got.value is None:
            return False
        if near:
            return abs(self.value - got.value) <= near
        places = Decimal(1).scaleb(self.value.as_tuple().exponent) if "." in self.text else Decimal(1)
        if got.value.as_tuple().exponent < self.value.as_tuple().exponent:
            # A double next to a half may round the other way: half a unit and a hair is the same mean.
            return abs(self.value - got.value) <= places / 2 + abs(got.value) * Decimal("4e-16")
        return self.value == got.value.quantize(places, ROUND_HALF_EVEN)


def differs(expected, got, name, ordered, near):
    """What is wrong with the answer, or nothing."""
    (columns, right), (their_columns, theirs) = (read(os.path.join(dir, name + ".csv")) for dir in (expected, got))
    if [c.lower() for c in columns] != [c.lower() for c in their_columns]:
        return f"columns {their_columns} instead of {columns}"
    if not ordered:
        for rows in (right, theirs):
            rows.sort(key=lambda row: [field.key() for field in row])
    for place, (row, their_row) in enumerate(zip(right, theirs), 1):
        if len(row) != len(their_row) or not all(a.agrees(b, near) for a, b in zip(row, their_row)):
            shown, their = ([field.text for field in r] for r in (row, their_row))
            return f"row {place} is {their} instead of {shown}"
    if len(right) != len(theirs):
        return f"{len(theirs)} rows instead of {len(right)}"
    return None


def main():
    expected, got, *queries = sys.argv[1:]
    for query in queries:
        name, *options = query.split(":")
        near = next((Decimal(o.removeprefix("near=")) for o in options if o.startswith("near=")), None)
        problem = differs(expected, got, name, "ordered" in options, near)
        if problem:
            sys.exit(f"{name}: {problem}\n  expected: {expected}/{name}.csv\n  got:      {got}/{name}.csv")


if __name__ == "__main__":
    main()
