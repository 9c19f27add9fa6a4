"""One run of one program, measured from outside: time on the clock, CPU time, peak memory."""

import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field


@dataclass
class Run:
    wall: float  # seconds
    cpu: float  # seconds, user and system, of the process and its children
    memory: float  # MB (10^6 bytes), the peak of the largest process
    others: float  # how much of the machine other programs used meanwhile, 0 to 1


@dataclass
class Runs:
    """All counted runs of one system."""

    runs: list = field(default_factory=list)

    def of(self, what):
        return [getattr(run, what) for run in self.runs]

    def median(self, what):
        return statistics.median(self.of(what))

    def low(self, what):
        return min(self.of(what))

    def high(self, what):
        return max(self.of(what))


def busy_seconds():
    """CPU seconds that this machine has spent on anything since it started."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _wait, irq, soft, steal = (int(n) for n in stat.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A measured program did not succeed."""


def run(command, env=None):
    """Runs `command` to its end. A fresh process every time: what is measured is what a user waits for.

    The kernel counts the memory of this script as the child's until the child's program is loaded, so this script
    must stay small: whatever needs memory (comparing answers) is done in processes of its own.
    """
    with tempfile.TemporaryFile() as errors:
        busy = busy_seconds()
        begun = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                                 env={**os.environ, **(env or {})})
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - begun
        busy = busy_seconds() - busy
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-2000:]
            raise Failed(f"exit code {child.returncode} of {' '.join(command)}\n{said}")
    cpu = used.ru_utime + used.ru_stime
    others = max(0.0, busy - cpu) / (wall * os.cpu_count())
    return Run(wall, cpu, used.ru_maxrss * 1024 / 1e6, min(1.0, others))
