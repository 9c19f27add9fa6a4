"""SQL questions over large CSV exports, in one pass.

    import tenaz_sql

    tenaz_sql.tables("exports")
    answer = tenaz_sql.sql("SELECT city, sum(amount) FROM orders GROUP BY city", data="exports")
    answer.df()

The work is done by the program ``tenaz``, which this package brings along. Every option of the program is an argument here:
what a note calls ``--decimal-comma yes`` is ``decimal_comma=True``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._ask import run, sql, sql_all, stream, tables
from ._binary import find_binary
from ._errors import DataError, InternalError, QueryError, RejectsError, TenazError, UnavailableError, UsageError
from ._result import Answers, Result, Stream, Table, TableCounts

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = [
    "Answers",
    "DataError",
    "InternalError",
    "QueryError",
    "RejectsError",
    "Result",
    "Stream",
    "Table",
    "TableCounts",
    "TenazError",
    "UnavailableError",
    "UsageError",
    "find_binary",
    "run",
    "sql",
    "sql_all",
    "stream",
    "tables",
]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Makes ``%%tenaz`` and ``%tenaz`` known: ``%load_ext tenaz_sql``."""
    from ._magic import TenazMagics

    shell.register_magics(TenazMagics)
