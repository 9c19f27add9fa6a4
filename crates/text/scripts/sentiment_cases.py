"""Writes tests/fixtures/sentiment.csv: odd texts and their TextBlob polarity.

    python sentiment_cases.py Books_rating.csv [seed [cases]] > ../tests/fixtures/sentiment.csv

Texts recombine words of real reviews and of the lexicon with negations, emoticons (whole and taken
apart), abbreviations, punctuation in odd places, other scripts and unusual white space.
"""

import csv
import random
import sys

from textblob import TextBlob, _text
from textblob.en import sentiment

NEGATIONS = ["no", "not", "never", "n't", "No", "NOT", "don't", "isn't", "can't", "doesn’t", "nor", "won't"]
STRONG = ["very", "really", "extremely", "totally", "quite", "good", "bad", "great", "not", "no", "never"]
MARKS = list(".,;:!?()[]{}`'\"@#$^&*+-|=~_/<>%\\") + ["...", "..", "....", "(!)", "( ! )", "(!", "!)", "“", "”",
                                                       "‘", "’", "--", "!!", "?!", "!?"]
SMALL = ["a", "I", "as", "is", "D", "p", "s", "O", "o", "x", "X", "8", "3", "P", "c", "b", "S", "t", "n", "18",
         "Max", "1998", "°", "♥", "<", ">", ">:", "=", "x-", "o_", "o.", "n't"]
ABBREVIATIONS = ["Mr.", "U.S.", "a.m.", "etc.", "e.g.", "T.", "Dr.", "vs.", "Ph.D.", "w/", "Xyz.", "A|.", "al."]
FOREIGN = ["été", "İ", "ẞ", "ΣΑΣ", "\u212aind", "ﬁne", "日本語", "😀", "\u0301", "ＧＯＯＤ", "GREAT\u0301", "º",
           "END-OF-SENTENCE", "END-OF-SENTENCE."]
BLANKS = [" "] * 30 + ["  ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "\xa0", "\u2003", "\x1c", "\x85", "\u200b",
                       "", "", "", "", "\r", "\n\r\r\n", "\n\n\n"]


class Words:
    def __init__(self, rng, reviews):
        sentiment.load()
        forms = dict(dict.items(sentiment))
        faces = sorted(face for faces in _text.EMOTICONS.values() for face in faces)
        self.rng = rng
        self.sources = [
            (25, [word for review in rng.sample(reviews, 60) for word in review.split()]),
            (17, sorted(forms)),
            (10, sorted(form for form, tags in forms.items() if "RB" in tags)),
            (8, NEGATIONS), (10, MARKS), (5, faces), (3, [" ".join(face) for face in faces]),
            (10, SMALL), (5, ABBREVIATIONS), (4, STRONG), (3, FOREIGN),
        ]
        self.weights = [weight for weight, _ in self.sources]

    def word(self):
        rng = self.rng
        word = rng.choice(rng.choices(self.sources, self.weights)[0][1])
        word = rng.choices([word, word.upper(), word.capitalize(), word.lower()], [82, 8, 7, 3])[0]
        before = rng.choice(MARKS) if rng.random() < 0.15 else ""
        after = "".join(rng.choice(MARKS) for chance in (0.2, 0.05) if rng.random() < chance)
        return before + word + after

    def text(self):
        length = self.rng.choice([1, 2, 3, 4, 6, 10, 20])
        return "".join(self.word() + self.rng.choice(BLANKS) for _ in range(length))


def main():
    path = sys.argv[1]
    seed, cases = (int(given) if given else default for given, default in
                   zip((sys.argv[2:] + ["", ""])[:2], (1996, 1500)))
    csv.field_size_limit(1 << 30)
    with open(path, newline="") as ratings:
        reviews = [row["review/text"] for row in csv.DictReader(ratings)]
    words = Words(random.Random(seed), reviews)
    rows = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for text in (words.text() for _ in range(cases)):
        rows.writerow([repr(TextBlob(text).sentiment.polarity), text])


main()
