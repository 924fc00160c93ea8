"""The base of what others send us: only the fields we read are declared, the rest is let pass."""

import json
from typing import Self

from pydantic import BaseModel, ConfigDict


class LenientModel(BaseModel):
    """Foreign data. Servers add fields as they like, so unlike our own data it forbids none."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    @classmethod
    def from_json(cls, data: str | bytes) -> Self:
        """Read it, or raise ValueError. Half a surrogate pair passes: some servers cut inside an emoji."""
        try:
            return cls.model_validate(json.loads(data))
        except RecursionError as exc:
            raise ValueError("nested too deep") from exc


class StreamedError(Exception):
    """A server's error after its stream had begun, with the HTTP status it would have had before.

    `said` is the part of the event that describes it; left out, it is the whole event.
    """

    def __init__(self, status: int, said: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.said = said
