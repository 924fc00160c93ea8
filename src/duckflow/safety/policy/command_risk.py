"""Estimate what a command does by reading it. This only saves questions: the sandbox is the boundary."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.policy.command_table import ANY, ProgramOptions, command_table
from duckflow.safety.policy.homoglyphs import imitating_letters
from duckflow.safety.policy.shell_syntax import ProgramCall, read_command

Place = Literal["inside", "outside", "protected", "own"]
Places = Callable[[str], Place]
"""Function that classifies the location of a path by its name."""

LOOKING, WORKING = "looks", "runs"
"""Results for commands without a reason to ask: the command only reads, or does ordinary work."""

_ASSIGNMENT = lazy_regex(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_ADDRESS = lazy_regex(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:", re.IGNORECASE)
_NOWHERE = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty")
_SED_LOOKS = lazy_regex(r"(\d+|\$)?(,(\d+|\$))?p")
_AWK_ACTS = lazy_regex(r"system|getline|[|>]|@include|@load")


class CommandReading(Frozen):
    """Reasons for the risk of a command, and the first words that it shares with similar commands."""

    reasons: tuple[str, ...]
    first_words: str = ""
    """Empty if no other command counts as similar."""


def read_risks(line: str, place_of: Places) -> CommandReading:
    """Return the reasons to ask about a command; "looks" or "runs" if there are none."""
    read = read_command(line)
    if not read.clear or not read.commands:
        return CommandReading(reasons=("unclear",))
    reasons = dict.fromkeys(reason for one in read.commands for reason in _reasons(one, place_of))
    if len(reasons) > 1:
        reasons.pop(LOOKING, None)
    alone = len(read.commands) == 1 and not read.commands[0].redirects
    return CommandReading(
        reasons=tuple(reasons), first_words=_first_words(read.commands[0].words) if alone else ""
    )


def _reasons(command: ProgramCall, place_of: Places) -> Iterator[str]:
    yield from _paths((*command.words, *command.redirects), place_of)
    words = list(command.words)
    while words and (assigned := _ASSIGNMENT.match(words[0])):
        words.pop(0)
        if assigned[1] not in command_table().variables:
            yield "environment"
    if any(target not in _NOWHERE for target in command.redirects):
        yield WORKING
    yield _judge(words) if words else WORKING


def _paths(words: Iterable[str], place_of: Places) -> Iterator[str]:
    for word in words:
        if _ADDRESS.match(word):
            yield "network"
        for path in _candidates(word):
            place = place_of(path) if path not in _NOWHERE else "inside"
            if place != "inside":
                yield place


def _candidates(word: str) -> Iterator[str]:
    """Yield possible paths in a word: all of it, the part after =, and the part after an option's letter."""
    name, equals, value = word.partition("=")
    if not word.startswith("-"):
        yield word
    elif "/" in name or "~" in name:
        yield name[min(at for at in (name.find("/"), name.find("~")) if at >= 0) :]
    if equals and value:
        yield value


def _judge(words: list[str]) -> str:
    program, rest = _program(words[0]), words[1:]
    if imitating_letters(program):
        return "lookalike"
    if program == "timeout" and len(rest) > 1 and re.fullmatch(r"\d+[smh]?", rest[0]):
        return _judge(rest[1:])
    table = command_table()
    worse = table.worse.get(program, {})
    for word in rest:
        if reason := worse.get(word.partition("=")[0]):
            return reason
    if program in table.asked:
        return table.asked[program]
    if program in table.interpreters:
        return _interpreter(program, rest)
    if program in table.subcommands:
        return _subcommand(program, rest)
    if program in table.looks:
        return LOOKING if _only(table.looks[program], rest) else WORKING
    if program in ("sed", "awk", "gawk"):
        return _script(program, rest)
    return WORKING if program in table.work else "unknown_program"


def _program(word: str) -> str:
    """Return the name of a program. A path is reduced to a name only in folders for project tools."""
    for folder in command_table().local_tools:
        if word.removeprefix("./").startswith(folder):
            return word.removeprefix("./").removeprefix(folder)
    return word


def _interpreter(program: str, rest: list[str]) -> str:
    inline = command_table().interpreters[program]
    if program.startswith(("python", "pypy")) and rest[:1] == ["-m"] and len(rest) > 1:
        return _module(rest[1:])
    if rest in (["--version"], ["-V"], ["-v"]):
        return LOOKING
    for word in rest:
        if not word.startswith("-"):
            return WORKING  # the script; the words after it are its own arguments
        if word == "-" or (not word.startswith("--") and set(inline.letters) & set(word[1:])):
            return "inline_code"
        if word.partition("=")[0] in inline.names or inline.letters == ANY:
            return "inline_code"
    return "inline_code"  # reads its code from standard input


def _module(words: list[str]) -> str:
    module, rest = words[0], words[1:]
    if module in command_table().subcommands:
        return _subcommand(module, rest)
    return command_table().modules.get(module, "unknown_program")


def _subcommand(program: str, rest: list[str]) -> str:
    first = next((word for word in rest if not word.startswith("-")), "")
    looks = command_table().git_looks.get(first) if program == "git" else None
    if looks is not None:
        after = rest[rest.index(first) + 1 :]
        return LOOKING if rest[0] == first and _only(looks, after) else WORKING
    if program == "git" and first == "checkout" and "-b" in rest:
        return WORKING
    if not first:
        return LOOKING if rest in (["--version"], ["-V"]) else "unknown_program"
    return command_table().subcommands[program].get(first, "unknown_program")


def _script(program: str, rest: list[str]) -> str:
    if program == "sed":
        plain = [word for word in rest if not word.startswith("-")]
        looks = (
            rest[:1] == ["-n"] and plain and _SED_LOOKS.fullmatch(plain[0]) and len(plain) == len(rest) - 1
        )
        acts = any(re.search(r"(^|[;}/\d])\s*[ewr](\s|$)|/[a-z]*[ew]", word) for word in plain[:1])
        return LOOKING if looks else "inline_code" if acts else WORKING
    return "inline_code" if any(_AWK_ACTS.search(word) for word in rest) else WORKING


def _only(options: ProgramOptions, rest: list[str]) -> bool:
    """Return whether every option is one with which the program only reads."""
    for word in rest:
        if word.startswith(("*", "?", "[")):
            return False  # a matching file whose name begins with a dash would act as an option
        if not word.startswith("-") or word in ("-", "--") or options.letters == ANY:
            continue
        if word.partition("=")[0] in options.names:
            continue
        letters = re.sub(r"[\d,:.]+$", "", word[1:]) if options.letters else word[1:]
        if word.startswith("--") or not set(letters) <= set(options.letters):
            return False
    return True


def _first_words(words: tuple[str, ...]) -> str:
    """Return the program and its first argument, which are enough to distinguish kinds of work."""
    if not words or _ASSIGNMENT.match(words[0]):
        return ""
    program = _program(words[0])
    if program in command_table().whole:
        return words[0]
    option = words[1] if len(words) > 1 and words[1].startswith("-") else ""
    if program in command_table().interpreters and option not in ("", "-m"):
        return ""  # anything may follow an option, such as inline code
    count = 3 if words[1:2] in (("-m",), ("run",), ("run-script",)) else 2
    return " ".join(words[:count])
