"""A bar chart of the results as SVG, readable on light and dark pages."""

from html import escape

from .report import UNITS, ratio

LABEL, PANEL, GAP = 250, 190, 24
BAR, STEP, HEAD = 13, 20, 44
WIDTH = LABEL + 3 * (PANEL + GAP)

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.head { font-weight: 600 }
.small { fill: #57606a; font-size: 11px }
.ours { fill: #d9480f }
.theirs { fill: #8b949e }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #9da7b3 }
  .ours { fill: #ff8547 }
  .theirs { fill: #6e7681 }
}
</style>"""


def value(runs, what):
    return f"{runs.median(what):.0f}" if what == "memory" else f"{runs.median(what):.2f}"


def panel(section, what, x, y):
    """The bars of one quantity; the number behind a bar is the value and how many times ours it is."""
    (_, ours), *_ = section.results.items()
    longest = max(runs.median(what) for runs in section.results.values())
    room = PANEL - 82  # the numbers stand behind the bars
    parts = []
    for row, runs in enumerate(section.results.values()):
        top = y + row * STEP
        width = max(1.0, room * runs.median(what) / longest)
        times = "" if row == 0 else f" ({ratio(runs, ours, what):.1f}×)"
        parts.append(f'<rect class="{"theirs" if row else "ours"}" x="{x}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2"/>')
        parts.append(f'<text class="small" x="{x + width + 5:.1f}" y="{top + 10}">{value(runs, what)}{times}</text>')
    return parts


def svg(sections, facts):
    parts, y = [], 18
    for section in (s for s in sections if s.limit):  # the others compare tenaz with itself
        parts.append(f'<text class="head" x="4" y="{y}">{escape(section.title)}, {section.size / 1e6:.0f} MB</text>')
        y += 18
        for column, (_, _, label) in enumerate(UNITS):
            parts.append(f'<text class="small" x="{LABEL + column * (PANEL + GAP)}" y="{y}">{label}</text>')
        y += 8
        for row, label in enumerate(section.results):
            parts.append(f'<text x="4" y="{y + row * STEP + 11}">{escape(label)}</text>')
        for column, (what, _, _) in enumerate(UNITS):
            parts += panel(section, what, LABEL + column * (PANEL + GAP), y)
        y += len(section.results) * STEP + 26
    parts.append(f'<text class="small" x="4" y="{y}">{escape(facts["machine"])}; {facts["threads"]} threads; {facts["date"]}</text>')
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" viewBox="0 0 {WIDTH} {y + 10}" '
            f'role="img" aria-label="tenaz compared with DuckDB and Polars">\n{STYLE}\n{body}\n</svg>\n')
