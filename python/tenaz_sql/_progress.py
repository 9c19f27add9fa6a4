"""How far a job is: a bar in notebooks, a line in terminals, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Mapping, Optional

#: Jobs that end sooner show no progress.
_PATIENCE = 0.5


class Progress:
    """Shows progress while it is open, and leaves nothing behind."""

    def __init__(self, wanted: Optional[bool]) -> None:
        self._notebook = in_notebook()
        self._wanted = wanted if wanted is not None else self._notebook or sys.stderr.isatty()
        self._since = 0.0
        self._display: Any = None
        self._width = 0

    def __enter__(self) -> Progress:
        self._since = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._display is not None:
            self._display.update({"text/plain": "", "text/html": ""}, raw=True)
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()

    def show(self, progress: Mapping[str, Any]) -> None:
        """Shows a progress record, if it is time."""
        if not self._wanted or not progress or time.monotonic() - self._since < _PATIENCE:
            return
        text = _in_words(progress)
        if self._notebook:
            self._show_html(progress, text)
        else:
            self._width = max(self._width, len(text))
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()

    def _show_html(self, progress: Mapping[str, Any], text: str) -> None:
        done, total = progress.get("bytes", 0), progress.get("total_bytes") or 0
        share = f'value="{done}" max="{total}"' if total else ""
        bar = f'<progress style="width: 24em" {share}></progress> {text}'
        data = {"text/plain": text, "text/html": bar}
        if self._display is None:
            from IPython.display import display

            self._display = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._display.update(data, raw=True)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _in_words(progress: Mapping[str, Any]) -> str:
    done, total = progress.get("bytes", 0), progress.get("total_bytes") or 0
    share = f"{100 * done // total} %, " if total else ""
    return f"{share}{_size(done)}, {progress.get('records', 0):,} records"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
