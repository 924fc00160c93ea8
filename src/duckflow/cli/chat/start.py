"""How the conversation was opened."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ConversationStart:
    """What the flags say. Without a folder, it is the session's own."""

    model: str | None
    mode: str | None
    folder: Path | None
    trust: bool
    last: bool
    session: str | None = None
