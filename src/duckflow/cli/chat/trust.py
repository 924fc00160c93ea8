"""Asking once whether a folder is trusted with the configuration it has (SAFETY 6)."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from duckflow.config.trust import Trust, remember_trust, trust_state
from duckflow.i18n.answers import read_answer
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import visible

Ask = Callable[[str], Awaitable[str | None]]
"""Asks a person who sees the question; None for the end of input."""

Show = Callable[[str], None]


async def settle_trust(folder: Path, ask: Ask, show: Show) -> str | None:
    """The digest of the configuration the user trusts here; None if there is none, or they do not."""
    trust = trust_state(folder)
    if trust.status == "nothing":
        return None
    if trust.status == "trusted":
        return trust.digest
    show(trust_text(trust))
    if await _trusted(ask):
        remember_trust(trust)
        show(text("trust.remembered", path=trust.path))
        return trust.digest
    show(text("trust.declined", path=trust.path))
    return None


async def _trusted(ask: Ask) -> bool:
    """Whether the user says yes; anything unclear is asked again, the end of input is a no."""
    while (said := await ask(text("trust.question"))) is not None:
        answer = read_answer(said)
        if answer is not None:
            return answer.yes
    return False


def trust_text(trust: Trust) -> str:
    """What is asked, and the whole configuration with nothing hidden in it."""
    return "\n".join([text(f"trust.{trust.status}", path=trust.path), "", visible(trust.content), ""])
