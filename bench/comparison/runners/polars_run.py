"""Answers a workload with Polars: all queries in one `collect_all`, then writes every answer as CSV.

usage: polars_run.py ENGINE WORKLOAD DATA OUT     (ENGINE: streaming | in-memory; threads: POLARS_MAX_THREADS)
"""

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import polars as pl


def main():
    engine, workload, data, out = sys.argv[1:]
    queries = importlib.import_module(f"polars_forms.{workload}").queries(data)
    answers = pl.collect_all(list(queries.values()), engine=engine)
    os.makedirs(out, exist_ok=True)
    for name, answer in zip(queries, answers):
        answer.write_csv(os.path.join(out, name + ".csv"))


main()
