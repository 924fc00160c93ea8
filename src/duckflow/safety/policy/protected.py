"""Names that are never changed without a question, and those that are never touched (protected.toml)."""

import re
import tomllib
from collections.abc import Mapping
from fnmatch import translate
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from duckflow.safety.files.paths import fold

Protection = Literal["none", "guarded", "asks", "denied"]
"""`guarded`: anyone may read it, a change asks."""

STRENGTH: dict[Protection, int] = {"none": 0, "guarded": 1, "asks": 2, "denied": 3}

DENIED: tuple[str, ...] = ("duckflow.toml",)
"""Duckflow's own configuration in a project; its folders are given to the workspace as denied roots."""

SECRET_PLACES = (
    *("shadow", "gshadow", "sudoers", "sudoers.d", "master.passwd", "ssl/private", "etc/ssh", "keychains"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".local/share/keyrings"),
    *(".password-store", ".bash_history", ".zsh_history", ".python_history"),
)
"""Where else on a machine secrets are kept."""

_READING: dict[str, Protection] = {"asks": "asks", "free": "guarded", "ordinary": "none"}


class _Names(NamedTuple):
    """Patterns over one name, and plain names that follow each other."""

    single: re.Pattern[str]
    chains: tuple[tuple[str, ...], ...]

    def hold_for(self, names: tuple[str, ...]) -> bool:
        """Whether one of them stands anywhere in a path."""
        if any(self.single.match(name) for name in names):
            return True
        return any(names[at : at + len(chain)] == chain for chain in self.chains for at in range(len(names)))


class ProtectedKind(NamedTuple):
    """One kind of protected names, and why it is one."""

    why: str
    protection: Protection
    patterns: tuple[str, ...]


@cache
def protected_kinds() -> Mapping[str, ProtectedKind]:
    """The table as the package brings it."""
    raw = tomllib.loads(files("duckflow.safety.policy").joinpath("protected.toml").read_text("utf-8"))
    return {
        kind: ProtectedKind(row["why"], _READING[row["reading"]], tuple(row["names"].split()))
        for kind, row in raw.items()
    }


def protection_of(path: str) -> Protection:
    """How a path relative to the workspace is protected by its names."""
    names = folded(path)
    if any(_one_name(DENIED).match(name) for name in names):
        return "denied"
    if _names_of("templates").hold_for(names[-1:]):
        names = names[:-1]
    if not _all_names().hold_for(names):
        return "none"  # nearly every path, and there are many
    kinds = (row for kind, row in protected_kinds().items() if _names_of(kind).hold_for(names))
    found: list[Protection] = [row.protection for row in kinds]
    return strongest(*found) if found else "none"


def is_environment_program(path: str) -> bool:
    """Whether it runs when a virtual environment is used: its programs, and what Python loads first."""
    return _names_of("environments").hold_for(folded(path))


def is_secret(path: str) -> bool:
    """Whether a path in the workspace has a name that keys and secrets have."""
    return _names_of("keys_and_secrets").hold_for(folded(path))


def keeps_secrets(path: str) -> bool:
    """Whether a path on this machine leads where keys, passwords and the like are kept."""
    return is_secret(path) or _names(SECRET_PLACES).hold_for(folded(path))


@cache
def _all_names() -> _Names:
    return _names(tuple(pattern for kind in protected_kinds().values() for pattern in kind.patterns))


@cache
def _names_of(kind: str) -> _Names:
    return _names(protected_kinds()[kind].patterns)


@cache
def _names(patterns: tuple[str, ...]) -> _Names:
    chains = tuple(tuple(pattern.split("/")) for pattern in patterns if "/" in pattern)
    return _Names(_one_name(tuple(pattern for pattern in patterns if "/" not in pattern)), chains)


@cache
def _one_name(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern) for pattern in patterns))


def strongest(*protections: Protection) -> Protection:
    """The strongest of several protections."""
    return max(protections, key=lambda protection: STRENGTH[protection])


def within(path: str, folder: str) -> bool:
    """Whether an absolute path is `folder` or below it, compared as carelessly as names are."""
    above = folded(folder)
    return folded(path)[: len(above)] == above


def folded(path: str) -> tuple[str, ...]:
    """The names of a path, ready to be compared."""
    return tuple(fold(name) for name in path.split("/") if name)
