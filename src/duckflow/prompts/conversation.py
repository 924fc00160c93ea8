"""The part of a prompt that only grows: what was said and what was found, as chat messages."""

from collections.abc import Sequence
from itertools import groupby

from duckflow.domain.model import ChatMessage, Role
from duckflow.domain.state import Entry

_CHARACTERS_A_TOKEN = 3
"""On the safe side for code and English."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few; Japanese counts a token a character."""
    wide = sum(1 for character in text if ord(character) >= 0x2E80)
    return wide + (len(text) - wide) // _CHARACTERS_A_TOKEN + 1


def conversation(transcript: Sequence[Entry], budget: int) -> list[ChatMessage]:
    """The transcript as messages that take turns, within a budget of tokens."""
    return _take_turns(recent(transcript, budget))


def recent(transcript: Sequence[Entry], budget: int) -> Sequence[Entry]:
    """The entries that fit, the oldest dropped in large steps so that the beginning rarely changes."""
    start, used = 0, 0
    for end, entry in enumerate(transcript):
        used += estimate_tokens(entry.text)
        if used <= budget:
            continue
        while start < end and used > budget // 2:
            used -= estimate_tokens(transcript[start].text)
            start += 1
    return transcript[start:]


def _take_turns(entries: Sequence[Entry]) -> list[ChatMessage]:
    """One message for each run of entries by the same speaker."""
    messages: list[ChatMessage] = []
    for role, run in groupby(entries, key=_role):
        messages.append(ChatMessage(role=role, text="\n\n".join(entry.text for entry in run)))
    return messages


def _role(entry: Entry) -> Role:
    return entry.role
