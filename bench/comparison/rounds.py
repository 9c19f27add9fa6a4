"""Runs the systems of a section in interleaved rounds and checks every answer against ours."""

import os
import shutil
import subprocess
import sys

from .environment import HERE, say
from .measure import Failed, Runs, run


class Disagree(Exception):
    """A system's answers are not ours."""


def measure(section, rounds, work):
    """Fills `section.results`. The first round is not counted: it warms up, and chooses of each family the one with
    the least CPU time, which is less disturbed by others than time on the clock."""
    expected = os.path.join(work, "expected")
    shutil.rmtree(expected, ignore_errors=True)
    say(f"{section.title}: {section.size / 1e6:.0f} MB")
    run(section.systems[0].command(expected))
    first = [once(section, system, work, expected) for system in section.systems]
    keep = [i for i, system in enumerate(section.systems)
            if not any(other.family and other.family == system.family and first[j].cpu < first[i].cpu
                       for j, other in enumerate(section.systems))]
    systems = [section.systems[i] for i in keep]
    section.results = {system.label: Runs() for system in systems}
    for number in range(rounds):
        shift = number % len(systems)  # nobody always runs after the same neighbour
        for system in systems[shift:] + systems[:shift]:
            section.results[system.label].runs.append(once(section, system, work, expected))
        last = ", ".join(f"{label} {runs.runs[-1].wall:.2f}" for label, runs in section.results.items())
        say(f"  round {number + 1}, seconds: {last}")


def once(section, system, work, expected):
    out = os.path.join(work, "answers")
    shutil.rmtree(out, ignore_errors=True)
    try:
        measured = run(system.command(out), system.env)
    except Failed as failed:
        sys.exit(f"{section.name}, {system.label}: {failed}")
    check(section, system, expected, out)
    return measured


def check(section, system, expected, out):
    """In a process of its own, because it needs memory (see `measure.run`)."""
    if section.queries:
        line = [sys.executable, os.path.join(HERE, "answers.py"), expected, out] + section.queries
    elif os.path.exists(os.path.join(out, "english_counts.csv")):
        line = [sys.executable, os.path.join(HERE, "near_answers.py"), expected, out]
    else:
        return
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        raise Disagree(f"{section.name}: {system.label} and tenaz disagree about {done.stderr.strip()}")
