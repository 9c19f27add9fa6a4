"""``%%tenaz``: questions in cells of notebooks.

    %load_ext tenaz_sql

    %%tenaz --data exports --types zip=text
    SELECT city, sum(amount) AS total FROM orders GROUP BY city ORDER BY total DESC

    %%tenaz --data exports --into best
    …

Every option of ``tenaz sql`` may stand in the first line; ``--into NAME`` keeps the answer in a variable instead of showing it.
``{python}`` in the first line is replaced by its value: ``--set since={since}``. ``%tenaz exports`` lists tables.
"""

from __future__ import annotations

import shlex
from typing import List, Optional, Tuple, Union

from IPython.core.magic import Magics, line_cell_magic, magics_class

from ._ask import ask_words, tables
from ._errors import UsageError
from ._result import Answers, Result, Table


@magics_class
class TenazMagics(Magics):
    """The magics ``%%tenaz`` and ``%tenaz``."""

    @line_cell_magic
    def tenaz(self, line: str, cell: Optional[str] = None) -> Union[None, Result, Answers, List[Table]]:
        """Asks the questions of the cell; without a cell, lists the tables of a folder."""
        words = shlex.split(line)
        if cell is None:
            if len(words) != 1:
                raise UsageError("write %tenaz FOLDER for its tables, or %%tenaz --data FOLDER and a question below")
            return tables(words[0])
        name, words = _into(words)
        if name is not None and not name.isidentifier():
            raise UsageError(f"--into {name}: that is no name of a variable")
        answers = ask_words(cell, words)
        answer = next(iter(answers.values())) if len(answers) == 1 else answers
        if name is None:
            return answer
        assert self.shell is not None, "magics belong to a shell"
        self.shell.user_ns[name] = answer
        return None


def _into(words: List[str]) -> Tuple[Optional[str], List[str]]:
    """The variable that the answer goes to, and the other words."""
    for index, word in enumerate(words):
        if word.startswith("--into="):
            return word[len("--into=") :], words[:index] + words[index + 1 :]
        if word == "--into":
            if index + 1 == len(words):
                raise UsageError("--into needs the name of a variable")
            return words[index + 1], words[:index] + words[index + 2 :]
    return None, words
