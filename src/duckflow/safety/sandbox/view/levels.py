"""What keeps commands in on this machine, as the probe found it."""

from typing import Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen

Level = Literal["bubblewrap", "namespaces", "landlock", "external", "none"]


class Sandbox(Frozen):
    """The sandbox in force. `reason` and `advice` are catalogue keys; `values` fill their slots."""

    level: Level
    reason: str
    advice: str | None = None
    """How to get a better one, where there is one."""
    values: dict[str, str] = Field(default_factory=dict[str, str])
    program: str = ""
    """Where bubblewrap is, if that is it."""
    copies: bool = False
    """Whether commands work on a copy of the folder, so that nothing has changed until it is taken over."""
    features: frozenset[str] = frozenset()
    """Options that this bubblewrap knows and older ones do not."""
