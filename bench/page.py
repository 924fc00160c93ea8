"""docs/benchmarks.md and its pictures, from what the other scripts measured (bench/results/*.json).

.venv/bin/python bench/page.py
"""

import sys
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


def main() -> None:
    """Write the page."""
    parts = [_BEGINNING]
    for name, write in (
        ("cost", _cost),
        ("growth", _growth),
        ("sandbox", _sandbox),
        ("exercises", _exercises),
    ):
        found = read_result(name)
        if found:
            parts.append(write(found) + _where(found))
    (DOCS / "benchmarks.md").write_text("\n".join(parts), "utf-8")


def _where(found: dict[str, Any]) -> str:
    on = found["machine"]
    processor = f"{on['cores']} cores, {on['processor']} ({on['architecture']})"
    what = f"{processor}, {on['system']}, Python {on['python']}"
    return f"\n*Measured on {found['date']}: {what}; load of the machine at the end {on['load']}.*\n"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cost(found: dict[str, Any]) -> str:
    rows = found["rows"]
    network = "off" if found["isolated"] else "on"
    text = (
        f"## Own cost\n\nEach agent runs {found['loops']} small shell commands, one a loop, for a model on "
        "the same machine that answers at once. Medians of runs in turns, with the least and the most; "
        f"network {network}. Memory is that of all processes. The last column counts characters: new ones, "
        "and a tenth of those that repeat.\n"
        "Duckflow runs its commands on a copy in its sandbox, Codex in its own, the others without one. "
        "Aider has no loop of commands.\n\n"
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
    folders = [
        [
            f"{row['files']:,}",
            f"{row['start_s']:.2f} s",
            f"{row['first_loop_ms']:.0f} ms",
            f"{row['loop_ms']:.0f} ms",
        ]
        for row in found["folders"]
    ]
    length = [[f"{row['loop']:,}", f"{row['loop_ms']:.1f} ms"] for row in found["length"]]
    resuming = [[f"{row['events']:,}", f"{row['load_ms']:.0f} ms"] for row in found["resuming"]]
    return (
        "## Growth\n\nA loop with a shell command, by the number of files in the folder:\n\n"
        + _table(["files", "start to first request", "first loop", "a later loop"], folders)
        + "\nA loop that writes a file, by its place in one session:\n\n"
        + _table(["loop", "time"], length)
        + "\nLoading a session, by its events:\n\n"
        + _table(["events", "time"], resuming)
    )


def _sandbox(found: dict[str, Any]) -> str:
    rows = [[str(cell) for cell in row] for row in found["rows"]]
    return "## Safety\n\nWhat a command costs above a plain one:\n\n" + _table(found["heads"], rows)


def _exercises(found: dict[str, Any]) -> str:
    rows = [[str(cell) for cell in row] for row in found["rows"]]
    return "## Exercises on the embedded model\n\n" + _table(found["heads"], rows)


def bars(title: str, names: list[str], values: list[float | None], unit: str) -> str:
    """A bar chart that reads in light and dark."""
    known = [(name, value) for name, value in zip(names, values, strict=True) if value is not None]
    most = max(value for _, value in known)
    lines = []
    for place, (name, value) in enumerate(known):
        top = 44 + place * 34
        width = max(2, round(380 * value / most))
        colour = "#e0a100" if name == "Duckflow" else "#8a94a6"
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
