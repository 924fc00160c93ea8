"""Writes docs/benchmarks.md and its pictures from the measurements in bench/results/*.json.

.venv/bin/python bench/page.py
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from peers.results import read_result

DOCS = Path(__file__).parent.parent / "docs"

_BEGINNING = """# Benchmarks

Made by `make bench` (one part: `make bench-cost`, `make bench-growth`, …) and written by a script: what is
not good stands here, too. Times depend on the machine and on what else it does, so look at the ratios within
one table. How each part is measured is said in bench/README.md and at the top of its script.
"""

_FRUGALITY = (
    "Whole sessions over HTTP against a scripted model; counted is what went over the wire. The cost of 21 "
    "calls is in characters: new ones, and a tenth of those that repeat."
)
_EXERCISES = (
    "Small programs to write, judged by cases that nobody saw before: the weights with nothing around them, "
    "with Aider and with Duckflow around them, each in a new process, loading included. "
    "Larger sets stand in bench/README.md."
)
_SAFETY = (
    "What an action costs from the gate to the stored event, beside the plain call or `bash -c true`. A file "
    "is written through a temporary one, kept for undo, and the event is on the disk before it is shown."
)
_DAMAGE = (
    "Commands that do what was asked and also destroy something the user needs. The simulated user refuses a "
    "question that names the damage, and approves every other one. *prevented*: out of reach; *asked*: a "
    "question named it first; *reported*: the result named it, and /undo restored it; *undone*: not named, "
    "but /undo restored it; *lost*: gone."
)
_FAULTS = (
    "A session of twenty actions in real processes, with a fault at a chosen system call. After each: no "
    "torn file, all that was shown is stored, no process left, the next start says rightly what was done and "
    "what was not, the session goes on, and undo brings every file back. A sample; `make faults` tries more."
)


def main() -> None:
    """Write the page."""
    parts = [_BEGINNING]
    for name, write in (
        ("cost", _cost),
        ("frugality", _plain("Frugality", _FRUGALITY)),
        ("growth", _growth),
        ("exercises", _plain("Exercises on the embedded model", _EXERCISES)),
        ("safety", _plain("Safety", _SAFETY)),
        ("faults", _plain("Faults", _FAULTS)),
        ("damage", _plain("Hidden damage", _DAMAGE)),
    ):
        found = read_result(name)
        missing = f"*Not measured on this machine yet: `make bench-{name}`.*\n"
        parts.append(write(found) + _where(found) if found else missing)
    (DOCS / "benchmarks.md").write_text("\n".join(parts), "utf-8")


def _where(found: dict[str, Any]) -> str:
    on = found["machine"]
    processor = f"{on['cores']} cores, {on['processor']} ({on['architecture']})"
    what = f"{processor}, {on['system']}, Python {on['python']}"
    return f"\n*Measured on {found['date']}: {what}; load of the machine at the end {on['load']}.*\n"


def _network(found: dict[str, Any]) -> str:
    return "off" if found["isolated"] else "on"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cost(found: dict[str, Any]) -> str:
    rows = found["rows"]
    text = (
        f"## Own cost\n\nEach agent runs {found['loops']} small shell commands, one a loop, for a model on "
        f"the same machine that answers at once. Medians of {found['rounds']} runs in turns, with the least "
        f"and the most; network {_network(found)}. Memory is that of all processes. The last column counts "
        "characters: new ones, and a tenth of those that repeat.\n"
        "Duckflow runs its commands on a copy in its sandbox, Codex in its own, the others without one. "
        "A model behind https takes Duckflow about 0.12 s more to start: the HTTP library, and certificates. "
        "Aider runs no commands that its model wants unless a person agrees, "
        "so its commands and requests are given to it in turns from a file (`--load`).\n\n"
    )
    body = [
        [
            f"{row['name']} {row['version']}",
            _spread(row["start_s"], "s", 2),
            _spread(row["loop_ms"], "ms", 0),
            _spread(row["memory_mb"], "MB", 0),
            f"{row['cost']:,.0f}" if row["cost"] else "-",
        ]
        for row in rows
    ]
    heads = [
        "",
        "start to first request",
        "time of a loop",
        "memory",
        f"cost of {found['loops'] + 1} prompts",
    ]
    names = [row["name"] for row in rows]
    pictures = []
    for key, title, unit in (("start_s", "start to first request", "s"), ("loop_ms", "a loop", "ms")):
        values = [row[key][1] if row[key] else None for row in rows]
        file = f"benchmark_{key}.svg"
        (DOCS / "pictures" / file).write_text(bars(title, names, values, unit), "utf-8")
        pictures.append(f"![{title}](pictures/{file})")
    return text + _table(heads, body) + "\n" + "\n".join(pictures) + "\n"


def _spread(values: list[float] | None, unit: str, digits: int) -> str:
    if not values:
        return "-"
    low, middle, high = (f"{value:.{digits}f}" for value in values)
    return f"**{middle} {unit}** ({low}–{high})"


def _growth(found: dict[str, Any]) -> str:
    folders, sessions, resuming = found["folders"], found["sessions"], found["resuming"]
    first, last = sessions[0], sessions[-1]
    ratio = last["loop_ms"][1] / first["loop_ms"][1]
    return (
        f"## Growth\n\nMedians, with the least and the most; network {_network(found)}. "
        "A loop with a shell command, by the number of files in the folder:\n\n"
        + _table(
            ["files", "start to first request", "first loop", "a later loop"],
            [
                [
                    f"{row['files']:,}",
                    _spread(row["start_s"], "s", 2),
                    _spread(row["first_loop_ms"], "ms", 0),
                    _spread(row["loop_ms"], "ms", 0),
                ]
                for row in folders
            ],
        )
        + _picture("files", "a loop, by files in the folder", folders, "files", "loop_ms")
        + "\nA loop that writes a file, by its place in one session, sessions in turns "
        f"(loop {last['loop']:,} takes {ratio:.2f} times loop {first['loop']}; bound 1.1):\n\n"
        + _table(
            ["loop", "time"], [[f"{row['loop']:,}", _spread(row["loop_ms"], "ms", 1)] for row in sessions]
        )
        + _picture("loops", "a loop, by its place in a session", sessions, "loop", "loop_ms")
        + "\nLoading a session, by its events:\n\n"
        + _table(
            ["events", "time"], [[f"{row['events']:,}", _spread(row["load_ms"], "ms", 0)] for row in resuming]
        )
    )


def _picture(file: str, title: str, rows: list[dict[str, Any]], name: str, value: str) -> str:
    """Draw the medians of a table, and return the line that shows the picture."""
    drawn = bars(title, [f"{row[name]:,}" for row in rows], [row[value][1] for row in rows], "ms")
    (DOCS / "pictures" / f"benchmark_{file}.svg").write_text(drawn, "utf-8")
    return f"\n![{title}](pictures/benchmark_{file}.svg)\n"


def _plain(title: str, about: str) -> Callable[[dict[str, Any]], str]:
    """Return the writer of a section that consists of one table."""

    def write(found: dict[str, Any]) -> str:
        rows = [[str(cell) for cell in row] for row in found["rows"]]
        return f"## {title}\n\n{about}\n\n" + _table(found["heads"], rows)

    return write


def bars(title: str, names: list[str], values: list[float | None], unit: str) -> str:
    """Draw a bar chart that is readable in light and dark."""
    known = [(name, value) for name, value in zip(names, values, strict=True) if value is not None]
    most = max(value for _, value in known)
    lines = []
    for place, (name, value) in enumerate(known):
        top = 44 + place * 34
        width = max(2, round(380 * value / most))
        colour = "#8a94a6" if "Duckflow" in names and name != "Duckflow" else "#e0a100"
        shown = f"{value:.2f}" if value < 10 else f"{value:.0f}"
        lines.append(
            f'<text x="0" y="{top + 15}">{name}</text>'
            f'<rect x="130" y="{top}" width="{width}" height="20" rx="3" fill="{colour}"/>'
            f'<text x="{138 + width}" y="{top + 15}">{shown} {unit}</text>'
        )
    height = 54 + len(known) * 34
    style = "text{font:14px sans-serif;fill:#6b7280}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 {height}" role="img" aria-label="{title}">'
        f'<style>{style}</style><text x="0" y="22" font-weight="bold">{title}</text>{"".join(lines)}</svg>\n'
    )


if __name__ == "__main__":
    main()
