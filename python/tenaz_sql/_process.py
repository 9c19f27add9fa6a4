"""One run of the program: its answers on standard output, its records on standard error, its end.

Two threads read the two streams. The caller's thread waits, shows progress, and takes Ctrl-C: then the program is told to stop, as
Ctrl-C in a terminal would tell it, and only then does the exception go on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from typing import IO, Any, BinaryIO, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, cast

from ._binary import find_binary
from ._errors import InternalError, TenazError, error_of
from ._progress import Progress

#: Seconds that a program has to end in order after it was told to.
_GRACE = 15.0
#: Seconds between two looks at the progress.
_TICK = 0.1

T = TypeVar("T")


class Process:
    """The running program. Use it in a ``with``: however that ends, the program has ended behind it."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        self.notes: List[str] = []
        #: Bad records, as the program wrote them: most callers never look at them.
        self.reject_lines: List[bytes] = []
        self.answers: List[Dict[str, Any]] = []
        self.summary: Optional[Dict[str, Any]] = None
        self.progress: Dict[str, Any] = {}
        self._errors: List[Dict[str, Any]] = []
        self._other: List[str] = []
        command = [find_binary(), *words, "--message-format=json"]
        # A group of its own: Ctrl-C in a terminal reaches it through `stop` only, once.
        self._program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=os.name == "posix",
        )
        self.stdout = cast(BinaryIO, self._program.stdout)
        #: Whether a thread reads all of standard output, so that the program never waits to be read.
        self._is_read = False
        self._talk = threading.Thread(target=self._listen, args=(self._program.stderr,), daemon=True)
        self._talk.start()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def read(self, read: Callable[[BinaryIO], T], progress: Progress) -> Tuple[Optional[T], Optional[Exception]]:
        """What ``read`` makes of standard output, and what went wrong, when the program has ended."""
        done = threading.Event()
        answer: List[T] = []
        failure: List[Exception] = []

        def work() -> None:
            try:
                answer.append(read(self.stdout))
            except Exception as error:  # The program's own word for it is better, if there is one: see `end`.
                failure.append(error)
            finally:
                # A program whose answer nobody reads any more would wait for ever.
                self.stdout.close()
                done.set()

        self._is_read = True
        threading.Thread(target=work, daemon=True).start()
        with progress:
            while not done.wait(_TICK):
                progress.show(self.progress)
        try:
            self.end(failure[0] if failure else None)
        except Exception as error:
            return (answer[0] if answer else None), error
        return answer[0], None

    def end(self, failure: Optional[Exception] = None) -> None:
        """Waits for the end of the program, and raises what went wrong."""
        code = self._program.wait()
        self._talk.join()
        if self._errors:
            raise self._error()
        if code != 0:
            said = "\n".join(self._other) or "it said nothing"
            what = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise InternalError(f"tenaz {what}: {said}", {"exit": code})
        if failure is not None:
            raise failure

    def _error(self) -> TenazError:
        error = error_of(self._errors[0])
        if len(self._errors) > 1:
            error.args = ("\n".join(str(record["text"]) for record in self._errors),)
        return error

    def stop(self) -> None:
        """Ends the program in order, if it still runs, and waits for that. A second Ctrl-C ends it at once."""
        try:
            if not self._is_read:
                # A program that waits for its reader would not hear that it should stop.
                self.stdout.close()
            if self._program.poll() is None:
                self._interrupt()
                self._program.wait(_GRACE)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            self._program.kill()
            self._program.wait()
        finally:
            self.stdout.close()
            self._talk.join()

    def _interrupt(self) -> None:
        if os.name == "posix":
            self._program.send_signal(signal.SIGINT)
        else:
            self._program.terminate()

    def _listen(self, stderr: IO[bytes]) -> None:
        with stderr:
            for line in stderr:
                self._take(line)

    def _take(self, line: bytes) -> None:
        if line.startswith(b'{"message":"reject"'):
            self.reject_lines.append(line)
            return
        try:
            record = json.loads(line)
            kind = record["message"]
        except (ValueError, KeyError, TypeError):
            self._other.append(line.decode("utf-8", "replace").rstrip())
            return
        if kind == "progress":
            self.progress = record
        elif kind in ("note", "warning"):
            self.notes.append(record["text"])
        elif kind == "answer":
            self.answers.append(record)
        elif kind == "summary":
            self.summary = record
        elif kind == "error":
            self._errors.append(record)
