"""Prompt texts with named slots, read once from the files in `texts/`, or from the user's own instead."""

import re
from functools import cache
from pathlib import Path

from duckflow.config.places import config_dir
from duckflow.config.toml_file import read_text
from duckflow.domain.errors import UsageError
from duckflow.domain.patterns import late

OWN_FOLDER = "prompts"
_SLOT = late(r"\{(\w+)\}")
_OUTPUT = late(r"^Output: \w+", re.MULTILINE)


def template(name: str) -> str:
    """The text of one template, its slots unfilled."""
    return _read(name, config_dir() / OWN_FOLDER)


@cache
def _read(name: str, own: Path) -> str:
    places = (folder.joinpath(f"{name}.txt") for folder in _folders())
    ours = next(place for place in places if place.is_file()).read_text("utf-8")
    theirs = read_text(own / f"{name}.txt")
    if theirs is None:
        return ours
    missing = {*_SLOT.findall(ours), *_OUTPUT.findall(ours)} - {
        *_SLOT.findall(theirs),
        *_OUTPUT.findall(theirs),
    }
    if missing:
        listed = ", ".join(sorted(missing))
        raise UsageError("prompt.own_lacks", path=own / f"{name}.txt", missing=listed)
    return theirs


def _folders() -> tuple[Path, Path]:
    """The texts of the work itself, and those of the side questions."""
    texts = Path(__file__).with_name("texts")
    return texts, texts / "questions"


def check_own_templates() -> None:
    """A UsageError if one of the user's own texts can't stand in for ours."""
    own = config_dir() / OWN_FOLDER
    if not own.is_dir():
        return
    known = {Path(one.name).stem for folder in _folders() for one in folder.iterdir() if one.is_file()}
    for file in sorted(own.glob("*")):
        if file.suffix != ".txt" or file.stem not in known:
            raise UsageError("prompt.own_unknown", path=file, known=", ".join(sorted(known)))
        _read(file.stem, own)


def fill(name: str, **slots: str) -> str:
    """A template with its slots filled, in one pass: braces in a value mean nothing."""
    return _SLOT.sub(lambda match: slots.get(match[1], match[0]), template(name))
