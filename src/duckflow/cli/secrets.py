"""Texts that do not come out of a session, where secrets end, but are shown or kept all the same."""

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckflow.safety.redaction.redactor import Redactor


def without_secrets(text: str) -> str:
    """The text with markers in place of secrets."""
    return redactor().clean(text)


@cache
def redactor() -> "Redactor":
    """What knows the secrets of this machine."""
    from duckflow.safety.redaction.redactor import Redactor  # noqa: PLC0415 - heavy, and seldom needed
    from duckflow.safety.redaction.values import known_secrets  # noqa: PLC0415 - as above

    return Redactor(known_secrets(os.environ))
