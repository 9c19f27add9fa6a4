"""The same questions on a cluster."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Iterator

import pytest

import tenaz_sql

BROKER = "/usr/lib/rabbitmq/bin/rabbitmq-server"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """A small cluster of this machine."""
    if not (os.access(BROKER, os.X_OK) or os.environ.get("TENAZ_RABBITMQ_BIN")):
        pytest.skip("RabbitMQ is not installed")
    home = tmp_path / "cluster"
    home.mkdir()
    words = ["up", "--workers", "1", "--gateways", "1", "--supervisors", "1"]
    with (home / "log").open("wb") as log:
        up = subprocess.Popen([tenaz_sql.find_binary(), *words], cwd=home, stdout=log, stderr=log, start_new_session=True)
    try:
        yield _gateway(up, home)
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(600)
        shutil.rmtree(home)


def _gateway(up: "subprocess.Popen[bytes]", home: Path) -> str:
    """Where the gateway listens, once it is said."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        assert up.poll() is None, (home / "log").read_text()
        found = re.search(r"http://127\.0\.0\.1:\d+", (home / "log").read_text())
        if found:
            return found.group()
        time.sleep(0.05)
    raise AssertionError((home / "log").read_text())


def test_a_cluster_gives_the_answers_of_this_machine(shop: Path, gateway: str) -> None:
    text = "-- name: cities\nSELECT city, sum(amount) AS total FROM orders JOIN customers USING (customer_id) GROUP BY city;"
    text += "-- name: all\nSELECT * FROM orders WHERE amount > 100"
    here, there = tenaz_sql.sql_all(text, data=shop), tenaz_sql.sql_all(text, data=shop, gateway=gateway)
    assert list(there) == list(here)
    for name, answer in here.items():
        assert there[name].fingerprint == answer.fingerprint and there[name].rows == answer.rows
    assert there.rejects.equals(here.rejects) and there.tables == here.tables
    with tenaz_sql.stream("SELECT id FROM orders", data=shop, gateway=[gateway]) as batches:
        assert sum(batch.num_rows for batch in batches) == 300
    with pytest.raises(tenaz_sql.QueryError) as caught:
        tenaz_sql.sql("SELECT amuont FROM orders", data=shop, gateway=gateway)
    assert (caught.value.line, caught.value.column) == (1, 8)
