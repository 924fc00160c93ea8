"""Prompt texts, read once from the files in `texts/`, with named slots."""

import re
from functools import cache
from importlib import resources

_SLOT = re.compile(r"\{(\w+)\}")


@cache
def template(name: str) -> str:
    """The text of one template, its slots unfilled."""
    return resources.files("duckflow.prompts").joinpath("texts", f"{name}.txt").read_text("utf-8")


def fill(name: str, **slots: str) -> str:
    """A template with its slots filled, in one pass: braces in a value mean nothing."""
    return _SLOT.sub(lambda match: slots.get(match[1], match[0]), template(name))
