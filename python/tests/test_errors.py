"""Errors: whose fault, where, and what then stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tenaz_sql

#: Days of work.
ENDLESS = """
SELECT count(*) FROM orders a CROSS JOIN orders b CROSS JOIN orders c CROSS JOIN orders d WHERE a.id + b.id < c.id + d.id
"""


def test_a_mistake_in_sql_has_its_place(shop: Path) -> None:
    with pytest.raises(tenaz_sql.QueryError, match="did you mean amount") as caught:
        tenaz_sql.sql("SELECT id,\n  amuont FROM orders", data=shop)
    error = caught.value
    assert (error.line, error.column, error.error_class, error.exit_code) == (2, 3, "query", 1)


def test_a_bad_record_of_a_strict_question_has_its_place(shop: Path) -> None:
    with pytest.raises(tenaz_sql.DataError) as caught:
        tenaz_sql.sql("SELECT sum(amount) FROM orders", data=shop, strict=True)
    assert (caught.value.table, caught.value.file, caught.value.line) == ("orders", "orders.csv", 302)


def test_many_bad_records_are_an_error_that_has_the_answer_and_can_be_accepted(shop: Path) -> None:
    with (shop / "orders.csv").open("a", encoding="utf-8") as orders:
        orders.write("bad\n" * 5)
    with pytest.raises(tenaz_sql.RejectsError, match="6 of 306 records of orders") as caught:
        tenaz_sql.sql("SELECT count(*) FROM orders", data=shop)
    assert caught.value.result is not None and caught.value.result.rows == [(300,)]
    assert len(caught.value.result.rejects) == 6
    assert tenaz_sql.sql("SELECT count(*) FROM orders", data=shop, accept_rejects=True).rows == [(300,)]


def test_a_question_that_fails_leaves_the_answers_of_the_others(shop: Path) -> None:
    text = "-- name: good\nSELECT count(*) FROM orders; -- name: bad\nSELECT 1 / (id - id) FROM orders"
    with pytest.raises(tenaz_sql.QueryError, match="division by zero") as caught:
        tenaz_sql.sql_all(text, data=shop)
    assert caught.value.query == "bad"
    assert caught.value.answers is not None and caught.value.answers["good"].rows == [(300,)]
    with pytest.raises(tenaz_sql.QueryError, match="division by zero"):
        with tenaz_sql.stream("SELECT 1 / (id - id) FROM orders", data=shop) as batches:
            list(batches)


def test_wrong_arguments_are_named(shop: Path) -> None:
    with pytest.raises(tenaz_sql.UsageError, match="--threads"):
        tenaz_sql.sql("SELECT 1", data=shop, threads=0)
    with pytest.raises(TypeError, match="there is no option 'encodign'"):
        tenaz_sql.sql("SELECT 1", data=shop, encodign="utf-8")  # type: ignore[call-arg]
    with pytest.raises(tenaz_sql.UsageError, match="the question is empty"):
        tenaz_sql.sql("  ", data=shop)
    with pytest.raises(tenaz_sql.TenazError, match="nowhere"):
        tenaz_sql.sql("SELECT 1", data=shop / "nowhere")


def test_a_gateway_that_is_away_is_no_answer(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tenaz_sql.UsageError, match="gateway"):
        tenaz_sql.sql("SELECT count(*) FROM orders", data=shop, gateway="no such url")


def test_a_binary_that_is_none_is_named(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENAZ_BINARY", "/nowhere/tenaz")
    with pytest.raises(FileNotFoundError, match="TENAZ_BINARY names /nowhere/tenaz"):
        tenaz_sql.tables(shop)


def test_a_program_that_is_killed_is_an_error(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = _remember_programs(monkeypatch)
    killer = threading.Thread(target=lambda: _first(started).kill())
    killer.start()
    with pytest.raises(tenaz_sql.InternalError, match="killed by signal 9"):
        tenaz_sql.sql(ENDLESS, data=shop)
    killer.join()


def test_leaving_a_stream_ends_its_program(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = _remember_programs(monkeypatch)
    with tenaz_sql.stream(ENDLESS, data=shop) as batches:
        assert len(batches.schema.names) == 1, "the columns are told before the first row is known"
        _working(started[0])
    assert started[0].returncode == 130


def test_ctrl_c_ends_the_program_in_order(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = _remember_programs(monkeypatch)

    def interrupt() -> None:
        _working(_first(started))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        tenaz_sql.sql(ENDLESS, data=shop)
    thread.join()
    assert started[0].returncode == 130


def test_a_python_that_is_killed_takes_its_program_along(shop: Path) -> None:
    script = "import tenaz_sql, sys; tenaz_sql.sql(sys.argv[1], data=sys.argv[2])"
    parent = subprocess.Popen([sys.executable, "-c", script, ENDLESS, str(shop)])
    program = _until(lambda: _children(parent.pid))[0]
    _until(lambda: _cpu_ticks(program) > 0)
    parent.kill()
    parent.wait()
    _until(lambda: not Path(f"/proc/{program}").exists() or _is_zombie(program))


def _remember_programs(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def popen(*args: object, **options: object) -> subprocess.Popen[bytes]:
        started.append(real(*args, **options))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    return started


def _first(started: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    return _until(lambda: started)[0]


def _working(program: subprocess.Popen[bytes]) -> None:
    """Waits until the program computes: it has used some time of a processor, and its threads are there."""
    _until(lambda: _cpu_ticks(program.pid) > 30)


def _until(condition, seconds: float = 300.0):
    """The value of the condition, once it holds."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)
    return value


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in tasks for child in path.read_text().split()]


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return []


def _cpu_ticks(pid: int) -> int:
    stat = _stat(pid)
    return int(stat[11]) + int(stat[12]) if stat else 0


def _is_zombie(pid: int) -> bool:
    stat = _stat(pid)
    return not stat or stat[0] == "Z"
