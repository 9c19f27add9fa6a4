"""Answers a workload with DuckDB: runs the SQL of one form and writes every answer as CSV.

usage: duckdb_run.py FORM WORKLOAD DATA OUT THREADS     (FORM: csv | load)

files.sql makes views over the CSV files. Form `csv` asks the queries of these; form `load` makes tables in memory of
the needed columns (load.sql) and asks the same queries of those.
"""

import os
import sys

import duckdb

HERE = os.path.dirname(os.path.abspath(__file__))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    form, workload, data, out, threads = sys.argv[1:]
    sql = os.path.join(os.path.dirname(HERE), "duckdb_sql", workload)
    db = duckdb.connect(config={"threads": int(threads)})
    # Lets the CSV reader's threads deliver rows as they are done; every query that needs an order says so.
    db.execute("SET preserve_insertion_order = false")
    db.execute("CREATE SCHEMA files")
    db.execute(read(os.path.join(sql, "files.sql")).replace("$DATA", data))
    if form == "load":
        db.execute(read(os.path.join(sql, "load.sql")))
    else:
        db.execute("SET search_path = 'files,main'")
    os.makedirs(out, exist_ok=True)
    for name in sorted(os.listdir(sql)):
        if name.startswith("q"):
            query = read(os.path.join(sql, name))
            answer = os.path.join(out, name.replace(".sql", ".csv"))
            db.execute(f"COPY ({query}) TO '{answer}' (HEADER, DELIMITER ',')")


main()
