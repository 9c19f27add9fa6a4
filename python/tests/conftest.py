"""Data that all tests ask about."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Orders of two cities, and customers; one order is bad."""
    folder = tmp_path / "shop"
    folder.mkdir()
    orders = "".join(f"{n},{n % 3},{n}.50,2025-01-{n % 28 + 1:02}\n" for n in range(1, 301))
    (folder / "orders.csv").write_text(f"id,customer_id,amount,day\n{orders}301,1\n", encoding="utf-8")
    customers = "0,Köln,01067\n1,Bonn,53111\n2,Köln,50667\n"
    (folder / "customers.csv").write_text(f"customer_id,city,zip\n{customers}", encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def no_temporary_files(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    """Whatever a test does, nothing stays in the directory for temporary files."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    yield
    assert list(folder.iterdir()) == []
