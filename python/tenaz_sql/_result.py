"""Answers, and what is known of them."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Tuple

import pyarrow as pa

if TYPE_CHECKING:
    import pandas
    import polars

    from ._process import Process

_REJECT_FIELDS: List[Tuple[str, Any]] = [
    ("table", pa.string()),
    ("file", pa.string()),
    ("line", pa.int64()),
    ("byte", pa.int64()),
    ("column", pa.string()),
    ("reason", pa.string()),
    ("text", pa.string()),
]
#: Rows shown in a notebook.
_SHOWN = 20


@dataclass(frozen=True)
class Table:
    """A table of some data."""

    #: Its name in SQL.
    name: str
    #: The files that it is read from.
    files: str
    #: Its columns and their types, by name.
    columns: Mapping[str, str]


@dataclass(frozen=True)
class TableCounts:
    """The account of one table: ``records == accepted + rejected``."""

    records: int
    accepted: int
    rejected: int
    bytes: int
    #: Whether no more was read than a LIMIT needs.
    partial: bool
    #: How many records were rejected for which reason.
    rejected_by_reason: Mapping[str, int]


class Account:
    """What is known of a job besides its answers."""

    def __init__(self, notes: List[str], reject_lines: List[bytes], summary: Dict[str, Any]) -> None:
        #: What was guessed about the files, each with the option that overrules it.
        self.notes = notes
        self._reject_lines = reject_lines
        #: Everything that the program's ``summary.json`` says.
        self.summary = summary

    @cached_property
    def rejects(self) -> pa.Table:
        """The records that are not in the answers: table, file, line, byte, column, reason, text."""
        records = [json.loads(line) for line in self._reject_lines]
        columns = {name: pa.array([record[name] for record in records], kind) for name, kind in _REJECT_FIELDS}
        return pa.table(columns)

    @property
    def tables(self) -> Dict[str, TableCounts]:
        """The account of every table."""
        return {name: _counts(table) for name, table in self.summary.get("tables", {}).items()}

    @property
    def now(self) -> Optional[str]:
        """What ``now()`` was: ``now=…`` with it gives the same answer again."""
        return self.summary.get("now")

    @property
    def elapsed_seconds(self) -> float:
        """How long the job took."""
        return float(self.summary.get("elapsed_seconds", 0.0))


def _counts(table: Mapping[str, Any]) -> TableCounts:
    return TableCounts(
        records=table["records"],
        accepted=table["accepted"],
        rejected=table["rejected"],
        bytes=table["bytes"],
        partial=table.get("partial", False),
        rejected_by_reason=dict(table.get("rejected_by_reason", {})),
    )


class Result:
    """The answer to one question."""

    def __init__(self, table: pa.Table, answer: Mapping[str, Any], account: Account) -> None:
        self._table = table
        self._account = account
        #: The name of the question.
        self.name: str = answer.get("name", "")
        #: What the question is called in its workload.
        self.title: str = answer.get("title", "")
        #: The SHA-256 of the answer as CSV. It does not depend on threads, memory, or the machine.
        self.fingerprint: str = answer.get("fingerprint", "")
        #: Whether the question orders its rows. Those of others are sorted by their columns.
        self.ordered: bool = answer.get("ordered", False)

    def arrow(self) -> pa.Table:
        """The answer as a ``pyarrow.Table``."""
        return self._table

    def df(self, **options: Any) -> pandas.DataFrame:
        """The answer as a pandas data frame. Options are those of ``pyarrow.Table.to_pandas``."""
        return self._table.to_pandas(**options)

    def pl(self) -> polars.DataFrame:
        """The answer as a Polars data frame."""
        import polars

        frame = polars.from_arrow(self._table)
        assert isinstance(frame, polars.DataFrame)
        return frame

    @property
    def rows(self) -> List[Tuple[Any, ...]]:
        """The rows as tuples of Python values: money is ``decimal.Decimal``, null is None."""
        if not self._table.num_columns:
            return [()] * self._table.num_rows
        return list(zip(*(column.to_pylist() for column in self._table.columns)))

    @property
    def columns(self) -> List[str]:
        """The names of the columns."""
        return list(self._table.column_names)

    @property
    def notes(self) -> List[str]:
        """What was guessed about the files, each with the option that overrules it."""
        return self._account.notes

    @property
    def rejects(self) -> pa.Table:
        """The records that are not in the answer: table, file, line, byte, column, reason, text."""
        return self._account.rejects

    @property
    def tables(self) -> Dict[str, TableCounts]:
        """The account of every table that was read."""
        return self._account.tables

    @property
    def summary(self) -> Dict[str, Any]:
        """Everything that the program's ``summary.json`` says."""
        return self._account.summary

    @property
    def now(self) -> Optional[str]:
        """What ``now()`` was: ``now=…`` with it gives the same answer again."""
        return self._account.now

    @property
    def elapsed_seconds(self) -> float:
        """How long it took."""
        return self._account.elapsed_seconds

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[Tuple[Any, ...]]:
        return iter(self.rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The answer for any library that takes Arrow data."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{self.name}: {_rows(len(self))} of {', '.join(self.columns)}; {self._closing()}>"

    def _repr_html_(self) -> str:
        shown = self._table.slice(0, _SHOWN)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        cells = zip(*(column.to_pylist() for column in shown.columns))
        body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in cells)
        more = len(self) - len(shown)
        said = [f"{_rows(len(self))}{f', of which {_SHOWN} are shown' if more > 0 else ''}; {self._closing()}"]
        said += [f"note: {note}" for note in self.notes]
        lines = "".join(f"<div><small>{html.escape(line)}</small></div>" for line in said)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{lines}"

    def _closing(self) -> str:
        rejected = sum(table.rejected for table in self.tables.values())
        bad = f", {rejected:,} bad records" if rejected else ""
        return f"{self.elapsed_seconds:.2f} s{bad}, fingerprint {self.fingerprint[:12]}…"


