"""Answers in the shapes that people use."""

from __future__ import annotations

import datetime
import hashlib
import subprocess
from decimal import Decimal
from pathlib import Path

import pandas
import polars
import pyarrow as pa
import pytest

import tenaz_sql

TOTALS = """
SELECT city, sum(amount) AS total FROM orders JOIN customers USING (customer_id) GROUP BY city ORDER BY total DESC
"""


def test_an_answer_is_the_same_in_all_shapes(shop: Path) -> None:
    answer = tenaz_sql.sql(TOTALS, data=shop)
    assert answer.rows == [("Köln", Decimal("30300.00")), ("Bonn", Decimal("15000.00"))]
    assert answer.columns == ["city", "total"] and len(answer) == 2 and list(answer) == answer.rows
    assert isinstance(answer.arrow(), pa.Table) and answer.arrow().to_pylist()[0]["city"] == "Köln"
    frame = answer.df()
    assert isinstance(frame, pandas.DataFrame) and frame["total"].tolist() == [Decimal("30300.00"), Decimal("15000.00")]
    assert answer.pl().equals(polars.from_arrow(answer.arrow()))
    assert pa.table(answer).equals(answer.arrow()), "any library that takes Arrow data takes an answer"


def test_the_fingerprint_is_that_of_the_program_and_rows_are_in_its_order(shop: Path) -> None:
    query = "SELECT id, amount FROM orders WHERE amount > 200"
    answer = tenaz_sql.sql(query, data=shop, threads=2, chunk_size="1K")
    command = [tenaz_sql.find_binary(), "sql", "--quiet", "--data", str(shop), "--sorted", "--format", "csv", query]
    text = subprocess.run(command, check=True, capture_output=True).stdout
    assert answer.fingerprint == hashlib.sha256(text).hexdigest()
    assert "\n".join(["id,amount", *(f"{number},{amount}" for number, amount in answer.rows), ""]).encode() == text
    assert tenaz_sql.sql(query, data=shop, threads=1, partitions=7).rows == answer.rows


def test_bad_records_and_notes_come_with_the_answer(shop: Path) -> None:
    (shop / "old.csv").write_bytes("name;preis\nKöln;1,50\nBonn;2,25\n".encode("cp1252"))
    answer = tenaz_sql.sql("SELECT count(*) AS n, (SELECT sum(preis) FROM old) AS p FROM orders", data=shop)
    assert answer.rows == [(300, Decimal("3.75"))]
    assert answer.rejects.to_pylist() == [
        {"table": "orders", "file": "orders.csv", "line": 302, "byte": answer.rejects["byte"][0].as_py(),
         "column": None, "reason": answer.rejects["reason"][0].as_py(), "text": "301,1"}
    ]
    counts = answer.tables["orders"]
    assert (counts.records, counts.accepted, counts.rejected) == (301, 300, 1)
    assert any("windows-1252" in note for note in answer.notes), answer.notes
    assert "1 bad records" in repr(answer) or "1 bad" in repr(answer)
    assert "302" not in answer._repr_html_() and "300" in answer._repr_html_()


def test_tables_have_names_files_and_types_that_can_be_overruled(shop: Path) -> None:
    customers, orders = sorted(tenaz_sql.tables(shop), key=lambda table: table.name)
    assert customers.files == "customers.csv"
    assert dict(customers.columns) == {"customer_id": "int", "city": "text", "zip": "text"}
    assert orders.columns["day"] == "date" and orders.columns["amount"].startswith("decimal")
    (as_text,) = [t for t in tenaz_sql.tables(shop, types={"amount": "text"}) if t.name == "orders"]
    assert as_text.columns["amount"] == "text"


def test_values_stand_for_names_and_are_never_sql(shop: Path) -> None:
    query = "SELECT count(*) FROM orders JOIN customers USING (customer_id) WHERE city = $city AND day >= $since AND amount < $most"
    values = {"city": "Köln", "since": datetime.date(2025, 1, 10), "most": Decimal("100.5")}
    assert tenaz_sql.sql(query, data=shop, values=values).rows[0][0] == 43
    for text in ["O'Brien", "007", "2025-01-01", "x' OR 'a'='a", " blank ", "\\", "null"]:
        assert tenaz_sql.sql("SELECT $x AS x", data=shop, values={"x": text}).rows == [(text,)], text
    numbers = {"a": 1e-7, "b": -3, "c": True, "d": None}
    (row,) = tenaz_sql.sql("SELECT $a AS a, $b AS b, $c AS c, $d AS d", data=shop, values=numbers).rows
    assert [float(row[0]), row[1], row[2], row[3]] == [1e-7, -3, True, None]
    with pytest.raises(ValueError, match="SQL knows no such number"):
        tenaz_sql.sql("SELECT $x AS x", data=shop, values={"x": float("nan")})


def test_several_questions_are_answered_in_one_pass(shop: Path) -> None:
    text = "-- name: zebra\nSELECT count(*) FROM orders; -- name: ant\nSELECT max(amount) FROM orders"
    answers = tenaz_sql.sql_all(text, data=shop)
    assert list(answers) == ["zebra", "ant"]
    assert answers["ant"].rows == [(Decimal("300.50"),)]
    assert len(answers.rejects) == 1 and "zebra" in repr(answers) and "<h4>ant" in answers._repr_html_()
    with pytest.raises(tenaz_sql.UsageError, match="zebra, ant"):
        tenaz_sql.sql(text, data=shop)


def test_a_workload_is_run_as_the_program_runs_it(tmp_path: Path) -> None:
    binary = tenaz_sql.find_binary()
    subprocess.run([binary, "--quiet", "generate", "coffee", "--scale", "0.002", "--out", tmp_path / "coffee"], check=True)
    answers = tenaz_sql.run("coffee", data=tmp_path / "coffee")
    out = tmp_path / "out"
    subprocess.run([binary, "--quiet", "run", "coffee", "--data", tmp_path / "coffee", "--out", out], check=True)
    assert len(answers) >= 4
    for name, answer in answers.items():
        assert answer.fingerprint == hashlib.sha256((out / f"{name}.csv").read_bytes()).hexdigest()
        assert answer.title
    only = tenaz_sql.run("coffee", data=tmp_path / "coffee", query=["q1"])
    assert list(only) == ["q1"] and only["q1"].fingerprint == answers["q1"].fingerprint


def test_a_stream_gives_batches_and_its_account_at_the_end(shop: Path) -> None:
    with tenaz_sql.stream("SELECT id, amount FROM orders", data=shop, chunk_size="1K") as batches:
        assert batches.schema.names == ["id", "amount"]
        ids = [number for batch in batches for number in batch["id"].to_pylist()]
        assert sorted(ids) == list(range(1, 301))
        assert batches.account is not None and len(batches.account.rejects) == 1


def test_a_copy_goes_to_its_file_and_has_no_rows_here(shop: Path, tmp_path: Path) -> None:
    answer = tenaz_sql.sql(f"COPY (SELECT count(*) AS n FROM orders) TO '{tmp_path / 'n.csv'}'", data=shop)
    assert len(answer) == 0 and (tmp_path / "n.csv").read_text() == "n\n300\n"
    assert answer.fingerprint == hashlib.sha256((tmp_path / "n.csv").read_bytes()).hexdigest()


def test_an_answer_of_many_rows_arrives_whole(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(1000)))
    answer = tenaz_sql.sql("SELECT a.n * 1000 + b.n AS n FROM n a CROSS JOIN n b", data=tmp_path / "n.csv")
    assert len(answer) == 1_000_000
    assert answer.arrow()["n"].to_pylist() == list(range(1_000_000))
