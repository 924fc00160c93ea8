"""The conversation's own flags, read without the machinery of the other commands: it must be there at once.

What is not plainly one of these flags is left to the whole command line, which knows better and says so.
"""

from collections.abc import Sequence
from pathlib import Path

from duckflow.cli.chat.start import ConversationStart

_VALUES = ("--model", "--mode", "--workspace")
_SWITCHES = ("--continue", "--trust")
_MODES = ("plan", "ask", "edits", "auto")


def quick_start(arguments: Sequence[str]) -> ConversationStart | None:
    """How the conversation is to be opened; None where it is not sure that it is wanted."""
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
    if (mode is not None and mode not in _MODES) or any(value.startswith("-") for value in values.values()):
        return None
    return ConversationStart(
        model=values.get("--model"),
        mode=mode,
        folder=Path(values.get("--workspace", "")),
        trust="--trust" in switches,
        last="--continue" in switches,
    )
