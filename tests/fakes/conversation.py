"""The conversation as a program on a real terminal, on a scripted model."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fakes.engine import write_script
from fakes.terminal import Terminal


def conversation(
    folder: Path,
    *answers: str | dict[str, Any],
    language: str = "en",
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    columns: int = 80,
    rows: int = 24,
) -> Terminal:
    """`with conversation(folder, decision("hi")) as terminal: ...`."""
    script = write_script(folder.parent / "script.jsonl", answers)
    where = args or ("--workspace", str(folder))
    return Terminal(
        [sys.executable, "-m", "duckflow", *where, "--model", f"scripted:{script}"],
        env={"DUCKFLOW_LANGUAGE": language, **(env or {})},
        columns=columns,
        rows=rows,
    )


def ready(terminal: Terminal, seconds: float = 30.0) -> None:
    """Wait until the engine is there and nothing is being done."""

    def idle() -> bool:
        shown = "\n".join(terminal.shown)
        return "\n>\n[ " in shown and "🦆 " not in shown.rpartition("\n>\n")[0].rpartition("\n")[2]

    terminal.wait_until(idle, seconds)
