"""What can go wrong, by whose fault it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Type, Union

if TYPE_CHECKING:
    from ._result import Answers, Result


class TenazError(Exception):
    """An error of the program. Its text names the place, what was found, and the cure."""

    #: The program's exit code.
    exit_code: int
    #: Whose fault it is: ``data``, ``query``, ``process``, ``broker`` or ``bug``; None where it cannot be told.
    error_class: Optional[str]
    #: The query, by its name.
    query: Optional[str]
    #: The table of a bad record.
    table: Optional[str]
    #: The file of data, or the workload file.
    file: Optional[str]
    #: 1-based line: of the query's text, or of the file.
    line: Optional[int]
    #: In SQL the 1-based character of the line; of a bad record the name of the column.
    column: Union[int, str, None]
    #: The answers to the other questions, where some could be answered.
    answers: Optional[Answers]

    def __init__(self, text: str, record: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(text)
        record = record or {}
        self.exit_code = record.get("exit", 1)
        self.error_class = record.get("class")
        self.query = record.get("query")
        self.table = record.get("table")
        self.file = record.get("file")
        self.line = record.get("line")
        self.column = record.get("character") or record.get("column")
        self.answers = None


class UsageError(TenazError):
    """The arguments cannot mean anything."""


class QueryError(TenazError):
    """The SQL is wrong, or its question has no answer. ``line`` and ``column`` say where."""


class DataError(TenazError):
    """The data is not what it should be. ``file``, ``line`` and ``column`` say where."""


class RejectsError(DataError):
    """More than 1 % of a table's records are bad. ``accept_rejects=True`` takes the answer without them."""

    #: The answer without the bad records; ``result.rejects`` has them. None if several questions were asked: see ``answers``.
    result: Optional[Result] = None


class UnavailableError(TenazError):
    """The same call may succeed later: a gateway is away, a disk is full, memory is short."""


class InternalError(TenazError):
    """A fault in tenaz."""


def error_of(record: Mapping[str, Any]) -> TenazError:
    """The exception for an error record of the program."""
    return _kind(record)(str(record["text"]), record)


def _kind(record: Mapping[str, Any]) -> Type[TenazError]:
    if record.get("exit") == 2:
        return UsageError
    if record.get("exit") == 75:
        return UnavailableError
    kinds: Mapping[Any, Type[TenazError]] = {
        "query": QueryError,
        "data": DataError,
        "process": UnavailableError,
        "broker": UnavailableError,
        "bug": InternalError,
    }
    return kinds.get(record.get("class"), TenazError)
