"""Texts by key in the user's language: `text("config.broken", path=…)`.

Values are not scanned for slots, so a file name or a model's answer can't insert anything. No function here
raises: a missing text must not cost users their work. Missing texts are recorded for the tests.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from duckflow.domain.patterns import lazy_regex

Language = Literal["ja", "en"]

_LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
_SECTION = lazy_regex(r"^(?=\[[a-z_.]+\]$)", re.MULTILINE)
_SLOT = lazy_regex(r"\{\{|\}\}|\{(\w+)\}")
_PATH_SLOTS = frozenset(("path", "paths", "file", "files", "folder"))
_LINE_ENDS = lazy_regex(r"[\n\r\v\f\x85\u2028\u2029]")


class _Now:
    """Global state: the current language, and the missing texts found so far."""

    language: Language | None = None
    gaps: ClassVar[set[str]] = set()


def text(key: str, /, **values: object) -> str:
    """Return the text for a key in the current language, with its slots filled."""
    return text_in(current_language(), key, **values)


def text_in(language: Language, key: str, /, **values: object) -> str:
    """Return the text for a key in a given language, for a conversation in that language (F8)."""
    template = _template(key, language) or _template(key, "en")
    if template is None:
        _Now.gaps.add(key)
        listed = ", ".join(f"{name}: {value}" for name, value in values.items())
        return f"{key} ({listed})" if listed else key
    return fill(template, values, key)


def has_text(key: str) -> bool:
    """Return True if a key has a text."""
    return _template(key, "en") is not None


def fill(template: str, values: Mapping[str, object], key: str = "") -> str:
    """Fill the slots of a template. A slot for which there is no value stays as it is."""

    def put(slot: re.Match[str]) -> str:
        name = slot[1]
        if name is None:
            return slot[0][0]
        if name not in values:
            _Now.gaps.add(f"{key}{{{name}}}")
            return slot[0]
        value = str(values[name])
        return _LINE_ENDS.sub(_escape, value) if name in _PATH_SLOTS else value

    return _SLOT.sub(put, template)


def _escape(found: re.Match[str]) -> str:
    """Write out a line end, so that a file name can't imitate a line of Duckflow."""
    return f"\\u{ord(found[0]):04x}"


def slots(template: str) -> frozenset[str]:
    """Return the names of a template's slots."""
    return frozenset(slot[1] for slot in _SLOT.finditer(template) if slot[1])


def set_language(language: Language) -> None:
    """Set the current language."""
    _Now.language = language


def set_language_once(configured: str, environ: Mapping[str, str]) -> None:
    """Choose the language unless the program has set one."""
    if _Now.language is None:
        set_language(detect(configured, environ))


def current_language() -> Language:
    """Return the current language; English if none was set."""
    return _Now.language or "en"


def detect(configured: str, environ: Mapping[str, str]) -> Language:
    """Choose the language: by the setting, else by DUCKFLOW_LANGUAGE, else by the locale (M4)."""
    for wish in (configured, environ.get("DUCKFLOW_LANGUAGE", "")):
        if wish in ("ja", "en"):
            return wish
    locale = next((environ[name] for name in _LOCALE_VARIABLES if environ.get(name)), "")
    return "ja" if locale.lower().startswith("ja") else "en"


def take_gaps() -> frozenset[str]:
    """Return the missing keys and unfilled slots found since the last call."""
    met = frozenset(_Now.gaps)
    _Now.gaps.clear()
    return met


def entries(language: Language) -> Mapping[str, str]:
    """Return a whole catalogue: texts by dotted key. Empty if the file is unreadable."""
    return _parse(_source(language))


def _template(key: str, language: Language) -> str | None:
    return _section(language, key.partition(".")[0]).get(key)


@cache
def _section(language: Language, name: str) -> Mapping[str, str]:
    """Return one section of a catalogue; parsing all of it would slow down the start."""
    parts = _SECTION.split(_source(language))
    return _parse("".join(part for part in parts if part.startswith((f"[{name}]", f"[{name}."))))


@cache
def _source(language: Language) -> str:
    with suppress(OSError, ValueError):
        return Path(__file__).with_name(f"{language}.toml").read_text("utf-8")
    return ""


def _parse(source: str) -> Mapping[str, str]:
    with suppress(ValueError):
        return dict(_flat(tomllib.loads(source)))
    return {}


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tables.items():
        if isinstance(value, str):
            yield prefix + name, value
        else:
            yield from _flat(value, f"{prefix}{name}.")