def _cell(value: Any) -> str:
    is_number = not isinstance(value, (str, bool, bytes)) and hasattr(value, "__round__")
    align = ' style="text-align: right"' if is_number else ' style="text-align: left"'
    return f"<td{align}>{'' if value is None else html.escape(str(value))}</td>"


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


class Answers(Account, Mapping[str, Result]):
    """The answers to several questions, by name, in the order of the questions. All of them came from one pass."""

    def __init__(self, results: Dict[str, Result], account: Account) -> None:
        super().__init__(account.notes, account._reject_lines, account.summary)
        self._results = results

    def __getitem__(self, name: str) -> Result:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._results.values()))

    def _repr_html_(self) -> str:
        parts = (
            f"<h4>{html.escape(result.name)}: {html.escape(result.title or result.name)}</h4>{result._repr_html_()}"
            for result in self._results.values()
        )
        return "".join(parts)


class Stream:
    """The rows of an answer as Arrow record batches, while the job still runs: for answers that are larger than memory.

    Use it in a ``with``; leaving that ends the job. What went wrong is raised when the batches end.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._reader: Any = None

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._opened().schema

    @property
    def account(self) -> Optional[Account]:
        """What is known of the job, when it is over."""
        summary = self._process.summary
        if summary is None:
            return None
        return Account(self._process.notes, self._process.reject_lines, summary)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        failure: Optional[Exception] = None
        try:
            yield from self._opened()
        except (pa.ArrowInvalid, OSError) as error:
            failure = error
        self._process.end(failure)

    def _opened(self) -> Any:
        if self._reader is None:
            try:
                self._reader = pa.ipc.open_stream(self._process.stdout)
            except (pa.ArrowInvalid, OSError) as error:
                self._process.end(error)
                raise
        return self._reader


def read_streams(stdout: BinaryIO) -> List[pa.Table]:
    """The Arrow streams that stand one behind the other."""
    tables: List[pa.Table] = []
    while stdout.peek(1):  # type: ignore[attr-defined]
        with pa.ipc.open_stream(stdout) as reader:
            tables.append(reader.read_all())
    return tables
