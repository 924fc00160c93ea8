"""Flags read without the machinery of the whole command line, for what must be there at once.

Anything that is not plainly one of these flags is left to the whole command line, which explains it.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.modes import MODES, Mode

_CONVERSATION = ("--model", "--mode", "--workspace"), ("--continue", "--trust")
_RUN = (
    ("--model", "--mode", "--workspace", "--max-loops", "--max-cost", "--verify", "--resume", "--answer"),
    ("--json", "--trust"),
)
"""Flags with a value, and flags without."""


class ConversationOptions(NamedTuple):
    """How to open the conversation. Without a folder, it is the session's own."""

    model: str | None
    mode: str | None
    folder: Path | None
    trust: bool
    last: bool
    session: str | None = None


class RunFlags(NamedTuple):
    """What `duckflow run` was told."""

    task: str | None = None
    model: str | None = None
    mode: Mode | None = None
    workspace: Path | None = None
    max_loops: int | None = None
    max_cost: float | None = None
    verify: str | None = None
    resume: str | None = None
    answer: str | None = None
    json: bool = False
    trust: bool = False


def read_options(arguments: Sequence[str]) -> ConversationOptions | None:
    """How to open the conversation; None if these arguments may mean something else."""
    read = _read(arguments, *_CONVERSATION)
    if read is None or read[1]:
        return None
    flags, _ = read
    return ConversationOptions(
        model=flags.get("--model"),
        mode=flags.get("--mode"),
        folder=Path(flags.get("--workspace", "")),
        trust="--trust" in flags,
        last="--continue" in flags,
    )


def read_run_flags(arguments: Sequence[str]) -> RunFlags | None:
    """What `duckflow run` is to do; None if these arguments may mean something else."""
    read = _read(arguments[1:], *_RUN) if arguments[:1] == ["run"] else None
    if read is None or len(read[1]) > 1:
        return None
    flags, words = read
    loops, cost = flags.get("--max-loops"), flags.get("--max-cost")
    if not (_is_number(loops) and _is_number(cost and cost.replace(".", "", 1))) or loops == "0":
        return None
    return RunFlags(
        task=words[0] if words else None,
        model=flags.get("--model"),
        mode=next((mode for mode in MODES if mode == flags.get("--mode")), None),
        workspace=Path(flags["--workspace"]) if "--workspace" in flags else None,
        max_loops=int(loops) if loops else None,
        max_cost=float(cost) if cost else None,
        verify=flags.get("--verify"),
        resume=flags.get("--resume"),
        answer=flags.get("--answer"),
        json="--json" in flags,
        trust="--trust" in flags,
    )


def _read(
    arguments: Sequence[str], values: Collection[str], switches: Collection[str]
) -> tuple[dict[str, str], list[str]] | None:
    """The flags, those without a value too, and the words between them; None in doubt."""
    flags: dict[str, str] = {}
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, given, value = word.partition("=")
        if not word.startswith("-"):
            words.append(word)
        elif word in switches:
            flags[word] = ""
        elif name in values and (given or rest):
            flags[name] = value if given else rest.pop(0)
        else:
            return None
    if flags.get("--mode", MODES[0]) not in MODES or any(one.startswith("-") for one in flags.values()):
        return None
    return flags, words


def _is_number(word: str | None) -> bool:
    return word is None or (word.isascii() and word.isdecimal())


def settings_flags(
    model: str | None, mode: str | None, max_loops: int | None = None, max_cost: float | None = None
) -> dict[str, object]:
    """Flags by the setting they set; None if a flag was not given."""
    return {
        "llm.model": model,
        "mode": mode,
        "duck_pacemaker.dynamic_limits.max_loops": max_loops,
        "duck_pacemaker.budget.max_cost_usd": max_cost,
    }
