"""Prompt templates with named slots, read once from `texts/` or from the user's replacements."""

import re
from functools import cache
from pathlib import Path

from duckflow.config.places import config_dir
from duckflow.config.toml_file import read_text
from duckflow.domain.errors import UsageError
from duckflow.domain.patterns import lazy_regex

OWN_FOLDER = "prompts"
_TEXTS = Path(__file__).with_name("texts")
_FOLDERS = (_TEXTS, _TEXTS / "questions")
_SLOT = lazy_regex(r"\{(\w+)\}")
_OUTPUT = lazy_regex(r"^Output: \w+", re.MULTILINE)


def template(name: str) -> str:
    """Return a template with its slots unfilled."""
    return _read(name, config_dir() / OWN_FOLDER)


@cache
def _read(name: str, own: Path) -> str:
    places = (folder.joinpath(f"{name}.txt") for folder in _FOLDERS)
    ours = next(place for place in places if place.is_file()).read_text("utf-8")
    theirs = read_text(own / f"{name}.txt")
    if theirs is None:
        return ours
    if missing := _required(ours) - _required(theirs):
        listed = ", ".join(sorted(missing))
        raise UsageError("prompt.own_lacks", path=own / f"{name}.txt", missing=listed)
    return theirs


def _required(text: str) -> set[str]:
    """Return the slots and the output line of a template, which a replacement must have too."""
    return {*_SLOT.findall(text), *_OUTPUT.findall(text)}


def check_own_templates() -> None:
    """Raise UsageError if one of the user's templates can't replace ours."""
    own = config_dir() / OWN_FOLDER
    if not own.is_dir():
        return
    known = {Path(one.name).stem for folder in _FOLDERS for one in folder.iterdir() if one.is_file()}
    for file in sorted(own.glob("*")):
        if file.suffix != ".txt" or file.stem not in known:
            raise UsageError("prompt.own_unknown", path=file, known=", ".join(sorted(known)))
        _read(file.stem, own)


def fill(name: str, **slots: str) -> str:
    """Fill the slots of a template in one pass, so that braces in values have no effect."""
    return _SLOT.sub(lambda match: slots.get(match[1], match[0]), template(name))
