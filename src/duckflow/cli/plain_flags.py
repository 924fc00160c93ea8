"""Reads common flags without typer, so that the conversation and `run` start at once.

Any other arguments are left to typer, which reports errors in them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from duckflow.domain.modes import MODES, Mode


class ConversationOptions(NamedTuple):
    """Options of the conversation. If `workspace` is None, the folder of the session is used."""

    model: str | None = None
    mode: Mode | None = None
    workspace: Path | None = None
    trust: bool = False
    last: bool = False
    session: str | None = None
    request: str | None = None
    """First message of the conversation."""


class RunFlags(NamedTuple):
    """Flags of `duckflow run`."""

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
    steer: bool = False
    summary: Path | None = None


def _mode(word: str) -> Mode:
    return MODES[MODES.index(word)]


def _loops(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and int(word)):
        raise ValueError(word)
    return int(word)


def _cost(word: str) -> float:
    if not (word.isascii() and word.replace(".", "", 1).isdecimal()):
        raise ValueError(word)
    return float(word)


Readers = Mapping[str, Callable[[str], object]]
_CONVERSATION: Readers = {"--model": str, "--mode": _mode, "--workspace": Path}
_RUN: Readers = {
    **_CONVERSATION,
    "--max-loops": _loops,
    "--max-cost": _cost,
    "--verify": str,
    "--resume": str,
    "--answer": str,
    "--summary": Path,
}
"""Flags that take a value, and the function that parses it or, in doubt, raises ValueError."""


def read_options(arguments: Sequence[str]) -> ConversationOptions | None:
    """Read the options of the conversation; None if the arguments may mean something else."""
    spelled_out = ["--continue" if word == "-c" else word for word in arguments]
    read = _read(spelled_out, _CONVERSATION, ("--continue", "--trust"))
    if read is None or len(read[1]) > 1 or not all(map(_is_request, read[1])):
        return None
    flags, words = read
    folder, last = flags.pop("workspace", Path()), flags.pop("continue", False)
    return ConversationOptions(workspace=folder, last=last, request=words[0] if words else None, **flags)


def _is_request(word: str) -> bool:
    """Return whether a word is a request, and not a mistyped command: it has spaces or is not in ASCII."""
    return not word.isascii() or any(map(str.isspace, word.strip()))


def with_usual_words(arguments: Sequence[str]) -> list[str]:
    """Return the command line in our own words, if other programs have other words for it."""
    return with_command_first(with_run_named(with_help_as_flag(arguments)))


def with_help_as_flag(arguments: Sequence[str]) -> list[str]:
    """Replace `help`, `help COMMAND` and `version` with the flags that other programs have, too."""
    match [*arguments]:
        case ["help", *commands] if all(map(str.isalpha, commands)):
            return [*commands, "--help"]
        case ["version"]:
            return ["--version"]
        case others:
            return others


def with_run_named(arguments: Sequence[str]) -> list[str]:
    """Replace `-p` or `--print`, by which other agents are asked for one task, with our `run`."""
    before = [*arguments[: arguments.index("--")]] if "--" in arguments else [*arguments]
    flag = next((word for word in before if word in ("-p", "--print")), None)
    if flag is None or not before[0].startswith("-"):
        return [*arguments]
    place = before.index(flag)
    return ["run", *arguments[:place], *arguments[place + 1 :]]


def with_command_first(arguments: Sequence[str]) -> list[str]:
    """Move flags that precede `run` or `resume` behind it, where they take effect."""
    place = 0
    while place < len(arguments) and arguments[place].startswith("-"):
        name, given, _ = arguments[place].partition("=")
        if name not in _CONVERSATION and name != "--trust":
            return [*arguments]
        place += 2 if name in _CONVERSATION and not given else 1
    if arguments[place : place + 1] not in (["run"], ["resume"]):
        return [*arguments]
    return [arguments[place], *arguments[:place], *arguments[place + 1 :]]


def read_run_flags(arguments: Sequence[str]) -> RunFlags | None:
    """Read the flags of `duckflow run`; None if the arguments may mean something else."""
    read = _read(arguments[1:], _RUN, ("--json", "--trust", "--steer")) if arguments[:1] == ["run"] else None
    if read is None or len(read[1]) > 1:
        return None
    flags, words = read
    return RunFlags(task=words[0] if words else None, **flags)


def _read(
    arguments: Sequence[str], values: Readers, switches: Collection[str]
) -> tuple[dict[str, Any], list[str]] | None:
    """Return the flags by field name, and the other words; None if the arguments may mean something else."""
    flags: dict[str, Any] = {}
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, given, value = word.partition("=")
        field = name.removeprefix("--").replace("-", "_")
        if not word.startswith("-") or word == "-":
            words.append(word)
        elif word in switches:
            flags[field] = True
        elif name in values and (given or rest):
            value = value if given else rest.pop(0)
            if value.startswith("-"):
                return None
            try:
                flags[field] = values[name](value)
            except ValueError:
                return None
        else:
            return None
    return flags, words


def settings_flags(
    model: str | None, mode: str | None, max_loops: int | None = None, max_cost: float | None = None
) -> dict[str, object]:
    """Return the flags by the names of the settings; None for a flag that was not given."""
    return {
        "llm.model": model,
        "mode": mode,
        "duck_pacemaker.dynamic_limits.hard_max_loops": max_loops,
        "duck_pacemaker.budget.max_cost_usd": max_cost,
    }
