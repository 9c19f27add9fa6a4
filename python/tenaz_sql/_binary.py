"""Where the program is."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Iterator

_NAME = "tenaz.exe" if os.name == "nt" else "tenaz"


def find_binary() -> str:
    """The path of the program ``tenaz``.

    ``TENAZ_BINARY`` names it, or it is where the wheel has put it, or it is on the PATH.
    """
    named = os.environ.get("TENAZ_BINARY")
    if named:
        if not os.access(named, os.X_OK):
            raise FileNotFoundError(f"TENAZ_BINARY names {named}, which is no program; name another one, or unset it")
        return named
    for folder in _folders():
        path = folder / _NAME
        if path.is_file():
            return str(path)
    found = shutil.which(_NAME)
    if found:
        return found
    raise FileNotFoundError("the program tenaz is not there: install the wheel of tenaz-sql again, or set TENAZ_BINARY")


def _folders() -> Iterator[Path]:
    """Where installers put programs: of this environment, of the user, of a target directory."""
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sys.prefix) / ("Scripts" if os.name == "nt" else "bin")
    yield Path(sysconfig.get_path("scripts", scheme=f"{os.name}_user"))
    yield Path(__file__).parent.parent / "bin"
