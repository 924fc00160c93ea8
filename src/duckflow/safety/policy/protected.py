"""Names that are never changed without a question, and those that are never touched (protected.toml)."""

import re
import tomllib
from collections.abc import Mapping
from fnmatch import translate
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.safety.paths import fold

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
    """Patterns over one name by their form, and plain names that follow each other, by the first of them."""

    plain: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    others: re.Pattern[str] | None
    chains: Mapping[str, list[tuple[str, ...]]]

    def hold_for(self, names: tuple[str, ...]) -> bool:
        """Whether one of them stands anywhere in a path."""
        for at, name in enumerate(names):
            if self.fit(name):
                return True
            for chain in self.chains.get(name, ()):
                if names[at : at + len(chain)] == chain:
                    return True
        return False

    def fit(self, name: str) -> bool:
        """Whether one of those over one name is this one."""
        if name in self.plain or name.startswith(self.starts) or name.endswith(self.ends):
            return True
        return self.others is not None and self.others.match(name) is not None


class ProtectedKind(NamedTuple):
    """One kind of protected names, and why it is one."""

    why: str
    protection: Protection
    patterns: tuple[str, ...]


@cache
def protected_kinds() -> Mapping[str, ProtectedKind]:
    """The table as the package brings it."""
    raw = tomllib.loads(Path(__file__).with_name("protected.toml").read_text("utf-8"))
    return {
        kind: ProtectedKind(row["why"], _READING[row["reading"]], tuple(row["names"].split()))
        for kind, row in raw.items()
    }


def protection_of(path: str) -> Protection:
    """How a path relative to the workspace is protected by its names."""
    names = folded(path)
    if _names(DENIED).hold_for(names):
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


def is_secret_in(above: str, name: str) -> bool:
    """The same for a name in a folder of that name. Quick: asked for every file of a large folder."""
    return _names_of("keys_and_secrets").fit(fold(name)) or (_matters(above) and is_secret(f"{above}/{name}"))


@lru_cache(maxsize=1024)
def _matters(folder: str) -> bool:
    """Whether it can be the folder's name that makes a file in it a secret."""
    return is_secret(folder) or fold(folder) in _names_of("keys_and_secrets").chains


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
    """The patterns by their form: as one regular expression they take long to compile."""
    forms: dict[str, list[str]] = {"plain": [], "starts": [], "ends": [], "others": [], "chains": []}
    for pattern in patterns:
        forms[_form(pattern)].append(pattern)
    others = "|".join(map(translate, forms["others"]))
    chains: dict[str, list[tuple[str, ...]]] = {}
    for pattern in forms["chains"]:
        chain = tuple(pattern.split("/"))
        chains.setdefault(chain[0], []).append(chain)
    return _Names(
        plain=frozenset(forms["plain"]),
        starts=tuple(pattern[:-1] for pattern in forms["starts"]),
        ends=tuple(pattern[1:] for pattern in forms["ends"]),
        others=re.compile(others) if others else None,
        chains=chains,
    )


def _form(pattern: str) -> str:
    if "/" in pattern:
        return "chains"
    if _is_plain(pattern):
        return "plain"
    if pattern.endswith("*") and _is_plain(pattern[:-1]):
        return "starts"
    return "ends" if pattern.startswith("*") and _is_plain(pattern[1:]) else "others"


def _is_plain(pattern: str) -> bool:
    return not set(pattern) & set("*?[")


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
