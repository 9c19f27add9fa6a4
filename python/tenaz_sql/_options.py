"""Arguments of Python as options of the program."""

from __future__ import annotations

import datetime
import os
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Sequence, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

PathLike: TypeAlias = "Union[str, os.PathLike[str]]"
#: What ``$name`` in a query may stand for.
Value: TypeAlias = "Union[None, bool, int, float, Decimal, str, datetime.date, datetime.datetime]"


class Options(TypedDict, total=False):
    """What may be said besides question and data. ``tenaz sql --help`` explains each."""

    # How the files are written, where the guess is wrong.
    encoding: str
    delimiter: str
    quote: str
    escape: str
    comment: str
    skip: int
    spaces: str
    totals: str
    footnotes: str
    blank: str
    header: bool
    null: Sequence[str]
    decimal_comma: bool
    date_order: str
    lenient: bool
    union: bool
    apart: bool
    # How the work is done; answers do not depend on it.
    threads: int
    memory: Union[int, str]
    chunk_size: Union[int, str]
    partitions: int
    # What an answer is.
    now: Union[str, datetime.date, datetime.datetime]
    strict: bool
    accept_rejects: bool


_FLAGS = {"lenient", "union", "apart", "strict", "accept_rejects"}


def option_words(options: Mapping[str, Any]) -> List[str]:
    """``{"skip": 3, "lenient": True}`` as ``["--skip=3", "--lenient"]``. None is not said."""
    words: List[str] = []
    for name, value in options.items():
        if name not in Options.__annotations__:
            raise TypeError(f"there is no option {name!r}; there are {', '.join(sorted(Options.__annotations__))}")
        if value is None:
            continue
        option = "--" + name.replace("_", "-")
        if name in _FLAGS:
            if not isinstance(value, bool):
                raise TypeError(f"{name} is True or False, not {value!r}")
            words += [option] if value else []
        else:
            words.append(f"{option}={_word(value)}")
    return words


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime.datetime):
        return _utc(value).isoformat(timespec="microseconds") + "Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(part) for part in value)
    return str(value)


def type_words(types: Union[None, str, Mapping[str, str]]) -> List[str]:
    """Types of columns: ``{"zip": "text"}`` or ``"zip=text"``."""
    if types is None:
        return []
    if isinstance(types, str):
        return [f"--types={types}"]
    return [f"--types={column}={kind}" for column, kind in types.items()]


def value_words(values: Mapping[str, Value]) -> List[str]:
    """The values of ``$name`` in a query."""
    return [f"--set={name}={_literal(name, value)}" for name, value in values.items()]


def _literal(name: str, value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not number.is_finite():
            raise ValueError(f"${name} is {value!r}, and SQL knows no such number")
        return format(number, "f")
    if isinstance(value, datetime.datetime):
        return str(_utc(value))
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        # In quotes it is text, whatever it looks like.
        return f"'{value}'"
    raise TypeError(f"${name} is a {type(value).__name__}; give a number, a text, a date, a time, True, False or None")


def _utc(time: datetime.datetime) -> datetime.datetime:
    """A time as tables have it: in UTC, without a zone."""
    return time.astimezone(datetime.timezone.utc).replace(tzinfo=None) if time.tzinfo else time


def gateway_words(gateway: Union[None, str, Iterable[str]]) -> List[str]:
    """The gateways of a cluster, one or several."""
    if gateway is None:
        return []
    urls = [gateway] if isinstance(gateway, str) else list(gateway)
    return [f"--gateway={','.join(urls)}"]


def data_word(data: PathLike) -> str:
    """Where the data is."""
    return f"--data={os.path.expanduser(os.fspath(data))}"


def environment(token: Union[None, str]) -> Dict[str, str]:
    """The program's environment. A token is no word of a command line, which everybody on the machine may read."""
    env = dict(os.environ)
    if token is not None:
        env["TENAZ_TOKEN"] = token
        env.pop("TENAZ_TOKEN_FILE", None)
    return env
