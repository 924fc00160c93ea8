"""Protected names (protected.toml): some need a question before a change, others are closed to tools."""

import re
import tomllib
from collections.abc import Mapping
from fnmatch import translate
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.safety.paths import fold

Protection = Literal["none", "guarded", "asks", "denied"]
"""Strength of protection. With `guarded`, reading needs no question, only changes do."""

STRENGTH: dict[Protection, int] = {"none": 0, "guarded": 1, "asks": 2, "denied": 3}

DENIED: tuple[str, ...] = ("duckflow.toml",)
"""Duckflow's own configuration file in a project. Its folders are closed by their paths, not by names."""

SECRET_PLACES = (
    *("shadow", "gshadow", "sudoers", "sudoers.d", "master.passwd", "ssl/private", "etc/ssh", "keychains"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".local/share/keyrings"),
    *(".password-store", ".bash_history", ".zsh_history", ".python_history"),
)
"""Places outside the workspace that hold secrets, in addition to files with secret names."""

_READING: dict[str, Protection] = {"asks": "asks", "free": "guarded", "ordinary": "none"}


class _Names(NamedTuple):
    """Name patterns by form. `chains` are sequences of plain names such as `a/b`, by their first name."""

    plain: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    others: re.Pattern[str] | None
    chains: Mapping[str, list[tuple[str, ...]]]

    def hold_for(self, names: tuple[str, ...]) -> bool:
        for at, name in enumerate(names):
            if self.fit(name):
                return True
            for chain in self.chains.get(name, ()):
                if names[at : at + len(chain)] == chain:
                    return True
        return False

    def fit(self, name: str) -> bool:
        if name in self.plain or name.startswith(self.starts) or name.endswith(self.ends):
            return True
        return self.others is not None and self.others.match(name) is not None


class ProtectedKind(NamedTuple):
    """One kind of protected names, the reason for its protection, and its patterns."""

    why: str
    protection: Protection
    patterns: tuple[str, ...]


@cache
def protected_kinds() -> Mapping[str, ProtectedKind]:
    """Read the table from protected.toml."""
    raw = tomllib.loads(Path(__file__).with_name("protected.toml").read_text("utf-8"))
    return {
        kind: ProtectedKind(row["why"], _READING[row["reading"]], tuple(row["names"].split()))
        for kind, row in raw.items()
    }


@lru_cache(maxsize=16_384)
def protection_of(path: str) -> Protection:
    """Return the protection of a path relative to the workspace, by its names."""
    names = folded(path)
    if _names(DENIED).hold_for(names):
        return "denied"
    if _names_of("templates").hold_for(names[-1:]):
        names = names[:-1]
    if not _all_names().hold_for(names):
        return "none"  # the result for nearly all paths; this check is fast
    kinds = (row for kind, row in protected_kinds().items() if _names_of(kind).hold_for(names))
    found: list[Protection] = [row.protection for row in kinds]
    return strongest("none", *found)


def is_environment_program(path: str) -> bool:
    """Return whether a virtual environment runs this file: a program in it or a start-up file of Python."""
    return _names_of("environments").hold_for(folded(path))


def is_secret(path: str) -> bool:
    """Return whether a path in the workspace has a name typical for keys and secrets."""
    return _names_of("keys_and_secrets").hold_for(folded(path))


def is_secret_in(above: str, name: str) -> bool:
    """Return whether `above/name` is a secret. Fast, because it is called for every file of large folders."""
    return _names_of("keys_and_secrets").fit(fold(name)) or (_matters(above) and is_secret(f"{above}/{name}"))


@lru_cache(maxsize=1024)
def _matters(folder: str) -> bool:
    """Return whether the folder's name can make the files in it secret."""
    return is_secret(folder) or fold(folder) in _names_of("keys_and_secrets").chains


def keeps_secrets(path: str) -> bool:
    """Return whether a path on this machine is in a place for keys, passwords and the like."""
    return is_secret(path) or _names(SECRET_PLACES).hold_for(folded(path))


@cache
def _all_names() -> _Names:
    return _names(tuple(pattern for kind in protected_kinds().values() for pattern in kind.patterns))


@cache
def _names_of(kind: str) -> _Names:
    return _names(protected_kinds()[kind].patterns)


@cache
def _names(patterns: tuple[str, ...]) -> _Names:
    """Group the patterns by form, because one regular expression for all of them compiles slowly."""
    single = [pattern for pattern in patterns if "/" not in pattern]
    globs = [pattern for pattern in single if not _is_plain(pattern)]
    starts = [pattern for pattern in globs if pattern.endswith("*") and _is_plain(pattern[:-1])]
    ends = [pattern for pattern in globs if pattern.startswith("*") and _is_plain(pattern[1:])]
    others = "|".join(translate(pattern) for pattern in globs if pattern not in (*starts, *ends))
    chains: dict[str, list[tuple[str, ...]]] = {}
    for chain in (tuple(pattern.split("/")) for pattern in patterns if "/" in pattern):
        chains.setdefault(chain[0], []).append(chain)
    return _Names(
        plain=frozenset(pattern for pattern in single if _is_plain(pattern)),
        starts=tuple(pattern[:-1] for pattern in starts),
        ends=tuple(pattern[1:] for pattern in ends),
        others=re.compile(others) if others else None,
        chains=chains,
    )


def _is_plain(pattern: str) -> bool:
    return not set(pattern) & set("*?[")


def strongest(*protections: Protection) -> Protection:
    """Return the strongest of several protections."""
    return max(protections, key=lambda protection: STRENGTH[protection])


def within(path: str, folder: str) -> bool:
    """Return whether an absolute path is `folder` or below it, compared by folded names."""
    above = folded(folder)
    return folded(path)[: len(above)] == above


def folded(path: str) -> tuple[str, ...]:
    """Return the names of a path, folded for comparison."""
    return tuple(fold(name) for name in path.split("/") if name)
