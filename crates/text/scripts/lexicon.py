"""Writes src/sentiment/lexicon.tsv from TextBlob's en-sentiment.xml (public domain, PDDL).

Run once, with a Python that has textblob:  python lexicon.py > ../src/sentiment/lexicon.tsv

The arithmetic (average over senses per part of speech, then over parts of speech, then the
adverbs derived from adjectives) is done here, so that the crate carries only what it needs:
form, polarity, intensity, and whether the form has an adverb reading. The result is compared
with what TextBlob itself loads before a line is written.
"""

import pathlib
import sys
from xml.etree import ElementTree

import textblob.en
from textblob.en import sentiment as reference

ADVERB, ADJECTIVE, ANY = "RB", "JJ", None


def mean(values):
    values = list(values)
    return sum(values) / float(len(values))


def senses(path):
    """form -> part of speech -> [(polarity, intensity)], in file order."""
    table = {}
    for word in ElementTree.parse(path).getroot().findall("word"):
        score = float(word.get("polarity", 0.0)), float(word.get("intensity", 1.0))
        table.setdefault(word.get("form"), {}).setdefault(word.get("pos"), []).append(score)
    return table


def averaged(table):
    """form -> part of speech -> (polarity, intensity); ANY is the mean over parts of speech."""
    words = {}
    for form, by_pos in table.items():
        words[form] = {pos: tuple(map(mean, zip(*scores))) for pos, scores in by_pos.items()}
        words[form][ANY] = tuple(map(mean, zip(*words[form].values())))
    return words


def add_adverbs(words):
    """"terrible" gives "terribly", with the adjective's score, replacing any earlier entry."""
    for form, by_pos in list(words.items()):
        if ADJECTIVE in by_pos:
            stem = form[:-1] + "i" if form.endswith("y") else form
            stem = stem[:-2] if stem.endswith("le") else stem
            adverb = words.setdefault(stem + "ly", {})
            adverb[ADVERB] = adverb[ANY] = by_pos[ADJECTIVE]


def check(words):
    reference.load()
    assert set(words) == set(dict.keys(reference)), "forms differ from TextBlob's"
    for form, by_pos in words.items():
        theirs = dict.__getitem__(reference, form)
        assert by_pos[ANY] == (theirs[None][0], theirs[None][2]), form
        assert (ADVERB in by_pos) == (ADVERB in theirs), form


def reachable(form):
    """The tokeniser always cuts at blanks and apostrophes."""
    return " " not in form and "'" not in form


def main():
    path = pathlib.Path(textblob.en.__file__).with_name("en-sentiment.xml")
    words = averaged(senses(path))
    add_adverbs(words)
    check(words)
    out = sys.stdout
    out.write("# Subjectivity lexicon for English adjectives 1.3, Tom De Smedt and Walter Daelemans,\n")
    out.write("# licence PDDL (public domain); averaged by scripts/lexicon.py, see LEXICON.md.\n")
    out.write("# form\tpolarity\tintensity\tadverb\n")
    for form in sorted(filter(reachable, words)):
        polarity, intensity = words[form][ANY]
        out.write(f"{form}\t{polarity!r}\t{intensity!r}\t{int(ADVERB in words[form])}\n")


main()
