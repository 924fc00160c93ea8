"""Asks once if the user trusts the configuration of a folder (SAFETY 6)."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from duckflow.config.trust import Trust, remember_trust, trust_state
from duckflow.i18n.answers import read_answer
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import visible


async def settle_trust(
    folder: Path, ask: Callable[[str], Awaitable[str | None]], show: Callable[[str], None]
) -> str | None:
    """Return the digest of the configuration that the user trusts; None without trust or configuration."""
    trust = trust_state(folder)
    if trust.status == "nothing":
        return None
    if trust.status == "trusted":
        return trust.digest
    show(trust_text(trust))
    while (said := await ask(text("trust.question"))) is not None:
        answer = read_answer(said)
        if answer is not None and answer.yes:
            remember_trust(trust)
            show(text("trust.remembered", path=trust.path))
            return trust.digest
        if answer is not None:
            break
    show(text("trust.declined", path=trust.path))
    return None


def trust_text(trust: Trust) -> str:
    """Return the question with the whole configuration, all characters visible."""
    return "\n".join([text(f"trust.{trust.status}", path=trust.path), "", visible(trust.content), ""])
