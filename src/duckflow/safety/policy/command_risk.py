"""Estimate what a command does by reading it. This only avoids questions; the sandbox gives the safety."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import ApprovalScope
from duckflow.safety.policy.homoglyphs import is_lookalike
from duckflow.safety.policy.shell_syntax import ProgramCall, read_command

Place = Literal["inside", "outside", "protected", "own"]
Places = Callable[[str], Place]
"""Function that classifies a path by its name: in the workspace, protected, outside and so on."""

LOOKING, WORKING = "looks", "runs"
"""Results for commands that need no question: the command only reads, or does ordinary work."""

_ASSIGNMENT = lazy_regex(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_ADDRESS = lazy_regex(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:", re.IGNORECASE)
_NOWHERE = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty")
_SED_LOOKS = lazy_regex(r"(\d+|\$)?(,(\d+|\$))?p")
_SED_ACTS = lazy_regex(r"(^|[;}/\d])\s*[ewr](\s|$)|/[a-z]*[ew]")
_AWK_ACTS = lazy_regex(r"system|getline|[|>]|@include|@load")
_ANY = "*"
_NEGATION = lazy_regex(r"(?:^|(?<=[\s;&|]))!(?=\s)")
_FILE_WORD = lazy_regex(r"[^\s\"'`$;|&<>()=,]+")
_MODULE_NAME = lazy_regex(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_READ_BY = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun", "node"), ("package.json",)),
    "cargo": ("Cargo.toml", "build.rs"),
    **dict.fromkeys(("pytest", "tox", "nox"), ("conftest.py", "tox.ini", "noxfile.py", "pyproject.toml")),
    **dict.fromkeys(("pip", "pip3", "uv"), ("setup.py", "pyproject.toml", "setup.cfg")),
    **dict.fromkeys(("docker", "podman"), ("Dockerfile", "compose.yaml", "docker-compose.yml")),
}
"""Files that programs read although the command does not name them."""

MOST_NAMED = 200
"""Largest number of files, named by one command, to look up."""


class _Options(NamedTuple):
    """Options of a program: single letters (or any letter), and long names."""

    letters: str
    names: frozenset[str]


class _CommandTable:
    """Contents of commands.toml. A program with the reason "runs" does ordinary work."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.looks = _options(raw["looks"])
        self.git_looks = _options(raw["git_looks"])
        self.work = frozenset(_by_word(raw["work"]))
        self.asked = _by_word(raw["asked"])
        self.interpreters = _options(raw["interpreters"])
        self.modules = _by_word(raw["modules"])
        self.subcommands = {program: _by_word(listed) for program, listed in raw["subcommands"].items()}
        self.worse = {program: _by_word(listed) for program, listed in raw["worse"].items()}
        self.words = {name: tuple(listed.split()) for name, listed in raw["words"].items()}


