"""Which language a file is in, and what counts as a definition there: grammars.toml, read when asked for."""

import pkgutil
import tomllib
from functools import cache
from typing import Any

ROLES = ("space", "type", "function", "value", "hidden")
"""What a definition can be; grammars.toml says what each means."""

Rules = dict[str, list[dict[str, Any]]]
"""For each role, what is found in a tree."""


@cache
def languages() -> dict[str, str]:
    """The language of each suffix."""
    return {suffix: name for name, grammar in _table().items() for suffix in grammar["suffixes"]}


def rules_of(language: str) -> Rules:
    """The rules of a language, those of its base included."""
    own = _table()[language]
    taken: Rules = rules_of(own["base"]) if "base" in own else {}
    return {role: [*taken.get(role, ()), *map(_rule, own.get(role, ()))] for role in ROLES}


def _rule(given: str | dict[str, Any]) -> dict[str, Any]:
    return {"kind": given} if isinstance(given, str) else given


@cache
def _table() -> dict[str, dict[str, Any]]:
    data = pkgutil.get_data("duckflow.tools.outline", "grammars.toml")
    assert data is not None
    return tomllib.loads(data.decode())
