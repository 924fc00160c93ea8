"""The conversation as a program on a real terminal, on a scripted model."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fakes import conversation_program
from fakes.engine import write_script
from fakes.terminal import PATIENCE_S, Terminal


def program(quiet_s: float = 0.0) -> tuple[list[str], dict[str, str]]:
    """The conversation as a command, and the environment that sets its quiet time."""
    return [sys.executable, conversation_program.__file__], {conversation_program.QUIET_S: str(quiet_s)}


def conversation(
    folder: Path,
    *answers: str | dict[str, Any],
    language: str = "en",
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    columns: int = 80,
    rows: int = 24,
    quiet_s: float = 0.0,
) -> Terminal:
    """`with conversation(folder, decision("hi")) as terminal: ...`."""
    script = write_script(folder.parent / "script.jsonl", answers)
    where = args or ("--workspace", str(folder))
    command, quiet = program(quiet_s)
    return Terminal(
        [*command, *where, "--model", f"scripted:{script}"],
        env={"DUCKFLOW_LANGUAGE": language, **quiet, **(env or {})},
        columns=columns,
        rows=rows,
        warm=True,
    )


def ready(terminal: Terminal, seconds: float = PATIENCE_S) -> None:
    """Wait until the engine is there and nothing is being done."""

    def idle() -> bool:
        shown = "\n".join(terminal.shown)
        above, prompt, bar = shown.rpartition("\n>\n")
        return bool(prompt) and " · " in bar and "🦆 " not in above.rpartition("\n")[2]

    terminal.wait_until(idle, seconds)
