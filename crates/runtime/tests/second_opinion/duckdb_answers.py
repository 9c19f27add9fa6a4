"""DuckDB as a second opinion on random SQL: JSON lines in, JSON lines out, one process for many cases.

A line is one case:

    {"tables": [{"name": "t", "columns": [["i1", "BIGINT"], …], "rows": [["1", null], …]}], "queries": ["SELECT …", …]}

Without "tables" those of the line before stay. The answer is one line, with one entry per query:

    {"answers": [{"rows": [["i1", null, "tabc"], …]}, {"error": "…"}, …]}

A value is null, a list of values, or a text whose first letter is its type: b boolean, n whole number or decimal, f float,
t text, d date (days since 1970), m timestamp (microseconds since 1970), o anything else.
"""

import datetime
import decimal
import json
import sys

import duckdb

MACROS = [
    # over / under, rounded once, half away from zero. Whole numbers in, whole numbers out.
    """CREATE MACRO ratio(over, under) AS CAST(CASE WHEN under = 0 THEN NULL
         WHEN (over < 0) = (under < 0) THEN (2 * abs(over) + abs(under)) // (2 * abs(under))
         ELSE -((2 * abs(over) + abs(under)) // (2 * abs(under))) END AS DECIMAL(26, 0))""",
    # The value at floor(over / under * n) of n values in ascending order.
    """CREATE MACRO at_share(sorted, over, under) AS
         sorted[CAST(1 + least(len(sorted) - 1, (over * len(sorted)) // under) AS BIGINT)]""",
    # A correlation of too few values is null in PostgreSQL and in DataFusion.
    "CREATE MACRO not_nan(value) AS CASE WHEN isnan(value) THEN NULL ELSE value END",
    "CREATE MACRO present(items) AS list_sort(list_filter(items, lambda item: item IS NOT NULL))",
]
EPOCH_DAY = datetime.date(1970, 1, 1)
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def typed(value):
    """A value as the other side reads it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "btrue" if value else "bfalse"
    if isinstance(value, (int, decimal.Decimal)):
        return "n" + format(value, "f") if isinstance(value, decimal.Decimal) else "n" + str(value)
    if isinstance(value, float):
        return "f" + repr(value)
    if isinstance(value, str):
        return "t" + value
    if isinstance(value, datetime.datetime):
        return "m" + str((value - EPOCH) // MICROSECOND)
    if isinstance(value, datetime.date):
        return "d" + str((value - EPOCH_DAY).days)
    if isinstance(value, list):
        return [typed(item) for item in value]
    return "o" + str(value)


def connect():
    connection = duckdb.connect(config={"threads": 1, "memory_limit": "2GB"})
    # As in PostgreSQL, and as in DataFusion.
    connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    connection.execute("SET order_by_non_integer_literal = true")
    for macro in MACROS:
        connection.execute(macro)
    return connection


def quoted(field):
    return "NULL" if field is None else "'" + field.replace("'", "''") + "'"


def load(connection, table):
    columns = ", ".join(f"{name} {kind}" for name, kind in table["columns"])
    connection.execute(f"CREATE OR REPLACE TABLE {table['name']} ({columns})")
    rows = table["rows"]
    for start in range(0, len(rows), 1000):
        values = ", ".join("(" + ", ".join(map(quoted, row)) + ")" for row in rows[start : start + 1000])
        connection.execute(f"INSERT INTO {table['name']} VALUES {values}")


def answer(connection, sql):
    try:
        rows = connection.execute(sql).fetchall()
        return {"rows": [[typed(value) for value in row] for row in rows]}
    except Exception as error:  # noqa: BLE001: whatever it is, the other side counts it
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    connection = connect()
    for line in sys.stdin:
        case = json.loads(line)
        for table in case.get("tables", []):
            load(connection, table)
        answers = [answer(connection, sql) for sql in case["queries"]]
        # After an internal error a connection answers nothing any more.
        if any("error" in a and ("INTERNAL" in a["error"] or "FatalException" in a["error"]) for a in answers):
            print(json.dumps({"answers": answers, "restart": True}), flush=True)
            return
        print(json.dumps({"answers": answers}), flush=True)


if __name__ == "__main__":
    main()