@cache
def _table() -> _CommandTable:
    return _CommandTable(tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8")))


def _options(listed: Mapping[str, list[str]]) -> Mapping[str, _Options]:
    return {
        program: _Options(letters, frozenset(names.split()))
        for programs, (letters, names) in listed.items()
        for program in programs.split()
    }


def _by_word(listed: Mapping[str, str]) -> Mapping[str, str]:
    return {word: reason for reason, words in listed.items() for word in words.split()}


def read_risks(line: str, place_of: Places) -> tuple[str, ...]:
    """Return the reasons to ask about a command; "looks" or "runs" if there are none."""
    commands = read_command(line)
    if not commands:
        return ("unclear",)
    reasons = dict.fromkeys(reason for one in commands for reason in _reasons(one, place_of))
    if len(reasons) > 1:
        reasons.pop(LOOKING, None)
    return tuple(reasons)


def goes_online(line: str) -> bool:
    """Return whether a command names an address, or a program that uses the network or installs packages."""
    return not {"network", "installs"}.isdisjoint(read_risks(line, lambda _: "inside"))


def only_reads(line: str) -> bool:
    """Return whether a command certainly does no more than look at files, such as `! grep -q word file`."""
    calls = read_command(_NEGATION.sub(" ", line))
    words = [call.words[:1] for call in calls or ()]
    tests = [word in (("test",), ("[",)) for word in words]
    if not calls or all(tests):
        return bool(calls)
    rest = (call for call, tests_only in zip(calls, tests, strict=True) if not tests_only)
    return all(set(_reasons(call, lambda _: "inside")) == {LOOKING} for call in rest)


def similar_commands(line: str) -> ApprovalScope | None:
    """Return what "always" would allow: commands with this program and first argument. None if unclear."""
    commands = read_command(line)
    words = commands[0].words if commands and len(commands) == 1 and not commands[0].redirects else ()
    if not words or _ASSIGNMENT.match(words[0]):
        return None
    program, option = _program(words[0]), "".join(words[1:2])
    if program in _table().interpreters and option.startswith("-") and option != "-m":
        return None  # anything may follow such an option, for example inline code
    count = 3 if option in ("-m", "run", "run-script") else 2
    count = 1 if program in _table().words["whole"] else count
    return ApprovalScope(what="command", scope=" ".join(words[:count]))


def _reasons(command: ProgramCall, place_of: Places) -> Iterator[str]:
    for word in (*command.words, *command.redirects):
        if _ADDRESS.match(word):
            yield "network"
        for path in _possible_paths(word):
            place = place_of(path) if path not in _NOWHERE else "inside"
            if place != "inside":
                yield place
    words = list(command.words)
    while words and (assigned := _ASSIGNMENT.match(words[0])):
        words.pop(0)
        if assigned[1] not in _table().words["variables"]:
            yield "environment"
    if any(target not in _NOWHERE for target in command.redirects):
        yield WORKING
    yield _judge(words) if words else WORKING


def _possible_paths(word: str) -> Iterator[str]:
    """Yield possible paths in a word: all of it, the part after =, and the part after an option letter."""
    name, _, value = word.partition("=")
    if not word.startswith("-"):
        yield word
    elif path := re.search("[/~]", name):
        yield name[path.start() :]
    if value:
        yield value


def _judge(words: list[str]) -> str:
    program, rest = _program(words[0]), words[1:]
    if is_lookalike(program):
        return "lookalike"
    if program == "timeout" and len(rest) > 1 and re.fullmatch(r"\d+[smh]?", rest[0]):
        return _judge(rest[1:])
    table = _table()
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
        return LOOKING if _only_looks(table.looks[program], rest) else WORKING
    if program == "sed":
        options = [word for word in rest if word.startswith("-")]
        script = next((word for word in rest if not word.startswith("-")), "")
        if options == rest[:1] == ["-n"] and _SED_LOOKS.fullmatch(script):
            return LOOKING
        return "inline_code" if _SED_ACTS.search(script) else WORKING
    if program in ("awk", "gawk") and any(_AWK_ACTS.search(word) for word in rest):
        return "inline_code"
    return WORKING if program in table.work else "unknown_program"


def _program(word: str) -> str:
    """Return the name of a program. Keep its path, unless it lies in a folder for project tools."""
    path = word.removeprefix("./")
    folders = _table().words["local_tools"]
    return next((path.removeprefix(one) for one in folders if path.startswith(one)), word)


def _interpreter(program: str, rest: list[str]) -> str:
    table = _table()
    if program.startswith(("python", "pypy")) and rest[:1] == ["-m"] and len(rest) > 1:
        if rest[1] in table.subcommands:
            return _subcommand(rest[1], rest[2:])
        return table.modules.get(rest[1], "unknown_program")
    if rest in (["--version"], ["-V"], ["-v"]):
        return LOOKING
    inline = table.interpreters[program]
    for word in rest:
        if not word.startswith("-"):
            return WORKING  # the script; the words after it are its own arguments
        short = not word.startswith("--") and set(inline.letters) & set(word[1:])
        if word == "-" or short or word.partition("=")[0] in inline.names:
            break
    return "inline_code"  # from an option, or from standard input


def _subcommand(program: str, rest: list[str]) -> str:
    first = next((word for word in rest if not word.startswith("-")), "")
    looks = _table().git_looks.get(first) if program == "git" else None
    if looks is not None:
        return LOOKING if rest[0] == first and _only_looks(looks, rest[1:]) else WORKING
    if program == "git" and first == "checkout" and "-b" in rest:
        return WORKING
    if not first:
        return LOOKING if rest in (["--version"], ["-V"]) else "unknown_program"
    return _table().subcommands[program].get(first, "unknown_program")


def _only_looks(options: _Options, rest: list[str]) -> bool:
    for word in rest:
        if word.startswith(("*", "?", "[")):
            return False  # a matching file whose name begins with a dash would act as an option
        if not word.startswith("-") or word in ("-", "--") or options.letters == _ANY:
            continue
        if word.partition("=")[0] in options.names:
            continue
        letters = re.sub(r"[\d,:.]+$", "", word[1:]) if options.letters else word[1:]
        if word.startswith("--") or not set(letters) <= set(options.letters):
            return False
    return True


def named_files(command: str) -> tuple[str, ...]:
    """Return paths of files that a command may name or is known to read (G5)."""
    return tuple(dict.fromkeys(_possible_files(command)))[:MOST_NAMED]


def _possible_files(command: str) -> Iterator[str]:
    words = _FILE_WORD.findall(command)
    for before, word in zip(["", *words], words, strict=False):
        yield word.removeprefix("./")
        yield from _READ_BY.get(word.rpartition("/")[2], ())
        if before == "-m" and _MODULE_NAME.fullmatch(word):
            path = word.replace(".", "/")
            yield from (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")
