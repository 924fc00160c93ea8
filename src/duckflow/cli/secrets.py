"""Removes secrets from texts outside sessions; sessions do this themselves."""

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckflow.safety.redaction.redactor import Redactor


def without_secrets(text: str) -> str:
    """Replace secrets in a text by markers."""
    return redactor().clean(text)


@cache
def redactor() -> "Redactor":
    """Return the redactor that knows the secrets of this machine."""
    from duckflow.safety.redaction.redactor import Redactor  # noqa: PLC0415 - heavy, and seldom needed
    from duckflow.safety.redaction.values import known_secrets  # noqa: PLC0415 - as above

    return Redactor(known_secrets(os.environ))
