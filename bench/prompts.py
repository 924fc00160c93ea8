"""Measures prompts: the repeated share of each, the length of the first, and the cost of a session.

    .venv/bin/python bench/prompts.py

Whole sessions run over HTTP against a scripted local model, and the sent bytes are counted. The cost is in
characters over all calls: new ones, plus a tenth of those that repeat. (For 21 small commands, mini-swe-agent
takes 23,300, opencode 103,900 and codex 129,800.)
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from peers.isolation import without_network
from peers.results import write_result

from duckflow.llm.tokens import estimate_tokens
from fakes.sent_prompts import cost, make_project, median_share, send, small_looks

TALK = [f"Question {number}: what does src/part_{number:02}.py do?" for number in range(10)]
ANSWERS = ['{"next_step": "done", "reply": "It returns its number, and nothing else uses it so far."}'] * 10


ROWS: list[list[str]] = []


def row(title: str, value: str, bound: str, *, fine: bool) -> bool:
    """Print one measure and store it."""
    print(f"{'ok  ' if fine else 'FAIL'} {title:<46} {value:>10}   ({bound})")
    ROWS.append([title, value, bound, "yes" if fine else "**no**"])
    return fine


async def measure(home: Path) -> bool:
    """Take all measures. Return True if each keeps its bound."""
    bare, full = make_project(home / "bare"), make_project(home / "full")
    (bare / "AGENTS.md").unlink()
    fine = True
    for name, folder, most in (("no rules", bare, 30_000), ("rules of 40 lines", full, 40_000)):
        work = await send(folder, ["Which part returns 7?"], small_looks(10))
        share = median_share(work)
        fine &= row(f"repeats, ten loops, {name}", f"{share:.1%}", ">= 90 %", fine=share >= 0.9)
        share = median_share(await send(folder, TALK, ANSWERS))
        fine &= row(f"repeats, ten requests, {name}", f"{share:.1%}", ">= 90 %", fine=share >= 0.9)
        tokens = estimate_tokens(work[0])
        fine &= row(f"tokens of the first prompt, {name}", f"{tokens:,}", "<= 2,500", fine=tokens <= 2500)
        spent = cost(await send(folder, ["Which part returns 7?"], small_looks(21)))
        fine &= row(f"cost of 21 calls, {name}", f"{spent:,.0f}", f"<= {most:,}", fine=spent <= most)
    return fine


def main() -> None:
    """Print a table, and fail if a bound is exceeded."""
    without_network()
    with tempfile.TemporaryDirectory() as home:
        for part in ("CONFIG", "STATE", "CACHE", "DATA"):
            os.environ[f"XDG_{part}_HOME"] = f"{home}/{part.lower()}"
        fine = asyncio.run(measure(Path(home)))
    write_result("frugality", {"heads": ["", "measured", "bound", "kept"], "rows": ROWS})
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
