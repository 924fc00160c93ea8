"""Table of programs and their effects, read from commands.toml when first needed."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

ANY = "*"


class ProgramOptions(NamedTuple):
    """Options of a program: single letters (or ANY), and long names."""

    letters: str
    names: frozenset[str]


class CommandTable(NamedTuple):
    """Contents of commands.toml. The reason "runs" means ordinary work."""

    looks: Mapping[str, ProgramOptions]
    git_looks: Mapping[str, ProgramOptions]
    work: frozenset[str]
    asked: Mapping[str, str]
    interpreters: Mapping[str, ProgramOptions]
    modules: Mapping[str, str]
    subcommands: Mapping[str, Mapping[str, str]]
    worse: Mapping[str, Mapping[str, str]]
    variables: frozenset[str]
    local_tools: tuple[str, ...]
    whole: frozenset[str]


@cache
def command_table() -> CommandTable:
    """Read the table from the package."""
    raw = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
    words: Mapping[str, str] = raw["words"]
    return CommandTable(
        looks=_options(raw["looks"]),
        git_looks=_options(raw["git_looks"]),
        work=frozenset(word for listed in raw["work"].values() for word in listed.split()),
        asked=_by_word(raw["asked"]),
        interpreters=_options(raw["interpreters"]),
        modules=_by_word(raw["modules"]),
        subcommands={program: _by_word(listed) for program, listed in raw["subcommands"].items()},
        worse={program: _by_word(listed) for program, listed in raw["worse"].items()},
        variables=frozenset(words["variables"].split()),
        local_tools=tuple(words["local_tools"].split()),
        whole=frozenset(words["whole"].split()),
    )


def _options(listed: Mapping[str, list[str]]) -> Mapping[str, ProgramOptions]:
    return {
        program: ProgramOptions(letters, frozenset(names.split()))
        for programs, (letters, names) in listed.items()
        for program in programs.split()
    }


def _by_word(listed: Mapping[str, str]) -> Mapping[str, str]:
    """Turn a map of reasons to words into a map of each word to its reason."""
    return {word: reason for reason, words in listed.items() for word in words.split()}
