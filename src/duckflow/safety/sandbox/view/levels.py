"""Sandbox on this machine, as the probe found it."""

from typing import Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen

Level = Literal["bubblewrap", "namespaces", "landlock", "external", "none"]


class Sandbox(Frozen):
    """Sandbox that applies. `reason` and `advice` are catalogue keys; `values` fill their slots."""

    level: Level
    reason: str
    advice: str | None = None
    """Advice on getting a better sandbox, if there is one."""
    values: dict[str, str] = Field(default_factory=dict[str, str])
    program: str = ""
    """Path of bubblewrap, if that is the sandbox."""
    copies: bool = False
    """True if commands work on a copy of the folder, so that nothing changes until effects are applied."""
    features: frozenset[str] = frozenset()
    """Options of this bubblewrap that older ones lack."""
