"""The options of the conversation, read without the machinery of other commands: it must be there at once.

Anything that is not plainly one of these options is left to the whole command line, which explains it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from duckflow.domain.modes import MODES

_VALUES = ("--model", "--mode", "--workspace")
_SWITCHES = ("--continue", "--trust")


@dataclass(frozen=True, kw_only=True)
class ConversationOptions:
    """What the options say. Without a folder, it is the session's own."""

    model: str | None
    mode: str | None
    folder: Path | None
    trust: bool
    last: bool
    session: str | None = None


def read_options(arguments: Sequence[str]) -> ConversationOptions | None:
    """How to open the conversation; None if these arguments may mean something else."""
    values: dict[str, str] = {}
    switches: set[str] = set()
    rest = list(arguments)
    while rest:
        name, given, value = rest.pop(0).partition("=")
        if name in _SWITCHES and not given:
            switches.add(name)
        elif name in _VALUES and (given or rest):
            values[name] = value if given else rest.pop(0)
        else:
            return None
    mode = values.get("--mode")
    if (mode is not None and mode not in MODES) or any(value.startswith("-") for value in values.values()):
        return None
    return ConversationOptions(
        model=values.get("--model"),
        mode=mode,
        folder=Path(values.get("--workspace", "")),
        trust="--trust" in switches,
        last="--continue" in switches,
    )
