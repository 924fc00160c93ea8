"""The question of trust in the conversation, and that without one nothing of a project acts (SAFETY 6)."""

from pathlib import Path

import pytest

from duckflow.cli.chat.conversation import settle_trust
from duckflow.config.trust import trust_state
from duckflow.i18n.catalogue import set_language


def asking(answer: str | None):
    """Return a user who answers once and then leaves."""
    asked: list[str] = []

    async def ask(question: str) -> str | None:
        asked.append(question)
        return answer if len(asked) == 1 else None

    return ask, asked


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_it_shows_the_whole_configuration_and_remembers_a_yes(folder: Path, language: str):
    set_language(language)
    (folder / "duckflow.toml").write_text('mode = "plan" # \u202e hidden\n', "utf-8")
    shown: list[str] = []
    ask, asked = asking("y")
    digest = await settle_trust(folder, ask, shown.append)
    assert digest == trust_state(folder).digest
    assert len(asked) == 1
    assert 'mode = "plan" # \\u{202e} hidden' in shown[0]
    ask, asked = asking(None)
    assert await settle_trust(folder, ask, shown.append) == digest
    assert asked == []


@pytest.mark.parametrize("answer", [None, "", "n", "no thanks", "what?", "a lot"])
async def test_all_but_a_yes_is_a_no(folder: Path, answer: str | None):
    """SAFETY 8: no answer is a no, and what is unclear is asked again."""
    (folder / "duckflow.toml").write_text("")
    ask, asked = asking(answer)
    assert await settle_trust(folder, ask, lambda _: None) is None
    assert trust_state(folder).status == "unknown"
    assert len(asked) == (2 if answer in ("", "what?", "a lot") else 1)


async def test_without_a_configuration_nobody_is_asked(folder: Path):
    ask, asked = asking("y")
    assert await settle_trust(folder, ask, lambda _: None) is None
    assert asked == []
