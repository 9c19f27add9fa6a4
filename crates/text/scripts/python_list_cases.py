"""Writes tests/fixtures/python_list.csv: texts, and what ast.literal_eval makes of them.

    python python_list_cases.py > ../tests/fixtures/python_list.csv

Each row is the text, then `list` and the elements, or `none`. Texts are made of the pieces of a
list, in order and then damaged. What Python accepts but `repr` never writes is left out (the crate
refuses it on purpose), as are strings with lone surrogates.
"""

import ast
import csv
import random
import sys
import warnings

CASES = 800
PLAIN = ["a", "Römer", "O'Neill", 'the "best"', "x, y", "[1]", "日本", "😀", " ", "]", "", "#", "1996", "None"]
ESCAPES = [r"\'", r"\"", r"\\", r"\n", r"\t", r"\r", r"\a", r"\v", r"\x41", r"\xe9", r"\u00e9", r"\U0001F600",
           r"\101", r"\0", r"\18", r"\377", r"\d", r"\é", r"\ ", "\\\n", r"\x4", r"\u12", r"\U00110000", r"\777"]
DAMAGE = ["'", '"', ",", "[", "]", "\\", "1", "None", "x", " ", ""]
BLANKS = ["", "", "", " ", "  ", "\t", "\n", " \r\n "]


def literal(rng):
    if rng.random() < 0.4:
        return repr("".join(rng.choices(PLAIN, k=rng.randint(0, 3))))
    quote = rng.choice("'\"")
    pieces = [piece for piece in PLAIN if quote not in piece]
    return quote + "".join(rng.choices(pieces + ESCAPES, k=rng.randint(1, 4))) + quote


def text(rng):
    elements = [literal(rng) if rng.random() < 0.97 else rng.choice(["1", "None", "x", "['a']", "2.5"])
                for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    blank = lambda: rng.choice(BLANKS)
    inner = ",".join(blank() + element + blank() for element in elements)
    comma = "," if rng.random() < 0.15 else ""
    made = "[" + inner + comma + blank() + "]"
    if rng.random() < 0.25:
        at = rng.randrange(len(made) + 1)
        made = made[:at] + rng.choice(DAMAGE) + made[at + rng.randint(0, 1):]
    return made


def expected(made):
    """The elements, or None if it is no list of strings."""
    try:
        value = ast.literal_eval(made)
    except (SyntaxError, ValueError):
        return None
    strings = isinstance(value, list) and all(isinstance(element, str) for element in value)
    return value if strings else None


def repr_never_writes(made):
    """Two strings in a row (also the beginning of a triple quote), a prefix, a joined line."""
    made = made.lstrip(" \t")
    outside = made
    for node in ast.parse(made, mode="eval").body.elts:
        source = ast.get_source_segment(made, node)
        body = source.replace("\\\\", "").replace("\\" + source[0], "")
        if source[0] not in "'\"" or body.count(source[0]) != 2 or body[-1] != source[0]:
            return True
        outside = outside.replace(source, "", 1)
    return not set(outside) <= set("[], \t\r\n")


def main():
    warnings.simplefilter("ignore")
    rng = random.Random(1996)
    rows = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_ALL)
    seen = set()
    while len(seen) < CASES:
        made = text(rng)
        elements = expected(made)
        if made in seen or (elements is not None and repr_never_writes(made)):
            continue
        if elements and any(0xD800 <= ord(c) < 0xE000 for element in elements for c in element):
            continue
        seen.add(made)
        rows.writerow([made, "none"] if elements is None else [made, "list", *elements])


main()
