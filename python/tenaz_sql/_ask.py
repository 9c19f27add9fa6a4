"""Questions: what the package is for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import pyarrow as pa

from ._errors import InternalError, RejectsError, TenazError, UsageError
from ._options import (
    Options,
    PathLike,
    Value,
    data_word,
    environment,
    gateway_words,
    option_words,
    type_words,
    value_words,
)
from ._process import Process
from ._progress import Progress
from ._result import Account, Answers, Result, Stream, Table, read_streams

if TYPE_CHECKING:
    from typing_extensions import Unpack

Types = Union[None, str, Mapping[str, str]]
Gateway = Union[None, str, Iterable[str]]

#: Bytes of a question that fit into a command line everywhere.
_LONGEST_WORD = 100_000


def sql(
    query: str,
    *,
    data: PathLike,
    types: Types = None,
    values: Optional[Mapping[str, Value]] = None,
    gateway: Gateway = None,
    token: Optional[str] = None,
    progress: Optional[bool] = None,
    **options: Unpack[Options],
) -> Result:
    """The answer to one question over CSV files.

    ``data`` is a folder, in which every file and every folder of like files is a table, or one file. ``types`` overrules guessed types
    of columns: ``{"zip": "text"}``. ``values`` are what ``$name`` stands for in the query. ``gateway`` asks on a cluster, with
    ``token`` if it needs one. ``progress`` shows a bar: by default in notebooks and terminals. Every other option of ``tenaz sql`` is
    an argument, too: ``encoding="windows-1252"``, ``decimal_comma=True``, ``threads=4``.

    Rows of a query without ORDER BY are sorted by their columns, so that the same data gives the same answer.
    """
    answers = sql_all(
        query, data=data, types=types, values=values, gateway=gateway, token=token, progress=progress, **options
    )
    if len(answers) > 1:
        raise UsageError(f"these are {len(answers)} questions ({', '.join(answers)}); sql_all answers several")
    return next(iter(answers.values()))


def sql_all(
    queries: str,
    *,
    data: PathLike,
    types: Types = None,
    values: Optional[Mapping[str, Value]] = None,
    gateway: Gateway = None,
    token: Optional[str] = None,
    progress: Optional[bool] = None,
    **options: Unpack[Options],
) -> Answers:
    """The answers to several questions in one pass. A comment ``-- name: best_sellers`` names the one behind it."""
    words = _sql_words(queries, data, types, values, gateway, options)
    return _answers(words, token, progress)


def stream(
    query: str,
    *,
    data: PathLike,
    types: Types = None,
    values: Optional[Mapping[str, Value]] = None,
    gateway: Gateway = None,
    token: Optional[str] = None,
    **options: Unpack[Options],
) -> Stream:
    """The rows of an answer as Arrow record batches, as they become known: for answers that are larger than memory.

    Rows of a query without ORDER BY come in any order.
    """
    words = _sql_words(query, data, types, values, gateway, options)
    return Stream(Process([*words, "--format=arrows"], environment(token)))


def run(
    workload: PathLike,
    *,
    data: PathLike,
    query: Union[None, str, Sequence[str]] = None,
    gateway: Gateway = None,
    token: Optional[str] = None,
    progress: Optional[bool] = None,
    **options: Unpack[Options],
) -> Answers:
    """The answers to the questions of a workload: a bundled one (``"coffee"``) or a workload file, as ``tenaz init`` writes it."""
    gateways = gateway_words(gateway)
    words = ["submit" if gateways else "run", os.fspath(workload), data_word(data), *gateways, *option_words(options)]
    if query is not None:
        words.append(f"--query={query if isinstance(query, str) else ','.join(query)}")
    return _answers(words, token, progress)


def tables(data: PathLike, *, types: Types = None, **options: Unpack[Options]) -> List[Table]:
    """The tables of some data, and their columns, as they are guessed from a sample."""
    words = ["sql", data_word(data), *type_words(types), *option_words(options), "--format=arrows"]
    with Process(words, environment(None)) as process:
        listings, error = process.read(read_streams, Progress(False))
    if error is not None or not listings:
        raise error or InternalError("tenaz listed no tables")
    found: Dict[str, Tuple[str, Dict[str, str]]] = {}
    for row in listings[0].to_pylist():
        found.setdefault(row["table"], (row["files"], {}))[1][row["column"]] = row["type"]
    return [Table(name, files, columns) for name, (files, columns) in found.items()]


def ask_words(queries: str, words: Sequence[str]) -> Answers:
    """The answers to questions, with options as words of a command line."""
    return _answers(["sql", *words, _question(queries)], None, None)


def _sql_words(
    text: str,
    data: PathLike,
    types: Types,
    values: Optional[Mapping[str, Value]],
    gateway: Gateway,
    options: Options,
) -> List[str]:
    words = ["sql", data_word(data), *type_words(types), *value_words(values or {})]
    return [*words, *gateway_words(gateway), *option_words(options), _question(text)]


def _question(text: str) -> str:
    """The question as the last word of a command line."""
    if not text.strip():
        raise UsageError("the question is empty; tables(data) shows which tables there are")
    if len(text.encode()) > _LONGEST_WORD:
        raise UsageError(f"the question has more than {_LONGEST_WORD:,} bytes; put it into a workload file, and run() that")
    # A question that begins like an option is none if it has a blank.
    return text + " " if text.startswith("-") else text


def _answers(words: List[str], token: Optional[str], progress: Optional[bool]) -> Answers:
    with Process([*words, "--format=arrows", "--sorted"], environment(token)) as process:
        tables, error = process.read(read_streams, Progress(progress))
        answers = _collected(process, tables or [])
        if error is not None:
            raise _explained(error, answers)
        return answers


def _collected(process: Process, tables: List[pa.Table]) -> Answers:
    account = Account(process.notes, process.reject_lines, process.summary or {})
    results = {answer["name"]: Result(table, answer, account) for answer, table in zip(process.answers, tables)}
    # The rows of COPY statements are in files of their own.
    for name, told in account.summary.get("queries", {}).items():
        if name not in results:
            results[name] = Result(pa.table({}), {"name": name, **told}, account)
    return Answers(results, account)


def _explained(error: Exception, answers: Answers) -> Exception:
    """The error with the answers that there are. If nothing but the number of bad records is wrong, it says so."""
    if not isinstance(error, TenazError):
        return error
    rejected = sum(table.rejected for table in answers.tables.values())
    if error.exit_code == 1 and answers and rejected and not answers.summary.get("failed"):
        error = RejectsError(str(error), {"exit": 1, "class": "data"})
        error.result = next(iter(answers.values())) if len(answers) == 1 else None
    error.answers = answers if answers else None
    return error
