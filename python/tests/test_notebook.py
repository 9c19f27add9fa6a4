"""The magic, progress, and the example notebook."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import nbformat
import pytest
from IPython.testing.globalipapp import start_ipython
from nbclient import NotebookClient

import tenaz_sql
from tenaz_sql._progress import Progress

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def shell():
    shell = start_ipython()
    shell.run_line_magic("load_ext", "tenaz_sql")
    return shell


def test_a_cell_is_asked_and_its_answer_shown_or_kept(shell, shop: Path) -> None:
    answer = shell.run_cell_magic("tenaz", f"--data {shop}", "SELECT count(*) AS n FROM orders")
    assert isinstance(answer, tenaz_sql.Result) and answer.rows == [(300,)]
    assert shell.run_cell_magic("tenaz", f"--data {shop} --into kept", "SELECT max(id) AS n FROM orders") is None
    assert shell.user_ns["kept"].rows == [(300,)]
    both = shell.run_cell_magic("tenaz", f"--data {shop} --types=amount=text", "SELECT 1 AS a; SELECT max(amount) FROM orders")
    assert [result.rows for result in both.values()] == [[(1,)], [("99.50",)]]


def test_a_line_lists_tables_and_mistakes_are_errors(shell, shop: Path) -> None:
    assert {table.name for table in shell.run_line_magic("tenaz", str(shop))} == {"orders", "customers"}
    with pytest.raises(tenaz_sql.UsageError, match="write %tenaz FOLDER"):
        shell.run_line_magic("tenaz", "")
    with pytest.raises(tenaz_sql.UsageError, match="no name of a variable"):
        shell.run_cell_magic("tenaz", f"--data {shop} --into 1x", "SELECT 1")
    with pytest.raises(tenaz_sql.QueryError, match="did you mean orders"):
        shell.run_cell_magic("tenaz", f"--data {shop}", "SELECT * FROM order")


def test_progress_is_a_line_that_is_cleared_and_only_for_long_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"bytes": 1_500_000, "total_bytes": 3_000_000, "records": 12_345}
    with Progress(True) as progress:
        progress.show(record)
        assert capsys.readouterr().err == "", "not yet"
        progress._since -= 10
        progress.show({})
        progress.show(record)
    shown = capsys.readouterr().err
    assert shown == "\r50 %, 1.5 MB, 12,345 records\r" + " " * 28 + "\r"
    with Progress(False) as progress:
        progress._since -= 10
        progress.show(record)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_the_example_notebook_runs_from_its_first_cell_to_its_last(path: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(tenaz_sql.find_binary()).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("<progress" not in str(output) and "fingerprint" in str(output) for output in shown)
