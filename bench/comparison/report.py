"""The Markdown tables and the pass or fail of the limits."""

UNITS = [("wall", "s", "wall, s"), ("cpu", "s", "CPU, s"), ("memory", "MB", "peak memory, MB")]

TOGETHER_LIMIT = 1.3
STARTUP_LIMIT_MS = 50


def load_line(others):
    """How busy others kept the machine; `others` has the share of every run, sorted."""
    busy = others[len(others) // 2]
    state = "quiet" if busy < 0.1 else "LOADED"
    return f"- load: {state}; other programs used {busy:.0%} of the machine in the median run, {others[-1]:.0%} in the worst"


def spread(runs, what):
    places = 0 if what == "memory" else 2 if runs.median(what) >= 0.1 else 3
    return "{:.{p}f} ({:.{p}f}..{:.{p}f})".format(runs.median(what), runs.low(what), runs.high(what), p=places)


def ours_and_others(section):
    (_, ours), *others = section.results.items()
    return ours, others


def ratio(theirs, ours, what):
    return theirs.median(what) / max(ours.median(what), 1e-9)


def table(section):
    ours, _ = ours_and_others(section)
    lines = [f"### {section.title[0].upper() + section.title[1:]}: {section.size / 1e6:.0f} MB of CSV", ""]
    if section.note:
        lines += [section.note, ""]
    lines += ["| | wall, s | CPU, s | peak memory, MB | wall / first row | CPU / first row | memory / first row |",
              "|---|---|---|---|---|---|---|"]
    for label, runs in section.results.items():
        shown = " | ".join(spread(runs, what) for what, _, _ in UNITS)
        ratios = " | ".join(f"{ratio(runs, ours, what):.2f}" for what, _, _ in UNITS)
        lines.append(f"| {label} | {shown} | {ratios} |")
    return lines + [""]


def checks(section):
    """(passed, line) for every limit that this section has."""
    ours, others = ours_and_others(section)
    judged = {system.label for system in section.systems if system.judged}
    others = [other for other in others if other[0] in judged]
    if section.name.startswith("together"):
        for what in ("cpu", "wall"):
            label, dearest = max(others, key=lambda other: other[1].median(what))
            times = ours.median(what) / dearest.median(what)
            yield times <= TOGETHER_LIMIT, f"{section.name}: {what} {times:.2f} times that of {label} (limit {TOGETHER_LIMIT})"
    elif section.name == "start-up":
        ms = ours.median("cpu") * 1000
        yield ms < STARTUP_LIMIT_MS, f"start-up: {ms:.0f} ms of CPU on {section.size / 1e6:.1f} MB (limit {STARTUP_LIMIT_MS} ms)"
    elif section.limit:
        for what in ("cpu", "wall"):
            label, best = min(others, key=lambda other: other[1].median(what))
            times = ratio(best, ours, what)
            yield times >= section.limit, f"{section.name}: {what} {times:.2f} times as fast as {label} (limit {section.limit:g})"
        if section.memory_limit:
            label, best = min(others, key=lambda other: other[1].median("cpu"))
            part = 1 / ratio(best, ours, "memory")
            yield part <= section.memory_limit, (
                f"{section.name}: peak memory {part:.2f} of that of {label}, the fastest (limit {section.memory_limit:g})")


def markdown(sections, facts, rounds):
    others = sorted(run.others for section in sections for runs in section.results.values() for run in runs.runs)
    lines = ["# tenaz compared", "",
             "Written by `bench/compare`. Median (min..max) of "
             f"{rounds} interleaved rounds, every run a fresh process on page-cached files; answers checked in every run.", ""]
    lines += [f"- {name}: {fact}" for name, fact in facts.items()]
    lines += [load_line(others), ""]
    for section in sections:
        lines += table(section)
    lines += ["### Limits", ""]
    lines += [f"- {'pass' if passed else 'FAIL'}: {line}" for section in sections for passed, line in checks(section)]
    return "\n".join(lines) + "\n"
