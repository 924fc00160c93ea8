"""Kind of sandbox on this machine, as found by a test."""

from typing import Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen

Level = Literal["bubblewrap", "namespaces", "landlock", "external", "none"]


class Sandbox(Frozen):
    """Sandbox in use. `reason` and `advice` are catalogue keys; `values` fill their slots."""

    level: Level
    reason: str
    advice: str | None = None
    """Advice on how to get a better sandbox, if one is possible."""
    values: dict[str, str] = Field(default_factory=dict[str, str])
    program: str = ""
    """Path of bubblewrap, if that is the sandbox."""
    copies: bool = False
    """True if commands work on a copy of the folder, which stays unchanged until effects are applied."""
    features: frozenset[str] = frozenset()
    """Optional features that this bubblewrap has."""
