"""The settings of long-term memory."""

from typing import Annotated

from pydantic import Field

from duckflow.domain.frozen import Frozen


class MemorySettings(Frozen):
    """What is kept for later sessions; `duckflow memory list` shows it."""

    enabled: bool = True
    """Whether anything is kept, and shown to models in later sessions."""

    max_entries: Annotated[int, Field(ge=1, le=5_000)] = 500
    """The most texts kept; past it, what was not used for the longest time goes."""
